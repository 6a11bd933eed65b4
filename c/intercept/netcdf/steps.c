/* Records that are written. A record of a variable is gathered in memory of the pool. A step, the records of one index of
 * an unlimited dimension, is offered as a bundle when all its variables are complete, when the next step begins, and when
 * the file is synchronized or closed. */
#define _GNU_SOURCE
#include "steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definitions.h"
#include "map/mapped.h"

OpenRecord *steps_find(const FileVariable *variable, size_t record) {
    OpenRecord *open = variable->open;
    while (open && open->record != record) open = open->next;
    return open;
}

static void drop(FileVariable *variable, OpenRecord *record) {
    OpenRecord **at = &variable->open;
    while (*at && *at != record) at = &(*at)->next;
    if (*at) *at = record->next;
    if (variable->type == NC_STRING && record->data)
        for (size_t text = 0; text < record->elements; text++) free(((char **)record->data)[text]);
    if (record->allocation) JCT(jct_allocation_free)(record->allocation);
    else free(record->data);
    free(record->bits);
    free(record->shape);
    free(record);
}

/* Gives elements that were not written the fill value, a run of them at a time. */
static void fill_gaps(const FileVariable *variable, OpenRecord *record) {
    size_t size = convert_size(variable->type), at = 0;
    record->has_gaps = false;
    while (at < record->elements) {
        size_t end = at;
        while (end < record->elements && !(record->bits && record->bits[end / 8] & 1u << end % 8)) end++;
        slab_fill(variable->type, (char *)record->data + at * size, end - at, variable->fill);
        for (at = end; at < record->elements && record->bits[at / 8] & 1u << at % 8;) at++;
    }
}

void *steps_data(const FileVariable *variable, OpenRecord *record) {
    if (!record->data && record->allocation) record->data = JCT(jct_allocation_data)(record->allocation, NULL);
    if (record->has_gaps && record->data) fill_gaps(variable, record);
    return record->data;
}

/* Memory of the pool, unless the elements are texts or may become more. Waits while the pool is full. */
static int allocate(FileVariable *variable, OpenRecord *record) {
    size_t bytes = record->elements * convert_size(variable->type);
    if (variable->type == NC_STRING || variable->has_growing || variable->schema || bytes == 0) {
        record->data = calloc(bytes ? bytes : 1, 1);
        return record->data ? NC_NOERR : NC_ENOMEM;
    }
    int code;
    do code = JCT(jct_allocate)(pool_of_process(), bytes, &record->allocation, NULL);
    while (pool_is_full(code));
    return pool_status(code);
}

/* Fills a record with what an earlier version of it contains. */
static int take_earlier(OpenFile *file, FileVariable *variable, OpenRecord *record) {
    if (variable->type == NC_STRING || variable->has_growing) return NC_NOERR;
    jct_attributes_t *attributes = file_attributes(file, variable);
    if (!attributes) return NC_ENOMEM;
    if (variable->record_dim >= 0) JCT(jct_attributes_set_int)(attributes, "record", (int64_t)record->record);
    jct_object_t *object = NULL;
    if (JCT(jct_demand_key)(pool_of_process(), attributes, "schema=netcdf", 0.0, &object) != JCT_OK) return NC_NOERR;
    size_t bytes;
    const void *data = JCT(jct_object_data)(object, &bytes);
    if (bytes == record->elements * convert_size(variable->type)) {
        record->has_gaps = false;
        memcpy(steps_data(variable, record), data, bytes);
        record->is_again = true;
        record->written = record->elements;
    }
    JCT(jct_object_give_back)(object);
    return NC_NOERR;
}

