/* The exported functions of definitions and inquiries. The real library executes them; what they change is noted, and the
 * lengths of unlimited dimensions are those of the pool. */
#define _GNU_SOURCE
#include <string.h>

#include "parallel.h"
#include "reading.h"

/* Calls the real function, and notes that the definitions of the file may have changed. */
#define CHANGE(function, ...)                                \
    OpenFile *file = file_of(ncid);                          \
    if (!file) return REAL(function)(__VA_ARGS__);           \
    int status = CALL(function, __VA_ARGS__);                \
    file->is_dirty = true;                                   \
    file->generation++;                                      \
    return status;

/* As CHANGE: objects that were offered under the old name are offered under the new one. */
#define RENAME(function, ...)                                \
    OpenFile *file = file_of(ncid);                          \
    if (!file) return REAL(function)(__VA_ARGS__);           \
    file_load(file);                                         \
    int status = CALL(function, __VA_ARGS__);                \
    file->is_dirty = true;                                   \
    file->generation++;                                      \
    return status == NC_NOERR ? steps_rename(file) : status;

int nc_def_dim(int ncid, const char *name, size_t length, int *id) { CHANGE(nc_def_dim, ncid, name, length, id) }
int nc_def_var(int ncid, const char *name, nc_type type, int dims, const int *dimids, int *id) {
    CHANGE(nc_def_var, ncid, name, type, dims, dimids, id)
}
int nc_def_var_fill(int ncid, int id, int none, const void *value) { CHANGE(nc_def_var_fill, ncid, id, none, value) }
int nc_def_grp(int ncid, const char *name, int *id) { CHANGE(nc_def_grp, ncid, name, id) }
int nc_set_fill(int ncid, int mode, int *old) { CHANGE(nc_set_fill, ncid, mode, old) }
int nc_del_att(int ncid, int id, const char *name) { CHANGE(nc_del_att, ncid, id, name) }
int nc_rename_att(int ncid, int id, const char *name, const char *renamed) {
    CHANGE(nc_rename_att, ncid, id, name, renamed)
}
int nc_rename_dim(int ncid, int id, const char *name) { CHANGE(nc_rename_dim, ncid, id, name) }
int nc_rename_var(int ncid, int id, const char *name) { RENAME(nc_rename_var, ncid, id, name) }
int nc_rename_grp(int ncid, const char *name) { RENAME(nc_rename_grp, ncid, name) }
int nc_put_att(int ncid, int id, const char *name, nc_type type, size_t length, const void *value) {
    CHANGE(nc_put_att, ncid, id, name, type, length, value)
}
#define PUT_ATT(S, T, N)                                                                                  \
    int nc_put_att_##S(int ncid, int id, const char *name, nc_type type, size_t length, const T *values) { \
        CHANGE(nc_put_att_##S, ncid, id, name, type, length, values)                                       \
    }
NETCDF_NUMBERS(PUT_ATT)
int nc_put_att_text(int ncid, int id, const char *name, size_t length, const char *values) {
    CHANGE(nc_put_att_text, ncid, id, name, length, values)
}
int nc_put_att_string(int ncid, int id, const char *name, size_t length, const char **values) {
    CHANGE(nc_put_att_string, ncid, id, name, length, values)
}
int nc_copy_att(int from, int from_id, const char *name, int ncid, int id) {
    CHANGE(nc_copy_att, from, from_id, name, ncid, id)
}

/* Replaces the length of an unlimited dimension by that in the pool. A reader waits until it is final. */
static int length_in_pool(OpenFile *file, int id, size_t *length) {
    int status = file->mode == MODE_POOL ? file_load(file) : NC_NOERR;
    UnlimitedDim *dim = file_unlimited(file, id);
    if (file->mode != MODE_POOL || status != NC_NOERR || !dim || !length) return status;
    if (file->is_read && !file->is_written) status = reading_complete(file);
    *length = dim->length;
    return status;
}

int nc_inq_dimlen(int ncid, int id, size_t *length) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_inq_dimlen)(ncid, id, length);
    int status = CALL(nc_inq_dimlen, ncid, id, length);
    return status == NC_NOERR ? length_in_pool(file, id, length) : status;
}

int nc_inq_dim(int ncid, int id, char *name, size_t *length) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_inq_dim)(ncid, id, name, length);
    int status = CALL(nc_inq_dim, ncid, id, name, length);
    return status == NC_NOERR ? length_in_pool(file, id, length) : status;
}

int nc_inq_path(int ncid, size_t *length, char *path) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_inq_path)(ncid, length, path);
    if (length) *length = strlen(file->path);
    if (path) strcpy(path, file->path);
    return NC_NOERR;
}

int nc_var_par_access(int ncid, int id, int access) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_var_par_access)(ncid, id, access);
    int status = file->mode == MODE_TEE || !file->parallel ? CALL(nc_var_par_access, ncid, id, access) : NC_NOERR;
    return status == NC_NOERR && file->parallel ? parallel_access(file, ncid, id, access) : status;
}
