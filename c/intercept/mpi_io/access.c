#include "../common/intercept.h"
#include "operations.h"
#include "publish.h"

#include <stdlib.h>
#include <string.h>

/* One access, with what its arguments mean. */
typedef struct file_access {
    open_file *file;
    int what;
    uint64_t from, bytes; /* of the view's data */
    const void *memory;
    MPI_Datatype type;
    flat_type flat;
} file_access;

static int fail(open_file *file, int error) {
    jmpi_real.File_call_errhandler(file->handle, error);
    return error;
}

/* Statuses and requests */

static int set_status(MPI_Status *status, uint64_t bytes) {
    if (!status || status == MPI_STATUS_IGNORE)
        return MPI_SUCCESS;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = MPI_SUCCESS;
    jmpi_real.Status_set_cancelled(status, 0);
    return jmpi_real.Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
}

static int query(void *bytes, MPI_Status *status) { return set_status(status, *(uint64_t *)bytes); }
static int release(void *bytes) {
    free(bytes);
    return MPI_SUCCESS;
}
static int cancel(void *bytes, int is_complete) {
    (void)bytes, (void)is_complete;
    return MPI_SUCCESS;
}

/* A request that is complete. */
static int make_request(uint64_t bytes, MPI_Request *request) {
    uint64_t *kept = malloc(sizeof *kept);
    if (!kept)
        return MPI_ERR_NO_MEM;
    *kept = bytes;
    int error = jmpi_real.Grequest_start(query, release, cancel, kept, request);
    return error ? error : jmpi_real.Grequest_complete(*request);
}

/* Writing */

static int record(const file_access *access, const array_claim *claim) {
    open_file *file = access->file;
    int error = jmpi_flatten_view(file->view);
    if (error)
        return error;
    written_record *new = calloc(1, sizeof *new);
    unsigned char *data = intercept_memory((size_t)access->bytes);
    if (!new || !data) {
        free(new);
        free(data);
        return MPI_ERR_NO_SPACE;
    }
    jmpi_pack(access->memory, &access->flat, access->bytes, data);
    *new = (written_record){.view = file->view, .from = access->from, .bytes = access->bytes, .data = data, .claim = *claim};
    file->view->users++;
    if (file->last)
        file->last->next = new;
    else
        file->first = new;
    file->last = new;
    file->writes++;
    file->is_late = file->is_late || file->is_offered;
    return MPI_SUCCESS;
}

/* Offers the pieces of a collective write as they are, where they are an array. */
static int offer_at_once(file_access *access, const array_claim *claim) {
    open_file *file = access->file;
    bool is_dense = jmpi_is_dense(&access->flat) && (!access->flat.count || access->flat.runs[0].offset == 0);
    unsigned char *packed = is_dense ? NULL : intercept_memory((size_t)access->bytes);
    /* A rank that wrote before, and one without memory, claims nothing that fits. */
    array_claim mine = *claim;
    if (file->writes || (!is_dense && !packed))
        mine.kind = CLAIM_OTHER;
    if (packed)
        jmpi_pack(access->memory, &access->flat, access->bytes, packed);
    int error = jmpi_publish_at_once(file, &mine, packed ? packed : access->memory, access->bytes);
    free(packed);
    file->has_tried = true;
    if (!error && file->is_offered && access->bytes) {
        file->writes++;
        file->offered_view = file->view; /* its runs are needed only where the array is taken back */
        file->view->users++;
        file->offered_from = access->from;
        file->offered_mine = access->bytes;
    }
    return error;
}

static int write_access(file_access *access) {
    open_file *file = access->file;
    array_claim claim = {.kind = CLAIM_OTHER};
    int error = MPI_SUCCESS;
    if (file->mode == MODE_ARRAY)
        jmpi_claim_of_access(&file->view->claim, file->view->displacement, access->from, access->bytes, access->type,
                             &claim);
    if (file->mode == MODE_ARRAY && access->what & ACCESS_ALL && !file->has_tried) {
        error = offer_at_once(access, &claim);
        if (error || file->is_offered)
            return error;
    }
    return access->bytes ? record(access, &claim) : MPI_SUCCESS;
}

/* Reading */

int jmpi_read_seen(open_file *file, uint64_t offset, uint64_t bytes, unsigned char *to) {
    uint64_t of_base = file->base_bytes > offset ? file->base_bytes - offset : 0, end = offset + bytes;
    of_base = of_base < bytes ? of_base : bytes;
    int code = of_base ? jmpi_source_read(file->base, offset, of_base, to) : JCT_OK;
    memset(to + of_base, 0, (size_t)(bytes - of_base));
    for (size_t i = jmpi_extent_from(&file->seen, offset); i < file->seen.count && !code; i++) {
        const byte_extent *one = &file->seen.items[i];
        uint64_t start = one->offset > offset ? one->offset : offset, until = one->offset + one->bytes;
        until = until < end ? until : end;
        if (start >= until)
            break;
        if (one->data)
            memcpy(to + (start - offset), one->data + (start - one->offset), (size_t)(until - start));
        else
            memset(to + (start - offset), 0, (size_t)(until - start));
    }
    return code;
}

/* An array that this file offered is read from the pool, like one of before. */
static int see_offered(open_file *file) {
    if (!file->is_offered || file->base)
        return JCT_OK;
    int code = jmpi_source_open(file->folder, file->name, jmpi_timeout(), &file->base);
    file->base_is_own = true;
    if (!code)
        file->base_bytes = jmpi_source_size(file->base) < file->offered_until ? jmpi_source_size(file->base)
                                                                              : file->offered_until;
    return code;
}