static OpenRecord *add_record(OpenFile *file, FileVariable *variable, size_t number, bool is_whole, int *status) {
    OpenRecord *record = calloc(1, sizeof *record);
    size_t room = variable->record_dims ? variable->record_dims : 1;
    *status = NC_ENOMEM;
    if (!record || !(record->shape = malloc(room * sizeof *record->shape))) {
        free(record);
        return NULL;
    }
    record->record = number;
    memcpy(record->shape, variable->shape, variable->record_dims * sizeof *record->shape);
    record->elements = slab_elements(variable->record_dims, record->shape);
    *status = allocate(variable, record);
    if (*status != NC_NOERR) {
        free(record->shape);
        free(record);
        return NULL;
    }
    record->next = variable->open;
    variable->open = record;
    if (!is_whole) {
        record->has_gaps = record->elements > 0;
        if (variable->has_growing || variable->type == NC_STRING) steps_data(variable, record);
        if (number < variable->offered)
            *status = variable->schema ? mapped_refuse(file, variable) : take_earlier(file, variable, record);
    }
    return record;
}

/* Makes room for indices beyond the extents of further unlimited dimensions. */
static int grow(FileVariable *variable, OpenRecord *record, const size_t *start, const size_t *count,
                const ptrdiff_t *stride) {
    size_t dims = variable->record_dims, *shape = malloc((dims + 1) * sizeof *shape);
    ptrdiff_t *ones = malloc(2 * (dims + 1) * sizeof *ones), *map = ones + dims + 1;
    size_t *zeros = calloc(dims + 1, sizeof *zeros);
    int status = shape && ones && zeros ? NC_NOERR : NC_ENOMEM;
    bool is_larger = false;
    for (size_t at = 0; status == NC_NOERR && at < dims; at++) {
        size_t end = count[at] ? start[at] + (count[at] - 1) * (size_t)stride[at] + 1 : 0;
        shape[at] = variable->grows[at] && end > record->shape[at] ? end : record->shape[at];
        is_larger |= shape[at] > record->shape[at];
        ones[at] = 1;
    }
    if (is_larger) {
        size_t elements = slab_elements(dims, shape);
        void *data = calloc(elements, convert_size(variable->type));
        ptrdiff_t weight = 1;
        for (size_t at = dims; at-- > 0; weight *= (ptrdiff_t)record->shape[at]) map[at] = weight;
        status = data ? NC_NOERR : NC_ENOMEM;
        if (data) {
            slab_fill(variable->type, data, elements, variable->fill);
            SlabPart part = {dims, shape, zeros, record->shape, ones, map};
            SlabSides sides = {variable->type, data, variable->type, record->data, false};
            if (record->elements) slab_put(&part, &sides);
            if (variable->type == NC_STRING)
                for (size_t at = 0; at < record->elements; at++) free(((char **)record->data)[at]);
            free(record->data);
            free(record->bits);
            record->bits = NULL;
            record->data = data;
            record->elements = elements;
            memcpy(record->shape, shape, dims * sizeof *shape);
        }
    }
    free(shape);
    free(ones);
    free(zeros);
    return status;
}

static bool is_whole(const SlabPart *part) {
    for (size_t at = 0; at < part->dims; at++)
        if (part->count[at] != part->shape[at] || part->stride[at] != 1) return false;
    return true;
}

/* Copies a part of a record into it: without conversion and in one run, by the pool, which needs no address for that. */
static int put_values(const DataCall *call, OpenRecord *record, const SlabPart *part, void *memory) {
    FileVariable *variable = call->variable;
    size_t at, size = convert_size(variable->type);
    if (record->allocation && call->type == variable->type && slab_is_run(part, &at))
        return pool_status(JCT(jct_allocation_write)(record->allocation, at * size, memory,
                                                     slab_elements(part->dims, part->count) * size));
    if (!record->data && record->allocation) record->data = JCT(jct_allocation_data)(record->allocation, NULL);
    SlabSides sides = {variable->type, record->data, call->type, memory, call->file->is_classic};
    return slab_put(part, &sides);
}

