/* Variables that the mapping file sends to another schema. */
#define _GNU_SOURCE
#include "mapped.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cf_time.h"

/* An object whose attributes are looked up. */
typedef struct {
    OpenFile *file;
    FileVariable *variable;
    size_t record;
    /* Of the dimensions of a record. NULL: only what is the same for all objects is looked up. */
    const size_t *index;
} MappedSubject;

static int invalid(const OpenFile *file, const MapLine *line, const char *word, const char *why, const char *name) {
    intercept_say("%s: line %d: {%s}: %s %s", file->map->path, line->number, word, why, name);
    return pool_status_map();
}

static const FileVariable *coordinate_of(const OpenFile *file, const char *dimension) {
    for (size_t at = 0; at < file->variable_count; at++) {
        const FileVariable *one = &file->variables[at];
        bool is_numbers = one->is_handled && one->type != NC_CHAR && one->type != NC_STRING;
        if (one->dims == 1 && is_numbers && strcmp(one->name, dimension) == 0) return one;
    }
    return NULL;
}

/* The place of a dimension among those of a variable; -1 where it has none of this name. */
static int place_of(const FileVariable *variable, const char *dimension) {
    for (size_t at = 0; at < variable->dims; at++) {
        char name[NC_MAX_NAME + 1] = "";
        if (CALL(nc_inq_dimname, variable->group, variable->dimids[at], name) == NC_NOERR && strcmp(name, dimension) == 0)
            return (int)at;
    }
    return -1;
}

/* Reads the units of the time of a variable's records. */
static bool time_of(OpenFile *file, const FileVariable *variable, CfTime *time, char *calendar, size_t room) {
    const UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
    const FileVariable *coordinate = dim ? coordinate_of(file, dim->name) : NULL;
    char units[256];
    if (!coordinate || !file_text_attribute(coordinate->group, coordinate->id, "units", units, sizeof units)) return false;
    if (!file_text_attribute(coordinate->group, coordinate->id, "calendar", calendar, room)) *calendar = 0;
    return cf_time_read(units, time);
}

static bool write_number(const FileVariable *coordinate, double value, char *text, size_t room) {
    /* As many digits as the type has. */
    int digits = coordinate && coordinate->type == NC_FLOAT ? 7 : 12;
    return !isnan(value) && (size_t)snprintf(text, room, "%.*g", digits, value) < room;
}

static bool look_up_dim(const MappedSubject *subject, const char *text_of_dim, char *text, size_t room) {
    char name[NC_MAX_NAME + 1];
    double factor;
    OpenFile *file = subject->file;
    int place = map_dim(text_of_dim, name, sizeof name, &factor) ? place_of(subject->variable, name) : -1;
    if (place < 0) return false;
    const FileVariable *coordinate = coordinate_of(file, name);
    if (subject->variable->record_dim >= 0 && place == 0) {
        const UnlimitedDim *dim = file_unlimited(file, subject->variable->record_dim);
        if (!coordinate) return write_number(NULL, (double)subject->record * factor, text, room);
        bool is_known = subject->record < dim->time_count;
        return write_number(coordinate, is_known ? dim->times[subject->record] * factor : NAN, text, room);
    }
    size_t index = subject->index[place - (subject->variable->record_dim >= 0)];
    if (!coordinate) return write_number(NULL, (double)index * factor, text, room);
    for (size_t at = 0; at < file->coordinate_count; at++)
        if (file->coordinates[at].dimid == coordinate->dimids[0] && index < file->coordinates[at].count)
            return write_number(coordinate, file->coordinates[at].values[index] * factor, text, room);
    return false;
}

