#include "claims.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many elements as an array may have. */
#define ELEMENTS_MAX ((uint64_t)1 << 58)
/* Boxes of a layout. */
#define BOXES_MAX ((int)1 << 20)

/* Types of elements, by their type of MPI. */
static const char *name_of(MPI_Datatype type, uint64_t bytes) {
    const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8};
    const MPI_Datatype complexes[] = {MPI_COMPLEX,         MPI_DOUBLE_COMPLEX,    MPI_C_COMPLEX,  MPI_C_FLOAT_COMPLEX,
                                      MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16,
                                      MPI_CXX_DOUBLE_COMPLEX};
    const MPI_Datatype integers[] = {MPI_INT,     MPI_LONG,    MPI_LONG_LONG, MPI_SHORT,    MPI_SIGNED_CHAR, MPI_INTEGER,
                                     MPI_INT8_T,  MPI_INT16_T, MPI_INT32_T,   MPI_INT64_T,  MPI_INTEGER1,    MPI_INTEGER2,
                                     MPI_INTEGER4, MPI_INTEGER8, MPI_AINT,    MPI_OFFSET,   MPI_COUNT};
    const MPI_Datatype naturals[] = {MPI_UNSIGNED,  MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_SHORT,
                                     MPI_UINT8_T,   MPI_UINT16_T,      MPI_UINT32_T,           MPI_UINT64_T,
                                     MPI_BYTE,      MPI_CHAR,          MPI_UNSIGNED_CHAR,      MPI_CHARACTER};
    const struct {
        const MPI_Datatype *types;
        size_t count;
        const char *names[17]; /* by bytes */
    } kinds[] = {
        {reals, sizeof reals / sizeof *reals, {[4] = "f4", [8] = "f8"}},
        {complexes, sizeof complexes / sizeof *complexes, {[8] = "c8", [16] = "c16"}},
        {integers, sizeof integers / sizeof *integers, {[1] = "i1", [2] = "i2", [4] = "i4", [8] = "i8"}},
        {naturals, sizeof naturals / sizeof *naturals, {[1] = "u1", [2] = "u2", [4] = "u4", [8] = "u8"}},
    };
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (size_t i = 0; i < kinds[kind].count; i++)
            if (kinds[kind].types[i] == type && bytes <= 16)
                return kinds[kind].names[bytes];
    return NULL;
}

/* The named type that a type repeats without gaps, and how often. */
static bool base_of(MPI_Datatype type, array_claim *out, uint64_t *times, int depth) {
    type_contents of;
    bool is_base = false;
    if (depth > JMPI_DIMENSIONS_MAX || jmpi_contents_of(type, &of))
        return false;
    if (of.is_named) {
        MPI_Count bytes;
        const char *name = NULL;
        if (!jmpi_real.Type_size_x(type, &bytes) && bytes > 0)
            name = name_of(type, (uint64_t)bytes);
        if (name) {
            memset(out->type, 0, sizeof out->type);
            strcpy(out->type, name);
            out->element = (uint64_t)bytes;
            is_base = true;
        }
    } else if (of.combiner == MPI_COMBINER_DUP) {
        is_base = base_of(of.types[0], out, times, depth + 1);
    } else if (of.combiner == MPI_COMBINER_CONTIGUOUS && of.integers[0] > 0 &&
               *times <= ELEMENTS_MAX / (uint64_t)of.integers[0]) {
        *times *= (uint64_t)of.integers[0];
        is_base = base_of(of.types[0], out, times, depth + 1);
    }
    jmpi_contents_free(&of);
    return is_base;
}

/* Elements that are several values are one more dimension. */
static bool append_dimension(array_part *part, uint64_t values) {
    if (values == 1)
        return true;
    int d = part->dimensions;
    if (d == JMPI_DIMENSIONS_MAX)
        return false;
    part->shape[d] = values;
    part->along[d] = (part_dimension){.start = 0, .count = values};
    part->grid[d] = 1;
    part->block[d] = values;
    part->dimensions++;
    return true;
}

