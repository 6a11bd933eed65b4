/* The definitions of a file. The real library has a file in memory open, in which it makes all definitions and answers
 * all inquiries; its bytes are the object. A tail of zeros is left out: variables without data have room in some
 * formats. */
#define _GNU_SOURCE
#include "definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* HDF5 resolves links, so that the file needs a name until it is open. */
int definitions_file(char *path, size_t room) {
    static const char *const folders[] = {"/dev/shm", "/tmp"};
    for (size_t at = 0; at < sizeof folders / sizeof *folders; at++) {
        snprintf(path, room, "%s/junctura-netcdf-XXXXXX", folders[at]);
        int image = mkostemp(path, O_CLOEXEC);
        if (image >= 0) return image;
    }
    return -1;
}

/* Returns the end of the last bytes that are not zero; reads only parts that are stored. */
static off_t end_of_data(int image, off_t size) {
    off_t end = 0;
    char block[4096];
    for (off_t from = 0; from < size;) {
        off_t data = lseek(image, from, SEEK_DATA);
        if (data < 0) break;
        off_t hole = lseek(image, data, SEEK_HOLE);
        if (hole < 0 || hole > size) hole = size;
        for (off_t at = data; at < hole; at += (off_t)sizeof block) {
            ssize_t got = pread(image, block, sizeof block, at);
            if (got <= 0) break;
            for (ssize_t byte = got; byte > 0; byte--) {
                if (block[byte - 1]) {
                    end = at + byte;
                    break;
                }
            }
        }
        from = hole;
    }
    return end;
}

/* Writes the definitions to the path of the file; it appears whole. */
static int write_stub(const OpenFile *file, const char *data, size_t bytes, off_t length) {
    char *draft = NULL;
    if (asprintf(&draft, "%s.%ld.draft", file->path, (long)getpid()) < 0) return NC_ENOMEM;
    int out = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), status = NC_EIO;
    if (out >= 0) {
        bool is_written = write(out, data, bytes) == (ssize_t)bytes && ftruncate(out, length) == 0;
        if (close(out) == 0 && is_written && rename(draft, file->path) == 0) status = NC_NOERR;
        else unlink(draft);
    }
    free(draft);
    return status;
}

static int offer_image(OpenFile *file, int image) {
    struct stat about;
    if (fstat(image, &about) != 0) return NC_EIO;
    size_t bytes = (size_t)end_of_data(image, about.st_size);
    char *data = malloc(bytes ? bytes : 1);
    char length[24];
    snprintf(length, sizeof length, "%lld", (long long)about.st_size);
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    int status = data && attributes ? NC_NOERR : NC_ENOMEM;
    if (status == NC_NOERR && pread(image, data, bytes, 0) != (ssize_t)bytes) status = NC_EIO;
    if (status == NC_NOERR) {
        file_key(file, attributes, DEFINITIONS_NAME);
        JCT(jct_attributes_set_text)(attributes, "content_type", "application/x-netcdf");
        JCT(jct_attributes_set_text)(attributes, "length", length);
        int code;
        do code = JCT(jct_offer)(pool_of_process(), attributes, data, bytes, file->map->options);
        while (pool_is_full(code));
        status = pool_status(code);
        if (status == NC_NOERR) intercept_offered(file->report, bytes);
        if (status == NC_NOERR && file->has_stub) status = write_stub(file, data, bytes, about.st_size);
    }
    JCT(jct_attributes_free)(attributes);
    free(data);
    return status;
}

int definitions_offer(OpenFile *file, bool is_closed) {
    if (!file->is_dirty || (file->is_final_only && !is_closed)) return NC_NOERR;
    int image = file->image, status = NC_NOERR;
    if (file->mode == MODE_TEE) {
        image = definitions_copy(file->ncid, file->format, file->path);
        if (image < 0) return NC_EIO;
    } else if (!is_closed) {
        status = CALL(nc_sync, file->ncid);
    }
    if (status == NC_NOERR) status = offer_image(file, image);
    if (file->mode == MODE_TEE) close(image);
    if (status == NC_NOERR) file->is_dirty = false;
    return status;
}

int definitions_receive(OpenFile *file) {
    const char *seconds = getenv("JUNCTURA_NETCDF_TIMEOUT");
    double timeout = seconds && *seconds ? strtod(seconds, NULL) : -1.0;
    jct_attributes_t *attributes = JCT(jct_attributes_new)();
    if (!attributes) return NC_ENOMEM;
    file_key(file, attributes, DEFINITIONS_NAME);
    jct_object_t *object = NULL;
    int code = JCT(jct_demand_key)(pool_of_process(), attributes, "schema=netcdf", timeout, &object);
    JCT(jct_attributes_free)(attributes);
    if (code == JCT_TIMEOUT || code == JCT_NOT_FOUND) return ENOENT;
    if (code != JCT_OK) return pool_status(code);
    size_t bytes;
    const void *data = JCT(jct_object_data)(object, &bytes);
    const char *length = JCT(jct_object_get)(object, "length");
    off_t whole = length ? (off_t)strtoll(length, NULL, 10) : (off_t)bytes;
    int status = NC_NOERR;
    if (whole < (off_t)bytes || ftruncate(file->image, whole) != 0 ||
        pwrite(file->image, data, bytes, 0) != (ssize_t)bytes)
        status = NC_EIO;
    intercept_received(file->report, bytes);
    JCT(jct_object_release)(object);
    return status;
}

