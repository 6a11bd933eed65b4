/* Regrids a field by weights from a file: in this process, and between the ranks of two grids, with sums on either side.
 * regrid URL WEIGHTS TYPE SOURCE-LAYOUT TARGET-LAYOUT WHOLE-TARGET-LAYOUT OPTIONS FIELD RESULT
 * FIELD has all points of the source in the order of the file; RESULT gets those of the target. */
#include "expect.h"

static jct_pool_t *pool;
static jct_weights_t *weights;
static jct_layout_t *source, *target, *whole;
static jct_attributes_t *run, *step;
static const char *type, *options;
static uint64_t sources, targets, width;

static void *read_file(const char *path, size_t bytes) {
    void *memory = malloc(bytes);
    FILE *file = fopen(path, "rb");
    EXPECT(memory && file && fread(memory, 1, bytes, file) == bytes && fgetc(file) == EOF);
    fclose(file);
    return memory;
}

static size_t bytes_of(const jct_layout_t *layout, uint64_t rank) {
    uint64_t elements;
    OK(jct_layout_elements(layout, rank, &elements));
    return elements * width;
}

static void put(const char *side, const char *name, const void *field) {
    char with[200];
    uint64_t ranks;
    jct_attributes_t *once = named(name);
    jct_layout_t *all;
    char text[80];
    jct_exchange_t *to;
    snprintf(with, sizeof with, "%s,side=%s,retention=withdrawn", options, side);
    OK(jct_attributes_set_text(step, "name", name));
    OK(jct_layout_ranks(source, &ranks));
    /* The parts of the ranks, by an exchange without weights. */
    snprintf(text, sizeof text, "%s", getenv("WHOLE_SOURCE"));
    OK(jct_layout_parse(text, &all));
    OK(jct_attributes_set_text(once, "space", "parts"));
    OK(jct_offer_piece(pool, all, 0, type, once, field, sources * width, "retention=withdrawn"));
    for (uint64_t rank = 0; rank < ranks; rank++) {
        size_t bytes = bytes_of(source, rank);
        void *part = calloc(1, bytes + 1);
        OK(jct_demand_array(pool, once, source, rank, type, part, bytes, NULL, 60));
        OK(jct_exchange_open_source(pool, weights, source, rank, type, run, with, &to));
        RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_put(to, step, part, bytes + 1));
        RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_get(to, step, 0, part, bytes));
        OK(jct_exchange_put(to, step, part, bytes));
        jct_exchange_close(to);
        free(part);
    }
    jct_layout_free(all);
    jct_attributes_free(once);
}

static void get(const char *side, const char *name, void *result) {
    char with[200];
    uint64_t ranks;
    jct_attributes_t *gathered = named(name);
    jct_exchange_t *from;
    snprintf(with, sizeof with, "%s,side=%s", options, side);
    OK(jct_attributes_set_text(gathered, "space", "gathered"));
    OK(jct_layout_ranks(target, &ranks));
    for (uint64_t rank = 0; rank < ranks; rank++) {
        size_t bytes = bytes_of(target, rank);
        void *part = calloc(1, bytes + 1);
        OK(jct_exchange_open_target(pool, weights, source, target, rank, type, run, with, &from));
        OK(jct_attributes_set_text(step, "name", name));
        OK(jct_exchange_get(from, step, 60, part, bytes));
        RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_get(from, step, 60, part, bytes + 1));
        RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_put(from, step, part, bytes));
        OK(jct_offer_piece(pool, target, rank, type, gathered, part, bytes, "retention=withdrawn"));
        jct_exchange_close(from);
        free(part);
    }
    OK(jct_demand_array(pool, gathered, whole, 0, type, result, targets * width, NULL, 60));
    jct_attributes_free(gathered);
}

/* A side that states something else is refused, and gets no field of another kind. */
static void refusals(void *result) {
    jct_exchange_t *from;
    jct_weights_t *none;
    OK(jct_attributes_set_text(step, "name", "source"));
    OK(jct_exchange_open_target(pool, weights, source, whole, 0, type, run, "side=source,missing=-77", &from));
    RETURNS(JCT_CONFLICT, jct_exchange_get(from, step, 60, result, targets * width));
    jct_exchange_close(from);
    RETURNS(JCT_UNSUPPORTED, jct_exchange_open_source(pool, weights, source, 0, "i4", run, NULL, &from));
    RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_open_source(pool, weights, whole, 0, type, run, NULL, &from));
    RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_open_source(pool, weights, source, 99, type, run, NULL, &from));
    RETURNS(JCT_INVALID_ARGUMENT, jct_exchange_open_source(pool, weights, source, 0, type, run, "side=left", &from));
    RETURNS(JCT_NOT_FOUND, jct_weights_open("no such file", NULL, &none));
    EXPECT(none == NULL);
    RETURNS(JCT_CORRUPT, jct_weights_open(getenv("BROKEN"), NULL, &none));
    RETURNS(JCT_INVALID_ARGUMENT, jct_weights_apply(weights, type, result, 8, result, 8, NULL));
}

int main(int count, char **words) {
    static const char *const sides[] = {"source", "target", "fewer"};
    EXPECT(count == 10);
    OK(jct_pool_open(words[1], "timeout=1min", &pool));
    OK(jct_weights_open(words[2], NULL, &weights));
    type = words[3], options = words[7], width = (uint64_t)(type[1] - '0');
    OK(jct_weights_points(weights, &sources, &targets));
    OK(jct_layout_parse(words[4], &source));
    OK(jct_layout_parse(words[5], &target));
    OK(jct_layout_parse(words[6], &whole));
    run = jct_attributes_new(), step = jct_attributes_new();
    OK(jct_attributes_set_text(run, "space", "coupled"));

    void *field = read_file(words[8], sources * width), *result = malloc(targets * width), *other = malloc(targets * width);
    OK(jct_weights_apply(weights, type, field, sources * width, result, targets * width, options));
    for (int at = 0; at < 3; at++) {
        put(sides[at], sides[at], field);
        get(sides[at], sides[at], other);
        EXPECT(!memcmp(result, other, targets * width));
    }
    FILE *file = fopen(words[9], "wb");
    EXPECT(file && fwrite(result, width, targets, file) == targets && !fclose(file));
    refusals(other);
    jct_weights_close(weights);
    jct_layout_free(source);
    jct_layout_free(target);
    jct_layout_free(whole);
    jct_attributes_free(run);
    jct_attributes_free(step);
    jct_pool_close(pool);
    free(field), free(result), free(other);
    puts("done");
    return 0;
}
