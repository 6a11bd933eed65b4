/* Files that ranks write together. Each rank keeps what it writes; at the end of a step, and when the file is synchronized
 * or closed, the ranks tell each other the boxes, and offer their parts of each record as pieces of one array. The arrays of
 * a step are members of a bundle, which the first rank seals when all ranks have offered.
 *
 * MPI is called by the functions that the program has loaded, with handles that are as long as a pointer or an int. */
#define _GNU_SOURCE
#include "parallel.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "boxes.h"
#include "definitions.h"
#include "map/mapped.h"

struct ParallelFile {
    MpiHandle communicator, byte;
    int rank, ranks;
    int64_t epoch, turn;
    /* The beginning of the paths of bundles, and how many there were. */
    char name[224];
    int64_t steps;
};

/* What the first rank states for all. */
typedef struct {
    int64_t epoch;
    char client[160];
} FirstRank;

/* What a rank states of each piece, followed by start and count. */
enum { VARIABLE, RECORD, TURN, START };
/* The piece of a box that no rank has written. */
#define NO_PIECE ((size_t)-1)

#define MPI(name, ...) ((int (*)(__VA_ARGS__))mpi_function(#name))

static AnyFunction mpi_function(const char *name) {
    AnyFunction function = intercept_next(name, "libmpi");
    if (!function) {
        intercept_say("the MPI library of this program has no %s", name);
        abort();
    }
    return function;
}

/* The type of bytes: an object of Open MPI, a number of MPICH. */
static MpiHandle type_of_bytes(void) {
    void *object = dlsym(RTLD_DEFAULT, "ompi_mpi_byte");
    return object ? (MpiHandle)object : 0x4c00010d;
}

static bool gather(const ParallelFile *parallel, const void *own, size_t bytes, void *all) {
    return MPI(MPI_Allgather, const void *, int, MpiHandle, void *, int, MpiHandle, MpiHandle)(
               own, (int)bytes, parallel->byte, all, (int)bytes, parallel->byte, parallel->communicator) == 0;
}

MpiHandle parallel_of_fortran(int communicator) {
    AnyFunction convert = intercept_next("MPI_Comm_f2c", "libmpi");
    /* MPICH has numbers in both languages. */
    return convert ? ((MpiHandle(*)(int))convert)(communicator) : (MpiHandle)(unsigned)communicator;
}

MpiHandle parallel_info_of_fortran(int info) {
    AnyFunction convert = intercept_next("MPI_Info_f2c", "libmpi");
    return convert ? ((MpiHandle(*)(int))convert)(info) : (MpiHandle)(unsigned)info;
}

