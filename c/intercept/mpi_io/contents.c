#include "contents.h"

#include <stdlib.h>
#include <string.h>

/* The forms of MPI 4. A library without them has no types that need them. */
typedef int envelope_function(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
typedef int contents_function(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *, MPI_Count *,
                              MPI_Datatype *);

/* How many numbers of each kind a type has. */
typedef struct type_envelope {
    MPI_Count integers, addresses, large, types;
    int combiner;
} type_envelope;

static int envelope_of(MPI_Datatype type, type_envelope *out) {
    envelope_function *large = NULL;
    if (jmpi_next("PMPI_Type_get_envelope_c", &large))
        return large(type, &out->integers, &out->addresses, &out->large, &out->types, &out->combiner);
    int integers, addresses, types, error = jmpi_real.Type_get_envelope(type, &integers, &addresses, &types, &out->combiner);
    if (!error)
        *out = (type_envelope){integers, addresses, 0, types, out->combiner};
    return error;
}

static bool is_named(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

void jmpi_contents_free(type_contents *contents) {
    for (size_t i = 0; i < contents->types_count; i++) {
        type_envelope of;
        if (!envelope_of(contents->types[i], &of) && !is_named(of.combiner))
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

/* Brings numbers of the kinds that MPI 4 has into the order of the constructor that takes an int. */
static void sort_numbers(const type_envelope *of, const int *integers, const MPI_Aint *addresses, const MPI_Count *large,
                         type_contents *out) {
    int64_t *to = out->integers;
    MPI_Count in_front = 0, count = of->large, first = of->large;
    if (of->combiner == MPI_COMBINER_SUBARRAY)
        in_front = 1;
    else if (of->combiner == MPI_COMBINER_DARRAY)
        in_front = 3;
    else if (of->combiner == MPI_COMBINER_HVECTOR || of->combiner == MPI_COMBINER_HINDEXED_BLOCK)
        first = 2;
    else if (of->combiner == MPI_COMBINER_HINDEXED || of->combiner == MPI_COMBINER_STRUCT)
        first = count ? large[0] + 1 : 0;
    first = first < count ? first : count;
    for (MPI_Count i = 0; i < in_front && i < of->integers; i++)
        *to++ = integers[i];
    for (MPI_Count i = 0; i < first; i++)
        *to++ = large[i];
    for (MPI_Count i = in_front; i < of->integers; i++)
        *to++ = integers[i];
    for (MPI_Count i = 0; i < of->addresses; i++)
        out->addresses[i] = addresses[i];
    for (MPI_Count i = first; i < count; i++)
        out->addresses[of->addresses + i - first] = large[i];
}

int jmpi_contents_of(MPI_Datatype type, type_contents *out) {
    type_envelope of;
    *out = (type_contents){0};
    int error = envelope_of(type, &of);
    if (error)
        return error;
    out->combiner = of.combiner;
    out->is_named = is_named(of.combiner);
    if (out->is_named)
        return MPI_SUCCESS;
    int *integers = calloc((size_t)of.integers + 1, sizeof *integers);
    MPI_Aint *addresses = calloc((size_t)of.addresses + 1, sizeof *addresses);
    MPI_Count *large = calloc((size_t)of.large + 1, sizeof *large);
    out->integers = calloc((size_t)(of.integers + of.large) + 1, sizeof *out->integers);
    out->addresses = calloc((size_t)(of.addresses + of.large) + 1, sizeof *out->addresses);
    out->types = calloc((size_t)of.types + 1, sizeof *out->types);
    contents_function *contents = NULL;
    if (!integers || !addresses || !large || !out->integers || !out->addresses || !out->types)
        error = MPI_ERR_NO_MEM;
    else if (of.large && jmpi_next("PMPI_Type_get_contents_c", &contents))
        error = contents(type, of.integers, of.addresses, of.large, of.types, integers, addresses, large, out->types);
    else
        error = jmpi_real.Type_get_contents(type, (int)of.integers, (int)of.addresses, (int)of.types, integers, addresses,
                                            out->types);
    if (!error) {
        out->types_count = (size_t)of.types;
        sort_numbers(&of, integers, addresses, large, out);
    }
    free(integers);
    free(addresses);
    free(large);
    if (error)
        jmpi_contents_free(out);
    return error;
}

static void subarray_of(const int64_t *words, array_part *out) {
    int n = out->dimensions;
    bool is_fortran = words[1 + 3 * n] == MPI_ORDER_FORTRAN;
    for (int i = 0; i < n; i++) {
        int d = is_fortran ? n - 1 - i : i;
        out->shape[d] = (uint64_t)words[1 + i];
        out->along[d] = (part_dimension){.start = (uint64_t)words[1 + 2 * n + i], .count = (uint64_t)words[1 + n + i]};
    }
}

/* Ranks of a darray are numbered row by row over the dimensions that the program states, in both orders. */
static void darray_of(const int64_t *words, array_part *out) {
    out->ranks = (int)words[0];
    out->rank = (int)words[1];
    int n = out->dimensions;
    int64_t rest = words[1];
    const int64_t *sizes = words + 3, *kinds = sizes + n, *arguments = kinds + n, *grid = arguments + n;
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
    out->dimensions = (int)contents->integers[is_subarray ? 0 : 2];
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