static bool look_up_time(const MappedSubject *subject, WordKind kind, const char *rest, char *text, size_t room) {
    char calendar[64];
    CfTime time;
    if (!time_of(subject->file, subject->variable, &time, calendar, sizeof calendar)) return false;
    if (kind == WORD_BASE) return cf_time_write(time.base, rest, text, room);
    const UnlimitedDim *dim = file_unlimited(subject->file, subject->variable->record_dim);
    if (subject->record >= dim->time_count || isnan(dim->times[subject->record])) return false;
    double lead = dim->times[subject->record] * time.seconds_in_unit;
    if (kind == WORD_VALID) return cf_time_write(time.base + lead, rest, text, room);
    return write_number(NULL, lead / cf_time_unit(rest), text, room);
}

static bool look_up(void *context, const char *word, char *text, size_t room) {
    const MappedSubject *subject = context;
    const char *rest;
    WordKind kind = map_word(word, &rest);
    if (kind == WORD_OF_FILE) return file_look_up(subject->file, subject->variable, word, text, room);
    if (!subject->index) return (size_t)snprintf(text, room, "?") < room;
    return kind == WORD_DIM ? look_up_dim(subject, rest, text, room) : look_up_time(subject, kind, rest, text, room);
}

/* Checks one word of a line, and notes which dimensions divide the variable. */
static int check_word(OpenFile *file, FileVariable *variable, const MapLine *line, const char *word) {
    char text[1024], name[NC_MAX_NAME + 1];
    const char *rest;
    double factor;
    CfTime time;
    WordKind kind = map_word(word, &rest);
    if (!variable->schema) {
        bool is_invalid = kind != WORD_OF_FILE;
        return is_invalid ? invalid(file, line, word, "add the line `schema = NAME` to the section of", variable->name) : NC_NOERR;
    }
    if (kind == WORD_OF_FILE) {
        bool is_found = file_look_up(file, variable, word, text, sizeof text);
        return is_found ? NC_NOERR : invalid(file, line, word, "there is no such attribute of the variable", variable->name);
    }
    if (kind != WORD_DIM) {
        if (!time_of(file, variable, &time, text, sizeof text))
            return invalid(file, line, word, "no coordinate variable with units such as `hours since 2026-11-29 00:00` gives a time to",
                           variable->name);
        bool is_gregorian = kind != WORD_VALID || cf_time_is_gregorian(text);
        return is_gregorian ? NC_NOERR : invalid(file, line, word, "dates are not those of the calendar", text);
    }
    int place = map_dim(rest, name, sizeof name, &factor) ? place_of(variable, name) : -1;
    if (place < 0) return invalid(file, line, word, "this is no dimension of the variable", variable->name);
    if (variable->record_dim >= 0 && place == 0) return NC_NOERR;
    size_t inner = (size_t)place - (variable->record_dim >= 0);
    if (variable->has_growing) return invalid(file, line, word, "several unlimited dimensions do not divide", variable->name);
    if (file->parallel) return invalid(file, line, word, "in a file that ranks write together this does not divide", variable->name);
    if (variable->type == NC_STRING) return invalid(file, line, word, "texts are not divided:", variable->name);
    variable->is_divided_by[inner] = true;
    variable->is_divided = true;
    return NC_NOERR;
}

static int check_line(OpenFile *file, FileVariable *variable, const MapLine *line) {
    for (const char *at = strchr(line->value, '{'); at; at = strchr(at + 1, '{')) {
        char word[MAP_WORD_MAX];
        const char *end = strchr(at, '}');
        if (!end) break;
        snprintf(word, sizeof word, "%.*s", (int)(end - at - 1), at + 1);
        int status = check_word(file, variable, line, word);
        if (status != NC_NOERR) return status;
    }
    return NC_NOERR;
}

