/* forms PATH MODE: calls every form of nc_put_* and nc_get_* with every type in memory on variables of every type, and
 * prints statuses and values. The output does not depend on where the file is. */
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X = 4, Y = 3, RECORDS = 2, CELLS = X * Y };

static void told(const char *what, int status) { printf("%s: %s\n", what, nc_strerror(status)); }

#define SHOW(name, T, FORMAT, values, count)                                           \
    for (int at_ = 0; at_ < (count); at_++) printf(FORMAT "%c", (T)(values)[at_], at_ + 1 == (count) ? '\n' : ' ');

/* Every form with one type in memory; values are small, and fit into each type. */
#define FORMS(S, T)                                                                                                   \
    static void forms_##S(int file, int variable, int has_records) {                                                  \
        T out[RECORDS * CELLS], in[RECORDS * CELLS];                                                                  \
        size_t start[3] = {1, 0, 1}, count[3] = {1, 2, 2}, index[3] = {0, 2, 3}, *s = start, *c = count, *i = index;  \
        ptrdiff_t stride[3] = {1, 2, 2}, map[3] = {CELLS, 1, Y}, *d = stride, *m = map;                               \
        size_t whole_start[3] = {0, 0, 0}, whole[3] = {RECORDS, Y, X}, *ws = whole_start, *w = whole;                 \
        int all = has_records ? RECORDS * CELLS : CELLS;                                                              \
        if (!has_records) s++, c++, i++, d++, m++, ws++, w++;                                                         \
        for (int at = 0; at < RECORDS * CELLS; at++) out[at] = (T)(at + 1);                                           \
        told("vara " #S, nc_put_vara_##S(file, variable, ws, w, out));                                                \
        for (int at = 0; at < RECORDS * CELLS; at++) out[at] = (T)(at + 50);                                          \
        told("put vara", nc_put_vara_##S(file, variable, s, c, out));                                                 \
        told("put var1", nc_put_var1_##S(file, variable, i, out));                                                    \
        count[2] = 1, count[1] = 2, start[1] = 0;                                                                     \
        told("put vars", nc_put_vars_##S(file, variable, s, c, d, out + 4));                                          \
        memset(in, 0, sizeof in);                                                                                     \
        told("get var", nc_get_var_##S(file, variable, in));                                                          \
        SHOW(S, long long, "%lld", in, all)                                                                           \
        told("put varm", nc_put_varm_##S(file, variable, ws, w, NULL, m, out));                                       \
        memset(in, 0, sizeof in);                                                                                     \
        told("get vara", nc_get_vara_##S(file, variable, ws, w, in));                                                 \
        SHOW(S, long long, "%lld", in, all)                                                                           \
        memset(in, 0, sizeof in);                                                                                     \
        told("get varm", nc_get_varm_##S(file, variable, ws, w, NULL, m, in));                                        \
        SHOW(S, long long, "%lld", in, all)                                                                           \
        told("get vars", nc_get_vars_##S(file, variable, s, c, d, in));                                               \
        SHOW(S, long long, "%lld", in, 2)                                                                             \
        told("get var1", nc_get_var1_##S(file, variable, i, in));                                                     \
        SHOW(S, long long, "%lld", in, 1)                                                                             \
        told("put var", nc_put_var_##S(file, variable, out));                                                         \
    }
FORMS(schar, signed char)
FORMS(uchar, unsigned char)
FORMS(short, short)
FORMS(int, int)
FORMS(long, long)
FORMS(float, float)
FORMS(double, double)
FORMS(ubyte, unsigned char)
FORMS(ushort, unsigned short)
FORMS(uint, unsigned int)
FORMS(longlong, long long)
FORMS(ulonglong, unsigned long long)
FORMS(text, char)

static void ranges(int file, int variable) {
    double large[X] = {1e30, -1e30, 300, 70000}, kept[X];
    float floats[X] = {-1, 200, -200, 40000};
    int ints[X] = {-1, 200, 40000, -40000};
    unsigned char bytes[X] = {0, 100, 200, 255};
    size_t start[3] = {0, 1, 0}, count[3] = {1, 1, X};
    told("double", nc_put_vara_double(file, variable, start, count, large));
    told("float", nc_put_vara_float(file, variable, start, count, floats));
    told("int", nc_put_vara_int(file, variable, start, count, ints));
    told("uchar", nc_put_vara_uchar(file, variable, start, count, bytes));
    told("back", nc_get_vara_double(file, variable, start, count, kept));
    signed char small[X];
    told("schar", nc_get_vara_schar(file, variable, start, count, small));
    told("text", nc_get_vara_text(file, variable, start, count, (char *)small));
}

static void errors(int file, int variable) {
    float values[(RECORDS + 4) * CELLS] = {0};
    size_t start[3] = {0, 0, 0}, count[3] = {1, Y, X}, far[3] = {0, Y, 0}, beyond[3] = {0, Y + 1, 0}, wide[3] = {1, Y, X + 1};
    size_t none[3] = {0, 0, 0}, late[3] = {RECORDS, 0, 0}, later[3] = {RECORDS + 5, 0, 0}, long_count[3] = {RECORDS + 1, Y, X};
    ptrdiff_t zero[3] = {1, 0, 1}, two[3] = {1, 2, 1};
    told("id", nc_put_vara_float(file + 77, variable, start, count, values));
    told("variable", nc_put_vara_float(file, 99, start, count, values));
    told("at the end", nc_put_vara_float(file, variable, far, count, values));
    told("beyond", nc_put_vara_float(file, variable, beyond, count, values));
    told("wide", nc_put_vara_float(file, variable, start, wide, values));
    told("none", nc_put_vara_float(file, variable, start, none, values));
    told("none at the end", nc_put_vara_float(file, variable, far, none, values));
    told("stride", nc_put_vars_float(file, variable, start, count, zero, values));
    told("get long stride", nc_get_vars_float(file, variable, start, count, two, values));
    told("get at the end", nc_get_vara_float(file, variable, far, count, values));
    told("get wide", nc_get_vara_float(file, variable, start, wide, values));
    told("get none", nc_get_vara_float(file, variable, start, none, values));
    told("get stride", nc_get_vars_float(file, variable, start, count, zero, values));
    told("get late", nc_get_vara_float(file, variable, late, count, values));
    told("get later", nc_get_vara_float(file, variable, later, count, values));
    told("get long", nc_get_vara_float(file, variable, start, long_count, values));
    told("no start", nc_get_vara_float(file, variable, NULL, count, values));
    told("no count", nc_get_vara_float(file, variable, start, NULL, values));
    told("text", nc_put_vara_text(file, variable, start, count, (char *)values));
}

static void inquire(int file, const int *dims) {
    size_t length = 0;
    char name[NC_MAX_NAME + 1] = "";
    int format = 0, unlimited = -1;
    told("length", nc_inq_dimlen(file, dims[0], &length));
    printf("%zu\n", length);
    told("dim", nc_inq_dim(file, dims[0], name, &length));
    printf("%s %zu\n", name, length);
    told("format", nc_inq_format(file, &format));
    told("unlimited", nc_inq_unlimdim(file, &unlimited));
    printf("%d %d\n", format, unlimited == dims[0]);
    told("no dim", nc_inq_dimlen(file, 77, &length));
    told("path", nc_inq_path(file, &length, name));
    printf("%zu %s\n", length, name);
}

int main(int argc, char **argv) {
    static const nc_type types[] = {NC_BYTE,  NC_CHAR, NC_SHORT, NC_INT,   NC_FLOAT, NC_DOUBLE,
                                    NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64};
    if (argc != 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    int file, dims[3], mode = atoi(argv[2]), count = mode == 0 || mode == NC_64BIT_OFFSET || mode & NC_CLASSIC_MODEL ? 6 : 11;
    int records[11], fixed[11];
    told("create", nc_create(argv[1], mode, &file));
    told("time", nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    told("y", nc_def_dim(file, "y", Y, &dims[1]));
    told("x", nc_def_dim(file, "x", X, &dims[2]));
    for (int at = 0; at < count; at++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", at);
        told(name, nc_def_var(file, name, types[at], 3, dims, &records[at]));
        snprintf(name, sizeof name, "f%d", at);
        told(name, nc_def_var(file, name, types[at], 2, dims + 1, &fixed[at]));
    }
    float early = 1;
    size_t zero[3] = {0, 0, 0};
    if (mode == 0 || mode & NC_CLASSIC_MODEL) told("early", nc_put_var1_float(file, records[4], zero, &early));
    told("enddef", nc_enddef(file));
    for (int at = 0; at < count; at++) {
        for (int has_records = 0; has_records < 2; has_records++) {
            int variable = has_records ? records[at] : fixed[at];
            printf("type %d\n", types[at]);
            if (types[at] == NC_CHAR) {
                forms_text(file, variable, has_records);
                continue;
            }
            forms_schar(file, variable, has_records);
            forms_uchar(file, variable, has_records);
            forms_short(file, variable, has_records);
            forms_int(file, variable, has_records);
            forms_long(file, variable, has_records);
            forms_float(file, variable, has_records);
            forms_double(file, variable, has_records);
            forms_ubyte(file, variable, has_records);
            forms_ushort(file, variable, has_records);
            forms_uint(file, variable, has_records);
            forms_longlong(file, variable, has_records);
            forms_ulonglong(file, variable, has_records);
        }
        if (types[at] != NC_CHAR) ranges(file, records[at]);
    }
    errors(file, records[4]);
    errors(file, records[5]);
    inquire(file, dims);
    told("sync", nc_sync(file));
    told("redef", nc_redef(file));
    told("attribute", nc_put_att_text(file, NC_GLOBAL, "late", 4, "text"));
    told("rename", nc_rename_var(file, fixed[0], "renamed"));
    told("enddef", nc_enddef(file));
    told("close", nc_close(file));
    told("closed", nc_sync(file));
    told("exists", nc_create(argv[1], mode | NC_NOCLOBBER, &file));
    told("open", nc_open(argv[1], NC_WRITE, &file));
    errors(file, records[4]);
    double again[CELLS] = {0};
    size_t start[3] = {RECORDS, 0, 0}, extent[3] = {1, Y, X}, first[3] = {0, 1, 1}, one[3] = {1, 1, 1};
    told("append", nc_put_vara_double(file, records[4], start, extent, again));
    told("again", nc_put_vara_double(file, records[4], first, one, again));
    inquire(file, dims);
    told("close", nc_close(file));
    told("open", nc_open(argv[1], NC_NOWRITE, &file));
    told("denied", nc_put_vara_double(file, records[4], start, extent, again));
    double last[(RECORDS + 1) * CELLS];
    told("get", nc_get_var_double(file, records[4], last));
    SHOW(double, double, "%g", last, (RECORDS + 1) * CELLS)
    errors(file, records[4]);
    inquire(file, dims);
    told("close", nc_close(file));
    return 0;
}
