#define _GNU_SOURCE
#include "../common/intercept.h"
#include "operations.h"
#include "publish.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder and the name are the key of an object, which has a limit. */
enum { PATH_BYTES_MAX = 800 };

bool jmpi_is_active(void) {
    static int state; /* 1: active, 2: not */
    if (!state)
        state = jmpi_is_wanted() && jmpi_find_functions() ? 1 : 2;
    return state == 1;
}

void *jmpi_moved_to(const open_file *file) { return file->has_moved ? (void *)file->real : NULL; }

/* Paths */

/* ROMIO takes the kind of a file system in front of a path. */
static const char *without_prefix(const char *name) {
    const char *end = name;
    while (isalnum((unsigned char)*end))
        end++;
    return end > name + 1 && *end == ':' ? end + 1 : name;
}

/* The folder, with links resolved where it exists, and the name in it. */
static bool split_path(const char *name, open_file *file) {
    char whole[PATH_MAX], here[PATH_MAX], real[PATH_MAX];
    name = without_prefix(name);
    if (*name == '/')
        snprintf(whole, sizeof whole, "%s", name);
    else if (!getcwd(here, sizeof here) ||
             snprintf(whole, sizeof whole, "%s/%s", here, name) >= (int)sizeof whole)
        return false;
    char *base = strrchr(whole, '/');
    *base++ = '\0';
    const char *folder = realpath(*whole ? whole : "/", real) ? real : whole;
    file->folder = strdup(folder);
    file->name = strdup(base);
    if (!file->folder || !file->name || !*base || strlen(folder) + strlen(base) > PATH_BYTES_MAX)
        return false;
    return asprintf(&file->path, "%s/%s", strcmp(folder, "/") ? folder : "", base) >= 0;
}

/* Where the variable is set, files have one folder in the pool, wherever programs write them. */
static bool name_folder(open_file *file) {
    const char *space = getenv("JUNCTURA_MPI_IO_SPACE");
    if (!space || !*space)
        return true;
    free(file->folder);
    file->folder = strdup(space);
    return file->folder != NULL;
}

/* Opening */

/* A handle that is valid for each function that is not intercepted: of an empty file of this process alone, which has no
 * name any more. */
static int open_scratch(open_file *file) {
    char path[64] = "/dev/shm/junctura-mpi-io-XXXXXX";
    int made = mkstemp(path);
    if (made < 0) {
        snprintf(path, sizeof path, "/tmp/junctura-mpi-io-XXXXXX");
        made = mkstemp(path);
    }
    if (made < 0)
        return MPI_ERR_ACCESS;
    close(made);
    int error = jmpi_real.File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file->handle);
    unlink(path);
    return error;
}

static open_file *new_file(const char *name, int amode, file_mode mode) {
    open_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->comm = MPI_COMM_NULL;
    file->amode = amode;
    file->mode = mode;
    pthread_mutex_init(&file->lock, NULL);
    if (!split_path(name, file) || !name_folder(file)) {
        jmpi_file_free(file);
        return NULL;
    }
    return file;
}

/* What is in the pool: readers wait for it, writers look. */
static int open_base(open_file *file) {
    bool is_reader = file->amode & MPI_MODE_RDONLY;
    int code = jmpi_source_open(file->folder, file->name, is_reader ? jmpi_timeout() : 0, &file->base);
    if (file->base)
        file->base_bytes = jmpi_source_size(file->base);
    return code;
}

/* What ranks found when they opened a file. */
enum { HAS_NO_POOL, HAS_FAILED, IS_MISSING, IS_FOUND, IS_ON_DISK, WORDS };
typedef struct open_answer {
    int code; /* of this rank, with its text */
    const char *text;
    uint64_t of_any[WORDS];
} open_answer;

