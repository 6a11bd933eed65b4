/* One hand-over after the other in a private pool, in C: allocate, fill, offer, demand, release. abi_speed.rs is the same in Rust.
 * abi_speed BYTES ROUNDS BATCHES: prints microseconds a round, of the best batch and of the median one. */
#define _POSIX_C_SOURCE 200809L
#include <junctura.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(int code) {
    if (code) {
        fprintf(stderr, "%s\n", jct_error_text());
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void round_of(jct_pool_t *pool, jct_attributes_t *key, size_t bytes, long number) {
    char name[32], selector[40];
    jct_allocation_t *allocation;
    jct_object_t *object;
    void *memory;
    size_t received;
    snprintf(name, sizeof name, "r%ld", number);
    snprintf(selector, sizeof selector, "name=%s", name);
    check(jct_attributes_set_text(key, "name", name));
    check(jct_allocate(pool, bytes, &allocation, &memory));
    memset(memory, (int)number, bytes);
    check(jct_allocation_offer(allocation, key, "retention=released:1"));
    check(jct_demand(pool, selector, NULL, -1, &object));
    const unsigned char *data = jct_object_data(object, &received);
    if (received != bytes || data[bytes - 1] != (unsigned char)number)
        exit(1);
    jct_object_release(object);
}

static int by_value(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    size_t bytes = strtoul(words[1], NULL, 10);
    long rounds = atol(words[2]), batches = atol(words[3]), number = 0;
    double *times = calloc((size_t)batches, sizeof *times);
    jct_pool_t *pool;
    jct_attributes_t *key = jct_attributes_new();
    check(jct_pool_open("", "schema=free", &pool));
    for (long batch = -1; batch < batches; batch++) { /* the first one warms up */
        double start = now();
        for (long i = 0; i < rounds; i++)
            round_of(pool, key, bytes, number++);
        if (batch >= 0)
            times[batch] = (now() - start) / (double)rounds;
    }
    qsort(times, (size_t)batches, sizeof *times, by_value);
    printf("{\"us\": {\"best\": %.3f, \"median\": %.3f}}\n", times[0], times[batches / 2]);
    jct_attributes_free(key);
    jct_pool_close(pool);
    free(times);
    return 0;
}
