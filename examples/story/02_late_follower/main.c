/* A late follower: what was there before it came, and what comes after, are one stream without a gap. */
#include "../forecast.h"

static jct_object_t *next(jct_follow_t *fields) {
    jct_object_t *field;
    int kind;
    do
        check(jct_follow_next(fields, -1, &field, &kind));
    while (kind != JCT_OBJECT);
    return field;
}

int main(int count, char **words) {
    jct_pool_t *pool = open_pool(count, words);
    jct_follow_t *fields;
    offer_temperature(pool, 0);
    offer_temperature(pool, 6);

    check(jct_follow(pool, "param=t, step=0/to/240/by/6", NULL, &fields));
    print_and_release("there", next(fields));
    print_and_release("there", next(fields));
    offer_temperature(pool, 12);
    print_and_release("comes", next(fields));
    jct_follow_close(fields);
    jct_pool_close(pool);
    return 0;
}
