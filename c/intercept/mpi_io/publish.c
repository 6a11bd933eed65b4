#include "publish.h"
#include "../common/intercept.h"
#include "route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extents of all ranks, up to which each is a box of the layout; else ranks exchange what they wrote. */
#define BOXES_MAX 65536
/* Runs of each rank that there is room for before ranks know how many they have. */
#define RUNS_AT_ONCE 16
/* A rank owns no less of a file. */
#define BLOCK_BYTES_MIN ((uint64_t)1 << 16)

/* The number of an error that all ranks have in common, with the text of this rank's, if it has one. */
static int agree_on_code(open_file *file, int code, uint64_t *greatest) {
    *greatest = (uint64_t)code;
    return jmpi_greatest(file, greatest, 1);
}

/* Rank 0 removes an earlier file of this name, before the exchange that the offers follow. Its readers keep what they
 * hold; requirements are awaited. */
static int remove_earlier(open_file *file) {
    if (file->rank != 0)
        return JCT_OK;
    jct_attributes_t *key = jmpi_key_of(file->folder, file->name);
    int code = key ? jmpi_jct.jct_withdraw(jmpi_pool(), key, "schema=free,forget", jmpi_timeout(), NULL)
                   : JCT_LIMIT_EXCEEDED;
    if (code && code != JCT_NOT_FOUND && code != JCT_GONE)
        intercept_say("%s: %s", file->path, jmpi_jct.jct_error_text());
    jmpi_jct.jct_attributes_free(key);
    return code == JCT_NOT_FOUND || code == JCT_GONE ? JCT_OK : code;
}

/* Offers this rank's piece, unless it is known that the array cannot become whole: `mine` is the number of this rank's
 * error. All ranks get the same answer. */
static int offer_piece(open_file *file, const jct_layout_t *layout, const char *type, const void *data, uint64_t bytes,
                       int mine, uint64_t *code) {
    uint64_t elements = 0;
    if (!mine) {
        jct_attributes_t *attributes = jmpi_key_of(file->folder, file->name);
        mine = attributes ? jmpi_jct.jct_attributes_set_text(attributes, "interface", "mpi-io") : JCT_LIMIT_EXCEEDED;
        /* Ranks behind those of the layout, and ranks without elements, have no piece. */
        bool is_owner = !mine && !jmpi_jct.jct_layout_elements(layout, (uint64_t)file->rank, &elements) &&
                        (elements || file->rank == 0);
        if (is_owner)
            mine = jmpi_jct.jct_offer_piece(jmpi_pool(), layout, (uint64_t)file->rank, type, attributes, data, bytes,
                                            jmpi_offer_options());
        jmpi_jct.jct_attributes_free(attributes);
        if (mine && mine != JCT_ALREADY_EXISTS)
            intercept_say("%s: %s", file->path, jmpi_jct.jct_error_text());
    }
    int error = agree_on_code(file, mine, code);
    file->must_be_whole = file->must_be_whole || *code == JCT_ALREADY_EXISTS;
    return error;
}

static void report(const open_file *file, uint64_t bytes) {
    intercept_offered(intercept_file(file->path, jmpi_mode_name(file->mode)), bytes);
}

/* Arrays */

/* What ranks found out about their claims. */
typedef struct claims_answer {
    jct_layout_t *layout; /* NULL on all ranks where they are no array that has the size that the file must have */
    int code;             /* of a rank that failed */
    bool has_changed;
} claims_answer;

