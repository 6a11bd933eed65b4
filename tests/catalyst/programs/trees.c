/* A program that calls Catalyst with trees that it reads from standard input: a test writes any mesh.
 *
 * A line of words, and the bytes that it announces:
 *   text PATH-BYTES BYTES                               a text
 *   leaf PATH-BYTES TYPE COUNT OFFSET STRIDE BYTES      numbers; the bytes are the memory that they are in
 *   node PATH-BYTES                                     a node without a value
 *   item PATH-BYTES                                     one more child of a list
 *   execute                                             catalyst_execute, and an empty tree again
 * The path follows the line, and then the bytes. In a path, `#3` is the fourth child of a list.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalyst.h"

static char *taken(size_t bytes) {
    char *memory = calloc(bytes + 1, 1);

    if (!memory || fread(memory, 1, bytes, stdin) != bytes)
        exit(3);
    return memory;
}

static conduit_node *fetch(conduit_node *node, char *path) {
    for (char *name = strtok(path, "/"); name; name = strtok(NULL, "/"))
        node = *name == '#' ? conduit_node_child(node, atoi(name + 1)) : conduit_node_fetch(node, name);
    return node;
}

static void set(conduit_node *node, const char *name, const char *type, void *data, long count, long offset, long stride) {
#define TYPE(SHORT, NAME, C)                                                                                              \
    if (strcmp(type, SHORT) == 0)                                                                                         \
        conduit_node_set_path_external_##NAME##_ptr_detailed(node, name, (C *)data, count, offset, stride, sizeof(C),     \
                                                             CONDUIT_ENDIANNESS_DEFAULT_ID);
    TYPE("i1", int8, int8_t)
    TYPE("i2", int16, int16_t)
    TYPE("i4", int32, int32_t)
    TYPE("i8", int64, int64_t)
    TYPE("u1", uint8, uint8_t)
    TYPE("u2", uint16, uint16_t)
    TYPE("u4", uint32, uint32_t)
    TYPE("u8", uint64, uint64_t)
    TYPE("f4", float32, float)
    TYPE("f8", float64, double)
}

int main(void) {
    conduit_node *node = conduit_node_create();
    char line[256], kind[16], type[16], *held[4096];
    size_t holds = 0;

    catalyst_initialize(node);
    while (fgets(line, sizeof line, stdin)) {
        long path_bytes = 0, count = 0, offset = 0, stride = 0, bytes = 0;
        char *path, *name;

        if (strcmp(line, "execute\n") == 0) {
            if (catalyst_execute(node) != catalyst_status_ok)
                return 2;
            conduit_node_destroy(node);
            node = conduit_node_create();
            while (holds)
                free(held[--holds]);
            continue;
        }
        if (sscanf(line, "leaf %ld %15s %ld %ld %ld %ld", &path_bytes, type, &count, &offset, &stride, &bytes) == 6)
            strcpy(kind, "leaf");
        else if (sscanf(line, "%15s %ld %ld", kind, &path_bytes, &bytes) < 2)
            return 4;
        path = taken((size_t)path_bytes);
        if (strcmp(kind, "node") == 0) {
            fetch(node, path);
        } else if (strcmp(kind, "item") == 0) {
            conduit_node_append(fetch(node, path));
        } else {
            conduit_node *parent;
            char *data = taken((size_t)bytes);

            name = strrchr(path, '/');
            if (!name || holds == sizeof held / sizeof *held)
                return 5;
            *name++ = 0;
            parent = fetch(node, path);
            if (strcmp(kind, "text") == 0)
                conduit_node_set_path_char8_str(parent, name, data);
            else
                set(parent, name, type, data, count, offset, stride);
            held[holds++] = data;
        }
        free(path);
    }
    conduit_node_destroy(node);
    node = conduit_node_create();
    catalyst_finalize(node);
    conduit_node_destroy(node);
    return 0;
}
