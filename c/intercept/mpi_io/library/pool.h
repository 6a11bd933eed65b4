/* The pool of this process, and the C library, which is loaded with the first file that goes into the pool. */
#ifndef JUNCTURA_MPI_IO_POOL_H
#define JUNCTURA_MPI_IO_POOL_H

#include <junctura.h>
#include <stdbool.h>

#define JMPI_POOL_FUNCTIONS(X) \
    X(jct_abi) X(jct_error_text) X(jct_pool_open) X(jct_pool_close) X(jct_attributes_new) X(jct_attributes_free) \
    X(jct_attributes_set_text) X(jct_attributes_set_list) X(jct_offer) X(jct_offer_piece) \
    X(jct_demand_key) X(jct_withdraw) X(jct_object_take) X(jct_object_give_back) \
    X(jct_object_data) X(jct_object_get) X(jct_object_version) X(jct_object_release) X(jct_layout_parse) \
    X(jct_layout_blocks) X(jct_layout_free) X(jct_layout_elements) X(jct_bundle_open) X(jct_bundle_offer) \
    X(jct_bundle_abort) X(jct_bundle_close)

#define JMPI_MEMBER(name) __typeof__(&name) name;
typedef struct pool_functions {
    JMPI_POOL_FUNCTIONS(JMPI_MEMBER)
} pool_functions;
#undef JMPI_MEMBER

extern pool_functions jmpi_jct;

/* The pool that JUNCTURA_POOL names, opened once; NULL where there is none, and why is stated once on standard error. */
jct_pool_t *jmpi_pool(void);

#endif
