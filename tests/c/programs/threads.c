/* Eight threads on one handle, each with its own error. */
#include "expect.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 50 };

static jct_pool_t *pool;

static void *work(void *number) {
    char name[32], selector[64];
    for (int round = 0; round < ROUNDS; round++) {
        jct_object_t *object;
        snprintf(name, sizeof name, "t%d-%d", *(int *)number, round);
        snprintf(selector, sizeof selector, "name=%s", name);
        offer(pool, name, name);
        OK(jct_demand(pool, selector, NULL, 60, &object));
        EXPECT(holds(object, name));
        jct_object_release(object);
        snprintf(selector, sizeof selector, "missing%d=", *(int *)number);
        EXPECT(jct_demand(pool, selector, "nonsense", 0, &object) == JCT_INVALID_ARGUMENT);
        snprintf(selector, sizeof selector, "word%d", *(int *)number);
        EXPECT(jct_demand(pool, "", selector, 0, &object) == JCT_INVALID_ARGUMENT);
        EXPECT(strstr(jct_error_cause(), selector));
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    uint64_t removed;
    OK(jct_pool_open(count > 1 ? words[1] : NULL, "schema=free", &pool));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        EXPECT(!pthread_create(&threads[i], NULL, work, &numbers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT(!pthread_join(threads[i], NULL));
    OK(jct_withdraw_all(pool, "*", NULL, 60, &removed));
    EXPECT(removed == THREADS * ROUNDS);
    jct_pool_close(pool);
    puts("done");
    return 0;
}
