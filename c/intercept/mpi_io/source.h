/* A file in the pool that is read: an object of bytes, or an array over ranks, whose elements in row-major order are the
 * bytes of the file. The object is held until the source is closed. */
#ifndef JUNCTURA_MPI_IO_SOURCE_H
#define JUNCTURA_MPI_IO_SOURCE_H

#include "data/claims.h"

typedef struct object_source object_source;

/* The key of a file. Free it with jct_attributes_free. */
jct_attributes_t *jmpi_key_of(const char *folder, const char *name);

/* Waits for a file for `timeout` seconds. A number of the C library; 0 and NULL in `out` never. */
int jmpi_source_open(const char *folder, const char *name, double timeout, object_source **out);
/* `is_done`: it counts as released by this process, once, for the retention of the file. */
void jmpi_source_close(object_source *source, bool is_done);

uint64_t jmpi_source_size(const object_source *source);

/* Reads `bytes` bytes from an offset; all of them exist. A number of the C library, with its text. */
int jmpi_source_read(object_source *source, uint64_t offset, uint64_t bytes, void *to);

/* Whether a claim is a part of the array that the source is. */
bool jmpi_source_has(const object_source *source, const array_claim *claim);

/* Reads such a part, at once, into memory without gaps. */
int jmpi_source_take(object_source *source, const array_claim *claim, void *to, uint64_t bytes);

#endif