int parallel_begin(OpenFile *file, MpiHandle communicator) {
    ParallelFile *parallel = calloc(1, sizeof *parallel);
    if (!parallel) return NC_ENOMEM;
    parallel->byte = type_of_bytes();
    MPI(MPI_Comm_dup, MpiHandle, MpiHandle *)(communicator, &parallel->communicator);
    MPI(MPI_Comm_rank, MpiHandle, int *)(parallel->communicator, &parallel->rank);
    MPI(MPI_Comm_size, MpiHandle, int *)(parallel->communicator, &parallel->ranks);
    intercept_rank(parallel->rank);
    file->parallel = parallel;
    /* Versions of arrays are distinguished by a number that no earlier file has: the time of the first rank. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    FirstRank own = {(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000, ""};
    snprintf(own.client, sizeof own.client, "%s", pool_client_name());
    FirstRank *all = malloc((size_t)parallel->ranks * sizeof *all);
    bool is_done = all && gather(parallel, &own, sizeof own, all);
    if (is_done) {
        parallel->epoch = all[0].epoch;
        snprintf(parallel->name, sizeof parallel->name, "netcdf.%s.%lld", all[0].client, (long long)all[0].epoch);
    }
    free(all);
    return is_done ? NC_NOERR : NC_ENOMEM;
}

bool parallel_is_first(const OpenFile *file) { return !file->parallel || file->parallel->rank == 0; }

void parallel_wait(const OpenFile *file) { MPI(MPI_Barrier, MpiHandle)(file->parallel->communicator); }

void parallel_end(OpenFile *file) {
    MPI(MPI_Comm_free, MpiHandle *)(&file->parallel->communicator);
    free(file->parallel);
    file->parallel = NULL;
}

int parallel_access(OpenFile *file, int group, int id, int access) {
    int status = file_load(file);
    for (size_t at = 0; status == NC_NOERR && at < file->variable_count; at++) {
        FileVariable *variable = &file->variables[at];
        if (id == NC_GLOBAL || (variable->group == group && variable->id == id))
            variable->is_collective = access == NC_COLLECTIVE;
    }
    return status;
}

/* Keeps a box of values. */
static int keep_piece(FileVariable *variable, size_t record, int64_t turn, const SlabPart *part, const SlabSides *sides) {
    size_t dims = part->dims, elements = slab_elements(dims, part->count);
    RankPiece *piece = calloc(1, sizeof *piece);
    size_t *numbers = malloc((3 * dims + 1) * sizeof *numbers);
    void *data = intercept_memory(elements * convert_size(variable->type));
    if (!piece || !numbers || !data) {
        free(piece);
        free(numbers);
        free(data);
        return NC_ENOMEM;
    }
    *piece = (RankPiece){record, turn, numbers, numbers + dims, data, NULL};
    memcpy(piece->start, part->start, dims * sizeof *numbers);
    memcpy(piece->count, part->count, dims * sizeof *numbers);
    size_t *zeros = numbers + 2 * dims;
    memset(zeros, 0, dims * sizeof *zeros);
    SlabPart whole = {dims, piece->count, zeros, piece->count, part->stride, part->map};
    SlabSides to_piece = *sides;
    to_piece.array = data;
    RankPiece **at = &variable->pieces;
    while (*at) at = &(*at)->next;
    *at = piece;
    return slab_put(&whole, &to_piece);
}

/* Keeps a part of a record: one piece for each index of dimensions that are strided. */
static int keep_part(FileVariable *variable, size_t record, int64_t turn, const SlabPart *part, const SlabSides *sides,
                     size_t from) {
    size_t at = from;
    while (at < part->dims && (part->stride[at] == 1 || part->count[at] == 1)) at++;
    if (at == part->dims) {
        ptrdiff_t ones[NC_MAX_VAR_DIMS];
        for (size_t dim = 0; dim < part->dims; dim++) ones[dim] = 1;
        SlabPart plain = *part;
        plain.stride = ones;
        return keep_piece(variable, record, turn, &plain, sides);
    }
    int worst = NC_NOERR;
    size_t start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS];
    memcpy(start, part->start, part->dims * sizeof *start);
    memcpy(count, part->count, part->dims * sizeof *count);
    count[at] = 1;
    for (size_t index = 0; index < part->count[at]; index++) {
        start[at] = part->start[at] + index * (size_t)part->stride[at];
        SlabPart one = *part;
        SlabSides from_there = *sides;
        one.start = start;
        one.count = count;
        from_there.memory =
            (char *)sides->memory + (ptrdiff_t)index * part->map[at] * (ptrdiff_t)convert_size(sides->memory_type);
        int status = keep_part(variable, record, turn, &one, &from_there, at + 1);
        if (status == NC_ERANGE) worst = status;
        else if (status != NC_NOERR) return status;
    }
    return worst;
}

static int keep(const DataCall *call) {
    FileVariable *variable = call->variable;
    int worst = NC_NOERR;
    for (size_t at = 0; at < variable->dims; at++)
        if (call->count[at] == 0) return NC_NOERR;
    if (variable->has_growing || variable->type == NC_STRING) {
        intercept_fell_through("a parallel write of texts or of several unlimited dimensions", call->file->path);
        return call->file->mode == MODE_TEE ? NC_NOERR : pool_status_unsupported();
    }
    size_t skipped = variable->record_dim >= 0 ? 1 : 0, records = skipped ? call->count[0] : 1;
    for (size_t at = 0; at < records; at++) {
        size_t record = skipped ? call->start[0] + at * (size_t)call->stride[0] : 0;
        ptrdiff_t offset = skipped ? (ptrdiff_t)at * call->map[0] * (ptrdiff_t)convert_size(call->type) : 0;
        SlabPart part = {variable->record_dims,   variable->shape,        call->start + skipped,
                         call->count + skipped,   call->stride + skipped, call->map + skipped};
        SlabSides sides = {variable->type, NULL, call->type, (char *)call->memory + offset, call->file->is_classic};
        int status = keep_part(variable, record, call->file->parallel->turn, &part, &sides, 0);
        if (status == NC_ERANGE) worst = status;
        else if (status != NC_NOERR) return status;
        UnlimitedDim *dim = file_unlimited(call->file, variable->record_dim);
        if (dim && record >= dim->length) dim->length = record + 1;
    }
    return worst;
}

