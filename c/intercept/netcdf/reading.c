/* Reading from the pool. The state of a file is an object with a version for each step; a reader that needs a record waits
 * for the version that states it, and for the departure of the writer. */
#define _GNU_SOURCE
#include "reading.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definitions.h"
#include "map/mapped.h"
#include "parallel.h"

/* A line "=SCHEMA VARIABLE": the objects of this variable have another schema. */
static void read_schema(OpenFile *file, const char *line, const char *stop) {
    const char *space = memchr(line, ' ', (size_t)(stop - line));
    for (size_t at = 0; space && at < file->variable_count; at++) {
        FileVariable *variable = &file->variables[at];
        size_t letters = strlen(variable->name);
        if (variable->elsewhere || letters != (size_t)(stop - space - 1) || memcmp(variable->name, space + 1, letters) != 0)
            continue;
        variable->elsewhere = strndup(line + 1, (size_t)(space - line - 1));
    }
}

/* Lines "LENGTH DIMENSION", and those of read_schema. */
static void read_lines(OpenFile *file, const char *text, size_t bytes) {
    for (const char *line = text, *end = text + bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) return;
        if (*line == '=') {
            read_schema(file, line, stop);
            line = stop + 1;
            continue;
        }
        char *name = NULL;
        /* Blanks at its beginning would lead the conversion beyond the line. */
        size_t length = isdigit((unsigned char)*line) ? strtoull(line, &name, 10) : 0;
        for (size_t at = 0; name && *name == ' ' && at < file->dims; at++) {
            UnlimitedDim *dim = &file->unlimited[at];
            size_t letters = strlen(dim->name);
            if (letters == (size_t)(stop - name - 1) && memcmp(dim->name, name + 1, letters) == 0)
                dim->length = dim->published = length;
        }
        line = stop + 1;
    }
}

static void read_state(OpenFile *file, const jct_object_t *object) {
    size_t bytes;
    const char *text = JCT(jct_object_data)(object, &bytes), *status = JCT(jct_object_get)(object, "status");
    const char *writer = JCT(jct_object_get)(object, "writer");
    read_lines(file, text, bytes);
    file->is_complete = status && strcmp(status, "closed") == 0;
    if (writer && (!file->writer || strcmp(writer, file->writer) != 0)) {
        free(file->writer);
        file->writer = strdup(writer);
        file->is_checked = false;
    }
}

/* Takes what has arrived of the state; true where there was something. */
static int take_states(OpenFile *file, bool *is_new) {
    *is_new = false;
    for (;;) {
        jct_object_t *object;
        int kind, code = JCT(jct_follow_next)(file->states, 0.0, &object, &kind);
        if (code == JCT_TIMEOUT) return NC_NOERR;
        if (code != JCT_OK) return pool_status(code);
        if (kind == JCT_OVER) return pool_status_gone();
        if (kind != JCT_OBJECT) continue;
        read_state(file, object);
        JCT(jct_object_release)(object);
        *is_new = true;
    }
}

/* Whether the writer is no client of the pool. */
static int look_for_writer(OpenFile *file) {
    char *json = NULL, *name = NULL;
    int status = pool_status(JCT(jct_pool_stat)(pool_of_process(), &json));
    if (status != NC_NOERR) return status;
    if (asprintf(&name, "\"%s\"", file->writer) >= 0) file->is_gone = strstr(json, name) == NULL;
    free(name);
    JCT(jct_free)(json);
    file->is_checked = true;
    return NC_NOERR;
}

static int take_departures(OpenFile *file) {
    for (;;) {
        const char *kind = NULL;
        int code = JCT(jct_subscription_next)(file->departures, 0.0, &kind);
        if (code == JCT_TIMEOUT) return NC_NOERR;
        if (code == JCT_LIMIT_EXCEEDED) {
            /* Some were lost. */
            file->is_checked = false;
            return NC_NOERR;
        }
        if (code != JCT_OK || !kind) return pool_status(code);
        const char *client = JCT(jct_event_text)(file->departures, "client");
        if (client && file->writer && strcmp(client, file->writer) == 0) file->is_gone = true;
    }
}

/* Waits for a new state. Returns the status for a writer that is gone, after its last state. */
static int await_state(OpenFile *file) {
    for (;;) {
        bool is_new;
        int status = take_departures(file);
        if (status == NC_NOERR && file->writer && !file->is_checked) status = look_for_writer(file);
        if (status == NC_NOERR) status = take_states(file, &is_new);
        if (status != NC_NOERR || is_new) return status;
        if (file->is_gone) return pool_status_gone();
        struct pollfd one = {.events = POLLIN};
        status = pool_status(JCT(jct_pool_descriptor)(pool_of_process(), &one.fd));
        if (status != NC_NOERR) return status;
        poll(&one, 1, -1);
    }
}

