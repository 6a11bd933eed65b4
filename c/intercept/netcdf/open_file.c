/* The table of intercepted files, and what the real library tells of their dimensions and variables. */
#define _GNU_SOURCE
#include "open_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libnetcdf numbers files in the upper half of an identifier, groups in the lower half. */
enum { FILES_MAX = 1 << 16, GROUP_BITS = 16 };

_Thread_local int real_depth;
static OpenFile *files[FILES_MAX];
static unsigned count;

AnyFunction real_function(const char *name) {
    AnyFunction function = intercept_next(name, "libnetcdf");
    if (!function) {
        intercept_say("the netCDF library of this program has no %s", name);
        abort();
    }
    return function;
}

static OpenFile **place(int ncid) { return &files[(unsigned)ncid >> GROUP_BITS & (FILES_MAX - 1)]; }

OpenFile *file_of(int ncid) { return count == 0 || real_depth > 0 || ncid < 0 ? NULL : *place(ncid); }

void file_add(OpenFile *file) {
    *place(file->ncid) = file;
    count++;
}

void file_remove(OpenFile *file) {
    *place(file->ncid) = NULL;
    count--;
}

OpenFile *file_new(const char *path, FileMode mode, const char *word) {
    OpenFile *file = calloc(1, sizeof *file);
    if (!file) return NULL;
    file->mode = mode;
    file->image = -1;
    file->owner = getpid();
    file->map = map_rules();
    file->generation = 1;
    file->report = intercept_file(path, word);
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".", whole[PATH_MAX];
    if (slash) snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    file->path = strdup(path);
    file->name = strdup(slash ? slash + 1 : path);
    file->folder = strdup(realpath(folder, whole) ? whole : folder);
    if (!file->path || !file->name || !file->folder) {
        file_free(file);
        return NULL;
    }
    return file;
}

static void free_record(OpenRecord *record, nc_type type) {
    if (type == NC_STRING && record->data)
        for (size_t at = 0; at < record->elements; at++) free(((char **)record->data)[at]);
    if (record->allocation) JCT(jct_allocation_free)(record->allocation);
    else free(record->data);
    free(record->bits);
    free(record->shape);
    free(record);
}

void file_forget_held(FileVariable *variable) {
    if (variable->held) JCT(jct_object_release)(variable->held);
    if (variable->held_copy && variable->type == NC_STRING)
        for (size_t at = 0; at < variable->held_elements; at++) free(((char **)variable->held_copy)[at]);
    free(variable->held_copy);
    free(variable->held_shape);
    variable->held = NULL;
    variable->held_copy = NULL;
    variable->held_shape = NULL;
    variable->is_held = false;
}

static void free_variable(FileVariable *variable) {
    for (OpenRecord *record = variable->open, *next; record; record = next) {
        next = record->next;
        free_record(record, variable->type);
    }
    for (RankPiece *piece = variable->pieces, *next; piece; piece = next) {
        next = piece->next;
        free(piece->start);
        free(piece->data);
        free(piece);
    }
    file_forget_held(variable);
    if (variable->attributes) JCT(jct_attributes_free)(variable->attributes);
    if (variable->type == NC_STRING) {
        char *text;
        memcpy(&text, variable->fill, sizeof text);
        free(text);
    }
    free(variable->name);
    free(variable->dimids);
    free(variable->shape);
    free(variable->grows);
    free(variable->options);
    free(variable->elsewhere);
    free(variable->is_divided_by);
}

void file_free(OpenFile *file) {
    for (size_t at = 0; at < file->variable_count; at++) free_variable(&file->variables[at]);
    for (size_t at = 0; at < file->dims; at++) {
        free(file->unlimited[at].name);
        free(file->unlimited[at].times);
    }
    for (size_t at = 0; at < file->coordinate_count; at++) free(file->coordinates[at].values);
    free(file->coordinates);
    if (file->states) JCT(jct_follow_close)(file->states);
    if (file->departures) JCT(jct_subscription_close)(file->departures);
    if (file->image >= 0) close(file->image);
    free(file->variables);
    free(file->unlimited);
    free(file->path);
    free(file->folder);
    free(file->name);
    free(file->writer);
    free(file);
}