/* Looks at the pool, and tells the other ranks: one exchange, since ranks that share cores lose time in each. */
static int look(open_file *file, int amode, MPI_Comm all, open_answer *out) {
    uint64_t mine[WORDS] = {[HAS_NO_POOL] = !file || !jmpi_pool()};
    int error = MPI_SUCCESS;
    *out = (open_answer){.text = ""};
    /* A reader waits for the file: not while another rank cannot. */
    if (amode & MPI_MODE_RDONLY) {
        error = jmpi_real.Allreduce(mine, out->of_any, 1, MPI_UINT64_T, MPI_MAX, all);
        if (error || out->of_any[HAS_NO_POOL])
            return error;
    }
    if (!mine[HAS_NO_POOL]) {
        out->code = open_base(file);
        bool is_missing = out->code == JCT_NOT_FOUND || out->code == JCT_GONE;
        out->text = out->code ? jmpi_jct.jct_error_text() : "";
        mine[HAS_FAILED] = out->code && !is_missing;
        mine[IS_MISSING] = is_missing;
        mine[IS_FOUND] = !is_missing;
        /* The program may have begun the file by other means. */
        mine[IS_ON_DISK] = is_missing && !(amode & MPI_MODE_CREATE) && !access(file->path, F_OK);
    }
    return jmpi_real.Allreduce(mine, out->of_any, WORDS, MPI_UINT64_T, MPI_MAX, all);
}

/* The error of the open, on which all ranks agree. */
static int decide(open_file *file, const open_answer *answer, bool *is_real) {
    const uint64_t *of_any = answer->of_any;
    if (of_any[HAS_FAILED] || (file->amode & MPI_MODE_RDONLY && of_any[IS_MISSING]))
        return answer->code ? jmpi_error_of(file, "MPI_File_open", answer->code)
                            : jmpi_error(file, MPI_ERR_NO_SUCH_FILE, "MPI_File_open", "another rank did not get the file");
    if (of_any[IS_MISSING] && of_any[IS_FOUND])
        return jmpi_error(file, MPI_ERR_IO, "MPI_File_open", "the file was replaced while ranks opened it: open it again");
    if (of_any[IS_FOUND] && file->amode & MPI_MODE_EXCL)
        return jmpi_error(file, MPI_ERR_FILE_EXISTS, "MPI_File_open", "the file is in the pool");
    *is_real = of_any[IS_ON_DISK];
    if (of_any[IS_MISSING] && !(file->amode & MPI_MODE_CREATE) && !*is_real)
        return jmpi_error(file, MPI_ERR_NO_SUCH_FILE, "MPI_File_open", answer->text);
    return MPI_SUCCESS;
}

/* Modes that files in the pool have: one of the three, and no shared pointer from the beginning. */
static bool is_for_pool(int amode) {
    int ways = amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);
    if (ways != MPI_MODE_RDONLY && ways != MPI_MODE_WRONLY && ways != MPI_MODE_RDWR)
        return false;
    if (ways == MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
        return false;
    if (amode & MPI_MODE_SEQUENTIAL)
        intercept_fell_through("MPI_MODE_SEQUENTIAL", "a file");
    return !(amode & MPI_MODE_SEQUENTIAL);
}

