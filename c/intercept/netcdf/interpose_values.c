/* The exported functions of values. A file that is not intercepted costs one look into a table. */
#define _GNU_SOURCE
#include "values.h"

#define PASS(side, function, part, form_, type_, start_, count_, stride_, map_, ...)                            \
    OpenFile *file = file_of(ncid);                                                                             \
    if (!file) return REAL(function)(__VA_ARGS__);                                                              \
    ValueCall call = {form_,  #function, ncid,  id,                                                             \
                      start_, count_,    stride_, map_,                                                         \
                      type_,  (void *)values, (AnyFunction)REAL(function), (AnyFunction)REAL(part)};            \
    return values_##side(file, &call);

#define FUNCTIONS(side, SUFFIX, V, TYPE)                                                                              \
    int nc_##side##_var##SUFFIX(int ncid, int id, V *values) {                                                        \
        PASS(side, nc_##side##_var##SUFFIX, nc_##side##_vara##SUFFIX, FORM_VAR, TYPE, 0, 0, 0, 0, ncid, id, values)   \
    }                                                                                                                 \
    int nc_##side##_var1##SUFFIX(int ncid, int id, const size_t *index, V *values) {                                  \
        PASS(side, nc_##side##_var1##SUFFIX, nc_##side##_vara##SUFFIX, FORM_VAR1, TYPE, index, 0, 0, 0, ncid, id,     \
             index, values)                                                                                           \
    }                                                                                                                 \
    int nc_##side##_vara##SUFFIX(int ncid, int id, const size_t *start, const size_t *count, V *values) {             \
        PASS(side, nc_##side##_vara##SUFFIX, nc_##side##_vara##SUFFIX, FORM_VARA, TYPE, start, count, 0, 0, ncid, id, \
             start, count, values)                                                                                    \
    }                                                                                                                 \
    int nc_##side##_vars##SUFFIX(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, \
                                 V *values) {                                                                         \
        PASS(side, nc_##side##_vars##SUFFIX, nc_##side##_vara##SUFFIX, FORM_VARS, TYPE, start, count, stride, 0,      \
             ncid, id, start, count, stride, values)                                                                  \
    }                                                                                                                 \
    int nc_##side##_varm##SUFFIX(int ncid, int id, const size_t *start, const size_t *count, const ptrdiff_t *stride, \
                                 const ptrdiff_t *map, V *values) {                                                   \
        PASS(side, nc_##side##_varm##SUFFIX, nc_##side##_vara##SUFFIX, FORM_VARM, TYPE, start, count, stride, map,    \
             ncid, id, start, count, stride, map, values)                                                             \
    }

#define OF_TYPE(SUFFIX, T, TYPE)             \
    FUNCTIONS(put, _##SUFFIX, const T, TYPE) \
    FUNCTIONS(get, _##SUFFIX, T, TYPE)

NETCDF_NUMBERS(OF_TYPE)
OF_TYPE(text, char, NC_CHAR)
FUNCTIONS(put, _string, const char *, NC_STRING)
FUNCTIONS(get, _string, char *, NC_STRING)
FUNCTIONS(put, , const void, NC_NAT)
FUNCTIONS(get, , void, NC_NAT)