/* The pieces of all ranks, as numbers. */
typedef struct {
    int64_t *numbers;
    int *lengths, *places;
    size_t length;
} GatheredPieces;

typedef struct {
    int dim;
    size_t before;
} StepRange;

/* Whether a record is to be offered: records of a dimension before one, or all. Variables without records always are. */
static bool is_due(const FileVariable *variable, size_t record, const StepRange *range) {
    return !range || variable->record_dim < 0 || (variable->record_dim == range->dim && record < range->before);
}

static int64_t *own_numbers(const OpenFile *file, const StepRange *range, int *length) {
    size_t room = 0;
    for (int pass = 0;; pass++) {
        int64_t *numbers = pass ? malloc((room + 1) * sizeof *numbers) : NULL;
        if (pass && !numbers) return NULL;
        size_t used = 0;
        for (size_t at = 0; at < file->variable_count; at++) {
            const FileVariable *variable = &file->variables[at];
            for (const RankPiece *piece = variable->pieces; piece; piece = piece->next) {
                if (!is_due(variable, piece->record, range)) continue;
                if (numbers) {
                    numbers[used + VARIABLE] = (int64_t)at;
                    numbers[used + RECORD] = (int64_t)piece->record;
                    numbers[used + TURN] = piece->turn;
                    for (size_t dim = 0; dim < variable->record_dims; dim++) {
                        numbers[used + START + dim] = (int64_t)piece->start[dim];
                        numbers[used + START + variable->record_dims + dim] = (int64_t)piece->count[dim];
                    }
                }
                used += START + 2 * variable->record_dims;
            }
        }
        room = used;
        *length = (int)(used * sizeof(int64_t));
        if (pass) return numbers;
    }
}

static bool gather_pieces(OpenFile *file, const StepRange *range, GatheredPieces *all) {
    const ParallelFile *parallel = file->parallel;
    int own = 0;
    int64_t *numbers = own_numbers(file, range, &own);
    *all = (GatheredPieces){NULL, calloc((size_t)parallel->ranks, sizeof(int)), calloc((size_t)parallel->ranks, sizeof(int)), 0};
    bool is_done = numbers && all->lengths && all->places && gather(parallel, &own, sizeof own, all->lengths);
    for (int rank = 0; is_done && rank < parallel->ranks; rank++) {
        all->places[rank] = (int)all->length;
        all->length += (size_t)all->lengths[rank];
    }
    all->numbers = malloc(all->length + sizeof(int64_t));
    is_done = is_done && all->numbers &&
              MPI(MPI_Allgatherv, const void *, int, MpiHandle, void *, const int *, const int *, MpiHandle, MpiHandle)(
                  numbers, own, parallel->byte, all->numbers, all->lengths, all->places, parallel->byte,
                  parallel->communicator) == 0;
    free(numbers);
    return is_done;
}

static void free_pieces(GatheredPieces *all) {
    free(all->numbers);
    free(all->lengths);
    free(all->places);
}

/* A piece of any rank: its numbers, and its place among those of its rank. */
typedef struct {
    const int64_t *numbers;
    int rank;
    size_t piece;
} StatedPiece;

static int by_turn(const void *one, const void *other) {
    const StatedPiece *a = one, *b = other;
    if (a->numbers[TURN] != b->numbers[TURN]) return a->numbers[TURN] < b->numbers[TURN] ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return a->piece < b->piece ? -1 : 1;
}