void jmpi_claim_of_view(MPI_Datatype filetype, array_claim *out) {
    uint64_t times = 1;
    *out = (array_claim){.kind = CLAIM_OTHER};
    if (base_of(filetype, out, &times, 0)) {
        out->kind = CLAIM_PART;
        out->is_open = true;
        out->part.dimensions = 1;
        return;
    }
    type_contents of;
    if (jmpi_contents_of(filetype, &of))
        return;
    if (!of.is_named && (of.combiner == MPI_COMBINER_SUBARRAY || of.combiner == MPI_COMBINER_DARRAY) &&
        base_of(of.types[0], out, &times, 0) && !jmpi_part_of(&of, &out->part) && append_dimension(&out->part, times))
        out->kind = CLAIM_PART;
    jmpi_contents_free(&of);
}

uint64_t jmpi_elements_of(const array_part *part) {
    uint64_t all = 1;
    for (int d = 0; d < part->dimensions; d++) {
        const part_dimension *mine = &part->along[d];
        uint64_t count = 0;
        for (uint64_t start = mine->start; start < part->shape[d]; start += mine->stride) {
            uint64_t left = part->shape[d] - start;
            count += mine->count < left ? mine->count : left;
            if (mine->stride == 0)
                break;
        }
        if (count && all > ELEMENTS_MAX / count)
            return ELEMENTS_MAX;
        all *= count;
    }
    return all;
}

void jmpi_claim_of_access(const array_claim *view, uint64_t displacement, uint64_t from, uint64_t bytes,
                          MPI_Datatype memory, array_claim *out) {
    *out = *view;
    if (out->kind == CLAIM_OTHER)
        return;
    if (!out->is_open) {
        if (bytes == 0)
            out->kind = CLAIM_NOTHING;
        else if (displacement || from || bytes != jmpi_elements_of(&out->part) * out->element)
            out->kind = CLAIM_OTHER;
        return;
    }
    /* Of a view of bytes, the type in memory is that of the elements. */
    array_claim wider = *view;
    uint64_t times = 1, start = displacement + from;
    if (out->element == 1 && base_of(memory, &wider, &times, 0) && start % wider.element == 0)
        *out = wider;
    if (bytes == 0)
        out->kind = CLAIM_NOTHING;
    else if (start % out->element || bytes % out->element)
        out->kind = CLAIM_OTHER;
    out->part.along[0] = (part_dimension){.start = start / out->element, .count = bytes / out->element};
    out->part.shape[0] = out->part.along[0].start + out->part.along[0].count;
}

/* Layouts */

/* A darray of which every rank has its own place. */
static bool is_grid(const array_claim *claims, int ranks) {
    const array_part *first = &claims[0].part;
    for (int rank = 0; rank < ranks; rank++) {
        const array_part *part = &claims[rank].part;
        if (claims[rank].kind != CLAIM_PART || !part->is_distributed || part->rank != rank || part->ranks != ranks ||
            part->ranks_in_reverse != first->ranks_in_reverse ||
            memcmp(part->grid, first->grid, sizeof part->grid) || memcmp(part->block, first->block, sizeof part->block))
            return false;
    }
    return true;
}

static size_t put_numbers(char *text, size_t room, size_t at, const char *name, const uint64_t *numbers, int count) {
    at += (size_t)snprintf(text + at, room - at, " %s=", name);
    for (int d = 0; d < count; d++)
        at += (size_t)snprintf(text + at, room - at, "%s%llu", d ? "x" : "", (unsigned long long)numbers[d]);
    return at;
}

static jct_layout_t *layout_of_grid(const array_part *part) {
    char text[4 * JMPI_DIMENSIONS_MAX * 24];
    jct_layout_t *layout;
    size_t at = put_numbers(text, sizeof text, 0, "shape", part->shape, part->dimensions);
    at = put_numbers(text, sizeof text, at, "grid", part->grid, part->dimensions);
    at = put_numbers(text, sizeof text, at, "block", part->block, part->dimensions);
    snprintf(text + at, sizeof text - at, " ranks=%s", part->ranks_in_reverse ? "F" : "C");
    return jmpi_jct.jct_layout_parse(text, &layout) ? NULL : layout;
}