/* The copy of definitions, group by group. Dimensions keep their order, so that identifiers are equal. */
static int copy_attributes(int from, int from_id, int to, int to_id) {
    int found = 0, status = NC_NOERR;
    if (from_id == NC_GLOBAL) status = CALL(nc_inq_natts, from, &found);
    else status = CALL(nc_inq_var, from, from_id, NULL, NULL, NULL, NULL, &found);
    for (int at = 0; status == NC_NOERR && at < found; at++) {
        char name[NC_MAX_NAME + 1];
        nc_type type;
        status = CALL(nc_inq_attname, from, from_id, at, name);
        if (status == NC_NOERR) status = CALL(nc_inq_att, from, from_id, name, &type, NULL);
        if (status == NC_NOERR && convert_size(type) > 0) status = CALL(nc_copy_att, from, from_id, name, to, to_id);
    }
    return status;
}

static int copy_dims(int from, int to) {
    int found = 0, unlimited = 0, list[NC_MAX_VAR_DIMS], endless[NC_MAX_VAR_DIMS];
    int status = CALL(nc_inq_dimids, from, &found, NULL, 0);
    if (status != NC_NOERR || found > NC_MAX_VAR_DIMS) return status != NC_NOERR ? status : NC_ENOMEM;
    CALL(nc_inq_dimids, from, &found, list, 0);
    if (CALL(nc_inq_unlimdims, from, &unlimited, NULL) == NC_NOERR && unlimited <= NC_MAX_VAR_DIMS)
        CALL(nc_inq_unlimdims, from, &unlimited, endless);
    for (int at = 0; status == NC_NOERR && at < found; at++) {
        char name[NC_MAX_NAME + 1];
        size_t length;
        int id;
        status = CALL(nc_inq_dim, from, list[at], name, &length);
        for (int other = 0; other < unlimited; other++)
            if (endless[other] == list[at]) length = 0;
        if (status == NC_NOERR) status = CALL(nc_def_dim, to, name, length, &id);
    }
    return status;
}

static int copy_variable(int from, int id, int to, const char *of) {
    char name[NC_MAX_NAME + 1];
    nc_type type;
    int dims, dimids[NC_MAX_VAR_DIMS], own;
    int status = CALL(nc_inq_var, from, id, name, &type, &dims, dimids, NULL);
    if (status != NC_NOERR) return status;
    if (convert_size(type) == 0) {
        intercept_say_once("%s: variable %s is of a user type: it is in the file only", of, name);
        return NC_NOERR;
    }
    status = CALL(nc_def_var, to, name, type, dims, dimids, &own);
    int none = 0;
    char value[16] = {0};
    if (status == NC_NOERR && type != NC_STRING && CALL(nc_inq_var_fill, from, id, &none, value) == NC_NOERR && none)
        CALL(nc_def_var_fill, to, own, 1, NULL);
    return status == NC_NOERR ? copy_attributes(from, id, to, own) : status;
}

static int copy_group(int from, int to, const char *of) {
    int status = copy_dims(from, to), found = 0, ids[NC_MAX_VAR_DIMS];
    if (status == NC_NOERR) status = copy_attributes(from, NC_GLOBAL, to, NC_GLOBAL);
    if (status == NC_NOERR) status = CALL(nc_inq_varids, from, &found, NULL);
    int *variables = malloc((size_t)(found > 0 ? found : 1) * sizeof *variables);
    if (!variables) return NC_ENOMEM;
    if (status == NC_NOERR) status = CALL(nc_inq_varids, from, &found, variables);
    for (int at = 0; status == NC_NOERR && at < found; at++) status = copy_variable(from, variables[at], to, of);
    free(variables);
    if (status != NC_NOERR || CALL(nc_inq_grps, from, &found, NULL) != NC_NOERR || found > NC_MAX_VAR_DIMS) return status;
    CALL(nc_inq_grps, from, &found, ids);
    for (int at = 0; status == NC_NOERR && at < found; at++) {
        char name[NC_MAX_NAME + 1];
        int inner;
        status = CALL(nc_inq_grpname, ids[at], name);
        if (status == NC_NOERR) status = CALL(nc_def_grp, to, name, &inner);
        if (status == NC_NOERR) status = copy_group(ids[at], inner, of);
    }
    return status;
}

int definitions_copy(int ncid, int format, const char *of) {
    static const int modes[] = {0, 0, 0x200, 0x1000, 0x1100, 0x20};
    char path[64];
    int image = definitions_file(path, sizeof path), to;
    if (image < 0) return -1;
    int status = format < 1 || format > 5 ? NC_EIO : CALL(nc_create, path, modes[format], &to);
    unlink(path);
    if (status == NC_NOERR) {
        int old;
        /* Classic files would be filled; netCDF-4 keeps this mode in the file. */
        if (format != NC_FORMAT_NETCDF4 && format != NC_FORMAT_NETCDF4_CLASSIC) CALL(nc_set_fill, to, NC_NOFILL, &old);
        status = copy_group(ncid, to, of);
        int closed = CALL(nc_close, to);
        if (status == NC_NOERR) status = closed;
    }
    if (status == NC_NOERR) return image;
    intercept_say("%s: its definitions cannot be copied: %s", of, REAL(nc_strerror)(status));
    close(image);
    return -1;
}
