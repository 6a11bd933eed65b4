/* The payload of a mesh object, made of a Conduit node: docs/formats/mesh.md specifies it.
 *
 * mesh_tree_read walks the node once, and keeps where its arrays are. Arrays below `coordsets`, `topologies`, `adjsets`
 * and `nestsets` of a mesh are shared: they seldom change. mesh_tree_identify hashes them. mesh_object_plan then lays out
 * one of three payloads, and mesh_object_write writes it, part by part, into memory of the pool: the only copy that is made.
 */
#ifndef JUNCTURA_MESH_OBJECT_H
#define JUNCTURA_MESH_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduit_nodes.h"
#include "mesh_hash.h"
#include "text_buffer.h"

/* Limits of the format. */
#define MESH_DEPTH_MOST 32
#define MESH_NODES_MOST 1000000
#define MESH_ARRAYS_MOST 100000
#define MESH_NAME_MOST 255
#define MESH_HEAD_MOST (16u << 20)

enum mesh_part {
    /* A step with all its arrays. */
    MESH_WHOLE,
    /* A step that refers to shared arrays. */
    MESH_FIELDS,
    /* The shared arrays. */
    MESH_SHARED
};

/* A numeric leaf: elements in memory of the program, and its place in the text of the tree. */
struct mesh_leaf {
    const unsigned char *data;
    uint64_t count;
    int64_t stride;
    enum conduit_type type;
    bool shared;
    /* Where its reference belongs in the text of the whole tree. */
    size_t place;
};

/* A reference in the text of the shared tree; `leaf` is -1 for one that is not shared. */
struct mesh_reference {
    size_t place;
    int64_t leaf;
};

struct mesh_tree {
    struct mesh_leaf *leaves;
    size_t leaf_count, leaf_room;
    struct mesh_reference *references;
    size_t reference_count, reference_room;
    /* The JSON text of the tree without its leaves, of the whole and of what is shared. */
    struct text_buffer whole, shared;
    size_t nodes, shared_leaves;
    /* Bytes of all arrays. */
    uint64_t bytes;
    /* Why reading failed. */
    char error[512];
    /* Of the payload that was planned last. */
    struct text_buffer head;
    enum mesh_part part;
    uint64_t first_array;
};

/* Reads a node. Returns false where it cannot be sent: `tree->error` is the reason. The memory that it points to must not
 * change until the payload is written. A tree that was read can be read again: it keeps its memory. */
bool mesh_tree_read(struct mesh_tree *tree, const struct conduit_functions *functions, conduit_node *node);

/* Hashes the shared arrays. */
void mesh_tree_identify(const struct mesh_tree *tree, char identifier[MESH_HASH_TEXT]);

/* Lays out a payload; returns its bytes, 0 where it cannot be made. */
uint64_t mesh_object_plan(struct mesh_tree *tree, enum mesh_part part);

/* Where a payload is written. The parts follow each other without gaps; `write` returns whether it could write one. */
struct mesh_sink {
    bool (*write)(void *context, uint64_t at, const void *data, size_t bytes);
    void *context;
};

/* Writes the payload that was planned. Returns false where the sink does. */
bool mesh_object_write(const struct mesh_tree *tree, const struct mesh_sink *sink);

void mesh_tree_free(struct mesh_tree *tree);

#endif
