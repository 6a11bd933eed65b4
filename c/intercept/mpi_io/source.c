#include "source.h"
#include "library/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are received at once, and how many such tiles are kept: reads of short runs do not ask the pool each time. */
#define TILE_BYTES ((uint64_t)4 << 20)
/* A shorter run is read from a tile, which its neighbors are in. */
#define RUN_BYTES_MIN ((uint64_t)2 << 20)
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
    /* A row is one index of dimension `along`, with one of each dimension before and all of those behind it. A tile has
     * `rows` rows. */
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
        jmpi_source_close(source, false);
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

void jmpi_source_close(object_source *source, bool is_done) {
    if (!source)
        return;
    for (int i = 0; i < TILES_MAX; i++)
        free(source->tiles[i].data);
    if (is_done)
        jmpi_jct.jct_object_release(source->object);
    else
        jmpi_jct.jct_object_give_back(source->object);
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
    code = jmpi_jct.jct_object_take(jmpi_pool(), source->object, layout, 0, source->type, to, bytes);
    jmpi_jct.jct_layout_free(layout);
    return code;
}

/* `count` rows from `row` on, which are all of one outer index: they are at `at` and have `bytes` bytes. */
static void box_of_rows(const object_source *source, uint64_t row, uint64_t count, uint64_t *starts, uint64_t *counts,
                        uint64_t *at, uint64_t *bytes) {
    uint64_t extent = source->shape[source->along], outer = row / extent;
    *at = row * source->inner * source->element;
    *bytes = count * source->inner * source->element;
    for (int d = source->dimensions - 1; d > source->along; d--)
        starts[d] = 0, counts[d] = source->shape[d];
    starts[source->along] = row % extent;
    counts[source->along] = count;
    for (int d = source->along - 1; d >= 0; d--) {
        starts[d] = outer % source->shape[d];
        counts[d] = 1;
        outer /= source->shape[d];
    }
}

/* Tiles of one outer index begin anew. */
static void box_of_tile(const object_source *source, uint64_t number, uint64_t *starts, uint64_t *counts, uint64_t *at,
                        uint64_t *bytes) {
    uint64_t extent = source->shape[source->along], in_row = (extent + source->rows - 1) / source->rows;
    uint64_t from = number % in_row * source->rows, left = extent - from;
    box_of_rows(source, number / in_row * extent + from, left < source->rows ? left : source->rows, starts, counts, at,
                bytes);
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
    box_of_tile(source, number, starts, counts, &at, &bytes);
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

/* Another program may have replaced the file, whose pieces have the same keys: its parts are not mixed. */
static int check_version(object_source *source) {
    jct_object_t *now;
    int code = jmpi_jct.jct_demand_key(jmpi_pool(), source->key, "schema=free", 0, &now);
    /* What was removed meanwhile was there before. */
    if (code)
        return code == JCT_NOT_FOUND || code == JCT_GONE ? JCT_OK : code;
    bool is_same = jmpi_jct.jct_object_version(now) == source->version;
    jmpi_jct.jct_object_give_back(now);
    return is_same ? JCT_OK : JCT_GONE;
}

/* The whole rows that begin at an offset, are of one outer index, and fit into so many bytes. */
static uint64_t rows_at(const object_source *source, uint64_t offset, uint64_t bytes) {
    uint64_t of_row = source->inner * source->element, extent = source->shape[source->along];
    uint64_t left = extent - offset / of_row % extent, rows = bytes / of_row;
    return offset % of_row ? 0 : rows < left ? rows : left;
}

/* Long runs are received where they are wanted, and the rest by tiles. */
static int read_rows(object_source *source, uint64_t offset, uint64_t bytes, unsigned char *to) {
    uint64_t starts[JMPI_DIMENSIONS_MAX], counts[JMPI_DIMENSIONS_MAX], at, length;
    uint64_t of_row = source->inner * source->element;
    while (bytes) {
        uint64_t rows = rows_at(source, offset, bytes);
        int code;
        if (rows * of_row >= RUN_BYTES_MIN || rows == source->shape[source->along]) {
            box_of_rows(source, offset / of_row, rows, starts, counts, &at, &length);
            code = receive(source, starts, counts, to, length);
        } else {
            file_tile *one = NULL;
            uint64_t number = tile_of(source, offset);
            code = tile(source, number, &one);
            box_of_tile(source, number, starts, counts, &at, &length);
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
    int code = read_rows(source, offset, bytes, to);
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
    int code = jmpi_jct.jct_object_take(jmpi_pool(), source->object, layout, rank, source->type, to, bytes);
    jmpi_jct.jct_layout_free(layout);
    return code ? code : check_version(source);
}
