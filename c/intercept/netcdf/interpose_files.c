/* The exported functions of files: create, open, synchronize, close. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "definitions.h"
#include "map/mapped.h"
#include "parallel.h"
#include "reading.h"
#include "user_types.h"

static FileRules rules;

static void read_rules(void) {
    static const char *const modes[] = {"pool", "stub", "tee", "file", NULL};
    intercept_begin("netcdf");
    rules = intercept_rules("JUNCTURA_NETCDF", modes);
}

/* Returns the mode of a path; NULL where the real library has the file alone. */
static const char *mode_of(const char *path, int flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_rules);
    if (real_depth > 0 || rules.count == 0 || !path || strstr(path, "://")) return NULL;
    if (flags & (NC_DISKLESS | NC_MMAP | NC_INMEMORY)) return NULL;
    const char *mode = intercept_mode(&rules, path);
    if (mode && strcmp(mode, "file") != 0) return mode;
    intercept_file(path, "file");
    return NULL;
}

static bool exists_in_pool(const OpenFile *file) {
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    jct_object_t *object = NULL;
    if (!attributes) return false;
    file_key(file, attributes, DEFINITIONS_NAME);
    int code = JCT(jct_demand_key)(pool_of_process(), attributes, "schema=netcdf", 0.0, &object);
    JCT(jct_attributes_free)(attributes);
    JCT(jct_object_give_back)(object);
    return code == JCT_OK;
}

/* Removes the objects of an earlier file of the same path. */
static int remove_earlier(const OpenFile *file) {
    char *selector = file_selector(file, NULL);
    if (!selector) return NC_ENOMEM;
    int status = pool_status(JCT(jct_withdraw_all)(pool_of_process(), selector, "force,forget", 10.0, NULL));
    free(selector);
    return status;
}

/* How the program called the real library. */
typedef struct {
    const char *path;
    int flags;
    size_t initial, *chunk;
    bool has_chunk, is_parallel;
    MpiHandle communicator, info;
} FileCall;

static int create_real(const FileCall *call, const char *path, int flags, bool is_parallel, int *ncid) {
    if (is_parallel) return CALL(nc_create_par, path, flags, call->communicator, call->info, ncid);
    if (call->has_chunk) return CALL(nc__create, path, flags, call->initial, call->chunk, ncid);
    return CALL(nc_create, path, flags, ncid);
}

static int open_real(const FileCall *call, const char *path, int flags, bool is_parallel, int *ncid) {
    if (is_parallel) return CALL(nc_open_par, path, flags, call->communicator, call->info, ncid);
    if (call->has_chunk) return CALL(nc__open, path, flags, call->chunk, ncid);
    return CALL(nc_open, path, flags, ncid);
}

/* A file in memory is of one process. */
static int flags_in_memory(int flags) { return flags & ~(NC_NOCLOBBER | NC_MPIIO | NC_SHARE); }

static int create(const FileCall *call, const char *mode, int *ncid) {
    struct stat about;
    bool is_pool = strcmp(mode, "tee") != 0;
    if (is_pool && call->flags & NC_NOCLOBBER && stat(call->path, &about) == 0) return NC_EEXIST;
    if (!pool_of_process()) return pool_status(JCT_UNAVAILABLE);
    OpenFile *file = file_new(call->path, is_pool ? MODE_POOL : MODE_TEE, mode);
    if (!file) return NC_ENOMEM;
    file->has_stub = strcmp(mode, "stub") == 0;
    int status = file->map->is_invalid ? pool_status_map() : NC_NOERR;
    if (status != NC_NOERR) {
        file_free(file);
        return status;
    }
    if (is_pool) {
        char path[64];
        if (call->flags & NC_NOCLOBBER && exists_in_pool(file)) status = NC_EEXIST;
        file->image = definitions_file(path, sizeof path);
        if (file->image < 0) status = NC_EIO;
        if (status == NC_NOERR) status = create_real(call, path, flags_in_memory(call->flags), false, &file->ncid);
        if (file->image >= 0) unlink(path);
    } else {
        status = create_real(call, call->path, call->flags, call->is_parallel, &file->ncid);
    }
    if (status != NC_NOERR) {
        file_free(file);
        return status;
    }
    file->is_written = file->is_dirty = file->is_defining = file->is_new = true;
    CALL(nc_inq_format, file->ncid, &file->format);
    if (call->is_parallel) status = parallel_begin(file, call->communicator);
    if (status == NC_NOERR && parallel_is_first(file)) status = remove_earlier(file);
    if (status != NC_NOERR) {
        CALL(nc_close, file->ncid);
        file_free(file);
        return status;
    }
    file_add(file);
    *ncid = file->ncid;
    return NC_NOERR;
}