int mapped_check(OpenFile *file, FileVariable *variable) {
    if (variable->mapped_generation == file->generation) return NC_NOERR;
    variable->schema = map_schema(file->map, variable->name);
    variable->is_divided = false;
    free(variable->is_divided_by);
    free(variable->options);
    variable->options = NULL;
    variable->is_divided_by = calloc(variable->record_dims + 1, sizeof *variable->is_divided_by);
    if (!variable->is_divided_by) return NC_ENOMEM;
    if (variable->schema &&
        asprintf(&variable->options, "schema=%s%s", variable->schema, file->map->retention) < 0) {
        variable->options = NULL;
        return NC_ENOMEM;
    }
    int status = NC_NOERR;
    for (size_t at = 0; status == NC_NOERR && at < file->map->count; at++)
        if (map_applies(&file->map->lines[at], variable->name)) status = check_line(file, variable, &file->map->lines[at]);
    if (status == NC_NOERR) variable->mapped_generation = file->generation;
    return status;
}

int mapped_check_all(OpenFile *file) {
    int status = file_load(file);
    for (size_t at = 0; status == NC_NOERR && at < file->variable_count; at++)
        status = mapped_check(file, &file->variables[at]);
    return status;
}

int mapped_note(OpenFile *file, const FileVariable *variable, const void *data, size_t count) {
    char name[NC_MAX_NAME + 1] = "";
    if (file->map->count == 0 || variable->dims != 1 || variable->record_dim >= 0) return NC_NOERR;
    if (variable->type == NC_CHAR || variable->type == NC_STRING) return NC_NOERR;
    CALL(nc_inq_dimname, variable->group, variable->dimids[0], name);
    if (strcmp(name, variable->name) != 0) return NC_NOERR;
    size_t at = 0;
    while (at < file->coordinate_count && file->coordinates[at].dimid != variable->dimids[0]) at++;
    if (at == file->coordinate_count) {
        CoordinateValues *grown = realloc(file->coordinates, (at + 1) * sizeof *grown);
        if (!grown) return NC_ENOMEM;
        file->coordinates = grown;
        grown[at] = (CoordinateValues){variable->dimids[0], NULL, 0};
        file->coordinate_count++;
    }
    double *values = malloc((count + 1) * sizeof *values);
    if (!values) return NC_ENOMEM;
    convert_run(variable->type, data, 1, NC_DOUBLE, values, 1, count, false, false);
    free(file->coordinates[at].values);
    file->coordinates[at].values = values;
    file->coordinates[at].count = count;
    return NC_NOERR;
}

/* The attributes of the mapping file, with type and extents of the array or without. */
static jct_attributes_t *describe(const MappedSubject *subject, const size_t *shape, bool has_array, int *status) {
    OpenFile *file = subject->file;
    FileVariable *variable = subject->variable;
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    *status = attributes ? NC_NOERR : NC_ENOMEM;
    for (size_t at = 0; *status == NC_NOERR && at < file->map->count; at++) {
        const MapLine *line = &file->map->lines[at];
        char text[1024], failed[MAP_WORD_MAX] = "";
        if (strcmp(line->name, "schema") == 0 || !map_applies(line, variable->name)) continue;
        if (map_expand(line, look_up, (void *)subject, text, sizeof text, failed))
            *status = pool_status(JCT(jct_attributes_set_text)(attributes, line->name, text));
        else
            *status = invalid(file, line, failed, "there is no value when a record is offered of", variable->name);
    }
    const char *type = convert_name(variable->type);
    if (*status == NC_NOERR && has_array && type) {
        char texts[NC_MAX_VAR_DIMS][24];
        const char *list[NC_MAX_VAR_DIMS];
        size_t extents = 0;
        for (size_t at = 0; at < variable->record_dims; at++) {
            if (variable->is_divided_by[at]) continue;
            snprintf(texts[extents], sizeof texts[extents], "%zu", shape[at]);
            list[extents] = texts[extents];
            extents++;
        }
        JCT(jct_attributes_set_text)(attributes, "dtype", type);
        JCT(jct_attributes_set_list)(attributes, "shape", list, extents);
    }
    if (*status == NC_NOERR) return attributes;
    JCT(jct_attributes_free)(attributes);
    return NULL;
}

