#include "contents.h"

#include <stdlib.h>
#include <string.h>

void jmpi_contents_free(type_contents *contents) {
    for (int i = 0; i < contents->types_count; i++) {
        int integers, addresses, types, combiner;
        if (!jmpi_real.Type_get_envelope(contents->types[i], &integers, &addresses, &types, &combiner) &&
            combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
            combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER)
            jmpi_real.Type_free(&contents->types[i]);
    }
    free(contents->integers);
    free(contents->addresses);
    free(contents->types);
    *contents = (type_contents){0};
}

int jmpi_copy_type(MPI_Datatype type, void *out) {
    type_contents of;
    MPI_Datatype copy = type;
    int error = jmpi_contents_of(type, &of);
    if (error)
        return error;
    /* Types of views are kept as copies: what they are copies of is what the program stated. */
    bool is_copy = of.combiner == MPI_COMBINER_DUP;
    if (is_copy) {
        copy = of.types[0];
        of.types_count = 0;
    } else if (!of.is_named) {
        error = jmpi_real.Type_dup(type, &copy);
    }
    jmpi_contents_free(&of);
    memcpy(out, &copy, sizeof copy);
    return error;
}

int jmpi_contents_of(MPI_Datatype type, type_contents *out) {
    int integers, addresses, types, combiner;
    *out = (type_contents){0};
    int error = jmpi_real.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (error)
        return error;
    out->combiner = combiner;
    out->is_named = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
                    combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
    if (out->is_named)
        return MPI_SUCCESS;
    out->integers = calloc((size_t)integers + 1, sizeof *out->integers);
    out->addresses = calloc((size_t)addresses + 1, sizeof *out->addresses);
    out->types = calloc((size_t)types + 1, sizeof *out->types);
    if (!out->integers || !out->addresses || !out->types)
        error = MPI_ERR_NO_MEM;
    else
        error = jmpi_real.Type_get_contents(type, integers, addresses, types, out->integers, out->addresses, out->types);
    if (error) {
        jmpi_contents_free(out);
        return error;
    }
    out->integers_count = integers;
    out->addresses_count = addresses;
    out->types_count = types;
    return MPI_SUCCESS;
}

static void subarray_of(const int *words, array_part *out) {
    int n = out->dimensions;
    bool is_fortran = words[1 + 3 * n] == MPI_ORDER_FORTRAN;
    for (int i = 0; i < n; i++) {
        int d = is_fortran ? n - 1 - i : i;
        out->shape[d] = (uint64_t)words[1 + i];
        out->along[d] = (part_dimension){.start = (uint64_t)words[1 + 2 * n + i], .count = (uint64_t)words[1 + n + i]};
    }
}

/* Ranks of a darray are numbered row by row over the dimensions that the program states, in both orders. */
static void darray_of(const int *words, array_part *out) {
    out->ranks = words[0];
    out->rank = words[1];
    int n = out->dimensions, rest = words[1];
    const int *sizes = words + 3, *kinds = sizes + n, *arguments = kinds + n, *grid = arguments + n;
    bool is_fortran = grid[n] == MPI_ORDER_FORTRAN;
    out->is_distributed = true;
    out->ranks_in_reverse = is_fortran && n > 1;
    for (int i = n - 1; i >= 0; i--) {
        int d = is_fortran ? n - 1 - i : i;
        uint64_t size = (uint64_t)sizes[i], ranks = (uint64_t)grid[i], place = (uint64_t)rest % ranks;
        uint64_t block = size ? size : 1;
        rest /= grid[i];
        if (kinds[i] == MPI_DISTRIBUTE_BLOCK)
            block = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG ? (size + ranks - 1) / ranks : (uint64_t)arguments[i];
        else if (kinds[i] == MPI_DISTRIBUTE_CYCLIC)
            block = arguments[i] == MPI_DISTRIBUTE_DFLT_DARG ? 1 : (uint64_t)arguments[i];
        block = block ? block : 1;
        out->shape[d] = size;
        out->grid[d] = ranks;
        out->block[d] = block;
        uint64_t start = place * block < size ? place * block : size;
        bool is_one = (place + ranks) * block >= size;
        out->along[d] = (part_dimension){.start = start,
                                         .count = block < size - start ? block : size - start,
                                         .stride = is_one ? 0 : ranks * block};
    }
}

int jmpi_part_of(const type_contents *contents, array_part *out) {
    *out = (array_part){0};
    bool is_subarray = contents->combiner == MPI_COMBINER_SUBARRAY;
    out->dimensions = contents->integers[is_subarray ? 0 : 2];
    if (out->dimensions < 1 || out->dimensions > JMPI_DIMENSIONS_MAX)
        return MPI_ERR_TYPE;
    if (is_subarray)
        subarray_of(contents->integers, out);
    else
        darray_of(contents->integers, out);
    return MPI_SUCCESS;
}

bool jmpi_is_box(const array_part *part) {
    for (int d = 0; d < part->dimensions; d++)
        if (part->along[d].stride)
            return false;
    return true;
}
