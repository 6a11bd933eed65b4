/* Takes types of MPI apart: the runs of bytes that one element of a type has, in the order of the type map. */
#ifndef JUNCTURA_MPI_IO_FLATTEN_H
#define JUNCTURA_MPI_IO_FLATTEN_H

#include "real.h"

#include <stddef.h>

/* Runs that one type may have: 1.5 GiB of memory. A type that has more is refused before memory is spent. */
#define JMPI_RUNS_MAX ((size_t)1 << 26)
/* Types inside types. */
#define JMPI_DEPTH_MAX 64

typedef struct type_run {
    int64_t offset;  /* from the address of the element */
    uint64_t bytes;
    uint64_t before; /* bytes of the runs before this one */
} type_run;

typedef struct flat_type {
    type_run *runs;
    size_t count;
    uint64_t size;  /* bytes of all runs */
    int64_t extent; /* from one element to the next */
} flat_type;

/* MPI_SUCCESS, or the class of an error: MPI_ERR_TYPE for a type that is unknown here, MPI_ERR_NO_MEM. */
int jmpi_flatten(MPI_Datatype type, flat_type *out);
void jmpi_flat_free(flat_type *flat);

/* Whether elements one behind the other have no gaps. */
bool jmpi_is_dense(const flat_type *flat);

/* Walks over `bytes` bytes of elements one behind the other, from byte `from` of their data. */
typedef struct run_walk {
    const flat_type *flat;
    int64_t base;
    size_t run;
    uint64_t within, left;
} run_walk;

void jmpi_walk(run_walk *walk, const flat_type *flat, int64_t base, uint64_t from, uint64_t bytes);
/* Takes the next run. False at the end. */
bool jmpi_step(run_walk *walk, int64_t *offset, uint64_t *bytes);

/* The bytes of data of elements one behind the other, from address 0, that are in front of an address. */
uint64_t jmpi_bytes_below(const flat_type *flat, int64_t address);

/* Copies `bytes` bytes between elements in memory and a buffer without gaps. */
void jmpi_pack(const void *memory, const flat_type *flat, uint64_t bytes, void *packed);
void jmpi_unpack(const void *packed, const flat_type *flat, uint64_t bytes, void *memory);

#endif
