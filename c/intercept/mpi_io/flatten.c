#include "flatten.h"
#include "contents.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct run_builder {
    flat_type *flat;
    size_t room;
    int error;
} run_builder;

static int flatten(MPI_Datatype type, flat_type *out, int depth);

void jmpi_flat_free(flat_type *flat) {
    free(flat->runs);
    *flat = (flat_type){0};
}

bool jmpi_is_dense(const flat_type *flat) {
    return flat->count == 0 || (flat->count == 1 && flat->extent == (int64_t)flat->size);
}

/* Building */

static void append_run(run_builder *to, int64_t offset, uint64_t bytes) {
    flat_type *flat = to->flat;
    if (to->error || bytes == 0)
        return;
    type_run *last = flat->count ? &flat->runs[flat->count - 1] : NULL;
    if (last && last->offset + (int64_t)last->bytes == offset) {
        last->bytes += bytes;
    } else {
        if (flat->count == to->room) {
            size_t room = to->room ? 2 * to->room : 4;
            type_run *grown = room > JMPI_RUNS_MAX ? NULL : realloc(flat->runs, room * sizeof *grown);
            if (!grown) {
                to->error = MPI_ERR_NO_MEM;
                return;
            }
            flat->runs = grown;
            to->room = room;
        }
        flat->runs[flat->count++] = (type_run){.offset = offset, .bytes = bytes, .before = flat->size};
    }
    flat->size += bytes;
}

/* `count` elements of a type, `stride` bytes apart. */
static void append_copies(run_builder *to, const flat_type *child, int64_t base, int64_t count, int64_t stride) {
    if (count <= 0 || child->count == 0)
        return;
    if (child->count == 1 && stride == (int64_t)child->size) {
        append_run(to, base + child->runs[0].offset, (uint64_t)count * child->size);
        return;
    }
    for (int64_t i = 0; i < count && !to->error; i++)
        for (size_t run = 0; run < child->count; run++)
            append_run(to, base + i * stride + child->runs[run].offset, child->runs[run].bytes);
}

/* `count` blocks of `length` elements, `stride` bytes apart. */
static void append_vector(run_builder *to, const flat_type *child, int64_t count, int64_t length, int64_t stride) {
    flat_type block = {0};
    run_builder one = {.flat = &block};
    append_copies(&one, child, 0, length, child->extent);
    append_copies(to, &block, 0, count, stride);
    to->error = to->error ? to->error : one.error;
    jmpi_flat_free(&block);
}

/* Elements of a subarray or darray, in the order of the file: the last dimension is the fastest. */
static void append_part(run_builder *to, const flat_type *child, const array_part *part, int dimension, int64_t base) {
    int64_t inner = 1;
    for (int d = dimension + 1; d < part->dimensions; d++)
        inner *= (int64_t)part->shape[d];
    const part_dimension *mine = &part->along[dimension];
    bool is_last = dimension == part->dimensions - 1;
    for (uint64_t start = mine->start; start < part->shape[dimension] && !to->error; start += mine->stride) {
        uint64_t left = part->shape[dimension] - start, count = mine->count < left ? mine->count : left;
        if (is_last) {
            append_copies(to, child, (base + (int64_t)start) * child->extent, (int64_t)count, child->extent);
        } else {
            for (uint64_t i = 0; i < count && !to->error; i++)
                append_part(to, child, part, dimension + 1, base + (int64_t)(start + i) * inner);
        }
        if (mine->stride == 0)
            break;
    }
}

/* Named types */

/* A value and an index, as structs of C: the only named types that have gaps. */
static bool append_pair(run_builder *to, MPI_Datatype type) {
    struct short_int { short value; int index; };
    struct long_int { long value; int index; };
    struct double_int { double value; int index; };
    struct long_double_int { long double value; int index; };
    size_t value = 0, index = 0;
    if (type == MPI_SHORT_INT)
        value = sizeof(short), index = offsetof(struct short_int, index);
    else if (type == MPI_LONG_INT)
        value = sizeof(long), index = offsetof(struct long_int, index);
    else if (type == MPI_DOUBLE_INT)
        value = sizeof(double), index = offsetof(struct double_int, index);
    else if (type == MPI_LONG_DOUBLE_INT)
        value = sizeof(long double), index = offsetof(struct long_double_int, index);
    else
        return false;
    append_run(to, 0, value);
    append_run(to, (int64_t)index, sizeof(int));
    return true;
}

static int append_named(run_builder *to, MPI_Datatype type) {
    MPI_Count size;
    int error = jmpi_real.Type_size_x(type, &size);
    if (!error && !append_pair(to, type))
        append_run(to, 0, size < 0 ? 0 : (uint64_t)size);
    return error;
}

/* Derived types */

static int flatten_struct(run_builder *to, const type_contents *of, int depth) {
    for (int64_t i = 0; i < of->integers[0] && !to->error; i++) {
        flat_type child = {0};
        int error = flatten(of->types[i], &child, depth + 1);
        if (error)
            return error;
        append_copies(to, &child, of->addresses[i], of->integers[1 + i], child.extent);
        jmpi_flat_free(&child);
    }
    return to->error;
}

