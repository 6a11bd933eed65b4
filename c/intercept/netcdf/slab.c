/* Copies of hyperslabs: an odometer over the outer dimensions, and one run along the innermost. */
#define _GNU_SOURCE
#include "slab.h"

#include <stdlib.h>
#include <string.h>

size_t slab_elements(size_t dims, const size_t *shape) {
    size_t elements = 1;
    for (size_t at = 0; at < dims; at++) elements *= shape[at];
    return elements;
}

/* One run: `count` elements, the first at these places. */
typedef int RunFunction(void *context, size_t at_array, ptrdiff_t array_step, ptrdiff_t at_memory, ptrdiff_t memory_step,
                        size_t count);

/* The number of innermost dimensions that are one run in the array and in the memory. */
static size_t dims_of_run(const SlabPart *part) {
    size_t at = part->dims - 1;
    while (at > 0 && part->start[at] == 0 && part->count[at] == part->shape[at] && part->stride[at] == 1 &&
           part->stride[at - 1] == 1 && part->map[at - 1] == part->map[at] * (ptrdiff_t)part->shape[at])
        at--;
    return part->dims - at;
}

bool slab_is_run(const SlabPart *part, size_t *at) {
    size_t weight = 1, outer = part->dims ? part->dims - dims_of_run(part) : 0;
    *at = 0;
    for (size_t dim = part->dims; dim-- > 0; weight *= part->shape[dim]) *at += part->start[dim] * weight;
    for (size_t dim = 0; dim < outer; dim++)
        if (part->count[dim] != 1) return false;
    size_t last = part->dims - 1;
    return part->dims == 0 || part->count[last] == 1 || (part->stride[last] == 1 && part->map[last] == 1);
}

static int for_runs(const SlabPart *part, RunFunction *run, void *context) {
    if (part->dims == 0) return run(context, 0, 1, 0, 1, 1);
    if (slab_elements(part->dims, part->count) == 0) return NC_NOERR;
    size_t outer = part->dims - dims_of_run(part), weight = 1;
    size_t *weights = malloc(2 * part->dims * sizeof *weights), *index = weights + part->dims;
    if (!weights) return NC_ENOMEM;
    for (size_t at = part->dims; at-- > 0; weight *= part->shape[at]) weights[at] = weight;
    for (size_t at = 0; at < part->dims; at++) index[at] = 0;
    size_t inner = 1;
    for (size_t at = outer; at < part->dims; at++) inner *= part->count[at];
    ptrdiff_t last = part->stride[part->dims - 1], memory_step = part->map[part->dims - 1];
    int status = NC_NOERR;
    for (bool more = true; more;) {
        size_t at_array = 0;
        ptrdiff_t at_memory = 0;
        for (size_t at = 0; at < part->dims; at++) {
            at_array += (part->start[at] + index[at] * (size_t)part->stride[at]) * weights[at];
            at_memory += (ptrdiff_t)index[at] * part->map[at];
        }
        int of_run = run(context, at_array, last, at_memory, memory_step, inner);
        if (of_run != NC_NOERR) status = of_run;
        if (of_run != NC_NOERR && of_run != NC_ERANGE) break;
        more = false;
        for (size_t at = outer; at-- > 0;) {
            if (++index[at] < part->count[at]) {
                more = true;
                break;
            }
            index[at] = 0;
        }
    }
    free(weights);
    return status;
}

static int put_run(void *context, size_t at_array, ptrdiff_t array_step, ptrdiff_t at_memory, ptrdiff_t memory_step,
                   size_t count) {
    const SlabSides *sides = context;
    const char *source = (const char *)sides->memory + at_memory * (ptrdiff_t)convert_size(sides->memory_type);
    char *target = (char *)sides->array + at_array * convert_size(sides->array_type);
    return convert_run(sides->memory_type, source, memory_step, sides->array_type, target, array_step, count,
                       sides->loose, true);
}

static int get_run(void *context, size_t at_array, ptrdiff_t array_step, ptrdiff_t at_memory, ptrdiff_t memory_step,
                   size_t count) {
    const SlabSides *sides = context;
    const char *source = (const char *)sides->array + at_array * convert_size(sides->array_type);
    char *target = (char *)sides->memory + at_memory * (ptrdiff_t)convert_size(sides->memory_type);
    return convert_run(sides->array_type, source, array_step, sides->memory_type, target, memory_step, count,
                       sides->loose, false);
}

int slab_put(const SlabPart *part, const SlabSides *sides) { return for_runs(part, put_run, (void *)sides); }

int slab_get(const SlabPart *part, const SlabSides *sides) { return for_runs(part, get_run, (void *)sides); }

typedef struct {
    unsigned char *bits;
    size_t fresh;
} MarkedBits;

static int mark_run(void *context, size_t at_array, ptrdiff_t array_step, ptrdiff_t at_memory, ptrdiff_t memory_step,
                    size_t count) {
    (void)at_memory, (void)memory_step;
    MarkedBits *marked = context;
    for (size_t done = 0; done < count; at_array += (size_t)array_step, done++) {
        unsigned char *byte = marked->bits + at_array / 8, bit = (unsigned char)(1u << at_array % 8);
        if (bit == 1 && array_step == 1 && count - done >= 8 && *byte == 0) {
            *byte = 0xff;
            marked->fresh += 8;
            done += 7;
            at_array += 7;
            continue;
        }
        marked->fresh += !(*byte & bit);
        *byte |= bit;
    }
    return NC_NOERR;
}

size_t slab_mark(const SlabPart *part, unsigned char *bits) {
    MarkedBits marked = {bits, 0};
    for_runs(part, mark_run, &marked);
    return marked.fresh;
}

int slab_fill(nc_type type, void *array, size_t count, const void *value) {
    size_t bytes = convert_size(type);
    if (type != NC_STRING) {
        bool is_uniform = true;
        for (size_t at = 1; at < bytes; at++)
            is_uniform &= ((const unsigned char *)value)[at] == *(const unsigned char *)value;
        if (is_uniform) {
            memset(array, *(const unsigned char *)value, count * bytes);
            return NC_NOERR;
        }
    }
    return convert_run(type, value, 0, type, array, 1, count, false, true);
}