int reading_begin(OpenFile *file) {
    int status = file_load(file);
    if (status != NC_NOERR) return status;
    status = pool_status(JCT(jct_subscribe)(pool_of_process(), "", "kinds=(left)", &file->departures));
    if (status != NC_NOERR) return status;
    char *selector = file_selector(file, STATE_NAME);
    if (!selector) return NC_ENOMEM;
    status = pool_status(JCT(jct_follow)(pool_of_process(), selector, NULL, &file->states));
    free(selector);
    return status == NC_NOERR ? take_states(file, &(bool){false}) : status;
}

int reading_complete(OpenFile *file) {
    while (!file->is_complete) {
        int status = await_state(file);
        if (status != NC_NOERR) return status;
    }
    return NC_NOERR;
}

/* Extents in the attribute `shape`: "360/180". */
static void read_shape(const FileVariable *variable, const char *text, size_t *shape) {
    memcpy(shape, variable->shape, variable->record_dims * sizeof *shape);
    for (size_t at = 0; text && *text && at < variable->record_dims; at++) {
        char *end;
        shape[at] = strtoull(text, &end, 10);
        text = *end ? end + 1 : end;
    }
}

/* Counts the elements of the extents that an object states; false where its payload does not have so many. */
static bool count_held(FileVariable *variable, size_t bytes) {
    size_t *elements = &variable->held_elements, needed;
    *elements = 1;
    for (size_t at = 0; at < variable->record_dims; at++)
        if (__builtin_mul_overflow(*elements, variable->held_shape[at], elements)) return false;
    /* A text has at least its NUL. */
    if (variable->type == NC_STRING) return *elements <= bytes;
    return !__builtin_mul_overflow(*elements, convert_size(variable->type), &needed) && needed == bytes;
}

static int copy_texts(FileVariable *variable, const char *data, size_t bytes) {
    char **texts = calloc(variable->held_elements ? variable->held_elements : 1, sizeof *texts);
    const char *end = data + bytes;
    variable->held_copy = texts;
    if (!texts) return NC_ENOMEM;
    for (size_t at = 0; at < variable->held_elements; at++) {
        if (data >= end) return NC_EIO;
        texts[at] = strndup(data, (size_t)(end - data));
        if (!texts[at]) return NC_ENOMEM;
        data += strlen(texts[at]) + 1;
    }
    return NC_NOERR;
}

/* Takes the payload of an object as the record that is held. The caller forgets it where the status is an error. */
static int hold(OpenFile *file, FileVariable *variable, jct_object_t *object) {
    size_t bytes;
    const char *data = JCT(jct_object_data)(object, &bytes);
    variable->held = object;
    variable->held_shape = malloc((variable->record_dims + 1) * sizeof *variable->held_shape);
    if (!variable->held_shape) return NC_ENOMEM;
    read_shape(variable, JCT(jct_object_get)(object, "shape"), variable->held_shape);
    intercept_received(file->report, bytes);
    variable->is_in_pieces = JCT(jct_object_get)(object, "pieces") != NULL;
    /* The extents of an array in pieces are checked where it is received. */
    if (variable->is_in_pieces && variable->type != NC_STRING) return NC_NOERR;
    int status = variable->is_in_pieces || !count_held(variable, bytes) ? NC_EIO : NC_NOERR;
    if (status == NC_NOERR && variable->type == NC_STRING) {
        status = copy_texts(variable, data, bytes);
        JCT(jct_object_release)(object);
        variable->held = NULL;
    }
    if (status == NC_EIO)
        intercept_say("%s: the object of variable %s does not have the values that its attributes state: %zu bytes",
                      file->path, variable->name, bytes);
    return status;
}

static int demand_now(OpenFile *file, FileVariable *variable, size_t record, jct_object_t **object) {
    jct_attributes_t *key = JCT(jct_attributes_new)();
    if (!key) return NC_ENOMEM;
    file_key(file, key, variable->name);
    if (variable->record_dim >= 0) JCT(jct_attributes_set_int)(key, "record", (int64_t)record);
    int code = JCT(jct_demand_key)(pool_of_process(), key, "schema=netcdf", 0.0, object);
    JCT(jct_attributes_free)(key);
    return code == JCT_NOT_FOUND || code == JCT_TIMEOUT ? NC_NOERR : pool_status(code);
}

