/* The threads of a loop of OpenMP offer to one pool and demand from it, each with its own error. */
#include "expect.h"

enum { ROUNDS = 200 };

int main(int count, char **words) {
    jct_pool_t *pool;
    int wrong = 0;
    EXPECT(count > 1);
    OK(jct_pool_open(words[1], "schema=free", &pool));
#pragma omp parallel for num_threads(4) schedule(dynamic) reduction(+ : wrong)
    for (int round = 0; round < ROUNDS; round++) {
        char name[32], selector[64], bad[32];
        jct_object_t *object;
        snprintf(name, sizeof name, "loop-%d", round);
        snprintf(selector, sizeof selector, "name=%s", name);
        snprintf(bad, sizeof bad, "word%d", round);
        offer(pool, name, name);
        OK(jct_demand(pool, selector, NULL, 60, &object));
        wrong += !holds(object, name);
        jct_object_release(object);
        wrong += jct_demand(pool, "", bad, 0, &object) != JCT_INVALID_ARGUMENT || !strstr(jct_error_cause(), bad);
    }
    EXPECT(wrong == 0);
    jct_pool_close(pool);
    puts("done");
    return 0;
}