/* Returns "GROUP/NAME", or the name where the group is that of the file. */
static char *full_name(int group, const char *name) {
    char text[8 * NC_MAX_NAME] = "";
    size_t length = 0;
    char *whole = NULL;
    if (CALL(nc_inq_grpname_full, group, &length, NULL) == NC_NOERR && length < sizeof text)
        CALL(nc_inq_grpname_full, group, &length, text);
    const char *inner = *text == '/' ? text + 1 : text;
    return asprintf(&whole, "%s%s%s", inner, *inner ? "/" : "", name) < 0 ? NULL : whole;
}

static int load_dims(OpenFile *file, int group) {
    int ids[NC_MAX_VAR_DIMS], found = 0;
    if (CALL(nc_inq_unlimdims, group, &found, NULL) != NC_NOERR || found > NC_MAX_VAR_DIMS) return NC_NOERR;
    CALL(nc_inq_unlimdims, group, &found, ids);
    for (int at = 0; at < found; at++) {
        char name[NC_MAX_NAME + 1];
        /* Not its length: in a parallel file that inquiry is collective. */
        if (CALL(nc_inq_dimname, group, ids[at], name) != NC_NOERR) continue;
        UnlimitedDim *dim = file_unlimited(file, ids[at]);
        if (dim) {
            free(dim->name);
        } else {
            UnlimitedDim *grown = realloc(file->unlimited, (file->dims + 1) * sizeof *grown);
            if (!grown) return NC_ENOMEM;
            file->unlimited = grown;
            dim = &file->unlimited[file->dims++];
            memset(dim, 0, sizeof *dim);
            dim->id = ids[at];
        }
        dim->name = full_name(group, name);
    }
    return NC_NOERR;
}

static FileVariable *known_variable(OpenFile *file, int group, int id) {
    if (file->last_found < file->variable_count) {
        FileVariable *last = &file->variables[file->last_found];
        if (last->group == group && last->id == id) return last;
    }
    for (size_t at = 0; at < file->variable_count; at++) {
        if (file->variables[at].group == group && file->variables[at].id == id) {
            file->last_found = at;
            return &file->variables[at];
        }
    }
    return NULL;
}

static void load_fill(OpenFile *file, FileVariable *variable) {
    int none = 0;
    (void)file;
    if (variable->type == NC_STRING) {
        char *text = NULL, *old;
        if (CALL(nc_inq_var_fill, variable->group, variable->id, &none, &text) != NC_NOERR) text = NULL;
        memcpy(&old, variable->fill, sizeof old);
        free(old);
        char *own = strdup(text ? text : "");
        if (text) CALL(nc_free_string, 1, &text);
        memcpy(variable->fill, &own, sizeof own);
        return;
    }
    char value[16] = {0};
    if (CALL(nc_inq_var_fill, variable->group, variable->id, &none, value) != NC_NOERR || none) memset(value, 0, 8);
    memcpy(variable->fill, value, 8);
}

