/* A restart: what comes while a consumer is away is kept for it, under a name. */
#include "../forecast.h"

/* A life of the consumer: a connection of its own, as a process of its own would have. */
static void live(const char *url, const char *which) {
    jct_pool_t *pool;
    jct_follow_t *fields;
    jct_object_t *field;
    int kind;
    check(jct_pool_open(url, "name=archive", &pool));
    check(jct_join(pool, "archive", "until_live", &fields));
    for (;;) {
        check(jct_follow_next(fields, -1, &field, &kind));
        if (kind == JCT_OVER)
            break;
        if (kind == JCT_OBJECT)
            print_and_release(which, field);
    }
    jct_follow_close(fields);
    jct_pool_close(pool);
}

int main(int count, char **words) {
    jct_pool_t *pool = open_pool(count, words);
    jct_requirement_t *archive;
    uint64_t owed;
    check(jct_require(pool, "param=t", "name=archive,group", &archive));
    jct_requirement_free(archive);
    offer_temperature(pool, 0);
    live(jct_pool_url(pool), "first life");
    offer_temperature(pool, 6);
    offer_temperature(pool, 12);
    live(jct_pool_url(pool), "second life");
    check(jct_retract(pool, "archive", &owed));
    printf("still owed: %d\n", (int)owed);
    jct_pool_close(pool);
    return 0;
}
