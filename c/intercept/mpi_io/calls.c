/* The functions of MPI that this library stands in front of, under both of their names: libraries of Fortran call the
 * one or the other. Handles are pointers here, whether the program's MPI has pointers or integers: an address holds
 * both, so that this library passes calls of the other family on unchanged. */
#include "library/lookup.h"
#include "operations.h"

#include <limits.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

#define BOTH_NAMES(name, ...) \
    EXPORTED int PMPI_File_##name(__VA_ARGS__); \
    EXPORTED int MPI_File_##name(__VA_ARGS__) __attribute__((alias("PMPI_File_" #name)));

/* The real function is looked up with the first call. */
#define REAL(name, ...) \
    static int (*real)(__VA_ARGS__); \
    if (!real && !jmpi_next("PMPI_File_" #name, &real)) \
        return 16; /* MPI_ERR_OTHER of neither family: the program's MPI has no such function, and cannot call it */

/* A function of a file: `ours` is what is done for a file in the pool, `arguments` those behind the handle. */
#define OF_FILE(name, parameters, arguments, ours) \
    BOTH_NAMES(name, void *handle, UNPACKED parameters) \
    int PMPI_File_##name(void *handle, UNPACKED parameters) { \
        REAL(name, void *, UNPACKED parameters) \
        struct open_file *file = jmpi_is_active() ? jmpi_find(handle) : NULL; \
        if (file && !jmpi_moved_to(file)) \
            return ours; \
        return real(file ? jmpi_moved_to(file) : handle, UNPACKED arguments); \
    }
#define UNPACKED(...) __VA_ARGS__

static bool is_large(long long count) { return count > INT_MAX; }

/* The same with `count` among the parameters. mpi4py calls the forms _c where anything exports them, and this library does:
 * where the program's MPI has only int, its function takes the count in the same register. */
#define OF_COUNT(name, parameters, arguments, ours) \
    BOTH_NAMES(name, void *handle, UNPACKED parameters) \
    int PMPI_File_##name(void *handle, UNPACKED parameters) { \
        static int (*real)(void *, UNPACKED parameters); \
        static bool is_narrow; \
        struct open_file *file = jmpi_is_active() ? jmpi_find(handle) : NULL; \
        if (file && !jmpi_moved_to(file)) \
            return ours; \
        if (!real && !jmpi_next_of_counts("PMPI_File_" #name, &real, &is_narrow)) \
            return 16; /* MPI_ERR_OTHER of both families */ \
        if (is_narrow && is_large(count)) \
            return 2; /* MPI_ERR_COUNT of both families */ \
        return real(file ? jmpi_moved_to(file) : handle, UNPACKED arguments); \
    }

typedef long long Offset;
typedef long long Count;

BOTH_NAMES(open, void *comm, const char *name, int amode, void *info, void **handle)
int PMPI_File_open(void *comm, const char *name, int amode, void *info, void **handle) {
    REAL(open, void *, const char *, int, void *, void **)
    int error;
    if (jmpi_is_active() && jmpi_open(comm, name, amode, handle, &error))
        return error;
    return real(comm, name, amode, info, handle);
}

BOTH_NAMES(delete, const char *name, void *info)
int PMPI_File_delete(const char *name, void *info) {
    REAL(delete, const char *, void *)
    int error;
    if (jmpi_is_active() && jmpi_delete(name, &error))
        return error;
    return real(name, info);
}

BOTH_NAMES(close, void **handle)
int PMPI_File_close(void **handle) {
    REAL(close, void **)
    struct open_file *file = jmpi_is_active() ? jmpi_find(*handle) : NULL;
    return file ? jmpi_close(file, handle) : real(handle);
}

BOTH_NAMES(sync, void *handle)
int PMPI_File_sync(void *handle) {
    REAL(sync, void *)
    struct open_file *file = jmpi_is_active() ? jmpi_find(handle) : NULL;
    if (file && !jmpi_moved_to(file))
        return jmpi_sync(file);
    return real(file ? jmpi_moved_to(file) : handle);
}

OF_FILE(set_view, (Offset at, void *etype, void *type, const char *name, void *info), (at, etype, type, name, info),
        jmpi_set_view(file, at, etype, type, name, info))
OF_FILE(get_view, (Offset *at, void *etype, void *type, char *name), (at, etype, type, name),
        jmpi_get_view(file, at, etype, type, name))
OF_FILE(seek, (Offset at, int whence), (at, whence), jmpi_seek(file, at, whence))
OF_FILE(get_position, (Offset *at), (at), jmpi_get_position(file, at))
OF_FILE(get_byte_offset, (Offset at, Offset *bytes), (at, bytes), jmpi_get_byte_offset(file, at, bytes))
OF_FILE(get_size, (Offset *size), (size), jmpi_get_size(file, size))
OF_FILE(set_size, (Offset size), (size), jmpi_set_size(file, size))
OF_FILE(preallocate, (Offset size), (size), jmpi_preallocate(file, size))
OF_FILE(get_amode, (int *amode), (amode), jmpi_get_amode(file, amode))
OF_FILE(get_group, (void *group), (group), jmpi_get_group(file, group))
OF_FILE(set_atomicity, (int flag), (flag), jmpi_set_atomicity(file, flag))
OF_FILE(get_atomicity, (int *flag), (flag), jmpi_get_atomicity(file, flag))
/* The scratch file has its own hints, and the sizes of types of the machine. */
OF_FILE(set_info, (void *info), (info), real(handle, info))
OF_FILE(get_info, (void *info), (info), real(handle, info))
OF_FILE(get_type_extent, (void *type, void *extent), (type, extent), real(handle, type, extent))

/* An access at the file's own position, and at a given one; `count` is an int, or of MPI_Count in the forms _c. */
#define ACCESS(name, Number, last, what) \
    OF_COUNT(name, (void *buffer, Number count, void *type, void *last), (buffer, count, type, last), \
            jmpi_access(file, what, 0, buffer, count, type, ACCESS_##last))
#define ACCESS_AT_OFFSET(name, Number, last, what) \
    OF_COUNT(name, (Offset at, void *buffer, Number count, void *type, void *last), (at, buffer, count, type, last), \
            jmpi_access(file, (what) | ACCESS_AT, at, buffer, count, type, ACCESS_##last))
#define ACCESS_status status, NULL
#define ACCESS_request NULL, request

#define ACCESSES(suffix, Number) \
    ACCESS(read##suffix, Number, status, 0) \
    ACCESS(read_all##suffix, Number, status, ACCESS_ALL) \
    ACCESS(write##suffix, Number, status, ACCESS_WRITE) \
    ACCESS(write_all##suffix, Number, status, ACCESS_WRITE | ACCESS_ALL) \
    ACCESS(iread##suffix, Number, request, ACCESS_REQUEST) \
    ACCESS(iread_all##suffix, Number, request, ACCESS_REQUEST) \
    ACCESS(iwrite##suffix, Number, request, ACCESS_WRITE | ACCESS_REQUEST) \
    ACCESS(iwrite_all##suffix, Number, request, ACCESS_WRITE | ACCESS_REQUEST) \
    ACCESS_AT_OFFSET(read_at##suffix, Number, status, 0) \
    ACCESS_AT_OFFSET(read_at_all##suffix, Number, status, ACCESS_ALL) \
    ACCESS_AT_OFFSET(write_at##suffix, Number, status, ACCESS_WRITE) \
    ACCESS_AT_OFFSET(write_at_all##suffix, Number, status, ACCESS_WRITE | ACCESS_ALL) \
    ACCESS_AT_OFFSET(iread_at##suffix, Number, request, ACCESS_REQUEST) \
    ACCESS_AT_OFFSET(iread_at_all##suffix, Number, request, ACCESS_REQUEST) \
    ACCESS_AT_OFFSET(iwrite_at##suffix, Number, request, ACCESS_WRITE | ACCESS_REQUEST) \
    ACCESS_AT_OFFSET(iwrite_at_all##suffix, Number, request, ACCESS_WRITE | ACCESS_REQUEST)

ACCESSES(, int)
ACCESSES(_c, Count)

/* Split collectives are carried out by the first half. */
#define BEGIN(name, Number, what) \
    OF_COUNT(name, (void *buffer, Number count, void *type), (buffer, count, type), \
            jmpi_access(file, (what) | ACCESS_ALL | ACCESS_SPLIT, 0, buffer, count, type, NULL, NULL))
#define BEGIN_AT_OFFSET(name, Number, what) \
    OF_COUNT(name, (Offset at, void *buffer, Number count, void *type), (at, buffer, count, type), \
            jmpi_access(file, (what) | ACCESS_ALL | ACCESS_SPLIT | ACCESS_AT, at, buffer, count, type, NULL, NULL))
#define END(name) OF_FILE(name, (void *buffer, void *status), (buffer, status), jmpi_access_end(file, status))

BEGIN(read_all_begin, int, 0)
BEGIN(write_all_begin, int, ACCESS_WRITE)
BEGIN(read_all_begin_c, Count, 0)
BEGIN(write_all_begin_c, Count, ACCESS_WRITE)
BEGIN_AT_OFFSET(read_at_all_begin, int, 0)
BEGIN_AT_OFFSET(write_at_all_begin, int, ACCESS_WRITE)
BEGIN_AT_OFFSET(read_at_all_begin_c, Count, 0)
BEGIN_AT_OFFSET(write_at_all_begin_c, Count, ACCESS_WRITE)
END(read_all_end)
END(write_all_end)
END(read_at_all_end)
END(write_at_all_end)

/* Shared pointers. */
#define REFUSED(name, parameters, arguments) OF_FILE(name, parameters, arguments, jmpi_refuse(file, "MPI_File_" #name))
#define REFUSED_COUNT(name, parameters, arguments) \
    OF_COUNT(name, parameters, arguments, jmpi_refuse(file, "MPI_File_" #name))
#define SHARED(suffix, Number) \
    REFUSED_COUNT(read_shared##suffix, (void *buffer, Number count, void *type, void *status), (buffer, count, type, status)) \
    REFUSED_COUNT(write_shared##suffix, (void *buffer, Number count, void *type, void *status), (buffer, count, type, status)) \
    REFUSED_COUNT(iread_shared##suffix, (void *buffer, Number count, void *type, void *request), \
            (buffer, count, type, request)) \
    REFUSED_COUNT(iwrite_shared##suffix, (void *buffer, Number count, void *type, void *request), \
            (buffer, count, type, request)) \
    REFUSED_COUNT(read_ordered##suffix, (void *buffer, Number count, void *type, void *status), \
            (buffer, count, type, status)) \
    REFUSED_COUNT(write_ordered##suffix, (void *buffer, Number count, void *type, void *status), \
            (buffer, count, type, status)) \
    REFUSED_COUNT(read_ordered_begin##suffix, (void *buffer, Number count, void *type), (buffer, count, type)) \
    REFUSED_COUNT(write_ordered_begin##suffix, (void *buffer, Number count, void *type), (buffer, count, type))

SHARED(, int)
SHARED(_c, Count)
REFUSED(read_ordered_end, (void *buffer, void *status), (buffer, status))
REFUSED(write_ordered_end, (void *buffer, void *status), (buffer, status))
REFUSED(seek_shared, (Offset at, int whence), (at, whence))
REFUSED(get_position_shared, (Offset *at), (at))
