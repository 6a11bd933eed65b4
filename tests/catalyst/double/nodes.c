/* The nodes of the test double: a tree of names and values, as Conduit's C interface describes it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "catalyst.h"

enum { EMPTY = 0, OBJECT = 1, LIST = 2, INT8 = 3, UINT8 = 7, FLOAT32 = 11, FLOAT64 = 12, CHAR8_STR = 13 };

struct conduit_datatype_impl {
    conduit_index_t id, count, offset, stride, element_bytes, endianness;
};

struct conduit_node_impl {
    struct conduit_datatype_impl type;
    char *name;
    void *data;
    int owns;
    conduit_node **children;
    conduit_index_t count;
};

conduit_node *conduit_node_create(void) {
    return calloc(1, sizeof(conduit_node));
}

static void clear(conduit_node *node) {
    for (conduit_index_t i = 0; i < node->count; i++)
        conduit_node_destroy(node->children[i]);
    free(node->children);
    if (node->owns)
        free(node->data);
    node->children = NULL, node->data = NULL, node->count = 0, node->owns = 0;
    memset(&node->type, 0, sizeof node->type);
}

void conduit_node_destroy(conduit_node *node) {
    clear(node);
    free(node->name);
    free(node);
}

static conduit_node *add(conduit_node *node, conduit_index_t type, const char *name, size_t length) {
    conduit_node *child = conduit_node_create();

    if (node->type.id != type) {
        clear(node);
        node->type.id = type;
    }
    child->name = name ? strndup(name, length) : NULL;
    node->children = realloc(node->children, (size_t)(node->count + 1) * sizeof child);
    node->children[node->count++] = child;
    return child;
}

static conduit_node *step(const conduit_node *node, const char *name, size_t length) {
    for (conduit_index_t i = 0; node->type.id == OBJECT && i < node->count; i++)
        if (strlen(node->children[i]->name) == length && memcmp(node->children[i]->name, name, length) == 0)
            return node->children[i];
    return NULL;
}

conduit_node *conduit_node_fetch(conduit_node *node, const char *path) {
    while (*path) {
        size_t length = strcspn(path, "/");
        conduit_node *child = step(node, path, length);

        node = child ? child : add(node, OBJECT, path, length);
        path += length + (path[length] == '/');
    }
    return node;
}

int conduit_node_has_path(const conduit_node *node, const char *path) {
    while (node && *path) {
        size_t length = strcspn(path, "/");

        node = step(node, path, length);
        path += length + (path[length] == '/');
    }
    return node != NULL;
}

conduit_node *conduit_node_append(conduit_node *node) {
    return add(node, LIST, NULL, 0);
}

conduit_node *conduit_node_child(conduit_node *node, conduit_index_t index) {
    return node->children[index];
}

char *conduit_node_name(const conduit_node *node) {
    return strdup(node->name ? node->name : "");
}

conduit_index_t conduit_node_number_of_children(conduit_node *node) {
    return node->count;
}

const conduit_datatype *conduit_node_dtype(const conduit_node *node) {
    return &node->type;
}

/* The begin of the memory; elements begin `offset` bytes behind it. */
void *conduit_node_data_ptr(conduit_node *node) {
    return node->data;
}

static void set(conduit_node *node, conduit_index_t id, void *data, conduit_index_t count, conduit_index_t bytes, int owns) {
    clear(node);
    node->type.id = id, node->type.count = count, node->type.stride = node->type.element_bytes = bytes;
    node->type.endianness = CONDUIT_ENDIANNESS_LITTLE_ID;
    node->data = data, node->owns = owns;
}

static void set_copy(conduit_node *node, conduit_index_t id, const void *data, conduit_index_t count,
                     conduit_index_t bytes) {
    void *copy = malloc((size_t)(count * bytes));

    memcpy(copy, data, (size_t)(count * bytes));
    set(node, id, copy, count, bytes, 1);
}

void conduit_node_set_char8_str(conduit_node *node, const char *value) {
    set_copy(node, CHAR8_STR, value, (conduit_index_t)strlen(value) + 1, 1);
}

void conduit_node_set_path_char8_str(conduit_node *node, const char *path, const char *value) {
    conduit_node_set_char8_str(conduit_node_fetch(node, path), value);
}

void conduit_node_set_path_int32(conduit_node *node, const char *path, int32_t value) {
    set_copy(conduit_node_fetch(node, path), INT8 + 2, &value, 1, sizeof value);
}

void conduit_node_set_path_int64(conduit_node *node, const char *path, int64_t value) {
    set_copy(conduit_node_fetch(node, path), INT8 + 3, &value, 1, sizeof value);
}

