#define _GNU_SOURCE
#include "conduit_nodes.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *find(const char *name) {
    char mangled[96];
    void *found;

    snprintf(mangled, sizeof mangled, "catalyst_%s", name);
    found = dlsym(RTLD_DEFAULT, mangled);
    return found ? found : dlsym(RTLD_DEFAULT, name);
}

const char *conduit_functions_find(struct conduit_functions *functions) {
    static const struct {
        const char *name;
        size_t place;
    } needed[] = {
        {"conduit_node_number_of_children", offsetof(struct conduit_functions, number_of_children)},
        {"conduit_node_child", offsetof(struct conduit_functions, child)},
        {"conduit_node_name", offsetof(struct conduit_functions, name)},
        {"conduit_node_dtype", offsetof(struct conduit_functions, dtype)},
        {"conduit_node_data_ptr", offsetof(struct conduit_functions, data_ptr)},
        {"conduit_datatype_id", offsetof(struct conduit_functions, type_id)},
        {"conduit_datatype_number_of_elements", offsetof(struct conduit_functions, number_of_elements)},
        {"conduit_datatype_offset", offsetof(struct conduit_functions, offset)},
        {"conduit_datatype_stride", offsetof(struct conduit_functions, stride)},
        {"conduit_datatype_element_bytes", offsetof(struct conduit_functions, element_bytes)},
        {"conduit_datatype_endianness_matches_machine",
         offsetof(struct conduit_functions, endianness_matches_machine)},
    };
    void *found;

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        found = find(needed[i].name);
        if (!found)
            return needed[i].name;
        memcpy((char *)functions + needed[i].place, &found, sizeof found);
    }
    found = find("conduit_node_set_path_char8_str");
    memcpy(&functions->set_path_char8_str, &found, sizeof found);
    return NULL;
}

static conduit_node *child_named(const struct conduit_functions *functions, conduit_node *node, const char *name,
                                 size_t length) {
    if (functions->type_id(functions->dtype(node)) != CONDUIT_OBJECT)
        return NULL;
    for (conduit_index i = 0, count = functions->number_of_children(node); i < count; i++) {
        conduit_node *child = functions->child(node, i);
        char *its = functions->name(child);
        bool same = its && strlen(its) == length && memcmp(its, name, length) == 0;

        free(its);
        if (same)
            return child;
    }
    return NULL;
}

conduit_node *conduit_path(const struct conduit_functions *functions, conduit_node *node, const char *path) {
    while (node && *path) {
        size_t length = strcspn(path, "/");

        node = child_named(functions, node, path, length);
        path += length + (path[length] == '/');
    }
    return node;
}

/* The first element of a numeric leaf, or NULL. */
static const char *first_element(const struct conduit_functions *functions, conduit_node *node, int64_t *type) {
    const conduit_datatype *dtype;
    const char *data;

    if (!node)
        return NULL;
    dtype = functions->dtype(node);
    *type = functions->type_id(dtype);
    if (*type < CONDUIT_INT8 || *type > CONDUIT_FLOAT64 || functions->number_of_elements(dtype) < 1 ||
        !functions->endianness_matches_machine(dtype))
        return NULL;
    data = functions->data_ptr(node);
    return data ? data + functions->offset(dtype) : NULL;
}

/* Both readings of a number; false where it is none. */
static bool number(const char *data, int64_t type, int64_t *integer, double *real) {
#define READ(ID, TYPE)                                                                                                 \
    case ID: {                                                                                                         \
        TYPE value;                                                                                                    \
        memcpy(&value, data, sizeof value);                                                                            \
        *real = (double)value;                                                                                         \
        *integer = *real >= -9.2e18 && *real <= 9.2e18 ? (int64_t)value : 0;                                           \
        return true;                                                                                                   \
    }
    switch (type) {
        READ(CONDUIT_INT8, int8_t)
        READ(CONDUIT_INT16, int16_t)
        READ(CONDUIT_INT32, int32_t)
        READ(CONDUIT_INT64, int64_t)
        READ(CONDUIT_UINT8, uint8_t)
        READ(CONDUIT_UINT16, uint16_t)
        READ(CONDUIT_UINT32, uint32_t)
        READ(CONDUIT_UINT64, uint64_t)
        READ(CONDUIT_FLOAT32, float)
        READ(CONDUIT_FLOAT64, double)
    default:
        return false;
    }
#undef READ
}

bool conduit_integer(const struct conduit_functions *functions, conduit_node *node, int64_t *value) {
    int64_t type;
    double unused;
    const char *data = first_element(functions, node, &type);

    return data && number(data, type, value, &unused);
}

bool conduit_real(const struct conduit_functions *functions, conduit_node *node, double *value) {
    int64_t type, unused;
    const char *data = first_element(functions, node, &type);

    return data && number(data, type, &unused, value);
}

int64_t conduit_text(const struct conduit_functions *functions, conduit_node *node, char *text, int64_t room) {
    const conduit_datatype *dtype;
    const char *data;
    int64_t most, length;

    if (!node)
        return -1;
    dtype = functions->dtype(node);
    if (functions->type_id(dtype) != CONDUIT_CHAR8_STR)
        return -1;
    data = functions->data_ptr(node);
    most = functions->number_of_elements(dtype);
    if (!data || most < 0)
        return -1;
    data += functions->offset(dtype);
    length = (int64_t)strnlen(data, (size_t)most);
    if (length >= room)
        return -1;
    memcpy(text, data, (size_t)length);
    text[length] = 0;
    return length;
}
