/* The part of the interface of libnetcdf that is used here, declared anew: its header is not needed to compile. A test
 * compares these lines with the header of the library. */
#ifndef JUNCTURA_NETCDF_API_H
#define JUNCTURA_NETCDF_API_H

#include <stddef.h>

typedef int nc_type;

enum {
    NC_NAT, NC_BYTE, NC_CHAR, NC_SHORT, NC_INT, NC_FLOAT, NC_DOUBLE, NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64,
    NC_STRING
};
enum { NC_GLOBAL = -1, NC_MAX_NAME = 256, NC_MAX_VAR_DIMS = 1024 };
enum { NC_NOWRITE = 0, NC_WRITE = 1, NC_NOCLOBBER = 4, NC_DISKLESS = 8, NC_MMAP = 0x10, NC_SHARE = 0x800, NC_MPIIO = 0x2000,
       NC_PERSIST = 0x4000, NC_INMEMORY = 0x8000, NC_MPIPOSIX = 0x2000 };
enum { NC_NOERR = 0, NC_EEXIST = -35, NC_EPERM = -37, NC_EINDEFINE = -39, NC_EINVALCOORDS = -40, NC_ECHAR = -56,
       NC_EEDGE = -57, NC_ESTRIDE = -58, NC_ERANGE = -60, NC_ENOMEM = -61, NC_EIO = -68 };
enum { NC_FILL = 0, NC_NOFILL = 0x100 };
enum { NC_INDEPENDENT = 0, NC_COLLECTIVE = 1 };
enum { NC_FORMAT_CLASSIC = 1, NC_FORMAT_64BIT_OFFSET = 2, NC_FORMAT_NETCDF4 = 3, NC_FORMAT_NETCDF4_CLASSIC = 4,
       NC_FORMAT_CDF5 = 5 };

/* The suffixes of typed functions, the types of their values in memory, and the netCDF types of these. */
#define NETCDF_NUMBERS(X)                     \
    X(schar, signed char, NC_BYTE)            \
    X(uchar, unsigned char, NC_UBYTE)         \
    X(short, short, NC_SHORT)                 \
    X(int, int, NC_INT)                       \
    X(long, long, NC_LONG_IN_MEMORY)          \
    X(float, float, NC_FLOAT)                 \
    X(double, double, NC_DOUBLE)              \
    X(ubyte, unsigned char, NC_UBYTE)         \
    X(ushort, unsigned short, NC_USHORT)      \
    X(uint, unsigned int, NC_UINT)            \
    X(longlong, long long, NC_INT64)          \
    X(ulonglong, unsigned long long, NC_UINT64)
#define NETCDF_TYPES(X) NETCDF_NUMBERS(X) X(text, char, NC_CHAR) X(string, char *, NC_STRING)
/* `const` of what a put function takes: an array of texts is `const char **`. */
#define NETCDF_PUT_TYPES(X) NETCDF_NUMBERS(X) X(text, char, NC_CHAR)

/* A long is as long as a pointer. */
#define NC_LONG_IN_MEMORY (sizeof(long) == 8 ? NC_INT64 : NC_INT)

/* These names are exported; all others of this library are hidden. */
#pragma GCC visibility push(default)

