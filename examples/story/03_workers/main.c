/* Workers: the members of a group share what matches; each field goes to one of them. */
#include "../forecast.h"

#include <pthread.h>

enum { STEPS = 5 };

static jct_pool_t *pool;

/* Takes fields until the group is owed nothing any more, and counts each. */
static void *work(void *counts) {
    jct_follow_t *fields;
    jct_object_t *field;
    int kind;
    check(jct_join(pool, "workers", "until_live", &fields));
    for (;;) {
        check(jct_follow_next(fields, -1, &field, &kind));
        if (kind == JCT_OVER)
            break;
        if (kind == JCT_OBJECT) {
            ((int *)counts)[atoi(jct_object_get(field, "step")) / 6]++;
            jct_object_release(field); /* Done; jct_object_give_back would give it to another worker. */
        }
    }
    jct_follow_close(fields);
    return NULL;
}

int main(int count, char **words) {
    int done[2][STEPS] = {{0}};
    pthread_t workers[2];
    jct_requirement_t *group;
    pool = open_pool(count, words);
    /* From now on what matches is kept for the group, though nobody is there yet. */
    check(jct_require(pool, "param=t", "name=workers,group", &group));
    jct_requirement_free(group);
    for (int step = 0; step < STEPS; step++)
        offer_temperature(pool, 6 * step);

    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, work, done[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    for (int step = 0; step < STEPS; step++)
        printf("step %d: done %d time\n", 6 * step, done[0][step] + done[1][step]);
    check(jct_retract(pool, "workers", NULL));
    jct_pool_close(pool);
    return 0;
}
