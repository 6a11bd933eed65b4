#include "file.h"
#include "../common/intercept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static open_file *files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

open_file *jmpi_find(const void *handle) {
    /* Most programs have no file in the pool most of the time. */
    if (!__atomic_load_n(&files, __ATOMIC_ACQUIRE))
        return NULL;
    pthread_mutex_lock(&lock);
    open_file *file = files;
    while (file && file->handle != JMPI_HANDLE(MPI_File, handle))
        file = file->next;
    pthread_mutex_unlock(&lock);
    return file;
}

void jmpi_add(open_file *file) {
    pthread_mutex_lock(&lock);
    file->next = files;
    __atomic_store_n(&files, file, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

void jmpi_remove(open_file *file) {
    pthread_mutex_lock(&lock);
    open_file **at = &files;
    while (*at && *at != file)
        at = &(*at)->next;
    if (*at)
        *at = file->next;
    pthread_mutex_unlock(&lock);
}

void jmpi_file_free(open_file *file) {
    for (written_record *each = file->first, *next; each; each = next) {
        next = each->next;
        jmpi_view_free(each->view);
        free(each->data);
        free(each);
    }
    for (file_period *each = file->period, *next; each; each = next) {
        next = each->next;
        jmpi_extents_free(&each->extents);
        free(each);
    }
    for (kept_memory *each = file->memory, *next; each; each = next) {
        next = each->next;
        free(each->data);
        free(each);
    }
    jmpi_extents_free(&file->seen);
    jmpi_view_free(file->view);
    jmpi_view_free(file->offered_view);
    if (file->base)
        jmpi_source_close(file->base, file->amode & MPI_MODE_RDONLY || (file->read_bytes && !file->base_is_own));
    if (file->layout)
        jmpi_jct.jct_layout_free(file->layout);
    if (file->comm != MPI_COMM_NULL)
        jmpi_real.Comm_free(&file->comm);
    pthread_mutex_destroy(&file->lock);
    free(file->claims);
    free(file->path);
    free(file->folder);
    free(file->name);
    free(file);
}

/* Views */

void jmpi_view_free(file_view *view) {
    int finalized = 0;
    if (!view || --view->users > 0)
        return;
    jmpi_real.Finalized(&finalized);
    jmpi_flat_free(&view->flat);
    if (!finalized && view->etype != MPI_DATATYPE_NULL)
        jmpi_real.Type_free(&view->etype);
    if (!finalized && view->filetype != MPI_DATATYPE_NULL)
        jmpi_real.Type_free(&view->filetype);
    free(view);
}

int jmpi_view_new(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char *representation,
                  file_view **out) {
    file_view *view = calloc(1, sizeof *view);
    MPI_Count bytes, data;
    *out = NULL;
    if (!view)
        return MPI_ERR_NO_MEM;
    view->users = 1;
    view->etype = view->filetype = MPI_DATATYPE_NULL;
    view->displacement = (uint64_t)displacement;
    snprintf(view->representation, sizeof view->representation, "%s", representation);
    int error = displacement < 0 ? MPI_ERR_ARG : jmpi_real.Type_size_x(etype, &bytes);
    if (!error) {
        view->etype_bytes = (uint64_t)bytes;
        error = jmpi_real.Type_size_x(filetype, &data);
    }
    if (!error && (bytes <= 0 || data < 0 || data % bytes))
        error = MPI_ERR_ARG;
    if (!error)
        view->data_bytes = (uint64_t)data;
    if (!error)
        error = jmpi_real.Type_dup(etype, &view->etype);
    if (!error)
        error = jmpi_real.Type_dup(filetype, &view->filetype);
    if (!error) {
        jmpi_claim_of_view(filetype, &view->claim);
        if (view->claim.kind == CLAIM_OTHER || view->claim.is_open)
            error = jmpi_flatten_view(view);
    }
    if (error)
        jmpi_view_free(view);
    else
        *out = view;
    return error;
}

int jmpi_flatten_view(file_view *view) {
    if (view->is_flat)
        return MPI_SUCCESS;
    int error = jmpi_flatten(view->filetype, &view->flat);
    if (!error && view->flat.count && (view->flat.runs[0].offset < 0 || view->flat.extent <= 0))
        error = MPI_ERR_TYPE;
    view->is_flat = !error;
    return error;
}

uint64_t jmpi_view_offset(const file_view *view, uint64_t byte) {
    run_walk walk;
    int64_t offset = (int64_t)view->displacement;
    uint64_t bytes;
    jmpi_walk(&walk, &view->flat, (int64_t)view->displacement, byte, 1);
    jmpi_step(&walk, &offset, &bytes);
    return (uint64_t)offset;
}

/* Writes */

bool jmpi_keep(open_file *file, unsigned char *data) {
    kept_memory *kept = malloc(sizeof *kept);
    if (!kept) {
        free(data);
        return false;
    }
    *kept = (kept_memory){.data = data, .next = file->memory};
    file->memory = kept;
    return true;
}

bool jmpi_append_record(extent_list *to, const written_record *record) {
    const unsigned char *data = record->data;
    run_walk walk;
    int64_t offset;
    uint64_t bytes;
    jmpi_walk(&walk, &record->view->flat, (int64_t)record->view->displacement, record->from, record->bytes);
    for (; jmpi_step(&walk, &offset, &bytes); data += bytes)
        if (!jmpi_append(to, (uint64_t)offset, bytes, data))
            return false;
    return true;
}

static bool copy_list(const extent_list *from, extent_list *out) {
    *out = (extent_list){0};
    for (size_t i = 0; i < from->count; i++)
        if (!jmpi_append(out, from->items[i].offset, from->items[i].bytes, from->items[i].data))
            return false;
    return true;
}

file_period *jmpi_period(open_file *file) {
    if (file->period && file->period->number == file->periods_ended)
        return file->period;
    file_period *period = calloc(1, sizeof *period);
    if (period) {
        *period = (file_period){.number = file->periods_ended, .next = file->period};
        file->period = period;
    }
    return period;
}

int jmpi_settle_writes(open_file *file) {
    extent_list new = {0}, copy = {0};
    bool is_good = true;
    if (!file->first)
        return MPI_SUCCESS;
    for (written_record *each = file->first; each && is_good; each = each->next)
        is_good = jmpi_append_record(&new, each);
    is_good = is_good && jmpi_settle(&new);
    /* Only files that are read, too, need the other list. */
    if (is_good && !(file->amode & MPI_MODE_WRONLY))
        is_good = copy_list(&new, &copy) && jmpi_overlay(&file->seen, &copy, &file->seen);
    file_period *period = jmpi_period(file);
    is_good = is_good && period && jmpi_overlay(&period->extents, &new, &period->extents);
    jmpi_extents_free(&new);
    jmpi_extents_free(&copy);
    if (!is_good)
        return MPI_ERR_NO_MEM;
    while (file->first) {
        written_record *each = file->first;
        file->first = each->next;
        is_good = jmpi_keep(file, each->data) && is_good;
        jmpi_view_free(each->view);
        free(each);
    }
    file->last = NULL;
    return is_good ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

uint64_t jmpi_size_of(const open_file *file) {
    uint64_t size = file->size_at_least > file->base_bytes ? file->size_at_least : file->base_bytes;
    for (const written_record *each = file->first; each; each = each->next) {
        uint64_t end = each->bytes ? jmpi_view_offset(each->view, each->from + each->bytes - 1) + 1 : 0;
        size = end > size ? end : size;
    }
    for (const file_period *each = file->period; each; each = each->next) {
        uint64_t end = jmpi_end(&each->extents);
        size = end > size ? end : size;
    }
    uint64_t seen = jmpi_end(&file->seen);
    seen = seen > size ? seen : size;
    return file->is_offered && file->offered_bytes > seen ? file->offered_bytes : seen;
}

int jmpi_greatest(const open_file *file, uint64_t *numbers, int count) {
    uint64_t mine[8];
    memcpy(mine, numbers, (size_t)count * sizeof *numbers);
    return jmpi_real.Allreduce(mine, numbers, count, MPI_UINT64_T, MPI_MAX, file->comm);
}

/* Errors */

static int class_of(int code) {
    switch (code) {
    case JCT_NOT_FOUND:
    case JCT_TIMEOUT:
    case JCT_GONE:
        return MPI_ERR_NO_SUCH_FILE;
    case JCT_ALREADY_EXISTS:
        return MPI_ERR_FILE_EXISTS;
    case JCT_DENIED:
        return MPI_ERR_ACCESS;
    case JCT_POOL_FULL:
    case JCT_TOO_LARGE:
    case JCT_LIMIT_EXCEEDED:
        return MPI_ERR_NO_SPACE;
    case JCT_UNSUPPORTED:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_IO;
    }
}

/* One code for each class of error, whose text is that of the last error. MPICH has no texts of its predefined classes. */
int jmpi_error(const open_file *file, int class, const char *call, const char *text) {
    char line[MPI_MAX_ERROR_STRING];
    int code = class;
    snprintf(line, sizeof line, "%s of %s: %s", call, file->path, text);
    intercept_say_once("%s", line);
#ifdef OPEN_MPI
    enum { CODES_MAX = 64 };
    static int classes[CODES_MAX], codes[CODES_MAX], count;
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < count && classes[at] != class)
        at++;
    if (at == count && count < CODES_MAX && !jmpi_real.Add_error_code(class, &codes[at]))
        classes[count++] = class;
    if (at < count) {
        code = codes[at];
        jmpi_real.Add_error_string(code, line);
    }
    pthread_mutex_unlock(&lock);
#endif
    return code;
}

int jmpi_error_of(const open_file *file, const char *call, int code) {
    return jmpi_error(file, class_of(code), call, jmpi_jct.jct_error_text());
}