/* Adds the boxes that all ranks wrote of a record. Those of a later turn replace earlier ones. */
static bool add_boxes(const OpenFile *file, const GatheredPieces *all, size_t variable, size_t record, BoxList *list) {
    size_t dims = file->variables[variable].record_dims, found = 0, room = 0;
    StatedPiece *pieces = NULL;
    bool is_done = true;
    for (int rank = 0; is_done && rank < file->parallel->ranks; rank++) {
        const int64_t *at = all->numbers + (size_t)all->places[rank] / sizeof *at;
        const int64_t *end = at + (size_t)all->lengths[rank] / sizeof *at;
        for (size_t piece = 0; at < end; piece++, at += START + 2 * file->variables[at[VARIABLE]].record_dims) {
            if ((size_t)at[VARIABLE] != variable || (size_t)at[RECORD] != record) continue;
            if (found == room) {
                room = room ? 2 * room : 64;
                StatedPiece *grown = realloc(pieces, room * sizeof *grown);
                is_done = grown != NULL;
                if (!grown) break;
                pieces = grown;
            }
            pieces[found++] = (StatedPiece){at, rank, piece};
        }
    }
    if (found) qsort(pieces, found, sizeof *pieces, by_turn);
    for (size_t at = 0; is_done && at < found; at++) {
        uint64_t start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS];
        for (size_t dim = 0; dim < dims; dim++) {
            start[dim] = (uint64_t)pieces[at].numbers[START + dim];
            count[dim] = (uint64_t)pieces[at].numbers[START + dims + dim];
        }
        is_done = boxes_add(list, (uint64_t)pieces[at].rank, pieces[at].piece, start, count);
    }
    free(pieces);
    return is_done;
}

/* Finds the piece with a number among those that are due. */
static const RankPiece *find_piece(const OpenFile *file, const StepRange *range, size_t number) {
    for (size_t at = 0; at < file->variable_count; at++) {
        const FileVariable *variable = &file->variables[at];
        for (const RankPiece *piece = variable->pieces; piece; piece = piece->next)
            if (is_due(variable, piece->record, range) && number-- == 0) return piece;
    }
    return NULL;
}

/* Copies a box out of a piece. */
static void take_box(const FileVariable *variable, const RankPiece *piece, const IndexBox *box, char *to) {
    size_t dims = variable->record_dims, start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS];
    ptrdiff_t ones[NC_MAX_VAR_DIMS], map[NC_MAX_VAR_DIMS], weight = 1;
    for (size_t at = dims; at-- > 0; weight *= (ptrdiff_t)box->count[at]) {
        start[at] = box->start[at] - piece->start[at];
        count[at] = box->count[at];
        ones[at] = 1;
        map[at] = weight;
    }
    SlabPart part = {dims, piece->count, start, count, ones, map};
    SlabSides sides = {variable->type, piece->data, variable->type, to, false};
    slab_get(&part, &sides);
}

/* Gives a box that no rank wrote the values of an earlier version, or fill values. */
static void fill_box(OpenFile *file, FileVariable *variable, size_t record, const uint64_t *shape, const IndexBox *box,
                     size_t elements, char *to) {
    slab_fill(variable->type, to, elements, variable->fill);
    if (record >= variable->offered || variable->record_dims == 0 || variable->schema) return;
    jct_layout_t *layout = NULL;
    jct_attributes_t *key = JCT(jct_attributes_new)();
    uint64_t rank = 0;
    if (key && JCT(jct_layout_blocks)(variable->record_dims, shape, 1, &rank, box->start, box->count, JCT_ORDER_C,
                                      &layout) == JCT_OK) {
        file_key(file, key, variable->name);
        if (variable->record_dim >= 0) JCT(jct_attributes_set_int)(key, "record", (int64_t)record);
        jct_object_t *object = NULL;
        if (JCT(jct_demand_key)(pool_of_process(), key, "schema=netcdf", 0.0, &object) == JCT_OK)
            JCT(jct_object_take)
            (pool_of_process(), object, layout, 0, parallel_type(variable), to, elements * convert_size(variable->type));
        JCT(jct_object_give_back)(object);
    }
    JCT(jct_layout_free)(layout);
    JCT(jct_attributes_free)(key);
}