void conduit_node_set_path_float64(conduit_node *node, const char *path, double value) {
    set_copy(conduit_node_fetch(node, path), FLOAT64, &value, 1, sizeof value);
}

static void external(conduit_node *node, const char *path, conduit_index_t id, void *data, conduit_index_t count,
                     conduit_index_t bytes) {
    set(conduit_node_fetch(node, path), id, data, count, bytes, 0);
}

void conduit_node_set_path_external_int8_ptr(conduit_node *node, const char *path, int8_t *data, conduit_index_t count) {
    external(node, path, INT8, data, count, 1);
}

void conduit_node_set_path_external_int16_ptr(conduit_node *node, const char *path, int16_t *data, conduit_index_t count) {
    external(node, path, INT8 + 1, data, count, 2);
}

void conduit_node_set_path_external_int32_ptr(conduit_node *node, const char *path, int32_t *data, conduit_index_t count) {
    external(node, path, INT8 + 2, data, count, 4);
}

void conduit_node_set_path_external_int64_ptr(conduit_node *node, const char *path, int64_t *data, conduit_index_t count) {
    external(node, path, INT8 + 3, data, count, 8);
}

void conduit_node_set_path_external_uint8_ptr(conduit_node *node, const char *path, uint8_t *data, conduit_index_t count) {
    external(node, path, UINT8, data, count, 1);
}

void conduit_node_set_path_external_uint16_ptr(conduit_node *node, const char *path, uint16_t *data,
                                               conduit_index_t count) {
    external(node, path, UINT8 + 1, data, count, 2);
}

void conduit_node_set_path_external_uint32_ptr(conduit_node *node, const char *path, uint32_t *data,
                                               conduit_index_t count) {
    external(node, path, UINT8 + 2, data, count, 4);
}

void conduit_node_set_path_external_uint64_ptr(conduit_node *node, const char *path, uint64_t *data,
                                               conduit_index_t count) {
    external(node, path, UINT8 + 3, data, count, 8);
}

void conduit_node_set_path_external_float32_ptr(conduit_node *node, const char *path, float *data, conduit_index_t count) {
    external(node, path, FLOAT32, data, count, 4);
}

void conduit_node_set_path_external_float64_ptr(conduit_node *node, const char *path, double *data,
                                                conduit_index_t count) {
    external(node, path, FLOAT64, data, count, 8);
}

#define DETAILED(NAME, TYPE, ID)                                                                                          \
    void conduit_node_set_path_external_##NAME##_ptr_detailed(                                                            \
        conduit_node *node, const char *path, TYPE *data, conduit_index_t count, conduit_index_t offset,                  \
        conduit_index_t stride, conduit_index_t element_bytes, conduit_index_t endianness) {                              \
        struct conduit_datatype_impl *type = &conduit_node_fetch(node, path)->type;                                       \
                                                                                                                          \
        external(node, path, ID, data, count, sizeof *data);                                                              \
        type->offset = offset, type->stride = stride, type->element_bytes = element_bytes;                                \
        if (endianness != CONDUIT_ENDIANNESS_DEFAULT_ID)                                                                  \
            type->endianness = endianness;                                                                                \
    }
DETAILED(int8, int8_t, INT8)
DETAILED(int16, int16_t, INT8 + 1)
DETAILED(int32, int32_t, INT8 + 2)
DETAILED(int64, int64_t, INT8 + 3)
DETAILED(uint8, uint8_t, UINT8)
DETAILED(uint16, uint16_t, UINT8 + 1)
DETAILED(uint32, uint32_t, UINT8 + 2)
DETAILED(uint64, uint64_t, UINT8 + 3)
DETAILED(float32, float, FLOAT32)
DETAILED(float64, double, FLOAT64)

conduit_index_t conduit_datatype_id(const conduit_datatype *type) {
    return type->id;
}

conduit_index_t conduit_datatype_number_of_elements(const conduit_datatype *type) {
    return type->count;
}

conduit_index_t conduit_datatype_offset(const conduit_datatype *type) {
    return type->offset;
}

conduit_index_t conduit_datatype_stride(const conduit_datatype *type) {
    return type->stride;
}

conduit_index_t conduit_datatype_element_bytes(const conduit_datatype *type) {
    return type->element_bytes;
}

conduit_index_t conduit_datatype_endianness(const conduit_datatype *type) {
    return type->endianness;
}

int conduit_datatype_endianness_matches_machine(const conduit_datatype *type) {
    return type->endianness == CONDUIT_ENDIANNESS_LITTLE_ID;
}
