#include "source.h"
#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are received at once, and how many such tiles are kept: reads of short runs do not ask the pool each time. */
#define TILE_BYTES ((uint64_t)4 << 20)
enum { TILES_MAX = 4, HEAD_MAX = 64 << 20 };

typedef struct file_tile {
    uint64_t number, used;
    unsigned char *data;
} file_tile;

struct object_source {
    jct_attributes_t *key;
    jct_object_t *object;
    uint64_t version, size;
    const unsigned char *plain; /* NULL for an array over ranks */
    char type[8];
    uint64_t element;
    int dimensions;
    uint64_t shape[JMPI_DIMENSIONS_MAX];
    /* A tile has `rows` indices of dimension `along`, one of each dimension before, and all of those behind it. */
    int along;
    uint64_t rows, inner;
    file_tile tiles[TILES_MAX];
    uint64_t reads, received;
    pthread_mutex_t lock;
};

jct_attributes_t *jmpi_key_of(const char *folder, const char *name) {
    jct_attributes_t *key = jmpi_jct.jct_attributes_new();
    if (key && (jmpi_jct.jct_attributes_set_text(key, "space", folder) ||
                jmpi_jct.jct_attributes_set_text(key, "name", name))) {
        jmpi_jct.jct_attributes_free(key);
        key = NULL;
    }
    return key;
}

/* The value of a line NAME=VALUE; NULL where the text has none. */
static const char *line_of(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, name, length))
            return line + length;
    return NULL;
}

static void choose_tiles(object_source *source) {
    uint64_t inner = 1;
    int along = source->dimensions - 1;
    while (along > 0 && inner * source->shape[along] * source->element <= TILE_BYTES)
        inner *= source->shape[along--];
    source->along = along;
    source->inner = inner;
    source->rows = TILE_BYTES / (inner * source->element);
}

static bool read_shape(object_source *source, const char *text) {
    char *end;
    uint64_t size = source->element;
    for (source->dimensions = 0; source->dimensions < JMPI_DIMENSIONS_MAX; text = end + 1) {
        uint64_t extent = strtoull(text, &end, 10);
        if (end == text || (extent && size > UINT64_MAX / extent))
            return false;
        source->shape[source->dimensions++] = extent;
        size *= extent;
        if (*end != 'x')
            break;
    }
    source->size = size;
    return *end != 'x';
}

/* Reads what an array over ranks states of itself: see docs/formats/array.md. */
static bool read_head(object_source *source, const char *data, size_t bytes) {
    static const char first[] = "junctura-array 1\n";
    if (bytes < sizeof first || bytes > HEAD_MAX || memcmp(data, first, sizeof first - 1))
        return false;
    char *text = malloc(bytes + 1);
    if (!text)
        return false;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    const char *type = line_of(text, "dtype="), *shape = line_of(text, "shape=");
    size_t length = type ? strcspn(type, "\n") : 0;
    bool is_head = type && shape && length > 1 && length < sizeof source->type;
    if (is_head) {
        snprintf(source->type, sizeof source->type, "%.*s", (int)length, type);
        const char *digits = type + strcspn(type, "0123456789");
        source->element = strtoull(digits, NULL, 10);
        is_head = source->element > 0 && source->element <= 32 && read_shape(source, shape);
    }
    free(text);
    if (is_head && source->size)
        choose_tiles(source);
    return is_head;
}

int jmpi_source_open(const char *folder, const char *name, double timeout, object_source **out) {
    object_source *source = calloc(1, sizeof *source);
    *out = NULL;
    if (!source)
        return JCT_LIMIT_EXCEEDED;
    pthread_mutex_init(&source->lock, NULL);
    source->key = jmpi_key_of(folder, name);
    int code = source->key ? JCT_OK : JCT_INVALID_ARGUMENT;
    if (!code)
        code = jmpi_jct.jct_demand_key(jmpi_pool(), source->key, "schema=free", timeout, &source->object);
    if (code) {
        jmpi_source_close(source);
        return code;
    }
    size_t bytes;
    const void *data = jmpi_jct.jct_object_data(source->object, &bytes);
    source->version = jmpi_jct.jct_object_version(source->object);
    if (!read_head(source, data, bytes)) {
        source->plain = data;
        source->size = bytes;
    }
    *out = source;
    return JCT_OK;
}