const char *parallel_type(const FileVariable *variable) {
    return variable->type == NC_CHAR ? "u1" : convert_name(variable->type);
}

/* The piece that is all that this rank has of an array, in the same order; NULL where there is none. */
static const RankPiece *whole_piece(const OpenFile *file, const StepRange *range, const BoxList *list, size_t own) {
    const IndexBox *first = NULL;
    for (size_t at = 0; at < list->count && !first; at++)
        if (list->boxes[at].rank == (uint64_t)file->parallel->rank) first = &list->boxes[at];
    if (!first || first->piece == NO_PIECE) return NULL;
    const RankPiece *piece = find_piece(file, range, first->piece);
    bool is_whole = piece != NULL;
    size_t elements = 1;
    for (size_t dim = 0; is_whole && dim < list->dims; dim++) {
        is_whole = first->start[dim] == piece->start[dim] && first->count[dim] == piece->count[dim];
        elements *= piece->count[dim];
    }
    return is_whole && elements == own ? piece : NULL;
}

/* The bundle of a step. A rank opens it with the first part that it offers. */
typedef struct {
    char path[256];
    jct_bundle_t *bundle;
} StepBundle;

static int open_step(StepBundle *step) {
    if (step->bundle) return NC_NOERR;
    return pool_status(JCT(jct_bundle_open)(pool_of_process(), step->path, NULL, NULL, &step->bundle));
}

/* Offers the part of a record that this rank has; waits while the pool is full. */
static int offer_piece(const OpenFile *file, FileVariable *variable, const StepBundle *step, const jct_layout_t *layout,
                       const jct_attributes_t *attributes, const void *data, size_t bytes) {
    for (;;) {
        const char *options = variable->schema ? variable->options : file->map->options;
        char of_piece[512];
        if (variable->has_no_epoch) snprintf(of_piece, sizeof of_piece, "%s", options);
        else snprintf(of_piece, sizeof of_piece, "%s,epoch=%lld", options, (long long)file->parallel->epoch);
        int code = JCT(jct_bundle_offer_piece)(step->bundle, layout, (uint64_t)file->parallel->rank,
                                               parallel_type(variable), attributes, data, bytes, of_piece);
        bool is_refused = code == JCT_INVALID_ARGUMENT && variable->schema && !variable->has_no_epoch;
        if (is_refused) variable->has_no_epoch = true;
        else if (!pool_is_full(code)) return pool_status(code);
    }
}