/* Makes a record the one that is held; waits for it. `is_missing`: the closed file does not have it. */
static int hold_record(OpenFile *file, FileVariable *variable, size_t record, bool may_wait) {
    if (variable->is_held && variable->held_record == record) return NC_NOERR;
    file_forget_held(variable);
    for (;;) {
        const UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
        bool is_due = !dim || record < dim->published || file->is_complete || !may_wait;
        bool is_final = file->is_complete || !may_wait;
        jct_object_t *object = NULL;
        int status = mapped_refuse(file, variable);
        if (status == NC_NOERR && is_due) status = demand_now(file, variable, record, &object);
        if (status != NC_NOERR) return status;
        if (object || is_final) {
            variable->is_held = true;
            variable->held_record = record;
            variable->is_held_missing = !object;
            status = object ? hold(file, variable, object) : NC_NOERR;
            if (status != NC_NOERR) file_forget_held(variable);
            return status;
        }
        status = await_state(file);
        if (status != NC_NOERR) return status;
    }
}

/* Copies a part of an array whose extents may be smaller: the rest is filled. */
static int take_part(const DataCall *call, size_t skipped, const size_t *shape, void *data, char *memory) {
    FileVariable *variable = call->variable;
    SlabPart part = {variable->record_dims,   shape,                  call->start + skipped,
                     call->count + skipped,   call->stride + skipped, call->map + skipped};
    SlabSides sides = {variable->type, data, call->type, memory, call->file->is_classic};
    bool is_inside = data != NULL;
    for (size_t at = 0; at < part.dims && is_inside; at++)
        is_inside = part.count[at] == 0 || part.start[at] + (part.count[at] - 1) * (size_t)part.stride[at] < shape[at];
    if (is_inside) return slab_get(&part, &sides);
    /* The box of the call: fill values, and over them those that the array has. */
    size_t room = part.dims + 1, *extents = malloc(3 * room * sizeof *extents), *zeros = extents + room, *there = zeros + room;
    ptrdiff_t *ones = malloc(2 * room * sizeof *ones), *map = ones + room;
    if (!extents || !ones) {
        free(extents);
        free(ones);
        return NC_ENOMEM;
    }
    size_t elements = 1, first = 0, weight = 1;
    bool has_some = data != NULL, is_too_large = false;
    for (size_t at = part.dims; at-- > 0;) {
        extents[at] = part.count[at] ? (part.count[at] - 1) * (size_t)part.stride[at] + 1 : 0;
        there[at] = part.start[at] < shape[at] ? shape[at] - part.start[at] : 0;
        if (there[at] > extents[at]) there[at] = extents[at];
        has_some &= there[at] > 0;
        is_too_large |= __builtin_mul_overflow(elements, extents[at], &elements);
        first += part.start[at] * weight;
        map[at] = (ptrdiff_t)weight;
        weight *= shape[at];
        ones[at] = 1;
        zeros[at] = 0;
    }
    char *whole = is_too_large ? NULL : calloc(elements ? elements : 1, convert_size(variable->type));
    int status = whole ? slab_fill(variable->type, whole, elements, variable->fill) : NC_ENOMEM;
    if (status == NC_NOERR && has_some) {
        SlabPart all = {part.dims, extents, zeros, there, ones, map};
        SlabSides to_whole = {variable->type, whole, variable->type, (char *)data + first * convert_size(variable->type), false};
        status = slab_put(&all, &to_whole);
    }
    if (status == NC_NOERR) {
        part.shape = extents;
        part.start = zeros;
        sides.array = whole;
        status = slab_get(&part, &sides);
    }
    if (whole && variable->type == NC_STRING)
        for (size_t at = 0; at < elements; at++) free(((char **)whole)[at]);
    free(whole);
    free(extents);
    free(ones);
    return status;
}

