/* Conversion of values between netCDF types. Each pair of numeric types has a loop of its own. */
#define _GNU_SOURCE
#include "convert.h"

#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    size_t bytes;
    const char *name;
} types[] = {
    [NC_BYTE] = {1, "i1"},   [NC_CHAR] = {1, "S1"},   [NC_SHORT] = {2, "i2"},  [NC_INT] = {4, "i4"},
    [NC_FLOAT] = {4, "f4"},  [NC_DOUBLE] = {8, "f8"}, [NC_UBYTE] = {1, "u1"},  [NC_USHORT] = {2, "u2"},
    [NC_UINT] = {4, "u4"},   [NC_INT64] = {8, "i8"},  [NC_UINT64] = {8, "u8"}, [NC_STRING] = {sizeof(char *), NULL},
};

static bool is_known(nc_type type) { return type >= NC_BYTE && type <= NC_STRING; }

size_t convert_size(nc_type type) { return is_known(type) ? types[type].bytes : 0; }

const char *convert_name(nc_type type) { return is_known(type) ? types[type].name : NULL; }

/* Whether a value is out of range of a type. Integers are compared as integers, others as double. 2^63 and 2^64 are exact
 * in double, the greatest integers are not. */
#define OUT_I(value, least, most) is_outside((value) < 0, (long long)(value), (unsigned long long)(value), (least), (most))
#define OUT_U(value, most) is_outside((value) < 0, (long long)(value), (unsigned long long)(value), 0, (most))
#define OUT_F(value, least, most) ((double)(value) < (double)(least) || (double)(value) > (double)(most))

#define I2_schar(v) OUT_I(v, SCHAR_MIN, SCHAR_MAX)
#define I2_short(v) OUT_I(v, SHRT_MIN, SHRT_MAX)
#define I2_int(v) OUT_I(v, INT_MIN, INT_MAX)
#define I2_longlong(v) OUT_I(v, LLONG_MIN, LLONG_MAX)
#define I2_uchar(v) OUT_U(v, UCHAR_MAX)
#define I2_ushort(v) OUT_U(v, USHRT_MAX)
#define I2_uint(v) OUT_U(v, UINT_MAX)
#define I2_ulonglong(v) OUT_U(v, ULLONG_MAX)
#define I2_float(v) 0
#define I2_double(v) 0
#define F2_schar(v) OUT_F(v, SCHAR_MIN, SCHAR_MAX)
#define F2_short(v) OUT_F(v, SHRT_MIN, SHRT_MAX)
#define F2_int(v) OUT_F(v, INT_MIN, INT_MAX)
#define F2_longlong(v) OUT_F(v, LLONG_MIN, LLONG_MAX)
#define F2_uchar(v) OUT_F(v, 0, UCHAR_MAX)
#define F2_ushort(v) OUT_F(v, 0, USHRT_MAX)
#define F2_uint(v) OUT_F(v, 0, UINT_MAX)
#define F2_ulonglong(v) OUT_F(v, 0, ULLONG_MAX)
#define F2_float(v) OUT_F(v, -FLT_MAX, FLT_MAX)
#define F2_double(v) 0

static inline bool is_outside(bool is_negative, long long value, unsigned long long magnitude, long long least,
                              unsigned long long most) {
    return is_negative ? value < least : magnitude > most;
}

/* A cast of a float that an integer cannot have is undefined in C: it is made of the nearest value that it can have. */
#define CAST_I(T, value, is_out) ((T)(value))
#define CAST_F(T, value, is_out) ((is_out) ? (T)((value) > 0 ? (T)-1 : 0) : (T)(value))

#define LOOP(FROM, TO, OUT, CAST)                                                       \
    {                                                                                   \
        const FROM *in = source;                                                        \
        TO *out = target;                                                               \
        for (size_t at = 0; at < count; at++, in += source_step, out += target_step) {  \
            bool is_out = OUT(*in);                                                     \
            *out = CAST(TO, *in, is_out);                                               \
            beyond |= is_out;                                                           \
        }                                                                               \
        return beyond ? NC_ERANGE : NC_NOERR;                                           \
    }