static int offer_boxes(OpenFile *file, FileVariable *variable, size_t record, const BoxList *list, const StepRange *range,
                       StepBundle *step) {
    const ParallelFile *parallel = file->parallel;
    size_t dims = variable->record_dims, own = 0, size = convert_size(variable->type);
    uint64_t shape[NC_MAX_VAR_DIMS];
    size_t extents[NC_MAX_VAR_DIMS];
    for (size_t at = 0; at < dims; at++) shape[at] = extents[at] = variable->shape[at];
    bool is_one = true;
    for (size_t at = 0; at < list->count; at++) {
        size_t elements = 1;
        for (size_t dim = 0; dim < dims; dim++) elements *= list->boxes[at].count[dim];
        if (list->boxes[at].rank == (uint64_t)parallel->rank) own += elements;
        is_one &= list->boxes[at].rank == list->boxes[0].rank;
    }
    is_one &= list->count == 1;
    const RankPiece *only = whole_piece(file, range, list, own);
    char *made = only ? NULL : intercept_memory(own * size), *to = made;
    const void *data = only ? only->data : made;
    if (!data) return NC_ENOMEM;
    for (size_t at = 0; made && at < list->count; at++) {
        const IndexBox *box = &list->boxes[at];
        if (box->rank != (uint64_t)parallel->rank) continue;
        size_t elements = 1;
        for (size_t dim = 0; dim < dims; dim++) elements *= box->count[dim];
        const RankPiece *piece = box->piece == NO_PIECE ? NULL : find_piece(file, range, box->piece);
        if (piece) take_box(variable, piece, box, to);
        else fill_box(file, variable, record, shape, box, elements, to);
        to += elements * size;
    }
    int status = NC_NOERR;
    const char *options = variable->schema ? variable->options : file->map->options;
    jct_attributes_t *own_attributes = variable->schema ? mapped_describe(file, variable, record, extents, NULL, &status) : NULL;
    jct_attributes_t *attributes = variable->schema ? own_attributes : steps_describe(file, variable, record, extents);
    if (!attributes && status == NC_NOERR) status = NC_ENOMEM;
    if (status == NC_NOERR && own > 0) status = open_step(step);
    if (status == NC_NOERR && is_one && own > 0) {
        int code;
        do code = JCT(jct_bundle_offer)(step->bundle, attributes, data, own * size, options);
        while (pool_is_full(code));
        status = pool_status(code);
        if (status == NC_NOERR) intercept_offered(file->report, own * size);
    } else if (status == NC_NOERR && !is_one && own > 0) {
        uint64_t *numbers = malloc((2 * dims + 1) * list->count * sizeof *numbers);
        uint64_t *starts = numbers + list->count, *counts = starts + dims * list->count;
        jct_layout_t *layout = NULL;
        for (size_t at = 0; numbers && at < list->count; at++) {
            numbers[at] = list->boxes[at].rank;
            memcpy(starts + at * dims, list->boxes[at].start, dims * sizeof *starts);
            memcpy(counts + at * dims, list->boxes[at].count, dims * sizeof *counts);
        }
        if (!variable->schema) JCT(jct_attributes_set_text)(attributes, "pieces", "yes");
        status = numbers ? pool_status(JCT(jct_layout_blocks)(dims, shape, list->count, numbers, starts, counts,
                                                              JCT_ORDER_C, &layout))
                         : NC_ENOMEM;
        if (status == NC_NOERR) status = offer_piece(file, variable, step, layout, attributes, data, own * size);
        if (status == NC_NOERR) intercept_offered(file->report, own * size);
        JCT(jct_layout_free)(layout);
        free(numbers);
    }
    if (own_attributes) JCT(jct_attributes_free)(own_attributes);
    free(made);
    return status;
}

static int offer_record(OpenFile *file, const GatheredPieces *all, size_t variable, size_t record, const StepRange *range,
                        StepBundle *step) {
    FileVariable *of = &file->variables[variable];
    uint64_t shape[NC_MAX_VAR_DIMS];
    for (size_t at = 0; at < of->record_dims; at++) shape[at] = of->shape[at];
    BoxList list = {of->record_dims, 0, 0, NULL};
    bool is_done = add_boxes(file, all, variable, record, &list) && boxes_complete(&list, shape, 0, NO_PIECE);
    int status = is_done ? offer_boxes(file, of, record, &list, range, step) : NC_ENOMEM;
    boxes_free(&list);
    if (record >= of->offered) of->offered = record + 1;
    return status;
}

/* All ranks agree on the value of the time of a record, and on lengths. */
static void agree(OpenFile *file) {
    const ParallelFile *parallel = file->parallel;
    size_t *lengths = malloc((size_t)parallel->ranks * sizeof *lengths);
    for (size_t at = 0; lengths && at < file->dims; at++) {
        gather(parallel, &file->unlimited[at].length, sizeof *lengths, lengths);
        for (int rank = 0; rank < parallel->ranks; rank++)
            if (lengths[rank] > file->unlimited[at].length) file->unlimited[at].length = lengths[rank];
    }
    free(lengths);
}

static void agree_on_time(OpenFile *file, const FileVariable *variable, size_t record) {
    const ParallelFile *parallel = file->parallel;
    const UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    if (!dim || variable->record_dims != 0 || strcmp(variable->name, dim->name) != 0) return;
    double own = NAN, *all = malloc((size_t)parallel->ranks * sizeof *all);
    for (const RankPiece *piece = variable->pieces; piece; piece = piece->next)
        if (piece->record == record)
            convert_run(variable->type, piece->data, 1, NC_DOUBLE, &own, 1, 1, false, false);
    if (all && gather(parallel, &own, sizeof own, all))
        for (int rank = 0; rank < parallel->ranks; rank++)
            if (!isnan(all[rank])) steps_set_time(file, variable, record, all[rank]);
    free(all);
}