/* Puts the part of a call that concerns one record. */
static int put_record(const DataCall *call, size_t number, size_t skipped, char *memory) {
    FileVariable *variable = call->variable;
    SlabPart part = {variable->record_dims,   variable->shape,        call->start + skipped,
                     call->count + skipped,   call->stride + skipped, call->map + skipped};
    OpenRecord *record = steps_find(variable, number);
    int status = NC_NOERR;
    if (variable->is_held && variable->held_record == number) file_forget_held(variable);
    if (!record) record = add_record(call->file, variable, number, is_whole(&part) && !variable->has_growing, &status);
    if (status == NC_NOERR && variable->has_growing) status = grow(variable, record, part.start, part.count, part.stride);
    if (status != NC_NOERR) return status;
    part.shape = record->shape;
    status = put_values(call, record, &part, memory);
    if (status != NC_NOERR && status != NC_ERANGE) return status;
    if (record->written < record->elements) {
        if (is_whole(&part)) {
            record->written = record->elements;
            record->has_gaps = false;
        } else if (record->bits || (record->bits = calloc(record->elements / 8 + 1, 1))) {
            record->written += slab_mark(&part, record->bits);
        }
    }
    return status;
}

int steps_set_time(OpenFile *file, const FileVariable *variable, size_t record, double value) {
    UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    if (record >= dim->time_count) {
        size_t room = record + record / 2 + 16;
        double *grown = realloc(dim->times, room * sizeof *grown);
        if (!grown) return NC_ENOMEM;
        for (size_t at = dim->time_count; at < room; at++) grown[at] = NAN;
        dim->times = grown;
        dim->time_count = room;
    }
    if (!file_text_attribute(variable->group, variable->id, "units", dim->units, sizeof dim->units)) *dim->units = 0;
    dim->times[record] = value;
    return NC_NOERR;
}

/* Keeps the value of a coordinate variable for the attribute `time`. */
static int note_time(OpenFile *file, FileVariable *variable, size_t record) {
    UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    if (variable->record_dims != 0 || variable->type == NC_CHAR || variable->type == NC_STRING) return NC_NOERR;
    if (!dim || strcmp(variable->name, dim->name) != 0) return NC_NOERR;
    double value;
    convert_run(variable->type, steps_data(variable, steps_find(variable, record)), 1, NC_DOUBLE, &value, 1, 1, false, false);
    return steps_set_time(file, variable, record, value);
}

static void set_shape(const FileVariable *variable, const size_t *shape, jct_attributes_t *attributes) {
    char(*texts)[24] = malloc((variable->record_dims + 1) * sizeof *texts);
    const char **list = malloc((variable->record_dims + 1) * sizeof *list);
    if (texts && list) {
        for (size_t at = 0; at < variable->record_dims; at++) {
            snprintf(texts[at], sizeof texts[at], "%zu", shape[at]);
            list[at] = texts[at];
        }
        JCT(jct_attributes_set_list)(attributes, "shape", list, variable->record_dims);
    }
    free(texts);
    free(list);
}

jct_attributes_t *steps_describe(OpenFile *file, FileVariable *variable, size_t record, const size_t *shape) {
    const UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    bool has_time = dim && record < dim->time_count && !isnan(dim->times[record]);
    if (variable->has_time && !has_time) {
        JCT(jct_attributes_free)(variable->attributes);
        variable->attributes = NULL;
    }
    jct_attributes_t *attributes = file_attributes(file, variable);
    if (!attributes) return NULL;
    set_shape(variable, shape, attributes);
    if (dim) JCT(jct_attributes_set_int)(attributes, "record", (int64_t)record);
    if (has_time) {
        JCT(jct_attributes_set_real)(attributes, "time", dim->times[record]);
        if (*dim->units) JCT(jct_attributes_set_text)(attributes, "time_units", dim->units);
        variable->has_time = true;
    }
    return attributes;
}

/* Texts, one behind the other, each with its NUL. */
static char *joined_texts(const OpenRecord *record, size_t *bytes) {
    char *const *texts = record->data;
    *bytes = 0;
    for (size_t at = 0; at < record->elements; at++) *bytes += strlen(texts[at]) + 1;
    char *all = malloc(*bytes ? *bytes : 1), *end = all;
    for (size_t at = 0; all && at < record->elements; at++) end = stpcpy(end, texts[at]) + 1;
    return all;
}