#define TARGETS(FROM, R, CAST)                                                \
    switch (to) {                                                             \
    case NC_BYTE: LOOP(FROM, signed char, R##_schar, CAST)                    \
    case NC_UBYTE: LOOP(FROM, unsigned char, R##_uchar, CAST)                 \
    case NC_SHORT: LOOP(FROM, short, R##_short, CAST)                         \
    case NC_USHORT: LOOP(FROM, unsigned short, R##_ushort, CAST)              \
    case NC_INT: LOOP(FROM, int, R##_int, CAST)                               \
    case NC_UINT: LOOP(FROM, unsigned int, R##_uint, CAST)                    \
    case NC_INT64: LOOP(FROM, long long, R##_longlong, CAST)                  \
    case NC_UINT64: LOOP(FROM, unsigned long long, R##_ulonglong, CAST)       \
    case NC_FLOAT: LOOP(FROM, float, R##_float, CAST_I)                       \
    case NC_DOUBLE: LOOP(FROM, double, R##_double, CAST_I)                    \
    default: return NC_ECHAR;                                                 \
    }

#pragma GCC diagnostic push
/* The sign is asked of unsigned types, too. */
#pragma GCC diagnostic ignored "-Wtype-limits"
static int convert_numbers(nc_type from, const void *source, ptrdiff_t source_step, nc_type to, void *target,
                           ptrdiff_t target_step, size_t count) {
    bool beyond = false;
    switch (from) {
    case NC_BYTE: TARGETS(signed char, I2, CAST_I)
    case NC_UBYTE: TARGETS(unsigned char, I2, CAST_I)
    case NC_SHORT: TARGETS(short, I2, CAST_I)
    case NC_USHORT: TARGETS(unsigned short, I2, CAST_I)
    case NC_INT: TARGETS(int, I2, CAST_I)
    case NC_UINT: TARGETS(unsigned int, I2, CAST_I)
    case NC_INT64: TARGETS(long long, I2, CAST_I)
    case NC_UINT64: TARGETS(unsigned long long, I2, CAST_I)
    case NC_FLOAT: TARGETS(float, F2, CAST_F)
    case NC_DOUBLE: TARGETS(double, F2, CAST_F)
    default: return NC_ECHAR;
    }
}
#pragma GCC diagnostic pop

#define COPY(T)                                                                          \
    {                                                                                    \
        const T *in = source;                                                            \
        T *out = target;                                                                 \
        for (size_t at = 0; at < count; at++, in += source_step, out += target_step)     \
            *out = *in;                                                                  \
        return NC_NOERR;                                                                 \
    }

static int copy_texts(const void *source, ptrdiff_t source_step, void *target, ptrdiff_t target_step, size_t count,
                      bool owned) {
    char *const *in = source;
    char **out = target;
    for (size_t at = 0; at < count; at++, in += source_step, out += target_step) {
        char *copy = strdup(*in ? *in : "");
        if (!copy) return NC_ENOMEM;
        if (owned) free(*out);
        *out = copy;
    }
    return NC_NOERR;
}

int convert_run(nc_type from, const void *source, ptrdiff_t source_step, nc_type to, void *target, ptrdiff_t target_step,
                size_t count, bool loose, bool owned) {
    bool is_byte = (from == NC_BYTE && to == NC_UBYTE) || (from == NC_UBYTE && to == NC_BYTE);
    if (from == to || (loose && is_byte)) {
        if (from == NC_STRING) return copy_texts(source, source_step, target, target_step, count, owned);
        if (source_step == 1 && target_step == 1) {
            memcpy(target, source, count * convert_size(from));
            return NC_NOERR;
        }
        switch (convert_size(from)) {
        case 1: COPY(unsigned char)
        case 2: COPY(short)
        case 4: COPY(int)
        default: COPY(long long)
        }
    }
    return convert_numbers(from, source, source_step, to, target, target_step, count);
}
