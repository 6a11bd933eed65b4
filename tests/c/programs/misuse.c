/* Invalid calls: each returns an error, and nothing breaks. */
#include "expect.h"

#include <math.h>

/* Not in the header: it exists with debug assertions only. */
int jct_test_panic(void);

#define INVALID(call) RETURNS(JCT_INVALID_ARGUMENT, call)

static void null_handles(void) {
    jct_object_t *object = (jct_object_t *)1;
    void *data = (void *)1;
    uint64_t number = 1;
    int kind = 1;
    jct_allocation_t *allocation = (jct_allocation_t *)1;
    INVALID(jct_demand(NULL, "", NULL, 0, &object));
    EXPECT(!object && !strcmp(jct_error_subject(), "pool") && !strcmp(jct_error_cause(), "NULL"));
    EXPECT(!strcmp(jct_error_text(), "InvalidArgument: pool: NULL"));
    INVALID(jct_allocate(NULL, 1, &allocation, &data));
    EXPECT(!allocation && !data);
    INVALID(jct_offer(NULL, NULL, NULL, 0, NULL));
    INVALID(jct_wanted(NULL, NULL, NULL, &number));
    EXPECT(number == 0);
    INVALID(jct_follow_next(NULL, 0, &object, &kind));
    EXPECT(kind == 0);
    INVALID(jct_allocation_offer(NULL, NULL, NULL));
    INVALID(jct_requirement_retract(NULL));
    INVALID(jct_attributes_clear(NULL));
    INVALID(jct_bundle_seal(NULL, NULL));
    INVALID(jct_layout_ranks(NULL, &number));
    INVALID(jct_layout_start(NULL, 0, 0, &number));
    INVALID(jct_exchange_put(NULL, NULL, NULL, 0));
    INVALID(jct_pipeline_offer(NULL, NULL, NULL, 0, NULL));
    INVALID(jct_pipeline_push(NULL));
    INVALID(jct_pipeline_flush(NULL));
    EXPECT(!jct_object_data(NULL, NULL) && !jct_object_key(NULL) && !jct_object_get(NULL, "a"));
    EXPECT(jct_object_version(NULL) == 0 && !jct_pool_url(NULL) && !jct_follow_cursor(NULL));
}

static void null_is_freed(void) {
    jct_free(NULL);
    jct_pool_close(NULL);
    jct_attributes_free(NULL);
    jct_allocation_free(NULL);
    jct_pending_free(NULL);
    jct_object_release(NULL);
    OK(jct_object_give_back(NULL));
    jct_requirement_free(NULL);
    jct_follow_close(NULL);
    jct_list_close(NULL);
    jct_bundle_close(NULL);
    jct_layout_free(NULL);
    jct_exchange_close(NULL);
    jct_pipeline_close(NULL);
}

