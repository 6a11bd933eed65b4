/* Copies of hyperslabs between the memory of a program and a row-major array. */
#ifndef JUNCTURA_NETCDF_SLAB_H
#define JUNCTURA_NETCDF_SLAB_H

#include "convert.h"

/* A part of an array, and where it is in the memory of the program. All pointers have one number for each dimension. */
typedef struct {
    size_t dims;
    const size_t *shape;
    const size_t *start;
    const size_t *count;
    const ptrdiff_t *stride;
    /* In elements of the memory. */
    const ptrdiff_t *map;
} SlabPart;

/* The two sides of a copy. */
typedef struct {
    nc_type array_type;
    void *array;
    nc_type memory_type;
    void *memory;
    bool loose;
} SlabSides;

/* Returns the number of elements of a shape. */
size_t slab_elements(size_t dims, const size_t *shape);

/* Copies the part from the memory to the array, or from the array to the memory. Errors: those of convert_run. */
int slab_put(const SlabPart *part, const SlabSides *sides);
int slab_get(const SlabPart *part, const SlabSides *sides);

/* Whether the part is one run in the array and in the memory; `at` is its first element in the array. */
bool slab_is_run(const SlabPart *part, size_t *at);

/* Sets the bits of the part's elements in a bitmap of the array; returns how many were not set before. */
size_t slab_mark(const SlabPart *part, unsigned char *bits);

/* Fills `count` elements with one value; texts are copied. */
int slab_fill(nc_type type, void *array, size_t count, const void *value);

#endif