static int load_variable(OpenFile *file, int group, int id) {
    char name[NC_MAX_NAME + 1];
    int dims = 0, dimids[NC_MAX_VAR_DIMS];
    nc_type type;
    int status = CALL(nc_inq_var, group, id, name, &type, &dims, dimids, NULL);
    if (status != NC_NOERR) return status;
    FileVariable *variable = known_variable(file, group, id);
    if (!variable) {
        FileVariable *grown = realloc(file->variables, (file->variable_count + 1) * sizeof *grown);
        if (!grown) return NC_ENOMEM;
        file->variables = grown;
        variable = &file->variables[file->variable_count];
        memset(variable, 0, sizeof *variable);
        size_t room = dims ? (size_t)dims : 1;
        *variable = (FileVariable){.group = group, .id = id, .type = type, .dims = (size_t)dims, .record_dim = -1};
        variable->dimids = malloc(room * sizeof *variable->dimids);
        variable->shape = calloc(room, sizeof *variable->shape);
        variable->grows = calloc(room, sizeof *variable->grows);
        if (!variable->dimids || !variable->shape || !variable->grows) return NC_ENOMEM;
        file->variable_count++;
        memcpy(variable->dimids, dimids, (size_t)dims * sizeof *dimids);
        variable->is_handled = convert_size(type) > 0;
        for (size_t at = 0; at < variable->dims; at++) {
            UnlimitedDim *dim = file_unlimited(file, dimids[at]);
            if (at == 0 && dim) {
                variable->record_dim = dimids[0];
                continue;
            }
            size_t to = variable->record_dims++, length = 0;
            variable->grows[to] = dim != NULL;
            variable->has_growing |= dim != NULL;
            if (!dim) CALL(nc_inq_dimlen, group, dimids[at], &length);
            variable->shape[to] = length;
        }
    }
    free(variable->name);
    variable->name = full_name(group, name);
    if (variable->is_handled) load_fill(file, variable);
    if (variable->attributes) JCT(jct_attributes_free)(variable->attributes);
    variable->attributes = NULL;
    return variable->name ? NC_NOERR : NC_ENOMEM;
}

static int load_group(OpenFile *file, int group) {
    int status = load_dims(file, group), found = 0;
    if (status == NC_NOERR) status = CALL(nc_inq_varids, group, &found, NULL);
    int *ids = malloc((size_t)(found > 0 ? found : 1) * sizeof *ids);
    if (!ids) return NC_ENOMEM;
    if (status == NC_NOERR) status = CALL(nc_inq_varids, group, &found, ids);
    for (int at = 0; status == NC_NOERR && at < found; at++) status = load_variable(file, group, ids[at]);
    free(ids);
    found = 0;
    /* A classic file has no groups: its status is an error then. */
    if (status != NC_NOERR || CALL(nc_inq_grps, group, &found, NULL) != NC_NOERR || found == 0) return status;
    ids = malloc((size_t)found * sizeof *ids);
    if (!ids) return NC_ENOMEM;
    CALL(nc_inq_grps, group, &found, ids);
    for (int at = 0; status == NC_NOERR && at < found; at++) status = load_group(file, ids[at]);
    free(ids);
    return status;
}

int file_load(OpenFile *file) {
    if (file->loaded_generation == file->generation) return NC_NOERR;
    int status = CALL(nc_inq_format, file->ncid, &file->format);
    file->is_classic = file->format == NC_FORMAT_CLASSIC || file->format == NC_FORMAT_64BIT_OFFSET ||
                       file->format == NC_FORMAT_NETCDF4_CLASSIC;
    if (status == NC_NOERR) status = load_group(file, file->ncid);
    if (status != NC_NOERR) return status;
    for (size_t at = 0; at < file->variable_count; at++) file->is_final_only |= !file->variables[at].is_handled;
    file->loaded_generation = file->generation;
    return NC_NOERR;
}

FileVariable *file_variable(OpenFile *file, int group, int id) {
    return file_load(file) == NC_NOERR ? known_variable(file, group, id) : NULL;
}

UnlimitedDim *file_unlimited(OpenFile *file, int id) {
    for (size_t at = 0; at < file->dims; at++)
        if (file->unlimited[at].id == id) return &file->unlimited[at];
    return NULL;
}

void file_key(const OpenFile *file, jct_attributes_t *attributes, const char *name) {
    JCT(jct_attributes_set_text)(attributes, "folder", file->folder);
    JCT(jct_attributes_set_text)(attributes, "file", file->name);
    JCT(jct_attributes_set_text)(attributes, "name", name);
}