/* Bytes of an access that are in the file. */
static int read_runs(file_access *access, unsigned char *to, uint64_t *done) {
    open_file *file = access->file;
    uint64_t size = jmpi_size_of(file), bytes;
    run_walk walk;
    int64_t offset;
    int code = JCT_OK;
    *done = 0;
    if (jmpi_flatten_view(file->view))
        return JCT_LIMIT_EXCEEDED;
    jmpi_walk(&walk, &file->view->flat, (int64_t)file->view->displacement, access->from, access->bytes);
    while (!code && jmpi_step(&walk, &offset, &bytes)) {
        uint64_t start = (uint64_t)offset, there = start < size ? size - start : 0;
        there = there < bytes ? there : bytes;
        code = jmpi_read_seen(file, start, there, to + *done);
        *done += there;
        if (there < bytes)
            break;
    }
    return code;
}

static int read_access(file_access *access, uint64_t *done) {
    open_file *file = access->file;
    array_claim claim;
    *done = 0;
    if (jmpi_settle_writes(file))
        return MPI_ERR_NO_MEM;
    int code = see_offered(file);
    code = code ? code : jmpi_receive_exchanged(file);
    bool is_dense = jmpi_is_dense(&access->flat) && (!access->flat.count || access->flat.runs[0].offset == 0);
    unsigned char *to = is_dense ? (unsigned char *)(uintptr_t)access->memory : malloc((size_t)access->bytes + 1);
    if (!to && access->bytes)
        return MPI_ERR_NO_MEM;
    if (!code && access->bytes) {
        jmpi_claim_of_access(&file->view->claim, file->view->displacement, access->from, access->bytes, access->type,
                             &claim);
        bool is_part = file->base && !file->seen.count && file->base_bytes == jmpi_source_size(file->base) &&
                       jmpi_source_has(file->base, &claim);
        if (is_part) {
            code = jmpi_source_take(file->base, &claim, to, access->bytes);
            *done = access->bytes;
        } else {
            code = read_runs(access, to, done);
        }
    }
    if (!is_dense) {
        if (!code)
            jmpi_unpack(to, &access->flat, *done, (void *)(uintptr_t)access->memory);
        free(to);
    }
    file->read_bytes += *done;
    return code ? jmpi_error_of(file, "a read", code) : MPI_SUCCESS;
}

/* Both */

/* The bytes of an access, and where its data begin. */
static int measure(file_access *access, long long offset, long long count) {
    open_file *file = access->file;
    bool is_write = access->what & ACCESS_WRITE;
    if (count < 0 || (access->what & ACCESS_AT && offset < 0))
        return MPI_ERR_ARG;
    if (is_write && file->amode & MPI_MODE_RDONLY)
        return MPI_ERR_READ_ONLY;
    if (!is_write && file->amode & MPI_MODE_WRONLY)
        return MPI_ERR_ACCESS;
    uint64_t etype = file->view->etype_bytes, at = access->what & ACCESS_AT ? (uint64_t)offset : file->position;
    int error = jmpi_flatten(access->type, &access->flat);
    if (error)
        return error;
    if ((access->flat.size && (uint64_t)count > (uint64_t)INT64_MAX / access->flat.size) || at > INT64_MAX / etype)
        return MPI_ERR_COUNT;
    access->bytes = (uint64_t)count * access->flat.size;
    access->from = at * etype;
    if (access->bytes > (uint64_t)INT64_MAX - access->from)
        return MPI_ERR_COUNT;
    return access->bytes % etype || (access->bytes && !file->view->data_bytes) ? MPI_ERR_IO : MPI_SUCCESS;
}

int jmpi_access(open_file *file, int what, long long offset, void *buffer, long long count, void *type, void *status,
                void *request) {
    file_access access = {.file = file, .what = what, .memory = buffer, .type = JMPI_HANDLE(MPI_Datatype, type)};
    uint64_t done = 0;
    pthread_mutex_lock(&file->lock);
    int error = what & ACCESS_SPLIT && file->is_split ? MPI_ERR_OTHER : measure(&access, offset, count);
    /* Arguments that are wrong on one rank must not let the others wait. */
    if (error && what & ACCESS_ALL && what & ACCESS_WRITE && file->mode == MODE_ARRAY && !file->has_tried) {
        array_claim none = {.kind = CLAIM_OTHER};
        jmpi_publish_at_once(file, &none, NULL, 0);
        file->has_tried = true;
    }
    if (!error)
        error = what & ACCESS_WRITE ? write_access(&access) : read_access(&access, &done);
    if (!error && what & ACCESS_WRITE) {
        done = access.bytes;
        file->written_bytes += done;
    }
    if (!error && !(what & ACCESS_AT))
        file->position += done / file->view->etype_bytes;
    jmpi_flat_free(&access.flat);
    if (!error && what & ACCESS_REQUEST)
        error = make_request(done, request);
    else if (!error && what & ACCESS_SPLIT)
        file->is_split = true, file->split_bytes = done;
    else if (!error)
        error = set_status(status, done);
    pthread_mutex_unlock(&file->lock);
    return error ? fail(file, error) : MPI_SUCCESS;
}

int jmpi_access_end(open_file *file, void *status) {
    if (!file->is_split)
        return fail(file, MPI_ERR_OTHER);
    file->is_split = false;
    return set_status(status, file->split_bytes);
}