/* A program that writes to a file of the pool continues it. */
static int begin_append(OpenFile *file) {
    int status = reading_complete(file);
    for (size_t at = 0; status == NC_NOERR && at < file->variable_count; at++) {
        FileVariable *variable = &file->variables[at];
        const UnlimitedDim *dim = file_unlimited(file, variable->record_dim);
        variable->offered = dim ? dim->length : 1;
    }
    file->is_written = true;
    return status;
}

static int open_file(const FileCall *call, const char *mode, int *ncid) {
    /* In the mode tee a reader has the file itself; only what is added goes to the pool. */
    if (strcmp(mode, "tee") == 0) return open_real(call, call->path, call->flags, call->is_parallel, ncid);
    if (!pool_of_process()) return pool_status(JCT_UNAVAILABLE);
    OpenFile *file = file_new(call->path, MODE_POOL, mode);
    char path[64];
    if (!file) return NC_ENOMEM;
    file->is_read = true;
    file->has_stub = strcmp(mode, "stub") == 0;
    file->image = definitions_file(path, sizeof path);
    int status = file->image < 0 ? NC_EIO : definitions_receive(file);
    if (status == NC_NOERR) status = open_real(call, path, flags_in_memory(call->flags), false, &file->ncid);
    if (file->image >= 0) unlink(path);
    if (status != NC_NOERR) {
        file_free(file);
        return status;
    }
    status = reading_begin(file);
    if (status == NC_NOERR && call->flags & NC_WRITE) status = begin_append(file);
    if (status == NC_NOERR && call->is_parallel) status = parallel_begin(file, call->communicator);
    if (status != NC_NOERR) {
        CALL(nc_close, file->ncid);
        file_free(file);
        return status;
    }
    file_add(file);
    *ncid = file->ncid;
    return NC_NOERR;
}

int nc_create(const char *path, int flags, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc_create)(path, flags, ncid);
    return create(&(FileCall){.path = path, .flags = flags}, mode, ncid);
}

int nc__create(const char *path, int flags, size_t initial, size_t *chunk, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc__create)(path, flags, initial, chunk, ncid);
    return create(&(FileCall){.path = path, .flags = flags, .initial = initial, .chunk = chunk, .has_chunk = true}, mode,
                  ncid);
}

int nc_open(const char *path, int flags, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc_open)(path, flags, ncid);
    return open_file(&(FileCall){.path = path, .flags = flags}, mode, ncid);
}

int nc__open(const char *path, int flags, size_t *chunk, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc__open)(path, flags, chunk, ncid);
    return open_file(&(FileCall){.path = path, .flags = flags, .chunk = chunk, .has_chunk = true}, mode, ncid);
}

int nc_create_par(const char *path, int flags, MpiHandle communicator, MpiHandle info, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc_create_par)(path, flags, communicator, info, ncid);
    return create(&(FileCall){.path = path, .flags = flags, .is_parallel = true, .communicator = communicator, .info = info},
                  mode, ncid);
}

int nc_open_par(const char *path, int flags, MpiHandle communicator, MpiHandle info, int *ncid) {
    const char *mode = mode_of(path, flags);
    if (!mode) return REAL(nc_open_par)(path, flags, communicator, info, ncid);
    return open_file(
        &(FileCall){.path = path, .flags = flags, .is_parallel = true, .communicator = communicator, .info = info}, mode,
        ncid);
}

int nc_create_par_fortran(const char *path, int flags, int communicator, int info, int *ncid) {
    if (!mode_of(path, flags)) return REAL(nc_create_par_fortran)(path, flags, communicator, info, ncid);
    return nc_create_par(path, flags, parallel_of_fortran(communicator), parallel_info_of_fortran(info), ncid);
}

int nc_open_par_fortran(const char *path, int flags, int communicator, int info, int *ncid) {
    if (!mode_of(path, flags)) return REAL(nc_open_par_fortran)(path, flags, communicator, info, ncid);
    return nc_open_par(path, flags, parallel_of_fortran(communicator), parallel_info_of_fortran(info), ncid);
}