/* The bundle of a step, and the pipeline into it: its members are not awaited one by one. */
typedef struct {
    jct_bundle_t *bundle;
    jct_pipeline_t *members;
} StepMembers;

/* Offers a record, into a bundle unless `step` is NULL, and forgets it. */
static int offer_record(OpenFile *file, FileVariable *variable, OpenRecord *record, const StepMembers *step) {
    /* Only values of one dimension are noted, or offered by another schema: others stay unmapped. */
    bool has_data = variable->dims == 1 || variable->schema;
    int status = mapped_note(file, variable, has_data ? steps_data(variable, record) : NULL, record->elements);
    if (status != NC_NOERR) return status;
    if (variable->schema) {
        status = mapped_offer(file, variable, record, step ? step->bundle : NULL);
        if (status == NC_NOERR && record->record >= variable->offered) variable->offered = record->record + 1;
        return status;
    }
    jct_attributes_t *attributes = steps_describe(file, variable, record->record, record->shape);
    const char *options = file->map->options;
    if (!attributes) return NC_ENOMEM;
    size_t bytes = record->elements * convert_size(variable->type);
    int code;
    if (record->written < record->elements) steps_data(variable, record);
    if (record->allocation) {
        jct_allocation_t *allocation = record->allocation;
        record->allocation = NULL;
        record->data = NULL;
        code = step ? JCT(jct_pipeline_offer_allocation)(step->members, allocation, attributes, options)
                    : JCT(jct_allocation_offer)(allocation, attributes, options);
    } else {
        char *texts = variable->type == NC_STRING ? joined_texts(record, &bytes) : NULL;
        const void *data = variable->type == NC_STRING ? texts : record->data;
        do code = step ? JCT(jct_bundle_offer)(step->bundle, attributes, data, bytes, options)
                       : JCT(jct_offer)(pool_of_process(), attributes, data, bytes, options);
        while (pool_is_full(code));
        free(texts);
    }
    status = pool_status(code);
    if (status == NC_NOERR) {
        intercept_offered(file->report, bytes);
        if (record->record >= variable->offered) variable->offered = record->record + 1;
    }
    return status;
}

int steps_offer_state(OpenFile *file, jct_pipeline_t *members, bool is_closed) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    if (!out || !attributes) {
        if (out) fclose(out);
        free(text);
        return NC_ENOMEM;
    }
    for (size_t at = 0; at < file->dims; at++)
        fprintf(out, "%zu %s\n", file->unlimited[at].published, file->unlimited[at].name);
    for (size_t at = 0; at < file->variable_count; at++)
        if (file->variables[at].schema) fprintf(out, "=%s %s\n", file->variables[at].schema, file->variables[at].name);
    fclose(out);
    file_key(file, attributes, STATE_NAME);
    JCT(jct_attributes_set_text)(attributes, "status", is_closed ? "closed" : "open");
    JCT(jct_attributes_set_text)(attributes, "writer", pool_client_name());
    int code = members ? JCT(jct_pipeline_offer)(members, attributes, text, length, file->map->options)
                       : JCT(jct_offer)(pool_of_process(), attributes, text, length, file->map->options);
    JCT(jct_attributes_free)(attributes);
    free(text);
    return pool_status(code);
}

int steps_announce(OpenFile *file) {
    int status = mapped_check_all(file);
    /* A reader that finds the definitions looks for the state, which names the writer. */
    if (!file->is_announced) status = steps_offer_state(file, NULL, false);
    if (status == NC_NOERR) file->is_announced = true;
    return status == NC_NOERR ? definitions_offer(file, false) : status;
}

