/* Offers objects until it is killed, and prints the number of each behind its offer. */
#include "expect.h"

int main(int count, char **words) {
    jct_pool_t *pool;
    char name[32];
    OK(jct_pool_open(count > 1 ? words[1] : NULL, NULL, &pool));
    for (int number = 0;; number++) {
        snprintf(name, sizeof name, "%d", number);
        offer(pool, name, name);
        printf("%d\n", number);
        fflush(stdout);
    }
}