static void arguments(jct_pool_t *pool) {
    jct_attributes_t *key = named("a");
    jct_object_t *object;
    jct_pool_t *none;
    jct_layout_t *layout;
    jct_follow_t *follow;
    INVALID(jct_demand(pool, NULL, NULL, 0, &object));
    INVALID(jct_demand(pool, "", NULL, 0, NULL));
    INVALID(jct_demand(pool, "name=\xff", NULL, 0, &object));
    INVALID(jct_demand(pool, "name=a", NULL, NAN, &object));
    RETURNS(JCT_INVALID_SELECTOR, jct_demand(pool, "name=(", NULL, 0, &object));
    RETURNS(JCT_NOT_FOUND, jct_demand(pool, "name=missing", NULL, 0, &object));
    RETURNS(JCT_TIMEOUT, jct_demand(pool, "name=missing", NULL, 0.001, &object));
    RETURNS(JCT_NOT_FOUND, jct_demand(pool, "name=missing", "requirement=missing", 0, &object));
    INVALID(jct_demand(pool, "name=a", "nonsense", 0, &object));
    EXPECT(strstr(jct_error_cause(), "incomplete, requirement"));
    INVALID(jct_offer(pool, key, NULL, 1, NULL));
    INVALID(jct_offer(pool, key, "x", (size_t)-1, NULL));
    INVALID(jct_offer(pool, key, "x", 1, "retention=nonsense"));
    INVALID(jct_offer(pool, key, "x", 1, "durability=nonsense"));
    RETURNS(JCT_NOT_FOUND, jct_offer(pool, key, "x", 1, "schema=nonsense"));
    INVALID(jct_attributes_set_text(key, NULL, "x"));
    INVALID(jct_attributes_set_text(key, "x", NULL));
    INVALID(jct_attributes_set_list(key, "x", NULL, 2));
    INVALID(jct_layout_parse("nonsense", &layout));
    const uint64_t huge[] = {(uint64_t)-1}, one[] = {1};
    RETURNS(JCT_LIMIT_EXCEEDED, jct_layout_blocks(1, one, 1, huge, one, one, JCT_ORDER_C, &layout));
    INVALID(jct_layout_blocks(1, one, 1, one, huge, one, JCT_ORDER_C, &layout));
    INVALID(jct_layout_blocks(1, one, (size_t)-1, one, one, one, JCT_ORDER_C, &layout));
    INVALID(jct_layout_blocks(1, one, 1, one, one, one, 9, &layout));
    const uint64_t four[] = {4}, ranks[] = {0, 1}, starts[] = {0, 1}, counts[] = {2, 3}, apart[] = {0, 2}, two[] = {2, 2};
    OK(jct_layout_blocks(1, four, 2, ranks, apart, two, JCT_ORDER_F, &layout));
    jct_layout_free(layout);
    /* Consumers may want overlapping blocks; producers cannot have them. */
    OK(jct_layout_blocks(1, four, 2, ranks, starts, counts, JCT_ORDER_C, &layout));
    INVALID(jct_offer_piece(pool, layout, 0, "u1", key, "ab", 2, NULL));
    jct_layout_free(layout);
    INVALID(jct_follow(pool, "", "window=many", &follow));
    INVALID(jct_pool_open("unix:test", "spill_size=1GiB", &none));
    RETURNS(JCT_UNAVAILABLE, jct_pool_open("unix:nobody-serves-this", NULL, &none));
    EXPECT(!none);
    /* A call that succeeds leaves the error of an earlier one. */
    OK(jct_attributes_clear(key));
    EXPECT(jct_error_code() == JCT_UNAVAILABLE);
    jct_attributes_free(key);
}

static void used_after_release(jct_pool_t *pool) {
    jct_attributes_t *key = named("a");
    jct_allocation_t *allocation;
    void *data;
    OK(jct_allocate(pool, 10, &allocation, &data));
    OK(jct_allocation_offer(allocation, key, NULL));
    INVALID(jct_allocation_offer(allocation, key, NULL));
    EXPECT(strstr(jct_error_cause(), "released"));
    /* Consumed also where the offer fails. */
    OK(jct_allocate(pool, 10, &allocation, &data));
    RETURNS(JCT_NOT_FOUND, jct_allocation_offer(allocation, key, "schema=nonsense"));
    INVALID(jct_allocation_offer(allocation, key, NULL));
    jct_allocation_free(allocation);
    EXPECT(jct_error_code() == JCT_INVALID_ARGUMENT);
    /* A handle of another type. */
    INVALID(jct_offer((jct_pool_t *)(void *)key, key, "x", 1, NULL));
    EXPECT(strstr(jct_error_cause(), "another type"));
    jct_attributes_free(key);
    jct_attributes_free(key);
    EXPECT(strstr(jct_error_cause(), "released"));
    INVALID(jct_attributes_clear(key));
    INVALID(jct_offer(pool, key, "x", 1, NULL));
    jct_pool_close(pool);
    INVALID(jct_pool_sync(pool, 1));
    jct_pool_close(pool);
    EXPECT(strstr(jct_error_cause(), "released"));
}

int main(int count, char **words) {
    jct_pool_t *pool;
    EXPECT(jct_error_code() == JCT_OK && !strcmp(jct_error_text(), ""));
    OK(jct_pool_open(count > 1 ? words[1] : NULL, "schema=free", &pool));
    null_handles();
    null_is_freed();
    arguments(pool);
    RETURNS(JCT_PANIC, jct_test_panic());
    EXPECT(!strcmp(jct_error_text(), "Panic: this function always panics") && !strcmp(jct_error_subject(), ""));
    offer(pool, "after", "a panic");
    used_after_release(pool);
    puts("done");
    return 0;
}