/* Offers all records of one step as a bundle, with the state of the file behind them. */
static int seal_step(OpenFile *file, int dim, size_t record) {
    int status = steps_announce(file);
    StepMembers step = {NULL, NULL};
    if (status == NC_NOERR) status = pool_status(JCT(jct_bundle_open)(pool_of_process(), NULL, NULL, NULL, &step.bundle));
    if (status == NC_NOERR) status = pool_status(JCT(jct_bundle_pipeline)(step.bundle, NULL, &step.members));
    for (size_t at = 0; at < file->variable_count; at++) {
        FileVariable *variable = &file->variables[at];
        OpenRecord *open = variable->record_dim == dim ? steps_find(variable, record) : NULL;
        if (!open) continue;
        if (status == NC_NOERR) status = offer_record(file, variable, open, &step);
        drop(variable, open);
    }
    UnlimitedDim *of = file_unlimited(file, dim);
    if (of && record >= of->published) of->published = record + 1;
    if (status == NC_NOERR) status = steps_offer_state(file, step.members, false);
    if (status == NC_NOERR) status = pool_status(JCT(jct_pipeline_flush)(step.members));
    JCT(jct_pipeline_close)(step.members);
    if (status == NC_NOERR) status = pool_status(JCT(jct_bundle_seal)(step.bundle, NULL));
    JCT(jct_bundle_close)(step.bundle);
    return status;
}

/* Whether nothing is missing; a record that is written again may be followed by further writes. */
static bool is_complete(const FileVariable *variable, const OpenRecord *record) {
    return !variable->has_growing && !record->is_again && record->written >= record->elements;
}

typedef struct {
    size_t all, begun, complete;
} StepCount;

static StepCount count_step(const OpenFile *file, int dim, size_t record) {
    StepCount count = {0, 0, 0};
    for (size_t at = 0; at < file->variable_count; at++) {
        const FileVariable *variable = &file->variables[at];
        if (variable->record_dim != dim || !variable->is_handled) continue;
        const OpenRecord *open = steps_find(variable, record);
        count.all++;
        count.begun += open != NULL;
        count.complete += open ? is_complete(variable, open) : variable->offered > record;
    }
    return count;
}

/* Finds the lowest record before `end` of a dimension that is being written; false where there is none. */
static bool lowest_open(const OpenFile *file, int dim, size_t end, size_t *record) {
    bool is_found = false;
    for (size_t at = 0; at < file->variable_count; at++) {
        const FileVariable *variable = &file->variables[at];
        if (variable->record_dim != dim) continue;
        for (const OpenRecord *open = variable->open; open; open = open->next) {
            if (open->record >= end || (is_found && open->record >= *record)) continue;
            *record = open->record;
            is_found = true;
        }
    }
    return is_found;
}

/* The first write to a new step ends those before. A step of which only one of several variables was written is kept: the
 * program may write variable by variable. */
static int begin_step(OpenFile *file, int dim, size_t record) {
    size_t earlier = 0;
    for (size_t from = 0; lowest_open(file, dim, record, &earlier) && from <= earlier; from = earlier + 1) {
        StepCount count = count_step(file, dim, earlier);
        if (count.begun < 2) break;
        int status = seal_step(file, dim, earlier);
        if (status != NC_NOERR) return status;
    }
    return NC_NOERR;
}