bool jmpi_open(void *comm, const char *name, int amode, void **handle, int *error) {
    file_mode mode = jmpi_mode_of(without_prefix(name));
    if (mode == MODE_FILE && jmpi_is_wanted())
        intercept_file(without_prefix(name), jmpi_mode_name(mode));
    if (mode == MODE_FILE || !is_for_pool(amode))
        return false;
    open_file *file = new_file(name, amode, mode);
    /* All ranks have the file in the pool, or none. */
    MPI_Comm all = JMPI_HANDLE(MPI_Comm, comm);
    open_answer answer;
    *error = look(file, amode, all, &answer);
    bool is_ready = !*error && !answer.of_any[HAS_NO_POOL];
    if (is_ready)
        *error = jmpi_real.Comm_dup(all, &file->comm);
    if (*error || !is_ready) {
        if (file && jmpi_pool() && !*error)
            intercept_say_once("%s is a file, since another rank has no pool", file->path);
        else if (!file)
            intercept_say_once("%s is a file: its path cannot be a key", name);
        if (file)
            jmpi_file_free(file);
        return *error != MPI_SUCCESS;
    }
    jmpi_real.Comm_rank(file->comm, &file->rank);
    jmpi_real.Comm_size(file->comm, &file->ranks);
    intercept_rank(file->rank);
    bool is_real = false;
    *error = decide(file, &answer, &is_real);
    if (is_real) {
        intercept_fell_through("MPI_File_open without MPI_MODE_CREATE", file->path);
        jmpi_file_free(file);
        return false;
    }
    if (!*error)
        *error = jmpi_view_new(0, MPI_BYTE, MPI_BYTE, "native", &file->view);
    if (!*error && mode == MODE_ARRAY && !(file->claims = calloc((size_t)file->ranks, sizeof *file->claims)))
        *error = MPI_ERR_NO_MEM;
    if (!*error)
        *error = open_scratch(file);
    if (*error) {
        jmpi_file_free(file);
        jmpi_real.File_call_errhandler(MPI_FILE_NULL, *error);
        return true;
    }
    /* What was there is read before it is replaced. */
    file->must_be_whole = file->base && !(amode & MPI_MODE_RDONLY);
    if (amode & MPI_MODE_APPEND)
        file->position = file->base_bytes;
    jmpi_add(file);
    *handle = (void *)file->handle;
    return true;
}

/* Closing */

static int withdraw(const char *folder, const char *name) {
    jct_attributes_t *key = jmpi_key_of(folder, name);
    int code = key ? jmpi_jct.jct_withdraw(jmpi_pool(), key, "schema=free,forget", jmpi_timeout(), NULL)
                   : JCT_LIMIT_EXCEEDED;
    jmpi_jct.jct_attributes_free(key);
    return code;
}

static void report(const open_file *file) {
    FileReport *entry = intercept_file(file->path, jmpi_mode_name(file->mode));
    if (file->read_bytes || file->amode & MPI_MODE_RDONLY)
        intercept_received(entry, file->read_bytes);
}

int jmpi_close(open_file *file, void **handle) {
    int error = MPI_SUCCESS;
    bool has_changed = file->writes || file->is_late || file->has_size || !file->base;
    if (file->has_moved) {
        error = jmpi_real.File_close(&file->real);
    } else if (!(file->amode & MPI_MODE_RDONLY)) {
        error = jmpi_publish(file, has_changed && !(file->amode & MPI_MODE_DELETE_ON_CLOSE));
    }
    report(file);
    jmpi_remove(file);
    jmpi_forget_exchanged(file);
    if (!error && file->amode & MPI_MODE_DELETE_ON_CLOSE && file->rank == 0)
        withdraw(file->folder, file->name);
    if (error)
        jmpi_real.File_call_errhandler(file->handle, error);
    MPI_File scratch = file->handle;
    int closed = jmpi_real.File_close(&scratch);
    *handle = (void *)scratch;
    jmpi_file_free(file);
    return error ? error : closed;
}

bool jmpi_delete(const char *name, int *error) {
    *error = MPI_SUCCESS;
    if (jmpi_mode_of(without_prefix(name)) == MODE_FILE || !jmpi_pool())
        return false;
    open_file *file = new_file(name, 0, MODE_BYTES);
    if (!file)
        return false;
    int code = withdraw(file->folder, file->name);
    /* One that is not in the pool is left to the real function. */
    bool is_ours = code != JCT_NOT_FOUND && code != JCT_GONE;
    if (is_ours && code)
        *error = jmpi_error_of(file, "MPI_File_delete", code);
    else if (is_ours)
        unlink(file->path); /* of an earlier run without the pool */
    jmpi_file_free(file);
    return is_ours;
}