/* Receives the part that a call needs of an array in pieces. */
static int take_pieces(const DataCall *call, size_t skipped, char *memory) {
    FileVariable *variable = call->variable;
    size_t dims = variable->record_dims, elements = 1, zeros[NC_MAX_VAR_DIMS], extents[NC_MAX_VAR_DIMS];
    uint64_t shape[NC_MAX_VAR_DIMS], start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS], rank = 0;
    for (size_t at = 0; at < dims; at++) {
        shape[at] = variable->held_shape[at];
        start[at] = call->start[at + skipped];
        count[at] = (call->count[at + skipped] - 1) * (size_t)call->stride[at + skipped] + 1;
        extents[at] = count[at];
        zeros[at] = 0;
        elements *= count[at];
    }
    size_t bytes = elements * convert_size(variable->type);
    char *box = malloc(bytes);
    jct_layout_t *layout = NULL;
    int status = box ? NC_NOERR : NC_ENOMEM;
    if (status == NC_NOERR)
        status = pool_status(JCT(jct_layout_blocks)(dims, shape, 1, &rank, start, count, JCT_ORDER_C, &layout));
    if (status == NC_NOERR)
        status = pool_status(JCT(jct_object_take)(pool_of_process(), variable->held, layout, 0, parallel_type(variable), box,
                                                  bytes));
    if (status == NC_NOERR) {
        intercept_received(call->file->report, bytes);
        SlabPart part = {dims, extents, zeros, call->count + skipped, call->stride + skipped, call->map + skipped};
        SlabSides sides = {variable->type, box, call->type, memory, call->file->is_classic};
        status = slab_get(&part, &sides);
    }
    JCT(jct_layout_free)(layout);
    free(box);
    return status;
}

static int get_record(const DataCall *call, size_t record, size_t skipped, char *memory) {
    FileVariable *variable = call->variable;
    OpenRecord *open = steps_find(variable, record);
    if (open) return take_part(call, skipped, open->shape, steps_data(variable, open), memory);
    int status = hold_record(call->file, variable, record, call->file->is_read && !call->file->is_written);
    if (status != NC_NOERR) return status;
    if (variable->is_held_missing) return take_part(call, skipped, variable->shape, NULL, memory);
    if (variable->is_in_pieces) return take_pieces(call, skipped, memory);
    void *data = variable->held ? (void *)JCT(jct_object_data)(variable->held, NULL) : variable->held_copy;
    return take_part(call, skipped, variable->held_shape, data, memory);
}

/* Waits until the file has the records of a call; false where it is complete without them. */
static int await_records(const DataCall *call, bool *has_them) {
    FileVariable *variable = call->variable;
    const UnlimitedDim *dim = file_unlimited(call->file, variable->record_dim);
    size_t end = call->start[0] + (call->count[0] - 1) * (size_t)call->stride[0] + 1;
    while (dim->length < end && call->file->is_read && !call->file->is_written && !call->file->is_complete) {
        int status = await_state(call->file);
        if (status != NC_NOERR) return status;
    }
    *has_them = dim->length >= end;
    return NC_NOERR;
}

int reading_bounds(const DataCall *call) {
    bool is_netcdf4 = call->file->format == NC_FORMAT_NETCDF4 || call->file->format == NC_FORMAT_NETCDF4_CLASSIC;
    /* A classic file that may grow has no invalid record. */
    bool is_late = !is_netcdf4 && call->file->is_written;
    size_t inner = 0;
    for (size_t at = 0; at < call->variable->dims; at++) {
        const UnlimitedDim *dim = file_unlimited(call->file, call->variable->dimids[at]);
        size_t length = dim ? dim->length : call->variable->shape[inner], start = call->start[at], count = call->count[at];
        if (at > 0 || call->variable->record_dim < 0) inner++;
        if (start > length || (start == length && count > 0)) return is_late && dim ? NC_EEDGE : NC_EINVALCOORDS;
        if (count > 0 && (count - 1) > (length - start - 1) / (size_t)call->stride[at])
            return is_netcdf4 || call->stride[at] == 1 ? NC_EEDGE : NC_EINVALCOORDS;
    }
    return NC_NOERR;
}

int reading_get(const DataCall *call) {
    FileVariable *variable = call->variable;
    int worst = NC_NOERR;
    for (size_t at = 0; at < variable->dims; at++)
        if (call->count[at] == 0) return NC_NOERR;
    if (variable->record_dim < 0) return get_record(call, 0, 0, call->memory);
    bool has_them = false;
    int status = await_records(call, &has_them);
    if (status != NC_NOERR) return status;
    if (!has_them) return reading_bounds(call);
    for (size_t at = 0; at < call->count[0]; at++) {
        size_t record = call->start[0] + at * (size_t)call->stride[0];
        char *memory = (char *)call->memory + (ptrdiff_t)at * call->map[0] * (ptrdiff_t)convert_size(call->type);
        status = get_record(call, record, 1, memory);
        if (status == NC_ERANGE) worst = status;
        else if (status != NC_NOERR) return status;
    }
    return worst;
}

int reading_refresh(OpenFile *file) {
    for (size_t at = 0; at < file->variable_count; at++) file_forget_held(&file->variables[at]);
    return take_states(file, &(bool){false});
}
