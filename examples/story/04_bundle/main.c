/* A bundle: fields that belong together become visible together, or not at all. */
#include "../forecast.h"

static int visible(jct_pool_t *pool) {
    jct_list_t *list;
    const char *key;
    int found = -1;
    check(jct_list(pool, "step=6", NULL, &list));
    do {
        check(jct_list_next(list, &key, NULL));
        found++;
    } while (key);
    jct_list_close(list);
    return found;
}

int main(int count, char **words) {
    jct_pool_t *pool = open_pool(count, words);
    jct_bundle_t *first, *second;
    jct_attributes_t *temperature = forecast("t", 6), *wind = forecast("u", 6);
    /* Two producers know the bundle by its path; either may come first. */
    check(jct_bundle_open(pool, "run/step=6", NULL, "members=2", &first));
    check(jct_bundle_offer(first, temperature, "temperature", strlen("temperature"), NULL));
    printf("one of two is staged, %d to be seen\n", visible(pool));

    check(jct_bundle_open(pool, "run/step=6", NULL, "members=2", &second));
    check(jct_bundle_offer(second, wind, "wind", strlen("wind"), NULL));
    check(jct_bundle_wait(first, -1, NULL));
    printf("two of two, %d to be seen\n", visible(pool));
    jct_bundle_close(first);
    jct_bundle_close(second);
    jct_attributes_free(temperature);
    jct_attributes_free(wind);
    jct_pool_close(pool);
    return 0;
}
