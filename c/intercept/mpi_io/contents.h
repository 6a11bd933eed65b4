/* Asks MPI how a type was made. */
#ifndef JUNCTURA_MPI_IO_CONTENTS_H
#define JUNCTURA_MPI_IO_CONTENTS_H

#include "real.h"

#include <stddef.h>

/* As many as layouts of arrays have. */
#define JMPI_DIMENSIONS_MAX 8

typedef struct type_contents {
    bool is_named;
    int combiner;
    size_t types_count;
    /* As the constructor that takes an int has them, also where the type was made by that of MPI_Count. */
    int64_t *integers, *addresses;
    MPI_Datatype *types;
} type_contents;

int jmpi_contents_of(MPI_Datatype type, type_contents *out);
void jmpi_contents_free(type_contents *contents);

/* A handle of a type that the caller may free, as MPI_File_get_view gives it: a copy, or a named type itself. */
int jmpi_copy_type(MPI_Datatype type, void *out);

/* Indices of a dimension: blocks of `count` from `start`, one every `stride`; a stride of 0 where there is one block. */
typedef struct part_dimension {
    uint64_t start, count, stride;
} part_dimension;

/* What a subarray or a darray has of an array. Dimensions are in the order of the file: the slowest first, also where
 * the program states them in the order of Fortran. */
typedef struct array_part {
    int dimensions;
    uint64_t shape[JMPI_DIMENSIONS_MAX];
    part_dimension along[JMPI_DIMENSIONS_MAX];
    /* Of a darray: ranks of each dimension, and indices of a block. */
    bool is_distributed, ranks_in_reverse;
    int rank, ranks;
    uint64_t grid[JMPI_DIMENSIONS_MAX], block[JMPI_DIMENSIONS_MAX];
} array_part;

/* MPI_ERR_TYPE where it has more dimensions than JMPI_DIMENSIONS_MAX. */
int jmpi_part_of(const type_contents *contents, array_part *out);

/* Whether the part is one box. */
bool jmpi_is_box(const array_part *part);

#endif