/* One shape and one type of elements; contiguous views get the length of the array. */
static bool agree(array_claim *claims, int ranks, uint64_t *whole) {
    const array_claim *first = NULL;
    uint64_t elements = 0, all = 1, end = 0;
    for (int rank = 0; rank < ranks; rank++) {
        array_claim *claim = &claims[rank];
        if (claim->kind == CLAIM_OTHER)
            return false;
        if (claim->kind == CLAIM_NOTHING)
            continue;
        first = first ? first : claim;
        if (strcmp(claim->type, first->type) || claim->part.dimensions != first->part.dimensions ||
            claim->is_open != first->is_open ||
            (!claim->is_open && memcmp(claim->part.shape, first->part.shape, sizeof claim->part.shape)))
            return false;
        elements += jmpi_elements_of(&claim->part);
        end = claim->part.shape[0] > end ? claim->part.shape[0] : end;
    }
    if (!first)
        return false;
    for (int rank = 0; rank < ranks; rank++)
        if (claims[rank].kind == CLAIM_PART && claims[rank].is_open)
            claims[rank].part.shape[0] = end;
    for (int d = 0; d < first->part.dimensions; d++) {
        uint64_t extent = first->part.shape[d];
        if (extent && all > ELEMENTS_MAX / extent)
            return false;
        all *= extent;
    }
    *whole = all * first->element;
    return all == elements;
}

static jct_layout_t *layout_of_boxes(const array_claim *claims, int ranks) {
    const array_claim *first = NULL;
    size_t boxes = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (claims[rank].kind != CLAIM_PART)
            continue;
        first = first ? first : &claims[rank];
        if (!jmpi_is_box(&claims[rank].part))
            return NULL;
        boxes += jmpi_elements_of(&claims[rank].part) > 0;
    }
    if (!first || ranks > BOXES_MAX)
        return NULL;
    size_t dimensions = (size_t)first->part.dimensions;
    uint64_t *numbers = calloc((2 * dimensions + 1) * boxes + 1, sizeof *numbers);
    jct_layout_t *layout = NULL;
    if (!numbers)
        return NULL;
    uint64_t *owners = numbers, *starts = owners + boxes, *counts = starts + boxes * dimensions;
    size_t box = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (claims[rank].kind != CLAIM_PART || !jmpi_elements_of(&claims[rank].part))
            continue;
        owners[box] = (uint64_t)rank;
        for (size_t d = 0; d < dimensions; d++) {
            starts[box * dimensions + d] = claims[rank].part.along[d].start;
            counts[box * dimensions + d] = claims[rank].part.along[d].count;
        }
        box++;
    }
    if (jmpi_jct.jct_layout_blocks(dimensions, first->part.shape, boxes, owners, starts, counts, JCT_ORDER_C, &layout))
        layout = NULL;
    free(numbers);
    return layout;
}

jct_layout_t *jmpi_layout_of(array_claim *claims, int ranks, uint64_t *whole) {
    uint64_t bytes;
    if (!agree(claims, ranks, &bytes) || bytes == 0)
        return NULL;
    if (whole)
        *whole = bytes;
    return is_grid(claims, ranks) ? layout_of_grid(&claims[0].part) : layout_of_boxes(claims, ranks);
}

jct_layout_t *jmpi_layout_of_reader(const array_claim *claim, uint64_t *rank) {
    *rank = 0;
    if (claim->kind != CLAIM_PART)
        return NULL;
    if (jmpi_is_box(&claim->part))
        return layout_of_boxes(claim, 1);
    *rank = (uint64_t)claim->part.rank;
    return layout_of_grid(&claim->part);
}