static int append_derived(run_builder *to, const type_contents *of, int depth) {
    if (of->combiner == MPI_COMBINER_STRUCT)
        return flatten_struct(to, of, depth);
    flat_type child = {0};
    int error = flatten(of->types[0], &child, depth + 1);
    if (error)
        return error;
    const int64_t *words = of->integers;
    array_part part;
    switch (of->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        append_copies(to, &child, 0, 1, child.extent);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        append_copies(to, &child, 0, words[0], child.extent);
        break;
    case MPI_COMBINER_VECTOR:
        append_vector(to, &child, words[0], words[1], words[2] * child.extent);
        break;
    case MPI_COMBINER_HVECTOR:
        append_vector(to, &child, words[0], words[1], of->addresses[0]);
        break;
    case MPI_COMBINER_INDEXED:
        for (int64_t i = 0; i < words[0] && !to->error; i++)
            append_copies(to, &child, words[1 + words[0] + i] * child.extent, words[1 + i], child.extent);
        break;
    case MPI_COMBINER_HINDEXED:
        for (int64_t i = 0; i < words[0] && !to->error; i++)
            append_copies(to, &child, of->addresses[i], words[1 + i], child.extent);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int64_t i = 0; i < words[0] && !to->error; i++)
            append_copies(to, &child, words[2 + i] * child.extent, words[1], child.extent);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int64_t i = 0; i < words[0] && !to->error; i++)
            append_copies(to, &child, of->addresses[i], words[1], child.extent);
        break;
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY:
        error = jmpi_part_of(of, &part);
        if (!error)
            append_part(to, &child, &part, 0, 0);
        break;
    default:
        error = MPI_ERR_TYPE;
    }
    jmpi_flat_free(&child);
    return error ? error : to->error;
}

static int flatten(MPI_Datatype type, flat_type *out, int depth) {
    *out = (flat_type){0};
    if (depth > JMPI_DEPTH_MAX)
        return MPI_ERR_TYPE;
    run_builder to = {.flat = out};
    type_contents of;
    int error = jmpi_contents_of(type, &of);
    if (!error) {
        error = of.is_named ? append_named(&to, type) : append_derived(&to, &of, depth);
        jmpi_contents_free(&of);
    }
    MPI_Count lower, extent;
    if (!error)
        error = jmpi_real.Type_get_extent_x(type, &lower, &extent);
    if (!error)
        error = to.error;
    if (error)
        jmpi_flat_free(out);
    else
        out->extent = (int64_t)extent;
    return error;
}

int jmpi_flatten(MPI_Datatype type, flat_type *out) { return flatten(type, out, 0); }

/* Walking */

/* The run that has a byte of the data of one element. */
static size_t run_of(const flat_type *flat, uint64_t byte) {
    size_t low = 0, high = flat->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (flat->runs[middle].before <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void jmpi_walk(run_walk *walk, const flat_type *flat, int64_t base, uint64_t from, uint64_t bytes) {
    *walk = (run_walk){.flat = flat, .base = base, .left = flat->size ? bytes : 0};
    if (walk->left == 0)
        return;
    if (jmpi_is_dense(flat)) {
        walk->base += (int64_t)from;
        return;
    }
    walk->base += (int64_t)(from / flat->size) * flat->extent;
    from %= flat->size;
    walk->run = run_of(flat, from);
    walk->within = from - flat->runs[walk->run].before;
}

bool jmpi_step(run_walk *walk, int64_t *offset, uint64_t *bytes) {
    const flat_type *flat = walk->flat;
    if (walk->left == 0)
        return false;
    if (jmpi_is_dense(flat)) {
        *offset = walk->base + flat->runs[0].offset;
        *bytes = walk->left;
        walk->left = 0;
        return true;
    }
    const type_run *run = &flat->runs[walk->run];
    *offset = walk->base + run->offset + (int64_t)walk->within;
    *bytes = run->bytes - walk->within;
    if (*bytes > walk->left)
        *bytes = walk->left;
    walk->left -= *bytes;
    walk->within = 0;
    if (++walk->run == flat->count) {
        walk->run = 0;
        walk->base += flat->extent;
    }
    return true;
}

uint64_t jmpi_bytes_below(const flat_type *flat, int64_t address) {
    if (flat->size == 0 || address <= 0)
        return 0;
    if (jmpi_is_dense(flat) || flat->extent <= 0)
        return (uint64_t)address;
    uint64_t whole = (uint64_t)(address / flat->extent), bytes = whole * flat->size;
    int64_t within = address % flat->extent;
    for (size_t i = 0; i < flat->count; i++) {
        int64_t after = within - flat->runs[i].offset;
        if (after > 0)
            bytes += (uint64_t)after < flat->runs[i].bytes ? (uint64_t)after : flat->runs[i].bytes;
    }
    return bytes;
}

/* Addresses may be those of MPI_BOTTOM and be computed by the program: they are numbers here. */
static unsigned char *at(const void *memory, int64_t offset) {
    return (unsigned char *)((uintptr_t)memory + (uintptr_t)offset);
}

void jmpi_pack(const void *memory, const flat_type *flat, uint64_t bytes, void *packed) {
    unsigned char *to = packed;
    run_walk walk;
    int64_t offset;
    uint64_t length;
    jmpi_walk(&walk, flat, 0, 0, bytes);
    for (; jmpi_step(&walk, &offset, &length); to += length)
        memcpy(to, at(memory, offset), length);
}

void jmpi_unpack(const void *packed, const flat_type *flat, uint64_t bytes, void *memory) {
    const unsigned char *from = packed;
    run_walk walk;
    int64_t offset;
    uint64_t length;
    jmpi_walk(&walk, flat, 0, 0, bytes);
    for (; jmpi_step(&walk, &offset, &length); from += length)
        memcpy(at(memory, offset), from, length);
}
