#define _GNU_SOURCE
#include "mesh_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"

static const unsigned char MAGIC[8] = {'J', 'M', 'E', 'S', 'H', 0, 0, 1};
/* Bytes of a path in errors. */
#define PATH_MOST 256

static const struct {
    const char *name;
    size_t bytes;
} TYPES[] = {
    [CONDUIT_INT8] = {"i1", 1},    [CONDUIT_INT16] = {"i2", 2},   [CONDUIT_INT32] = {"i4", 4},
    [CONDUIT_INT64] = {"i8", 8},   [CONDUIT_UINT8] = {"u1", 1},   [CONDUIT_UINT16] = {"u2", 2},
    [CONDUIT_UINT32] = {"u4", 4},  [CONDUIT_UINT64] = {"u8", 8},  [CONDUIT_FLOAT32] = {"f4", 4},
    [CONDUIT_FLOAT64] = {"f8", 8},
};

/* What is known of a node by where it is. */
enum place {
    /* Above the meshes, or a mesh itself. */
    ABOVE,
    /* What the project adds to a mesh. */
    ADDED,
    /* In a part that seldom changes. */
    SHARED,
    OWN
};

struct walk {
    struct mesh_tree *tree;
    const struct conduit_functions *functions;
    char path[PATH_MOST];
};