const char *nc_strerror(int status);
int nc_create(const char *path, int mode, int *ncid);
int nc__create(const char *path, int mode, size_t initial, size_t *chunk, int *ncid);
int nc_open(const char *path, int mode, int *ncid);
int nc__open(const char *path, int mode, size_t *chunk, int *ncid);
int nc_redef(int ncid);
int nc_enddef(int ncid);
int nc__enddef(int ncid, size_t h_minfree, size_t v_align, size_t v_minfree, size_t r_align);
int nc_sync(int ncid);
int nc_close(int ncid);
int nc_abort(int ncid);
int nc_set_fill(int ncid, int mode, int *old);
int nc_inq_path(int ncid, size_t *length, char *path);
int nc_inq_format(int ncid, int *format);
int nc_inq_grps(int ncid, int *count, int *ids);
int nc_inq_grpname(int ncid, char *name);
int nc_inq_grpname_full(int ncid, size_t *length, char *name);
int nc_inq_grp_parent(int ncid, int *parent);
int nc_inq_unlimdims(int ncid, int *count, int *ids);
int nc_inq_dimids(int ncid, int *count, int *ids, int with_parents);
int nc_inq_varids(int ncid, int *count, int *ids);
int nc_inq_dim(int ncid, int id, char *name, size_t *length);
int nc_inq_dimlen(int ncid, int id, size_t *length);
int nc_inq_dimname(int ncid, int id, char *name);
int nc_inq_varid(int ncid, const char *name, int *id);
int nc_inq_var(int ncid, int id, char *name, nc_type *type, int *dims, int *dimids, int *attributes);
int nc_inq_var_fill(int ncid, int id, int *none, void *value);
int nc_inq_type(int ncid, nc_type type, char *name, size_t *size);
int nc_inq_natts(int ncid, int *count);
int nc_inq_attname(int ncid, int id, int number, char *name);
int nc_inq_att(int ncid, int id, const char *name, nc_type *type, size_t *length);
int nc_get_att(int ncid, int id, const char *name, void *value);
int nc_put_att(int ncid, int id, const char *name, nc_type type, size_t length, const void *value);
int nc_copy_att(int ncid, int id, const char *name, int to, int to_id);
int nc_def_dim(int ncid, const char *name, size_t length, int *id);
int nc_def_var(int ncid, const char *name, nc_type type, int dims, const int *dimids, int *id);
int nc_def_var_fill(int ncid, int id, int none, const void *value);
int nc_def_grp(int ncid, const char *name, int *id);
int nc_del_att(int ncid, int id, const char *name);
int nc_rename_att(int ncid, int id, const char *name, const char *renamed);
int nc_rename_dim(int ncid, int id, const char *name);
int nc_rename_var(int ncid, int id, const char *name);
int nc_rename_grp(int ncid, const char *name);
int nc_delete(const char *path);
int nc_var_par_access(int ncid, int id, int access);
int nc_free_string(size_t count, char **texts);

int nc_put_vara(int ncid, int id, const size_t *start, const size_t *count, const void *values);
int nc_put_var(int ncid, int id, const void *values);
int nc_put_var1(int ncid, int id, const size_t *index, const void *values);
int nc_put_vars(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, const void *values);
int nc_put_varm(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, const ptrdiff_t *map,
                const void *values);
int nc_get_vara(int ncid, int id, const size_t *start, const size_t *count, void *values);
int nc_get_var(int ncid, int id, void *values);
int nc_get_var1(int ncid, int id, const size_t *index, void *values);
int nc_get_vars(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, void *values);
int nc_get_varm(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, const ptrdiff_t *map,
                void *values);

#define NETCDF_PUT(S, V)                                                                                                 \
    int nc_put_var_##S(int ncid, int id, V *values);                                                                     \
    int nc_put_var1_##S(int ncid, int id, const size_t *index, V *values);                                               \
    int nc_put_vara_##S(int ncid, int id, const size_t *start, const size_t *count, V *values);                          \
    int nc_put_vars_##S(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, V *values);  \
    int nc_put_varm_##S(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride,             \
                        const ptrdiff_t *map, V *values);
#define NETCDF_GET(S, V)                                                                                                 \
    int nc_get_var_##S(int ncid, int id, V *values);                                                                     \
    int nc_get_var1_##S(int ncid, int id, const size_t *index, V *values);                                               \
    int nc_get_vara_##S(int ncid, int id, const size_t *start, const size_t *count, V *values);                          \
    int nc_get_vars_##S(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, V *values);  \
    int nc_get_varm_##S(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride,             \
                        const ptrdiff_t *map, V *values);
#define NETCDF_DECLARE(S, T, N) NETCDF_PUT(S, const T) NETCDF_GET(S, T)
NETCDF_NUMBERS(NETCDF_DECLARE)
NETCDF_DECLARE(text, char, NC_CHAR)
NETCDF_PUT(string, const char *)
NETCDF_GET(string, char *)
#undef NETCDF_DECLARE

#define NETCDF_PUT_ATT(S, T, N) \
    int nc_put_att_##S(int ncid, int id, const char *name, nc_type type, size_t length, const T *values);
NETCDF_NUMBERS(NETCDF_PUT_ATT)
#undef NETCDF_PUT_ATT
int nc_put_att_text(int ncid, int id, const char *name, size_t length, const char *values);
int nc_put_att_string(int ncid, int id, const char *name, size_t length, const char **values);

/* Those of parallel files. An MPI_Comm and an MPI_Info are an int or a pointer; both pass as a pointer-sized number. */
typedef size_t MpiHandle;
int nc_create_par(const char *path, int mode, MpiHandle communicator, MpiHandle info, int *ncid);
int nc_create_par_fortran(const char *path, int mode, int communicator, int info, int *ncid);
int nc_open_par(const char *path, int mode, MpiHandle communicator, MpiHandle info, int *ncid);
int nc_open_par_fortran(const char *path, int mode, int communicator, int info, int *ncid);

#pragma GCC visibility pop

#endif
