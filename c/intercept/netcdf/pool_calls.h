/* The functions of the C library of Junctura, loaded when the first file needs them, and the pool of this process. */
#ifndef JUNCTURA_NETCDF_POOL_CALLS_H
#define JUNCTURA_NETCDF_POOL_CALLS_H

#include <stdbool.h>

#include "junctura.h"

#define POOL_CALLS(X)                                                                                                   \
    X(jct_pool_open) X(jct_pool_stat) X(jct_pool_descriptor) X(jct_free) X(jct_error_code) X(jct_error_text) X(jct_error_cause) \
    X(jct_attributes_new) X(jct_attributes_free) X(jct_attributes_set_text) X(jct_attributes_set_int)                   \
    X(jct_attributes_set_real) X(jct_attributes_set_list) X(jct_allocate) X(jct_allocation_offer)                       \
    X(jct_allocation_write) X(jct_allocation_data) X(jct_allocation_free) X(jct_offer) X(jct_wanted)                    \
    X(jct_withdraw_all) X(jct_demand_key) X(jct_object_data)                                                            \
    X(jct_object_get) X(jct_object_version) X(jct_object_release) X(jct_follow) X(jct_follow_next) X(jct_follow_close)  \
    X(jct_subscribe) X(jct_subscription_next) X(jct_event_text) X(jct_subscription_close) X(jct_bundle_open)            \
    X(jct_bundle_offer) X(jct_bundle_offer_piece) X(jct_bundle_pipeline) X(jct_pipeline_offer)                          \
    X(jct_pipeline_offer_allocation) X(jct_pipeline_flush) X(jct_pipeline_close) X(jct_bundle_seal) X(jct_bundle_abort) \
    X(jct_bundle_close) X(jct_layout_blocks) X(jct_layout_free) X(jct_object_take) X(jct_object_give_back)

#define POOL_CALL(name) __typeof__(&name) name;
typedef struct {
    POOL_CALLS(POOL_CALL)
} PoolCalls;
#undef POOL_CALL

extern PoolCalls pool_calls;
#define JCT(name) (pool_calls.name)

/* Opens the pool that JUNCTURA_POOL names, once. Returns NULL where that fails, after a message. */
jct_pool_t *pool_of_process(void);

/* The name of this process as a client of the pool; no other process has it at the same time. */
const char *pool_client_name(void);

/* Whether an offer is to be repeated, since the pool was full for some seconds; says once that the program waits. False
 * where the step itself fills the pool. */
bool pool_is_full(int code);

/* The status of netCDF for an error of Junctura; 0 for JCT_OK. nc_strerror has a text for it. */
int pool_status(int code);

/* The status for a writer that ended before it closed its file. */
int pool_status_gone(void);

/* The status for what a pool cannot have. */
int pool_status_unsupported(void);

/* The status of a rank for the failure of another one. */
int pool_status_of_ranks(void);

/* The status for a mapping file that cannot be used, which was named, and for a variable that it sends to another schema. */
int pool_status_map(void);
int pool_status_mapped(void);

/* The text of such a status; NULL where it is one of the real library. */
const char *pool_status_text(int status);

#endif
