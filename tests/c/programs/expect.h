/* What test programs share: a condition that ends the program, and a call that must return a code. */
#ifndef EXPECT_H
#define EXPECT_H

#include <junctura.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, jct_error_text());         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define RETURNS(expected, call)                                                                                        \
    do {                                                                                                               \
        int code = (call);                                                                                             \
        if (code != (expected)) {                                                                                      \
            fprintf(stderr, "%s:%d: %s returned %d (%s)\n", __FILE__, __LINE__, #call, code, jct_error_text());         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OK(call) RETURNS(JCT_OK, call)

/* A set with one attribute. */
static inline jct_attributes_t *named(const char *name) {
    jct_attributes_t *attributes = jct_attributes_new();
    EXPECT(attributes);
    OK(jct_attributes_set_text(attributes, "name", name));
    return attributes;
}

static inline void offer(jct_pool_t *pool, const char *name, const char *payload) {
    jct_attributes_t *attributes = named(name);
    OK(jct_offer(pool, attributes, payload, strlen(payload), NULL));
    jct_attributes_free(attributes);
}

static inline int holds(const jct_object_t *object, const char *payload) {
    size_t bytes;
    const void *data = jct_object_data(object, &bytes);
    return bytes == strlen(payload) && memcmp(data, payload, bytes) == 0;
}

#endif
