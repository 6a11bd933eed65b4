/* The operations on files in the pool, by the names of MPI. Handles are passed as pointers, whatever they are in this
 * family of MPI, so that calls.c needs no header of MPI. All return MPI_SUCCESS or the number of an error, for which the
 * error handler of the file was called. */
#ifndef JUNCTURA_MPI_IO_OPERATIONS_H
#define JUNCTURA_MPI_IO_OPERATIONS_H

#include <stdbool.h>

struct open_file;

/* What an access is, besides a read of the file's own position that blocks. */
enum { ACCESS_WRITE = 1, ACCESS_AT = 2, ACCESS_ALL = 4, ACCESS_SPLIT = 8, ACCESS_REQUEST = 16 };

/* Whether calls are looked at: rules are set, and the program's MPI is of this family. */
bool jmpi_is_active(void);

/* The intercepted file of a handle; NULL for all others. */
struct open_file *jmpi_find(const void *handle);
/* The handle that calls of a file go to since the pool could not have it; NULL where they are carried out here. */
void *jmpi_moved_to(const struct open_file *file);

/* False where the file is not for the pool: the caller opens or deletes it by the real function. */
bool jmpi_open(void *comm, const char *name, int amode, void **handle, int *error);
bool jmpi_delete(const char *name, int *error);
int jmpi_close(struct open_file *file, void **handle);

int jmpi_access(struct open_file *file, int what, long long offset, void *buffer, long long count, void *type,
                void *status, void *request);
int jmpi_access_end(struct open_file *file, void *status);

int jmpi_set_view(struct open_file *file, long long displacement, void *etype, void *filetype,
                  const char *representation, void *info);
int jmpi_get_view(struct open_file *file, long long *displacement, void *etype, void *filetype, char *representation);
int jmpi_seek(struct open_file *file, long long offset, int whence);
int jmpi_get_position(struct open_file *file, long long *offset);
int jmpi_get_byte_offset(struct open_file *file, long long offset, long long *bytes);
int jmpi_get_size(struct open_file *file, long long *size);
int jmpi_set_size(struct open_file *file, long long size);
int jmpi_preallocate(struct open_file *file, long long size);
int jmpi_sync(struct open_file *file);
int jmpi_get_amode(struct open_file *file, int *amode);
int jmpi_get_group(struct open_file *file, void *group);
int jmpi_set_atomicity(struct open_file *file, int flag);
int jmpi_get_atomicity(struct open_file *file, int *flag);
/* Functions that need what a file in the pool has not: shared pointers. */
int jmpi_refuse(struct open_file *file, const char *function);

#endif
