/* What each rank claims of the array that a file is: its box, or its place in a cyclic distribution. */
#ifndef JUNCTURA_MPI_IO_CLAIMS_H
#define JUNCTURA_MPI_IO_CLAIMS_H

#include "contents.h"
#include "../library/pool.h"

#include <stddef.h>

typedef enum claim_kind {
    CLAIM_NOTHING, /* no write, or a write of no bytes */
    CLAIM_PART,
    CLAIM_OTHER    /* the file is no array */
} claim_kind;

/* Sent from rank to rank as bytes. */
typedef struct array_claim {
    uint64_t kind, element; /* bytes of an element */
    char type[8];           /* "f8", ... */
    array_part part;
    bool is_open; /* a contiguous view: the length of the array is where the last rank ends */
    /* What a rank states together with its claim: the size that the file has at least, the number of its error, and
     * whether it changed the file. */
    uint64_t size, code, has_changed;
} array_claim;

/* The type that the elements of a view have, and what each rank has of the array; CLAIM_OTHER for views that are none
 * of subarray, darray and contiguous elements of a named type. `displacement` is that of the view, in bytes. */
void jmpi_claim_of_view(MPI_Datatype filetype, array_claim *out);

/* The claim of one access through a view: `from` and `bytes` are of its data. */
void jmpi_claim_of_access(const array_claim *view, uint64_t displacement, uint64_t from, uint64_t bytes,
                          MPI_Datatype memory, array_claim *out);

/* The elements of a part. */
uint64_t jmpi_elements_of(const array_part *part);

/* The layout of the array that all claims are together; NULL where they are none. `whole`, which may be NULL, is the
 * number of its bytes. */
jct_layout_t *jmpi_layout_of(array_claim *claims, int ranks, uint64_t *whole);

/* The layout of a reader: its own part alone, as rank 0; or its rank of the darray that it has a place in. */
jct_layout_t *jmpi_layout_of_reader(const array_claim *claim, uint64_t *rank);

#endif