/* Ends the definitions. A classic file in memory is not filled: it has no data. */
static int end_definitions(OpenFile *file, size_t h_minfree, size_t v_align, size_t v_minfree, size_t r_align, bool is_plain) {
    int old = NC_NOFILL, none;
    bool has_netcdf3 = file->format != NC_FORMAT_NETCDF4 && file->format != NC_FORMAT_NETCDF4_CLASSIC;
    bool is_bare = file->mode == MODE_POOL && has_netcdf3;
    if (is_bare) CALL(nc_set_fill, file->ncid, NC_NOFILL, &old);
    int status = is_plain ? CALL(nc_enddef, file->ncid)
                          : CALL(nc__enddef, file->ncid, h_minfree, v_align, v_minfree, r_align);
    if (is_bare && old == NC_FILL) CALL(nc_set_fill, file->ncid, NC_FILL, &none);
    if (status != NC_NOERR) return status;
    file->is_defining = false;
    file->is_dirty = true;
    file->generation++;
    return mapped_check_all(file);
}

int nc_enddef(int ncid) {
    OpenFile *file = file_of(ncid);
    return file ? end_definitions(file, 0, 0, 0, 0, true) : REAL(nc_enddef)(ncid);
}

int nc__enddef(int ncid, size_t h_minfree, size_t v_align, size_t v_minfree, size_t r_align) {
    OpenFile *file = file_of(ncid);
    return file ? end_definitions(file, h_minfree, v_align, v_minfree, r_align, false)
                : REAL(nc__enddef)(ncid, h_minfree, v_align, v_minfree, r_align);
}

int nc_redef(int ncid) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_redef)(ncid);
    int status = CALL(nc_redef, ncid);
    if (status == NC_NOERR) file->is_defining = true;
    file->generation++;
    return status;
}

static int flush(OpenFile *file) { return file->parallel ? parallel_flush(file) : steps_flush(file); }

static int offer_state(OpenFile *file, bool is_closed) {
    return parallel_is_first(file) ? steps_offer_state(file, NULL, is_closed) : NC_NOERR;
}

int nc_sync(int ncid) {
    OpenFile *file = file_of(ncid);
    if (!file) return REAL(nc_sync)(ncid);
    int status = CALL(nc_sync, ncid);
    if (status == NC_NOERR && file->is_written) {
        status = flush(file);
        if (status == NC_NOERR) status = offer_state(file, false);
    } else if (status == NC_NOERR) {
        status = reading_refresh(file);
    }
    return status;
}

static int close_file(OpenFile *file, bool is_abort) {
    int status = NC_NOERR, ncid = file->ncid;
    bool has_netcdf3 = file->format != NC_FORMAT_NETCDF4 && file->format != NC_FORMAT_NETCDF4_CLASSIC;
    bool is_dropped = is_abort && file->is_defining && file->is_new && has_netcdf3;
    if (file->is_written && !is_dropped) {
        if (file->is_defining && has_netcdf3) status = end_definitions(file, 0, 0, 0, 0, true);
        if (status == NC_NOERR) status = flush(file);
        if (status == NC_NOERR && file->mode == MODE_POOL && !file->parallel) status = user_types_extend(file);
    }
    if (file->parallel) parallel_wait(file);
    if (file->mode == MODE_TEE && file->is_written && status == NC_NOERR && parallel_is_first(file))
        status = definitions_offer(file, true);
    file_remove(file);
    int of_close = is_abort ? CALL(nc_abort, ncid) : CALL(nc_close, ncid);
    if (status == NC_NOERR) status = of_close;
    if (file->is_written && status == NC_NOERR && parallel_is_first(file)) {
        if (is_dropped) status = remove_earlier(file);
        else if (file->mode == MODE_POOL) status = definitions_offer(file, true);
        if (status == NC_NOERR && !is_dropped) status = offer_state(file, true);
    }
    if (file->parallel) parallel_end(file);
    file_free(file);
    return status;
}

int nc_close(int ncid) {
    OpenFile *file = file_of(ncid);
    return file ? close_file(file, false) : REAL(nc_close)(ncid);
}

int nc_abort(int ncid) {
    OpenFile *file = file_of(ncid);
    return file ? close_file(file, true) : REAL(nc_abort)(ncid);
}

const char *nc_strerror(int status) {
    const char *text = pool_status_text(status);
    return text ? text : REAL(nc_strerror)(status);
}