int steps_put(const DataCall *call) {
    OpenFile *file = call->file;
    FileVariable *variable = call->variable;
    int status = NC_NOERR, worst = NC_NOERR;
    for (size_t at = 0; at < variable->dims; at++) {
        UnlimitedDim *dim = file_unlimited(file, variable->dimids[at]);
        if (call->count[at] == 0) return NC_NOERR;
        size_t end = call->start[at] + (call->count[at] - 1) * (size_t)call->stride[at] + 1;
        if (!dim || end <= dim->length) continue;
        if (at == 0 && dim->length > 0) status = begin_step(file, dim->id, call->start[0]);
        if (status != NC_NOERR) return status;
        dim->length = end;
    }
    if (variable->record_dim < 0) {
        status = put_record(call, 0, 0, call->memory);
        if (status != NC_NOERR && status != NC_ERANGE) return status;
        OpenRecord *record = steps_find(variable, 0);
        if (!is_complete(variable, record)) return status;
        int of_offer = steps_announce(file);
        if (of_offer == NC_NOERR) of_offer = offer_record(file, variable, record, NULL);
        drop(variable, record);
        return of_offer != NC_NOERR ? of_offer : status;
    }
    for (size_t at = 0; at < call->count[0]; at++) {
        size_t record = call->start[0] + at * (size_t)call->stride[0];
        char *memory = (char *)call->memory + (ptrdiff_t)at * call->map[0] * (ptrdiff_t)convert_size(call->type);
        status = put_record(call, record, 1, memory);
        if (status == NC_ERANGE) worst = status;
        else if (status != NC_NOERR) return status;
        status = note_time(file, variable, record);
        if (status != NC_NOERR) return status;
        if (!is_complete(variable, steps_find(variable, record))) continue;
        StepCount count = count_step(file, variable->record_dim, record);
        if (count.complete == count.all) status = seal_step(file, variable->record_dim, record);
        if (status != NC_NOERR) return status;
    }
    return worst;
}

int steps_flush(OpenFile *file) {
    int status = file_load(file);
    if (status == NC_NOERR) status = steps_announce(file);
    for (size_t at = 0; status == NC_NOERR && at < file->variable_count; at++) {
        FileVariable *variable = &file->variables[at];
        OpenRecord *record = variable->record_dim < 0 ? variable->open : NULL;
        if (!record) continue;
        status = offer_record(file, variable, record, NULL);
        drop(variable, record);
    }
    for (size_t at = 0; status == NC_NOERR && at < file->dims; at++) {
        size_t record;
        while (status == NC_NOERR && lowest_open(file, file->unlimited[at].id, (size_t)-1, &record))
            status = seal_step(file, file->unlimited[at].id, record);
        file->unlimited[at].published = file->unlimited[at].length;
    }
    return status;
}

static int rename_objects(OpenFile *file, FileVariable *variable, const char *old) {
    jct_attributes_t *key = JCT(jct_attributes_new)();
    int status = key ? NC_NOERR : NC_ENOMEM;
    if (key) file_key(file, key, old);
    for (size_t record = 0; status == NC_NOERR && record < variable->offered; record++) {
        if (variable->record_dim >= 0) JCT(jct_attributes_set_int)(key, "record", (int64_t)record);
        jct_object_t *object = NULL;
        if (JCT(jct_demand_key)(pool_of_process(), key, "schema=netcdf", 0.0, &object) != JCT_OK) continue;
        size_t bytes;
        const void *data = JCT(jct_object_data)(object, &bytes);
        jct_attributes_t *attributes = steps_describe(file, variable, record, variable->shape);
        status = attributes ? pool_status(JCT(jct_offer)(pool_of_process(), attributes, data, bytes, file->map->options))
                            : NC_ENOMEM;
        JCT(jct_object_give_back)(object);
    }
    if (key) JCT(jct_attributes_free)(key);
    char *selector = file_selector(file, old);
    if (status == NC_NOERR && selector)
        status = pool_status(JCT(jct_withdraw_all)(pool_of_process(), selector, "force,forget", 10.0, NULL));
    free(selector);
    return status;
}

int steps_rename(OpenFile *file) {
    char **names = calloc(file->variable_count + 1, sizeof *names);
    size_t known = file->variable_count;
    int status = names ? NC_NOERR : NC_ENOMEM;
    for (size_t at = 0; names && at < known; at++) names[at] = strdup(file->variables[at].name);
    if (status == NC_NOERR) status = file_load(file);
    for (size_t at = 0; status == NC_NOERR && at < known; at++) {
        FileVariable *variable = &file->variables[at];
        if (variable->offered > 0 && !variable->has_growing && !variable->schema && names[at] && strcmp(names[at], variable->name) != 0)
            status = rename_objects(file, variable, names[at]);
    }
    for (size_t at = 0; names && at < known; at++) free(names[at]);
    free(names);
    return status;
}
