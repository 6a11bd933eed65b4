/* A program of the first header, kept as it was: a consumer asks for a field, and a producer offers it. */

#include <junctura.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a call failed. */
static inline void check(int code) {
    if (code != JCT_OK) {
        fprintf(stderr, "%s\n", jct_error_text());
        exit(1);
    }
}

/* The attributes of a field of one forecast. */
static inline jct_attributes_t *forecast(const char *param, int step) {
    static const char *const same[][2] = {{"class", "od"}, {"stream", "oper"}, {"date", "2026-11-20"},
                                          {"time", "12"},  {"type", "fc"},     {"levtype", "pl"}};
    jct_attributes_t *field = jct_attributes_new();
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        check(jct_attributes_set_text(field, same[i][0], same[i][1]));
    check(jct_attributes_set_int(field, "levelist", 500));
    check(jct_attributes_set_int(field, "step", step));
    check(jct_attributes_set_text(field, "param", param));
    return field;
}

/* Offers the temperature of a step. */
static inline void offer_temperature(jct_pool_t *pool, int step) {
    char text[64];
    jct_attributes_t *field = forecast("t", step);
    snprintf(text, sizeof text, "temperature of step %d", step);
    check(jct_offer(pool, field, text, strlen(text), NULL));
    jct_attributes_free(field);
}

/* Prints a payload that is a text, and releases the object. */
static inline void print_and_release(const char *what, jct_object_t *field) {
    size_t bytes;
    const char *text = jct_object_data(field, &bytes);
    printf("%s: %.*s\n", what, (int)bytes, text);
    jct_object_release(field);
}

/* Opens the pool that an argument names, or a private one. */
static inline jct_pool_t *open_pool(int count, char **words) {
    jct_pool_t *pool;
    check(jct_pool_open(count > 1 ? words[1] : NULL, NULL, &pool));
    return pool;
}


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