static bool fail(struct walk *walk, const char *format, ...) {
    struct mesh_tree *tree = walk->tree;
    va_list arguments;
    int length = *walk->path ? snprintf(tree->error, sizeof tree->error, "%s ", walk->path) : 0;

    va_start(arguments, format);
    vsnprintf(tree->error + length, sizeof tree->error - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

/* Makes room for one more element of an array. */
static bool grow(void *array, size_t count, size_t *room, size_t element) {
    void *grown, *old;
    size_t wanted = *room ? *room * 2 : 64;

    if (count < *room)
        return true;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, wanted * element);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return true;
}

/* Adds to the text of the whole tree, and to that of the shared one where the node is in both. */
static void emit(struct mesh_tree *tree, bool both, const char *text) {
    text_add_string(&tree->whole, text);
    if (both)
        text_add_string(&tree->shared, text);
}

static bool take_leaf(struct walk *walk, conduit_node *node, const conduit_datatype *dtype, int64_t type,
                      enum place place, bool both) {
    const struct conduit_functions *functions = walk->functions;
    struct mesh_tree *tree = walk->tree;
    struct mesh_leaf leaf = {NULL, 0, 0, (enum conduit_type)type, place == SHARED, tree->whole.bytes};
    struct mesh_reference reference = {tree->shared.bytes, leaf.shared ? (int64_t)tree->leaf_count : -1};
    int64_t count = functions->number_of_elements(dtype);

    if (count < 0 || functions->element_bytes(dtype) != (int64_t)TYPES[type].bytes)
        return fail(walk, "has an array that Conduit describes in a way that is not known");
    if (tree->leaf_count == MESH_ARRAYS_MOST)
        return fail(walk, "is one array more than %d, the most", MESH_ARRAYS_MOST);
    if (count && !functions->endianness_matches_machine(dtype))
        return fail(walk, "has the byte order of another machine; convert it before");
    leaf.count = (uint64_t)count;
    leaf.stride = functions->stride(dtype);
    if (count) {
        const unsigned char *data = functions->data_ptr(node);

        if (!data)
            return fail(walk, "has %lld elements and no memory", (long long)count);
        leaf.data = data + functions->offset(dtype);
        if (gpu_memory_is(leaf.data))
            return fail(walk, "is memory of a GPU; copy it to the host before catalyst_execute");
    }
    if (!grow(&tree->leaves, tree->leaf_count, &tree->leaf_room, sizeof leaf) ||
        !grow(&tree->references, tree->reference_count, &tree->reference_room, sizeof reference))
        return fail(walk, "does not fit into memory");
    tree->leaves[tree->leaf_count++] = leaf;
    tree->shared_leaves += leaf.shared;
    tree->bytes += leaf.count * TYPES[type].bytes;
    if (both)
        tree->references[tree->reference_count++] = reference;
    return true;
}

static void take_text(struct walk *walk, conduit_node *node, const conduit_datatype *dtype, bool both) {
    const char *data = walk->functions->data_ptr(node);
    int64_t most = walk->functions->number_of_elements(dtype);
    size_t length;

    data = data && most > 0 ? data + walk->functions->offset(dtype) : "";
    length = most > 0 ? strnlen(data, (size_t)most) : 0;
    text_add_json(&walk->tree->whole, data, length);
    if (both)
        text_add_json(&walk->tree->shared, data, length);
}

static bool is_mesh(struct walk *walk, conduit_node *node) {
    return conduit_path(walk->functions, node, "coordsets") != NULL;
}

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* The place of a child, by that of its parent. */
static enum place below(enum place place, bool in_mesh, const char *name) {
    static const char *const OF_MESH[] = {"coordsets", "topologies", "adjsets", "nestsets", NULL};
    static const char *const OF_ADDED[] = {"coordsets", "topologies", "sets", NULL};

    if (place == ADDED)
        return is_one_of(name, OF_ADDED) ? SHARED : OWN;
    if (place != ABOVE || !in_mesh)
        return place;
    if (strcmp(name, "junctura") == 0)
        return ADDED;
    return is_one_of(name, OF_MESH) ? SHARED : OWN;
}

static bool take_node(struct walk *walk, conduit_node *node, enum place place, bool both, int depth);

static bool take_children(struct walk *walk, conduit_node *node, bool named, enum place place, bool both, int depth) {
    struct mesh_tree *tree = walk->tree;
    bool in_mesh = named && place == ABOVE && is_mesh(walk, node), first[2] = {true, true}, good = true;
    conduit_index count = walk->functions->number_of_children(node);
    size_t path = strlen(walk->path);

    emit(tree, both, named ? "{" : "[");
    for (conduit_index i = 0; good && i < count; i++) {
        conduit_node *child = walk->functions->child(node, i);
        char *name = named ? walk->functions->name(child) : NULL;
        enum place its = named && name ? below(place, in_mesh, name) : place;
        bool its_both = both && its != OWN;

        if (named && (!name || !*name || strlen(name) > MESH_NAME_MOST)) {
            free(name);
            return fail(walk, "has a child whose name does not have 1 to %d bytes", MESH_NAME_MOST);
        }
        if (!first[0])
            text_add_string(&tree->whole, ",");
        if (its_both && !first[1])
            text_add_string(&tree->shared, ",");
        first[0] = false;
        first[1] = first[1] && !its_both;
        if (named) {
            snprintf(walk->path + path, sizeof walk->path - path, "%s%s", path ? "/" : "", name);
            text_add_json(&tree->whole, name, strlen(name));
            if (its_both)
                text_add_json(&tree->shared, name, strlen(name));
            emit(tree, its_both, ":");
        } else {
            snprintf(walk->path + path, sizeof walk->path - path, "%s%lld", path ? "/" : "", (long long)i);
        }
        free(name);
        good = take_node(walk, child, its, its_both, depth + 1);
        if (good)
            walk->path[path] = 0;
    }
    emit(tree, both, named ? "}" : "]");
    return good;
}

static bool take_node(struct walk *walk, conduit_node *node, enum place place, bool both, int depth) {
    const conduit_datatype *dtype = walk->functions->dtype(node);
    int64_t type = walk->functions->type_id(dtype);

    if (depth > MESH_DEPTH_MOST)
        return fail(walk, "is deeper than %d levels", MESH_DEPTH_MOST);
    if (++walk->tree->nodes > MESH_NODES_MOST)
        return fail(walk, "is one node more than %d, the most", MESH_NODES_MOST);
    switch (type) {
    case CONDUIT_EMPTY:
        emit(walk->tree, both, "null");
        return true;
    case CONDUIT_OBJECT:
    case CONDUIT_LIST:
        return take_children(walk, node, type == CONDUIT_OBJECT, place, both, depth);
    case CONDUIT_CHAR8_STR:
        take_text(walk, node, dtype, both);
        return true;
    default:
        if (type < CONDUIT_INT8 || type > CONDUIT_FLOAT64)
            return fail(walk, "has the type %lld of Conduit, which is not known", (long long)type);
        return take_leaf(walk, node, dtype, type, place, both);
    }
}

bool mesh_tree_read(struct mesh_tree *tree, const struct conduit_functions *functions, conduit_node *node) {
    struct walk walk = {tree, functions, ""};

    tree->leaf_count = tree->reference_count = tree->nodes = tree->shared_leaves = 0;
    tree->bytes = 0;
    tree->error[0] = 0;
    text_clear(&tree->whole);
    text_clear(&tree->shared);
    if (!take_node(&walk, node, ABOVE, true, 1))
        return false;
    if (tree->whole.failed || tree->shared.failed)
        return fail(&walk, "does not fit into memory");
    return true;
}

/* Copies elements without gaps to `to`. */
static void gather(unsigned char *to, const struct mesh_leaf *leaf, uint64_t first, uint64_t count) {
    size_t bytes = TYPES[leaf->type].bytes;
    const unsigned char *from = leaf->data + (int64_t)first * leaf->stride;

    if (leaf->stride == (int64_t)bytes) {
        memcpy(to, from, count * bytes);
        return;
    }
#define COPY(BYTES)                                                                                                    \
    case BYTES:                                                                                                        \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            memcpy(to + i * BYTES, from + (int64_t)i * leaf->stride, BYTES);                                           \
        break;
    switch (bytes) {
        COPY(1)
        COPY(2)
        COPY(4)
        COPY(8)
    }
#undef COPY
}

void mesh_tree_identify(const struct mesh_tree *tree, char identifier[MESH_HASH_TEXT]) {
    unsigned char gathered[8192];
    struct mesh_hash hash;

    mesh_hash_begin(&hash);
    mesh_hash_add(&hash, tree->shared.text, tree->shared.bytes);
    for (size_t i = 0; i < tree->leaf_count; i++) {
        const struct mesh_leaf *leaf = &tree->leaves[i];
        uint64_t bytes = TYPES[leaf->type].bytes, most = sizeof gathered / bytes;

        if (!leaf->shared)
            continue;
        mesh_hash_add(&hash, TYPES[leaf->type].name, 2);
        mesh_hash_add(&hash, &leaf->count, sizeof leaf->count);
        if (leaf->count && leaf->stride == (int64_t)bytes) {
            mesh_hash_add(&hash, leaf->data, leaf->count * bytes);
            continue;
        }
        for (uint64_t first = 0; first < leaf->count; first += most) {
            uint64_t count = leaf->count - first < most ? leaf->count - first : most;

            gather(gathered, leaf, first, count);
            mesh_hash_add(&hash, gathered, count * bytes);
        }
    }
    mesh_hash_end(&hash, identifier);
}

static bool is_in(const struct mesh_leaf *leaf, enum mesh_part part) {
    return part == MESH_WHOLE || leaf->shared == (part == MESH_SHARED);
}

/* Where the next array begins: arrays of a cache line begin with one. */
static uint64_t aligned(uint64_t at, uint64_t bytes) {
    uint64_t alignment = bytes >= 64 ? 64 : 8;

    return (at + alignment - 1) / alignment * alignment;
}

static uint64_t bytes_of(const struct mesh_leaf *leaf) {
    return leaf->count * TYPES[leaf->type].bytes;
}

/* The text of the tree, with the references of its leaves. */
static void add_tree(struct mesh_tree *tree, enum mesh_part part) {
    const struct text_buffer *text = part == MESH_SHARED ? &tree->shared : &tree->whole;
    size_t at = 0, places = part == MESH_SHARED ? tree->reference_count : tree->leaf_count;
    uint64_t own = 0, shared = 0;
    char reference[64];

    for (size_t i = 0; i < places; i++) {
        const struct mesh_leaf *leaf = part == MESH_SHARED ? NULL : &tree->leaves[i];
        size_t place = leaf ? leaf->place : tree->references[i].place;

        text_add(&tree->head, text->text + at, place - at);
        at = place;
        if (!leaf && tree->references[i].leaf < 0) {
            text_add_string(&tree->head, "null");
            continue;
        }
        if (leaf && part == MESH_FIELDS && leaf->shared)
            snprintf(reference, sizeof reference, "{\"of\":\"mesh\",\"array\":%llu}", (unsigned long long)shared++);
        else
            snprintf(reference, sizeof reference, "{\"array\":%llu}", (unsigned long long)own++);
        text_add_string(&tree->head, reference);
    }
    text_add(&tree->head, text->text + at, text->bytes - at);
}

uint64_t mesh_object_plan(struct mesh_tree *tree, enum mesh_part part) {
    char line[96];
    uint64_t at;
    size_t arrays = 0, table;

    tree->part = part;
    text_clear(&tree->head);
    text_add_string(&tree->head, "{\"tree\":");
    add_tree(tree, part);
    text_add_string(&tree->head, ",\"arrays\":[");
    /* Numbers have a fixed width, so that the length of the head is known before them. */
    table = tree->head.bytes;
    for (size_t i = 0; i < tree->leaf_count; i++)
        arrays += is_in(&tree->leaves[i], part);
#define LINE "{\"type\":\"%s\",\"count\":%16llu,\"offset\":%16llu}"
    at = table + arrays * (size_t)snprintf(line, sizeof line, LINE, "f8", 0ull, 0ull) + (arrays ? arrays - 1 : 0) + 2;
    if (at > MESH_HEAD_MOST)
        return 0;
    at = tree->first_array = (16 + at + 63) / 64 * 64;
    for (size_t i = 0, written = 0; i < tree->leaf_count; i++) {
        const struct mesh_leaf *leaf = &tree->leaves[i];

        if (!is_in(leaf, part))
            continue;
        at = aligned(at, bytes_of(leaf));
        snprintf(line, sizeof line, LINE, TYPES[leaf->type].name, (unsigned long long)leaf->count,
                 (unsigned long long)at);
        text_add_string(&tree->head, written++ ? "," : "");
        text_add_string(&tree->head, line);
        at += bytes_of(leaf);
    }
#undef LINE
    text_add_string(&tree->head, "]}");
    return tree->head.failed ? 0 : at;
}

/* Parts that are smaller are collected, and written together. */
#define PART_LEAST 16384

struct parts {
    const struct mesh_sink *sink;
    uint64_t written;
    size_t held;
    bool failed;
    unsigned char bytes[4 * PART_LEAST];
};

static void flush(struct parts *parts) {
    if (parts->held && !parts->failed)
        parts->failed = !parts->sink->write(parts->sink->context, parts->written, parts->bytes, parts->held);
    parts->written += parts->held;
    parts->held = 0;
}

/* Room for at most PART_LEAST bytes. */
static unsigned char *room_for(struct parts *parts, size_t bytes) {
    if (sizeof parts->bytes - parts->held < bytes)
        flush(parts);
    parts->held += bytes;
    return parts->bytes + parts->held - bytes;
}

static void put(struct parts *parts, const void *data, size_t bytes) {
    if (bytes < PART_LEAST) {
        memcpy(room_for(parts, bytes), data, bytes);
        return;
    }
    flush(parts);
    if (!parts->failed)
        parts->failed = !parts->sink->write(parts->sink->context, parts->written, data, bytes);
    parts->written += bytes;
}

static void put_zeros(struct parts *parts, size_t bytes) {
    memset(room_for(parts, bytes), 0, bytes);
}

static void put_array(struct parts *parts, const struct mesh_leaf *leaf) {
    size_t bytes = TYPES[leaf->type].bytes;
    uint64_t most = PART_LEAST / bytes;

    if (leaf->count && leaf->stride == (int64_t)bytes) {
        put(parts, leaf->data, leaf->count * bytes);
        return;
    }
    for (uint64_t first = 0; first < leaf->count; first += most) {
        uint64_t count = leaf->count - first < most ? leaf->count - first : most;

        gather(room_for(parts, count * bytes), leaf, first, count);
    }
}

bool mesh_object_write(const struct mesh_tree *tree, const struct mesh_sink *sink) {
    uint64_t length = tree->head.bytes, at = tree->first_array;
    unsigned char begin[16];
    struct parts parts;

    parts.sink = sink;
    parts.written = parts.held = 0;
    parts.failed = false;
    memcpy(begin, MAGIC, 8);
    for (int i = 0; i < 8; i++)
        begin[8 + i] = (unsigned char)(length >> 8 * i);
    put(&parts, begin, sizeof begin);
    put(&parts, tree->head.text, length);
    put_zeros(&parts, at - length - sizeof begin);
    for (size_t i = 0; i < tree->leaf_count; i++) {
        const struct mesh_leaf *leaf = &tree->leaves[i];
        uint64_t first = aligned(at, bytes_of(leaf));

        if (!is_in(leaf, tree->part))
            continue;
        put_zeros(&parts, first - at);
        put_array(&parts, leaf);
        at = first + bytes_of(leaf);
    }
    flush(&parts);
    return !parts.failed;
}

void mesh_tree_free(struct mesh_tree *tree) {
    free(tree->leaves);
    free(tree->references);
    text_free(&tree->whole);
    text_free(&tree->shared);
    text_free(&tree->head);
    memset(tree, 0, sizeof *tree);
}