static void drop_pieces(OpenFile *file, const StepRange *range) {
    for (size_t at = 0; at < file->variable_count; at++) {
        RankPiece **place = &file->variables[at].pieces;
        while (*place) {
            RankPiece *piece = *place;
            if (!is_due(&file->variables[at], piece->record, range)) {
                place = &piece->next;
                continue;
            }
            *place = piece->next;
            free(piece->start);
            free(piece->data);
            free(piece);
        }
    }
}

/* Finds the lowest record, from one on, that any rank has written of a variable, or of all variables with a dimension. */
static bool next_record(const OpenFile *file, const GatheredPieces *all, const size_t *variable, int dim, size_t from,
                        size_t *record) {
    bool is_found = false;
    const int64_t *at = all->numbers, *end = at + all->length / sizeof *at;
    for (; at < end; at += START + 2 * file->variables[at[VARIABLE]].record_dims) {
        size_t one = (size_t)at[RECORD];
        bool is_meant = variable ? (size_t)at[VARIABLE] == *variable : file->variables[at[VARIABLE]].record_dim == dim;
        if (!is_meant || one < from || (is_found && one >= *record)) continue;
        is_found = true;
        *record = one;
    }
    return is_found;
}

/* The worst status of all ranks; that of another rank has a text of its own. */
static int agree_on_status(const OpenFile *file, int status) {
    const ParallelFile *parallel = file->parallel;
    int *all = malloc((size_t)parallel->ranks * sizeof *all);
    if (!all || !gather(parallel, &status, sizeof status, all)) {
        free(all);
        return NC_ENOMEM;
    }
    for (int rank = 0; status == NC_NOERR && rank < parallel->ranks; rank++)
        if (all[rank] != NC_NOERR) status = pool_status_of_ranks();
    free(all);
    return status;
}

static int offer_state(OpenFile *file, const StepBundle *step) {
    jct_pipeline_t *members = NULL;
    int status = pool_status(JCT(jct_bundle_pipeline)(step->bundle, NULL, &members));
    if (status == NC_NOERR) status = steps_offer_state(file, members, false);
    if (status == NC_NOERR) status = pool_status(JCT(jct_pipeline_flush)(members));
    JCT(jct_pipeline_close)(members);
    return status;
}

/* Offers the records of one step, or all variables without records. Nothing is visible before all ranks have offered. */
static int offer_step(OpenFile *file, const GatheredPieces *all, int dim, size_t record, const StepRange *range) {
    ParallelFile *parallel = file->parallel;
    bool is_first = parallel_is_first(file);
    StepBundle step = {"", NULL};
    snprintf(step.path, sizeof step.path, "%s.%lld", parallel->name, (long long)++parallel->steps);
    int status = is_first ? open_step(&step) : NC_NOERR;
    for (size_t at = 0; at < file->variable_count; at++) {
        size_t found = 0;
        if (file->variables[at].record_dim != dim || !next_record(file, all, &at, dim, record, &found) || found != record)
            continue;
        int of_record = status == NC_NOERR ? offer_record(file, all, at, record, range, &step) : NC_NOERR;
        if (of_record != NC_NOERR) status = of_record;
    }
    UnlimitedDim *of = file_unlimited(file, dim);
    if (of && record >= of->published) of->published = record + 1;
    if (status == NC_NOERR && is_first) status = offer_state(file, &step);
    status = agree_on_status(file, status);
    if (is_first && status == NC_NOERR) status = pool_status(JCT(jct_bundle_seal)(step.bundle, NULL));
    else if (is_first && step.bundle) JCT(jct_bundle_abort)(step.bundle);
    /* No rank goes on before the step is visible. */
    status = agree_on_status(file, status);
    JCT(jct_bundle_close)(step.bundle);
    return status;
}

