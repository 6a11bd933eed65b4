/* One rank of two models that exchange a field both ways with each step, on a fine grid and on one of half as many rows and columns.
 * coupled URL fine|coarse RANK RANKS ROWS COLUMNS STEPS DOWN UP: ROWS and COLUMNS of the fine grid, which is split by rows; DOWN and UP
 * are files of weights. Rank 0 of the fine grid prints milliseconds a step. */
#define _POSIX_C_SOURCE 200809L
#include <junctura.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM = 20 };

static void check(int code) {
    if (code) {
        fprintf(stderr, "%s\n", jct_error_text());
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(int count, char **words) {
    if (count != 10)
        return 2;
    int is_fine = !strcmp(words[2], "fine"), rank = atoi(words[3]), ranks = atoi(words[4]);
    int rows = atoi(words[5]), columns = atoi(words[6]), steps = atoi(words[7]);
    char text[100], name[40], options[40];
    jct_pool_t *pool;
    jct_layout_t *fine, *coarse;
    jct_weights_t *down, *up;
    jct_exchange_t *to, *from;
    jct_attributes_t *step = jct_attributes_new();
    uint64_t elements;
    check(jct_pool_open(words[1], NULL, &pool));
    snprintf(text, sizeof text, "shape=%dx%d grid=%dx1", rows, columns, ranks);
    check(jct_layout_parse(text, &fine));
    snprintf(text, sizeof text, "shape=%dx%d grid=%dx1", rows / 2, columns / 2, ranks);
    check(jct_layout_parse(text, &coarse));
    check(jct_weights_open(words[8], NULL, &down));
    check(jct_weights_open(words[9], NULL, &up));
    snprintf(options, sizeof options, "retention=released:%d", ranks);
    jct_layout_t *mine = is_fine ? fine : coarse, *other = is_fine ? coarse : fine;
    jct_weights_t *out = is_fine ? down : up, *in = is_fine ? up : down;
    check(jct_exchange_open_source(pool, out, mine, (uint64_t)rank, "f8", NULL, options, &to));
    check(jct_exchange_open_target(pool, in, other, mine, (uint64_t)rank, "f8", NULL, NULL, &from));
    check(jct_layout_elements(mine, (uint64_t)rank, &elements));
    size_t bytes = elements * sizeof(double);
    double *field = malloc(bytes), *received = malloc(bytes), start = 0;
    for (int at = 0; at < WARM + steps; at++) {
        if (at == WARM)
            start = now();
        for (uint64_t i = 0; i < elements; i++)
            field[i] = at + (double)(i % 7);
        snprintf(name, sizeof name, "%s-%d", is_fine ? "sst" : "wind", at);
        check(jct_attributes_set_text(step, "name", name));
        check(jct_exchange_put(to, step, field, bytes));
        snprintf(name, sizeof name, "%s-%d", is_fine ? "wind" : "sst", at);
        check(jct_attributes_set_text(step, "name", name));
        check(jct_exchange_get(from, step, 60, received, bytes));
        /* The first cell of a rank has the number of the step, and the coarse one a mean near it. */
        if (fabs(received[0] - at) > (is_fine ? 0 : 7))
            return 3;
    }
    if (is_fine && rank == 0)
        printf("{\"step_ms\": %.4f}\n", (now() - start) / steps);
    jct_exchange_close(to);
    jct_exchange_close(from);
    jct_pool_close(pool);
    return 0;
}
