/* Views, positions and sizes of files in the pool. */
#include "../common/intercept.h"
#include "operations.h"
#include "publish.h"

#include <stdio.h>
#include <string.h>

static int fail(open_file *file, int error) {
    if (error)
        jmpi_real.File_call_errhandler(file->handle, error);
    return error;
}

int jmpi_refuse(open_file *file, const char *function) {
    return fail(file, jmpi_error(file, MPI_ERR_UNSUPPORTED_OPERATION, function,
                                 "a file in the pool has no shared pointer: use the mode `file` for it"));
}

/* Views */

/* Another representation is the business of the real library: the file becomes one. */
static int leave_pool(open_file *file, const char *function) {
    intercept_fell_through(function, file->path);
    int error = jmpi_move_to_real(file, file->amode);
    file->has_moved = !error;
    return error;
}

int jmpi_set_view(open_file *file, long long displacement, void *etype, void *filetype, const char *representation,
                  void *info) {
    int error;
    MPI_Datatype one = JMPI_HANDLE(MPI_Datatype, etype), tiles = JMPI_HANDLE(MPI_Datatype, filetype);
    if (strcmp(representation, "native") && strcmp(representation, "internal")) {
        error = leave_pool(file, "MPI_File_set_view with another representation than native");
        if (!error)
            return jmpi_real.File_set_view(file->real, displacement, one, tiles, representation,
                                           JMPI_HANDLE(MPI_Info, info));
        return fail(file, error);
    }
    pthread_mutex_lock(&file->lock);
    file_view *view;
    /* MPI_DISPLACEMENT_CURRENT needs a sequential file, which is none of the pool's. */
    error = jmpi_view_new(displacement, one, tiles, representation, &view);
    if (!error) {
        jmpi_view_free(file->view);
        file->view = view;
        file->position = 0;
    }
    pthread_mutex_unlock(&file->lock);
    return fail(file, error);
}

int jmpi_get_view(open_file *file, long long *displacement, void *etype, void *filetype, char *representation) {
    *displacement = (long long)file->view->displacement;
    int error = jmpi_copy_type(file->view->etype, etype);
    error = error ? error : jmpi_copy_type(file->view->filetype, filetype);
    if (!error)
        strcpy(representation, file->view->representation);
    return fail(file, error);
}

/* Positions */

/* The end of the file, in elements of the view. */
static uint64_t end_in_view(const open_file *file) {
    const file_view *view = file->view;
    uint64_t bytes = jmpi_bytes_below(&view->flat, (int64_t)jmpi_size_of(file) - (int64_t)view->displacement);
    return (bytes + view->etype_bytes - 1) / view->etype_bytes;
}

int jmpi_seek(open_file *file, long long offset, int whence) {
    long long from = 0;
    if (whence == MPI_SEEK_CUR)
        from = (long long)file->position;
    else if (whence == MPI_SEEK_END)
        from = (long long)end_in_view(file);
    else if (whence != MPI_SEEK_SET)
        return fail(file, MPI_ERR_ARG);
    if (offset > INT64_MAX - from || from + offset < 0)
        return fail(file, MPI_ERR_ARG);
    file->position = (uint64_t)(from + offset);
    return MPI_SUCCESS;
}

int jmpi_get_position(open_file *file, long long *offset) {
    *offset = (long long)file->position;
    return MPI_SUCCESS;
}

int jmpi_get_byte_offset(open_file *file, long long offset, long long *bytes) {
    if (offset < 0)
        return fail(file, MPI_ERR_ARG);
    *bytes = (long long)jmpi_view_offset(file->view, (uint64_t)offset * file->view->etype_bytes);
    return MPI_SUCCESS;
}

/* Sizes */

int jmpi_get_size(open_file *file, long long *size) {
    pthread_mutex_lock(&file->lock);
    *size = (long long)jmpi_size_of(file);
    pthread_mutex_unlock(&file->lock);
    return MPI_SUCCESS;
}

/* Ranks agree on what was written before; then each cuts what it has. */
int jmpi_set_size(open_file *file, long long size) {
    if (size < 0 || file->amode & MPI_MODE_RDONLY)
        return fail(file, size < 0 ? MPI_ERR_ARG : MPI_ERR_READ_ONLY);
    pthread_mutex_lock(&file->lock);
    uint64_t bytes = (uint64_t)size;
    int error = jmpi_exchange(file);
    if (!error && file->amode & MPI_MODE_RDWR && jmpi_receive_exchanged(file))
        error = MPI_ERR_IO;
    if (!error) {
        for (file_period *each = file->period; each; each = each->next)
            jmpi_cut(&each->extents, bytes);
        jmpi_cut(&file->seen, bytes);
        file->base_bytes = file->base_bytes < bytes ? file->base_bytes : bytes;
        file->is_late = file->is_late || (file->is_offered && bytes != file->offered_bytes);
        file->offered_until = bytes < file->offered_until ? bytes : file->offered_until;
        file->size_at_least = bytes;
        file->has_size = true;
    }
    pthread_mutex_unlock(&file->lock);
    return fail(file, error);
}

int jmpi_preallocate(open_file *file, long long size) {
    if (size < 0 || file->amode & MPI_MODE_RDONLY)
        return fail(file, size < 0 ? MPI_ERR_ARG : MPI_ERR_READ_ONLY);
    pthread_mutex_lock(&file->lock);
    int error = jmpi_exchange(file);
    if ((uint64_t)size > file->size_at_least) {
        file->is_late = file->is_late || (file->is_offered && (uint64_t)size > file->offered_bytes);
        file->size_at_least = (uint64_t)size;
        file->has_size = true;
    }
    pthread_mutex_unlock(&file->lock);
    return fail(file, error);
}

int jmpi_sync(open_file *file) {
    if (file->amode & MPI_MODE_RDONLY)
        return MPI_SUCCESS;
    pthread_mutex_lock(&file->lock);
    int error = jmpi_exchange(file);
    pthread_mutex_unlock(&file->lock);
    return fail(file, error);
}

/* The rest */

int jmpi_get_amode(open_file *file, int *amode) {
    *amode = file->amode;
    return MPI_SUCCESS;
}

int jmpi_get_group(open_file *file, void *group) { return jmpi_real.Comm_group(file->comm, group); }

/* Ranks of a file that is read and written would have to see each write at once. */
int jmpi_set_atomicity(open_file *file, int flag) {
    if (flag && file->amode & MPI_MODE_RDWR && file->ranks > 1) {
        int error = leave_pool(file, "MPI_File_set_atomicity of a file that is read and written");
        return fail(file, error ? error : jmpi_real.File_set_atomicity(file->real, flag));
    }
    file->is_atomic = flag;
    return MPI_SUCCESS;
}

int jmpi_get_atomicity(open_file *file, int *flag) {
    *flag = file->is_atomic;
    return MPI_SUCCESS;
}