bool file_text_attribute(int group, int id, const char *name, char *text, size_t room) {
    nc_type type;
    size_t length = 0;
    if (CALL(nc_inq_att, group, id, name, &type, &length) != NC_NOERR || length == 0) return false;
    if (type == NC_CHAR) {
        char *whole = calloc(1, length + 1);
        bool fits = whole && length < room && CALL(nc_get_att, group, id, name, whole) == NC_NOERR;
        if (fits) snprintf(text, room, "%s", whole);
        free(whole);
        return fits && *text;
    }
    if (length != 1 || convert_size(type) == 0) return false;
    char value[8] = {0};
    if (CALL(nc_get_att, group, id, name, value) != NC_NOERR) return false;
    if (type == NC_STRING) {
        char *one;
        memcpy(&one, value, sizeof one);
        snprintf(text, room, "%s", one ? one : "");
        CALL(nc_free_string, 1, &one);
        return *text;
    }
    double number;
    convert_run(type, value, 1, NC_DOUBLE, &number, 1, 1, false, false);
    snprintf(text, room, "%.17g", number);
    return true;
}

bool file_look_up(const OpenFile *file, const FileVariable *variable, const char *word, char *text, size_t room) {
    if (strcmp(word, "name") == 0) return (size_t)snprintf(text, room, "%s", variable->name) < room;
    if (strcmp(word, "file") == 0) return (size_t)snprintf(text, room, "%s", file->name) < room;
    if (strcmp(word, "folder") == 0) return (size_t)snprintf(text, room, "%s", file->folder) < room;
    if (strncmp(word, "global:", 7) == 0) return file_text_attribute(file->ncid, NC_GLOBAL, word + 7, text, room);
    return file_text_attribute(variable->group, variable->id, word, text, room);
}

typedef struct {
    OpenFile *file;
    FileVariable *variable;
} MapSubject;

static bool look_up(void *context, const char *word, char *text, size_t room) {
    const MapSubject *subject = context;
    return file_look_up(subject->file, subject->variable, word, text, room);
}

static void set_dims(FileVariable *variable, jct_attributes_t *attributes) {
    char *text = NULL, *longer;
    for (size_t at = variable->record_dim >= 0 ? 1 : 0; at < variable->dims; at++) {
        char name[NC_MAX_NAME + 1] = "";
        CALL(nc_inq_dimname, variable->group, variable->dimids[at], name);
        if (asprintf(&longer, "%s%s%s", text ? text : "", text ? "/" : "", name) < 0) break;
        free(text);
        text = longer;
    }
    if (text) JCT(jct_attributes_set_text)(attributes, "dims", text);
    free(text);
}

jct_attributes_t *file_attributes(OpenFile *file, FileVariable *variable) {
    if (variable->attributes) return variable->attributes;
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    if (!attributes) return NULL;
    static const char *const described[] = {"units", "long_name", "standard_name"};
    char text[1024];
    for (size_t at = 0; at < sizeof described / sizeof *described; at++)
        if (file_text_attribute(variable->group, variable->id, described[at], text, sizeof text))
            JCT(jct_attributes_set_text)(attributes, described[at], text);
    set_dims(variable, attributes);
    const char *type = convert_name(variable->type);
    if (type) JCT(jct_attributes_set_text)(attributes, "dtype", type);
    else JCT(jct_attributes_set_text)(attributes, "content_type", "application/vnd.junctura.texts");
    for (size_t at = 0; at < file->map->count; at++) {
        MapSubject subject = {file, variable};
        const MapLine *line = &file->map->lines[at];
        if (map_applies(line, variable->name) && map_expand(line, look_up, &subject, text, sizeof text, NULL))
            JCT(jct_attributes_set_text)(attributes, line->name, text);
    }
    file_key(file, attributes, variable->name);
    variable->attributes = attributes;
    variable->has_time = false;
    return attributes;
}

/* Writes a value in the quotes of a selector. */
static void quote(FILE *out, const char *name, const char *value) {
    fprintf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') fputc('\\', out);
        if (*value == '\n') fputs("\\n", out);
        else fputc(*value, out);
    }
    fputc('"', out);
}

char *file_selector(const OpenFile *file, const char *name) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    quote(out, "folder", file->folder);
    fputc(',', out);
    quote(out, "file", file->name);
    if (name) {
        fputc(',', out);
        quote(out, "name", name);
    }
    fclose(out);
    return text;
}