/* Exchanges the ranks' claims. `removes`: an array follows, which replaces an earlier file. */
static int exchange_claims(open_file *file, const array_claim *claim, bool has_changed, bool removes, claims_answer *out) {
    array_claim mine = *claim, *claims = file->claims;
    uint64_t whole = 0, size = 0;
    *out = (claims_answer){0};
    mine.size = file->size_at_least > file->base_bytes ? file->size_at_least : file->base_bytes;
    mine.code = removes ? (uint64_t)remove_earlier(file) : JCT_OK;
    mine.has_changed = has_changed;
    int error = jmpi_real.Allgather(&mine, sizeof mine, MPI_BYTE, claims, sizeof *claims, MPI_BYTE, file->comm);
    if (error)
        return error;
    for (int rank = 0; rank < file->ranks; rank++) {
        size = claims[rank].size > size ? claims[rank].size : size;
        out->code = claims[rank].code ? (int)claims[rank].code : out->code;
        out->has_changed = out->has_changed || claims[rank].has_changed;
    }
    out->layout = jmpi_layout_of(claims, file->ranks, &whole);
    if (out->layout && whole < size) {
        jmpi_jct.jct_layout_free(out->layout);
        out->layout = NULL;
    }
    for (int rank = 0; out->layout && rank < file->ranks; rank++) {
        if (claims[rank].kind != CLAIM_PART)
            continue;
        memcpy(file->type, claims[rank].type, sizeof file->type);
        memcpy(file->shape, claims[rank].part.shape, sizeof file->shape);
        file->dimensions = claims[rank].part.dimensions;
    }
    file->offered_bytes = whole;
    return MPI_SUCCESS;
}

int jmpi_publish_at_once(open_file *file, const array_claim *claim, const void *data, uint64_t bytes) {
    uint64_t code = JCT_OK;
    claims_answer answer;
    if (file->must_be_whole)
        return MPI_SUCCESS;
    int error = exchange_claims(file, claim, true, true, &answer);
    if (error || !answer.layout)
        return error;
    error = offer_piece(file, answer.layout, file->type, data, bytes, answer.code, &code);
    if (!error && code == JCT_OK) {
        file->is_offered = true;
        file->layout = answer.layout;
        file->offered_until = UINT64_MAX;
        file->periods_ended++;
        report(file, bytes);
    } else {
        jmpi_jct.jct_layout_free(answer.layout);
    }
    return error;
}

/* The claim of all writes until the file is closed. */
static array_claim claim_of_writes(const open_file *file) {
    array_claim none = {.kind = file->writes ? CLAIM_OTHER : CLAIM_NOTHING};
    bool is_one = file->first && file->first == file->last && file->writes == 1;
    return is_one ? file->first->claim : none;
}

/* `has_changed` is this rank's before, and that of any rank behind. */
static int publish_array(open_file *file, bool *has_changed) {
    array_claim claim = claim_of_writes(file);
    const written_record *one = file->first;
    uint64_t code = JCT_OK;
    claims_answer answer;
    int error = exchange_claims(file, &claim, *has_changed, !file->must_be_whole, &answer);
    *has_changed = answer.has_changed;
    if (error || !answer.layout)
        return error;
    if (!file->must_be_whole && *has_changed)
        error = offer_piece(file, answer.layout, file->type, one ? one->data : NULL, one ? one->bytes : 0, answer.code,
                            &code);
    jmpi_jct.jct_layout_free(answer.layout);
    if (!error && !file->must_be_whole && *has_changed && code == JCT_OK) {
        file->is_offered = true;
        report(file, one ? one->bytes : 0);
    }
    return error;
}

/* Bytes */

typedef struct owned_extent {
    uint64_t offset, bytes, rank;
} owned_extent;