jct_attributes_t *mapped_describe(OpenFile *file, FileVariable *variable, size_t record, const size_t *shape,
                                  const size_t *index, int *status) {
    static const size_t zeros[NC_MAX_VAR_DIMS];
    MappedSubject subject = {file, variable, record, index ? index : zeros};
    if (variable->array_attributes == ARRAY_UNKNOWN) {
        /* A schema need not have type and extents. The pool knows without an offer. */
        char schema[300];
        uint64_t readers;
        snprintf(schema, sizeof schema, "schema=%s", variable->schema);
        variable->array_attributes = ARRAY_YES;
        jct_attributes_t *with = describe(&subject, shape, true, status);
        if (!with) return NULL;
        if (JCT(jct_wanted)(pool_of_process(), with, schema, &readers) != JCT_OK) variable->array_attributes = ARRAY_NO;
        else return with;
        JCT(jct_attributes_free)(with);
    }
    return describe(&subject, shape, variable->array_attributes == ARRAY_YES, status);
}

static int offer(OpenFile *file, FileVariable *variable, jct_attributes_t *attributes, const void *data, size_t bytes,
                 jct_bundle_t *bundle) {
    int code;
    do code = bundle ? JCT(jct_bundle_offer)(bundle, attributes, data, bytes, variable->options)
                     : JCT(jct_offer)(pool_of_process(), attributes, data, bytes, variable->options);
    while (pool_is_full(code));
    if (code == JCT_OK) intercept_offered(file->report, bytes);
    else intercept_say_once("%s: %s as an object of the schema %s: %s", file->path, variable->name, variable->schema,
                            JCT(jct_error_text)());
    return pool_status(code);
}

/* Goes to the next indices of the divided dimensions; false behind the last ones. */
static bool next_index(const FileVariable *variable, const size_t *shape, size_t *index) {
    for (size_t at = variable->record_dims; at-- > 0;) {
        if (!variable->is_divided_by[at]) continue;
        if (++index[at] < shape[at]) return true;
        index[at] = 0;
    }
    return false;
}

int mapped_offer(OpenFile *file, FileVariable *variable, const OpenRecord *record, jct_bundle_t *bundle) {
    size_t dims = variable->record_dims, index[NC_MAX_VAR_DIMS] = {0}, count[NC_MAX_VAR_DIMS], elements = 1;
    ptrdiff_t ones[NC_MAX_VAR_DIMS], map[NC_MAX_VAR_DIMS], weight = 1;
    int status = NC_NOERR;
    if (record->elements == 0) return NC_NOERR;
    for (size_t at = dims; at-- > 0; weight *= (ptrdiff_t)count[at]) {
        count[at] = variable->is_divided_by[at] ? 1 : record->shape[at];
        elements *= count[at];
        ones[at] = 1;
        map[at] = weight;
    }
    size_t bytes = elements * convert_size(variable->type);
    char *part = variable->is_divided ? malloc(bytes) : NULL;
    if (variable->is_divided && !part) return NC_ENOMEM;
    do {
        if (part) {
            SlabPart of_index = {dims, record->shape, index, count, ones, map};
            SlabSides sides = {variable->type, record->data, variable->type, part, false};
            slab_get(&of_index, &sides);
        }
        jct_attributes_t *attributes = mapped_describe(file, variable, record->record, record->shape, index, &status);
        if (attributes) status = offer(file, variable, attributes, part ? part : record->data, bytes, bundle);
        JCT(jct_attributes_free)(attributes);
    } while (status == NC_NOERR && part && next_index(variable, record->shape, index));
    free(part);
    return status;
}

int mapped_refuse(const OpenFile *file, const FileVariable *variable) {
    const char *schema = variable->schema ? variable->schema : variable->elsewhere;
    if (!schema) return NC_NOERR;
    intercept_say_once("%s: %s is in the pool as objects of the schema %s, which netCDF does not read", file->path,
                       variable->name, schema);
    return pool_status_mapped();
}