void jmpi_source_close(object_source *source) {
    if (!source)
        return;
    for (int i = 0; i < TILES_MAX; i++)
        free(source->tiles[i].data);
    jmpi_jct.jct_object_release(source->object);
    jmpi_jct.jct_attributes_free(source->key);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

uint64_t jmpi_source_size(const object_source *source) { return source->size; }

/* Receives the indices of a box: all elements of one tile, or of several that follow each other. */
static int receive(object_source *source, const uint64_t *starts, const uint64_t *counts, void *to, uint64_t bytes) {
    jct_layout_t *layout;
    const uint64_t rank = 0;
    source->received++;
    int code = jmpi_jct.jct_layout_blocks((size_t)source->dimensions, source->shape, 1, &rank, starts, counts,
                                          JCT_ORDER_C, &layout);
    if (code)
        return code;
    code = jmpi_jct.jct_demand_array(jmpi_pool(), source->key, layout, 0, source->type, to, bytes, "schema=free", 0);
    jmpi_jct.jct_layout_free(layout);
    return code;
}

/* Tiles `first` to `last`, which are all in one row of tiles, are at `at` and have `bytes` bytes. */
static void box_of(const object_source *source, uint64_t first, uint64_t last, uint64_t *starts, uint64_t *counts,
                   uint64_t *at, uint64_t *bytes) {
    uint64_t extent = source->shape[source->along], in_row = (extent + source->rows - 1) / source->rows;
    uint64_t outer = first / in_row, from = first % in_row * source->rows, to = (last % in_row + 1) * source->rows;
    to = to < extent ? to : extent;
    *at = (outer * extent + from) * source->inner * source->element;
    *bytes = (to - from) * source->inner * source->element;
    for (int d = source->dimensions - 1; d > source->along; d--)
        starts[d] = 0, counts[d] = source->shape[d];
    starts[source->along] = from;
    counts[source->along] = to - from;
    for (int d = source->along - 1; d >= 0; d--) {
        starts[d] = outer % source->shape[d];
        counts[d] = 1;
        outer /= source->shape[d];
    }
}

static uint64_t tile_of(const object_source *source, uint64_t offset) {
    uint64_t extent = source->shape[source->along], in_row = (extent + source->rows - 1) / source->rows;
    uint64_t row = offset / (source->inner * source->element);
    return row / extent * in_row + row % extent / source->rows;
}

/* The tile with a number, received if it is none of those that are kept. */
static int tile(object_source *source, uint64_t number, file_tile **out) {
    file_tile *oldest = &source->tiles[0];
    for (int i = 0; i < TILES_MAX; i++) {
        file_tile *one = &source->tiles[i];
        if (one->data && one->number == number) {
            one->used = ++source->reads;
            *out = one;
            return JCT_OK;
        }
        oldest = one->used < oldest->used ? one : oldest;
    }
    uint64_t starts[JMPI_DIMENSIONS_MAX], counts[JMPI_DIMENSIONS_MAX], at, bytes;
    box_of(source, number, number, starts, counts, &at, &bytes);
    if (!oldest->data && !(oldest->data = malloc(TILE_BYTES)))
        return JCT_LIMIT_EXCEEDED;
    oldest->number = UINT64_MAX;
    int code = receive(source, starts, counts, oldest->data, bytes);
    if (code)
        return code;
    oldest->number = number;
    oldest->used = ++source->reads;
    *out = oldest;
    return JCT_OK;
}

/* Another program may have replaced the file: its parts are not mixed. */
static int check_version(object_source *source) {
    jct_object_t *now;
    int code = jmpi_jct.jct_demand_key(jmpi_pool(), source->key, "schema=free", 0, &now);
    if (code)
        return code;
    bool is_same = jmpi_jct.jct_object_version(now) == source->version;
    jmpi_jct.jct_object_release(now);
    return is_same ? JCT_OK : JCT_GONE;
}

static int read_tiles(object_source *source, uint64_t offset, uint64_t bytes, unsigned char *to) {
    uint64_t starts[JMPI_DIMENSIONS_MAX], counts[JMPI_DIMENSIONS_MAX], at, length;
    uint64_t in_row = (source->shape[source->along] + source->rows - 1) / source->rows;
    while (bytes) {
        uint64_t first = tile_of(source, offset), last = tile_of(source, offset + bytes - 1);
        uint64_t row_end = first / in_row * in_row + in_row - 1;
        last = last < row_end ? last : row_end;
        box_of(source, first, last, starts, counts, &at, &length);
        if (at == offset && last > first && at + length > offset + bytes)
            box_of(source, first, --last, starts, counts, &at, &length);
        int code;
        if (at == offset && length <= bytes) {
            code = receive(source, starts, counts, to, length);
        } else {
            file_tile *one;
            code = tile(source, first, &one);
            box_of(source, first, first, starts, counts, &at, &length);
            length -= offset - at;
            length = length < bytes ? length : bytes;
            if (!code)
                memcpy(to, one->data + (offset - at), length);
        }
        if (code)
            return code;
        offset += length;
        bytes -= length;
        to += length;
    }
    return JCT_OK;
}

int jmpi_source_read(object_source *source, uint64_t offset, uint64_t bytes, void *to) {
    if (source->plain) {
        memcpy(to, source->plain + offset, bytes);
        return JCT_OK;
    }
    if (bytes == 0)
        return JCT_OK;
    pthread_mutex_lock(&source->lock);
    uint64_t received = source->received;
    int code = read_tiles(source, offset, bytes, to);
    if (!code && received != source->received)
        code = check_version(source);
    pthread_mutex_unlock(&source->lock);
    return code;
}

bool jmpi_source_has(const object_source *source, const array_claim *claim) {
    if (source->plain || claim->kind != CLAIM_PART || claim->part.dimensions != source->dimensions ||
        claim->element != source->element)
        return false;
    if (claim->is_open)
        return claim->part.shape[0] <= source->shape[0];
    return !memcmp(claim->part.shape, source->shape, (size_t)source->dimensions * sizeof *source->shape);
}

int jmpi_source_take(object_source *source, const array_claim *claim, void *to, uint64_t bytes) {
    array_claim mine = *claim;
    uint64_t rank;
    mine.part.shape[0] = source->shape[0];
    jct_layout_t *layout = jmpi_layout_of_reader(&mine, &rank);
    if (!layout)
        return JCT_INVALID_ARGUMENT;
    int code = jmpi_jct.jct_demand_array(jmpi_pool(), source->key, layout, rank, source->type, to, bytes, "schema=free", 0);
    jmpi_jct.jct_layout_free(layout);
    return code ? code : check_version(source);
}