/* Offers step after step, in an order that is the same on all ranks: variables without records first. */
static int offer_steps(OpenFile *file, const GatheredPieces *all, const StepRange *range) {
    int worst = NC_NOERR;
    for (size_t at = 0; at <= file->dims; at++) {
        int dim = at == 0 ? -1 : file->unlimited[at - 1].id;
        size_t record;
        for (size_t from = 0; next_record(file, all, NULL, dim, from, &record); from = record + 1) {
            int status = offer_step(file, all, dim, record, range);
            if (status != NC_NOERR) worst = status;
        }
    }
    return worst;
}

static void agree_on_times(OpenFile *file, const GatheredPieces *all) {
    for (size_t at = 0; at < file->variable_count; at++) {
        size_t record;
        if (file->variables[at].record_dims != 0) continue;
        for (size_t from = 0; next_record(file, all, &at, 0, from, &record); from = record + 1)
            agree_on_time(file, &file->variables[at], record);
    }
}

static int flush(OpenFile *file, const StepRange *range) {
    GatheredPieces all;
    int status = file_load(file);
    agree(file);
    file->parallel->epoch++;
    file->parallel->turn++;
    if (!gather_pieces(file, range, &all)) {
        free_pieces(&all);
        return NC_ENOMEM;
    }
    if (status == NC_NOERR && parallel_is_first(file)) status = steps_announce(file);
    agree_on_times(file, &all);
    int of_steps = offer_steps(file, &all, range);
    if (status == NC_NOERR) status = of_steps;
    free_pieces(&all);
    drop_pieces(file, range);
    for (size_t at = 0; at < file->dims; at++) {
        UnlimitedDim *dim = &file->unlimited[at];
        if (!range) dim->published = dim->length;
        else if (dim->id == range->dim && range->before > dim->published) dim->published = range->before;
    }
    parallel_wait(file);
    return status;
}

int parallel_flush(OpenFile *file) { return flush(file, NULL); }

static int flush_step(OpenFile *file, int dim, size_t before) {
    StepRange range = {dim, before};
    return flush(file, &range);
}

/* What a rank states with a collective write. */
typedef struct {
    int64_t end, elements;
} WrittenPart;

/* Counts the elements of a record that all ranks wrote; true where no variable of the step lacks any. */
static bool is_step_complete(OpenFile *file, FileVariable *variable, size_t record, int64_t elements) {
    if (variable->counted_record != record) variable->counted = 0;
    variable->counted_record = record;
    variable->counted += elements;
    for (size_t at = 0; at < file->variable_count; at++) {
        const FileVariable *one = &file->variables[at];
        if (one->record_dim != variable->record_dim || !one->is_handled) continue;
        int64_t needed = (int64_t)slab_elements(one->record_dims, one->shape);
        if (one->offered <= record && (one->counted_record != record || one->counted < needed)) return false;
    }
    return true;
}

int parallel_put(const DataCall *call) {
    OpenFile *file = call->file;
    FileVariable *variable = call->variable;
    file->parallel->turn += variable->is_collective;
    if (!variable->is_collective || variable->record_dim < 0) return keep(call);
    WrittenPart own = {0, 1}, *all = malloc((size_t)file->parallel->ranks * sizeof *all);
    if (!all) return NC_ENOMEM;
    for (size_t at = 0; at < variable->dims; at++) own.elements *= (int64_t)call->count[at];
    if (own.elements > 0) own.end = (int64_t)(call->start[0] + (call->count[0] - 1) * (size_t)call->stride[0] + 1);
    gather(file->parallel, &own, sizeof own, all);
    int64_t end = 0, elements = 0;
    for (int rank = 0; rank < file->parallel->ranks; rank++) {
        if (all[rank].end > end) end = all[rank].end;
        elements += all[rank].elements;
    }
    free(all);
    UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    int status = NC_NOERR;
    /* A new record ends the steps before it. */
    if (dim->published < dim->length && (size_t)end > dim->length && dim->length > 0)
        status = flush_step(file, dim->id, dim->length);
    if ((size_t)end > dim->length) dim->length = (size_t)end;
    int of_values = keep(call);
    if (status == NC_NOERR && end > 0 && is_step_complete(file, variable, (size_t)end - 1, elements))
        status = flush_step(file, dim->id, (size_t)end);
    return status != NC_NOERR ? status : of_values;
}
