/* Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order. */
#include "../forecast.h"

int main(int count, char **words) {
    jct_pool_t *pool = open_pool(count, words);
    jct_pending_t *wanted;
    jct_object_t *field;
    check(jct_begin_demand(pool, "param=t, levelist=500, step=6", NULL, -1, &wanted));
    puts("asked for: param=t, levelist=500, step=6");

    offer_temperature(pool, 0);
    offer_temperature(pool, 6);

    check(jct_pending_take(wanted, -1, &field));
    print_and_release("got", field);
    jct_pending_free(wanted);
    jct_pool_close(pool);
    return 0;
}