static int by_offset(const void *left, const void *right) {
    const owned_extent *one = left, *other = right;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

/* All that this rank wrote, where it does not matter when. */
static bool merge_periods(const open_file *file, extent_list *out) {
    *out = (extent_list){0};
    for (const file_period *each = file->period; each; each = each->next) {
        extent_list older = {0};
        for (size_t i = 0; i < each->extents.count; i++) {
            const byte_extent *one = &each->extents.items[i];
            if (!jmpi_append(&older, one->offset, one->bytes, one->data)) {
                jmpi_extents_free(&older);
                return false;
            }
        }
        if (!jmpi_overlay(&older, out, out))
            return false;
    }
    return true;
}

/* Extents of all ranks, sorted; what no rank wrote is of rank 0. NULL where extents overlap, and without memory. */
static owned_extent *own_all(owned_extent *extents, size_t count, uint64_t size, size_t *boxes, bool *is_overlap) {
    qsort(extents, count, sizeof *extents, by_offset);
    owned_extent *all = calloc(2 * count + 1, sizeof *all);
    uint64_t end = 0;
    *boxes = 0;
    for (size_t i = 0; all && i <= count; i++) {
        uint64_t start = i < count ? extents[i].offset : size;
        *is_overlap = *is_overlap || (i < count && start < end);
        if (*is_overlap) {
            free(all);
            return NULL;
        }
        if (start > end)
            all[(*boxes)++] = (owned_extent){end, start - end, 0};
        if (i < count)
            all[(*boxes)++] = extents[i];
        end = i < count ? start + extents[i].bytes : end;
    }
    return all;
}

/* Blocks of one size, dealt to the ranks in turn, as of columns of equal widths: a layout of a few words. */
static jct_layout_t *layout_of_blocks(uint64_t size, int ranks, uint64_t block) {
    char text[128];
    jct_layout_t *layout = NULL;
    snprintf(text, sizeof text, "shape=%llu grid=%d block=%llu", (unsigned long long)size, ranks, (unsigned long long)block);
    return jmpi_jct.jct_layout_parse(text, &layout) ? NULL : layout;
}

/* The size of such blocks; 0 where the boxes are none. */
static uint64_t block_of_boxes(const owned_extent *all, size_t boxes, int ranks) {
    uint64_t block = boxes ? all[0].bytes : 0;
    for (size_t i = 0; i < boxes; i++)
        if (all[i].rank != i % (size_t)ranks || (i + 1 < boxes ? all[i].bytes != block : all[i].bytes > block))
            return 0;
    return block;
}

static jct_layout_t *layout_of_boxes(const owned_extent *all, size_t boxes, int ranks, uint64_t size) {
    uint64_t block = block_of_boxes(all, boxes, ranks);
    if (block)
        return layout_of_blocks(size, ranks, block);
    uint64_t *numbers = calloc(boxes + 1, 3 * sizeof *numbers);
    jct_layout_t *layout = NULL;
    if (!numbers)
        return NULL;
    for (size_t i = 0; i < boxes; i++) {
        numbers[i] = all[i].rank;
        numbers[boxes + i] = all[i].offset;
        numbers[2 * boxes + i] = all[i].bytes;
    }
    if (jmpi_jct.jct_layout_blocks(1, &size, boxes, numbers, numbers + boxes, numbers + 2 * boxes, JCT_ORDER_C, &layout))
        layout = NULL;
    free(numbers);
    return layout;
}

/* The data of this rank's boxes, one behind the other: where they are so in memory, without a copy. */
static const unsigned char *data_of_boxes(const owned_extent *all, size_t boxes, int rank, const extent_list *mine,
                                          uint64_t *bytes, unsigned char **made) {
    const unsigned char *first = mine->count ? mine->items[0].data : NULL;
    bool is_run = first != NULL;
    size_t own = 0;
    *bytes = 0;
    *made = NULL;
    for (size_t i = 0; i < boxes; i++) {
        if (all[i].rank != (uint64_t)rank)
            continue;
        is_run = is_run && own < mine->count && mine->items[own].offset == all[i].offset &&
                 mine->items[own].data == first + *bytes;
        own++, *bytes += all[i].bytes;
    }
    if (is_run)
        return first;
    unsigned char *to = *made = calloc((size_t)*bytes + 1, 1);
    size_t next = 0;
    for (size_t i = 0; to && i < boxes; i++) {
        if (all[i].rank != (uint64_t)rank)
            continue;
        if (next < mine->count && mine->items[next].offset == all[i].offset) {
            if (mine->items[next].data)
                memcpy(to, mine->items[next].data, (size_t)all[i].bytes);
            next++;
        }
        to += all[i].bytes;
    }
    return *made;
}

/* Extents of one length at equal distances, as of the rows of a box: few numbers for many extents. */
typedef struct extent_run {
    uint64_t offset, bytes, stride, count;
} extent_run;

/* What ranks tell each other of their extents. Each sends its error and as many runs as the rank that has most. */
typedef struct boxes_exchange {
    extent_list mine;
    size_t runs; /* of this rank, behind the first place, which is for the error */
    extent_run *own, *all;
} boxes_exchange;

static void free_boxes(boxes_exchange *boxes) {
    jmpi_extents_free(&boxes->mine);
    free(boxes->own);
    free(boxes->all);
}

static void find_runs(boxes_exchange *boxes) {
    extent_run *last = boxes->own;
    for (size_t i = 0; i < boxes->mine.count; i++) {
        const byte_extent *one = &boxes->mine.items[i];
        bool is_next = boxes->runs && one->bytes == last->bytes &&
                       (last->count == 1 || one->offset == last->offset + last->count * last->stride);
        if (is_next) {
            last->stride = last->count == 1 ? one->offset - last->offset : last->stride;
            last->count++;
        } else {
            *++last = (extent_run){.offset = one->offset, .bytes = one->bytes, .count = 1};
            boxes->runs++;
        }
    }
}

/* Finds this rank's runs, with room for a few of each rank. False where there is no memory. */
static bool find_boxes(const open_file *file, boxes_exchange *out) {
    size_t room = 1 + RUNS_AT_ONCE;
    *out = (boxes_exchange){0};
    if (!merge_periods(file, &out->mine))
        return false;
    /* More extents than can be boxes are no runs. */
    size_t count = out->mine.count <= BOXES_MAX ? out->mine.count : 0;
    out->own = calloc(count < room ? room : count + 1, sizeof *out->own);
    out->all = malloc(room * (size_t)file->ranks * sizeof *out->all);
    if (!out->own || !out->all)
        return false;
    if (count)
        find_runs(out);
    return true;
}

/* Room for `most` runs of each rank. All ranks get the same answer, without an exchange where there is room. */
static int make_room(const open_file *file, boxes_exchange *boxes, size_t most) {
    if (most <= RUNS_AT_ONCE)
        return MPI_SUCCESS;
    extent_run *own = calloc(most + 1, sizeof *own), *all = malloc((most + 1) * (size_t)file->ranks * sizeof *all);
    uint64_t is_bad = !own || !all;
    if (own)
        memcpy(own, boxes->own, (boxes->runs + 1) * sizeof *own);
    free(boxes->own);
    free(boxes->all);
    boxes->own = own;
    boxes->all = all;
    int error = jmpi_greatest(file, &is_bad, 1);
    return error ? error : is_bad ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* The extents of all ranks; NULL where there is no memory. */
static owned_extent *expand(const extent_run *all, size_t most, int ranks, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < (most + 1) * (size_t)ranks; i++)
        *count += i % (most + 1) ? (size_t)all[i].count : 0;
    owned_extent *extents = malloc((*count + 1) * sizeof *extents), *to = extents;
    for (size_t i = 0; extents && i < (most + 1) * (size_t)ranks; i++)
        for (uint64_t n = 0; i % (most + 1) && n < all[i].count; n++)
            *to++ = (owned_extent){all[i].offset + n * all[i].stride, all[i].bytes, i / (most + 1)};
    return extents;
}

/* Each extent is a box; `most` is the greatest number of runs of any rank. `is_offered` stays false where extents
 * overlap. Ranks agree once, on the offers: those that share cores lose time in each exchange. */
static int publish_boxes(open_file *file, boxes_exchange *boxes, size_t most, uint64_t size) {
    int error = make_room(file, boxes, most);
    if (error)
        return error;
    const size_t sent = (most + 1) * sizeof *boxes->own;
    boxes->own[0].offset = (uint64_t)remove_earlier(file);
    error = jmpi_real.Allgather(boxes->own, (int)sent, MPI_BYTE, boxes->all, (int)sent, MPI_BYTE, file->comm);
    if (error)
        return error;
    int mine = JCT_OK;
    for (int rank = 0; rank < file->ranks; rank++)
        mine = boxes->all[(most + 1) * (size_t)rank].offset ? (int)boxes->all[(most + 1) * (size_t)rank].offset : mine;
    size_t count, places = 0;
    uint64_t bytes = 0, code;
    unsigned char *made = NULL;
    const unsigned char *data = NULL;
    jct_layout_t *layout = NULL;
    bool is_overlap = false;
    owned_extent *extents = expand(boxes->all, most, file->ranks, &count);
    owned_extent *sorted = extents ? own_all(extents, count, size, &places, &is_overlap) : NULL;
    if (sorted)
        layout = layout_of_boxes(sorted, places, file->ranks, size);
    if (layout)
        data = data_of_boxes(sorted, places, file->rank, &boxes->mine, &bytes, &made);
    if (!mine && (!layout || (bytes && !data)))
        mine = is_overlap ? JCT_CONFLICT : JCT_LIMIT_EXCEEDED;
    error = offer_piece(file, layout, "u1", data, bytes, mine, &code);
    if (!error && code == JCT_OK) {
        file->is_offered = true;
        report(file, bytes);
    }
    free(made);
    free(sorted);
    free(extents);
    if (layout)
        jmpi_jct.jct_layout_free(layout);
    return error;
}

/* Each rank offers the same number of bytes, and gets from the others what they wrote there. */
static int publish_blocks(open_file *file, uint64_t size) {
    uint64_t block = (size + (uint64_t)file->ranks - 1) / (uint64_t)file->ranks;
    block = block > BLOCK_BYTES_MIN ? block : BLOCK_BYTES_MIN;
    uint64_t first = (uint64_t)file->rank * block, left = first < size ? size - first : 0;
    uint64_t bytes = left < block ? left : block;
    unsigned char *mine = calloc((size_t)bytes + 1, 1);
    uint64_t code = JCT_OK, of_base = file->base_bytes > first ? file->base_bytes - first : 0;
    of_base = of_base < bytes ? of_base : bytes;
    int mine_failed = mine ? JCT_OK : JCT_LIMIT_EXCEEDED;
    if (!mine_failed && of_base)
        mine_failed = jmpi_source_read(file->base, first, of_base, mine);
    int error = agree_on_code(file, mine_failed, &code);
    if (!error && code)
        error = MPI_ERR_NO_MEM;
    if (!error)
        error = jmpi_route(file, size, block, mine);
    int earlier = error ? JCT_OK : remove_earlier(file);
    error = error ? error : agree_on_code(file, earlier, &code);
    jct_layout_t *layout = error ? NULL : layout_of_blocks(size, file->ranks, block);
    if (!error)
        error = offer_piece(file, layout, "u1", mine, bytes, code ? (int)code : layout ? JCT_OK : JCT_LIMIT_EXCEEDED, &code);
    if (!error && code == JCT_OK) {
        file->is_offered = true;
        report(file, bytes);
    }
    if (layout)
        jmpi_jct.jct_layout_free(layout);
    free(mine);
    return error;
}

/* One object */

static int offer_whole(const open_file *file, uint64_t size, const unsigned char *data) {
    char texts[JMPI_DIMENSIONS_MAX][24];
    const char *shape[JMPI_DIMENSIONS_MAX];
    jct_attributes_t *attributes = jmpi_key_of(file->folder, file->name);
    int code = attributes ? jmpi_jct.jct_attributes_set_text(attributes, "interface", "mpi-io") : JCT_LIMIT_EXCEEDED;
    if (!code && file->dimensions && file->offered_bytes == size) {
        for (int d = 0; d < file->dimensions; d++) {
            snprintf(texts[d], sizeof *texts, "%llu", (unsigned long long)file->shape[d]);
            shape[d] = texts[d];
        }
        code = jmpi_jct.jct_attributes_set_text(attributes, "dtype", file->type);
        code = code ? code : jmpi_jct.jct_attributes_set_list(attributes, "shape", shape, (size_t)file->dimensions);
    }
    if (!code)
        code = jmpi_jct.jct_offer(jmpi_pool(), attributes, data, (size_t)size, jmpi_offer_options());
    if (code)
        intercept_say("%s: %s", file->path, jmpi_jct.jct_error_text());
    jmpi_jct.jct_attributes_free(attributes);
    return code;
}

/* Rank 0 offers all bytes: the pool remembers the pieces of an array for a while after it was removed, and takes no
 * others under its name. */
static int publish_whole(open_file *file, uint64_t size) {
    uint64_t bytes = file->rank == 0 ? size : 0, code;
    uint64_t of_base = file->base_bytes < bytes ? file->base_bytes : bytes;
    unsigned char *mine = calloc((size_t)bytes + 1, 1);
    int failed = mine ? JCT_OK : JCT_LIMIT_EXCEEDED;
    if (!failed && of_base)
        failed = jmpi_source_read(file->base, 0, of_base, mine);
    int error = agree_on_code(file, failed, &code);
    error = error ? error : code ? MPI_ERR_NO_MEM : jmpi_route(file, size, size ? size : 1, mine);
    if (!error) {
        failed = remove_earlier(file);
        if (!failed && file->rank == 0)
            failed = offer_whole(file, size, mine);
        error = agree_on_code(file, failed, &code);
        file->is_offered = !error && code == JCT_OK;
        if (file->is_offered && file->rank == 0)
            report(file, size);
    }
    free(mine);
    return error;
}

/* Closing */

/* An array that was written again after it was offered becomes bytes: each rank takes its piece back. */
static int take_back(open_file *file) {
    uint64_t elements, code, bytes = 0;
    int mine = JCT_OK;
    unsigned char *data = NULL;
    file_period *oldest = calloc(1, sizeof *oldest), **at = &file->period;
    intercept_say_once("%s was written again after its array was offered: write JUNCTURA_MPI_IO=...=bytes for it",
                       file->path);
    if (!oldest)
        mine = JCT_LIMIT_EXCEEDED;
    else if (!jmpi_jct.jct_layout_elements(file->layout, (uint64_t)file->rank, &elements) && elements) {
        written_record piece = {.view = file->offered_view, .from = file->offered_from};
        jct_attributes_t *key = jmpi_key_of(file->folder, file->name);
        jct_object_t *array = NULL;
        bytes = piece.bytes = file->offered_mine;
        data = piece.data = malloc((size_t)bytes);
        mine = data && key ? jmpi_jct.jct_demand_key(jmpi_pool(), key, "schema=free", 0, &array) : JCT_LIMIT_EXCEEDED;
        if (!mine)
            mine = jmpi_jct.jct_object_take(jmpi_pool(), array, file->layout, (uint64_t)file->rank, file->type, data,
                                            (size_t)bytes);
        jmpi_jct.jct_object_give_back(array);
        jmpi_jct.jct_attributes_free(key);
        if (mine)
            intercept_say("%s: %s", file->path, jmpi_jct.jct_error_text());
        else if (jmpi_flatten_view(piece.view) || !jmpi_append_record(&oldest->extents, &piece))
            mine = JCT_LIMIT_EXCEEDED;
        jmpi_cut(&oldest->extents, file->offered_until);
    }
    if (oldest) {
        while (*at)
            at = &(*at)->next;
        *at = oldest;
    }
    if (data && !jmpi_keep(file, data))
        mine = JCT_LIMIT_EXCEEDED;
    file->is_offered = false;
    file->must_be_whole = true;
    file->base_bytes = 0; /* of the array itself, which is all there is */
    int error = agree_on_code(file, mine, &code);
    return error ? error : code ? MPI_ERR_IO : MPI_SUCCESS;
}

/* Offers bytes by boxes, by blocks, or as one object, and writes the real file where that fails. */
static int publish_bytes(open_file *file, boxes_exchange *boxes, uint64_t most, uint64_t size) {
    int error = MPI_SUCCESS;
    file->size_at_least = size;
    if (!file->must_be_whole && most != UINT64_MAX)
        error = publish_boxes(file, boxes, (size_t)most, size);
    if (!error && !file->is_offered && !file->must_be_whole)
        error = publish_blocks(file, size);
    if (!error && file->must_be_whole)
        error = publish_whole(file, size);
    if (file->is_offered)
        return error;
    intercept_say_once("%s is written as a file, since the pool could not have it", file->path);
    error = jmpi_move_to_real(file, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    return error ? error : jmpi_real.File_close(&file->real);
}

int jmpi_publish(open_file *file, bool has_changed) {
    int error = MPI_SUCCESS;
    if (file->mode == MODE_ARRAY && !file->is_offered) {
        error = publish_array(file, &has_changed);
        if (error || file->is_offered || !has_changed)
            return error;
    }
    /* All that this rank can find out alone, so that ranks agree once. */
    enum { HAS_CHANGED, IS_LATE, HAS_FAILED, SIZE, RUNS, WORDS };
    boxes_exchange boxes = {0};
    int settled = jmpi_settle_writes(file);
    bool is_good = !settled && (file->must_be_whole || find_boxes(file, &boxes));
    bool is_many = file->base_bytes || boxes.mine.count > BOXES_MAX / (uint64_t)file->ranks;
    uint64_t agreed[WORDS] = {[HAS_CHANGED] = has_changed,      [IS_LATE] = file->is_late,
                              [HAS_FAILED] = !is_good,          [SIZE] = jmpi_size_of(file),
                              [RUNS] = is_many ? UINT64_MAX : boxes.runs};
    error = jmpi_greatest(file, agreed, WORDS);
    bool is_done = !agreed[HAS_CHANGED] || (file->is_offered && !agreed[IS_LATE]);
    if (!error && !is_done && agreed[HAS_FAILED])
        error = MPI_ERR_NO_MEM;
    if (!error && !is_done && file->is_offered) {
        error = take_back(file);
        agreed[SIZE] = jmpi_size_of(file);
        error = error ? error : jmpi_greatest(file, &agreed[SIZE], 1);
    }
    if (!error && !is_done)
        error = publish_bytes(file, &boxes, agreed[RUNS], agreed[SIZE]);
    free_boxes(&boxes);
    return error;
}

/* The real file */

static int write_real(MPI_File real, uint64_t offset, const unsigned char *data, uint64_t bytes) {
    int error = MPI_SUCCESS;
    const uint64_t most = (uint64_t)1 << 30;
    MPI_Status status;
    for (uint64_t at = 0; at < bytes && !error; at += most)
        error = jmpi_real.File_write_at(real, (MPI_Offset)(offset + at), data + at,
                                        (int)(bytes - at < most ? bytes - at : most), MPI_BYTE, &status);
    return error;
}

/* What the file had when it was opened. */
static int write_base(open_file *file, MPI_File real) {
    const uint64_t most = (uint64_t)4 << 20;
    unsigned char *part = malloc((size_t)most);
    int error = part ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (uint64_t at = 0; at < file->base_bytes && !error; at += most) {
        uint64_t bytes = file->base_bytes - at < most ? file->base_bytes - at : most;
        error = jmpi_source_read(file->base, at, bytes, part) ? MPI_ERR_IO : write_real(real, at, part, bytes);
    }
    free(part);
    return error;
}

int jmpi_move_to_real(open_file *file, int amode) {
    MPI_File real;
    int error = jmpi_settle_writes(file);
    uint64_t failed = (uint64_t)error;
    error = jmpi_greatest(file, &failed, 1);
    error = error ? error : failed ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    error = error ? error : jmpi_real.File_open(file->comm, file->path, amode, MPI_INFO_NULL, &real);
    if (error)
        return error;
    int mine = file->rank == 0 && file->base_bytes ? write_base(file, real) : MPI_SUCCESS;
    for (uint64_t number = 0; number <= file->periods_ended && !error; number++) {
        error = jmpi_real.Barrier(file->comm);
        const file_period *period = file->period;
        while (period && period->number != number)
            period = period->next;
        for (size_t i = 0; period && i < period->extents.count && !mine; i++)
            if (period->extents.items[i].data)
                mine = write_real(real, period->extents.items[i].offset, period->extents.items[i].data,
                                  period->extents.items[i].bytes);
    }
    failed = (uint64_t)mine;
    error = error ? error : jmpi_greatest(file, &failed, 1);
    file->real = real;
    return error ? error : failed ? MPI_ERR_IO : MPI_SUCCESS;
}
