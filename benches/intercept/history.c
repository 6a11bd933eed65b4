/* history write PATH ROWS COLUMNS STEPS FIELDS: writes a history of netCDF-4 as a model does, and prints the time.
 * history read PATH ROWS COLUMNS STEPS FIELDS: reads all steps, and prints when it had the first.
 * Fields are changed before each step, outside of the time that is measured. */
#define _POSIX_C_SOURCE 200809L
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS_MAX = 64 };

static void check(int status) {
    if (status == NC_NOERR) return;
    printf("%s\n", nc_strerror(status));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

typedef struct {
    size_t rows, columns;
    int steps, fields;
} HistorySize;

static int write_history(const char *path, HistorySize size) {
    int file, dims[3], time, variables[FIELDS_MAX];
    size_t cells = size.rows * size.columns;
    float *values = malloc(cells * sizeof *values);
    if (!values) return 1;
    double begin = now(), spent = 0, second = 0;
    check(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &file));
    check(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    check(nc_def_dim(file, "y", size.rows, &dims[1]));
    check(nc_def_dim(file, "x", size.columns, &dims[2]));
    check(nc_def_var(file, "time", NC_DOUBLE, 1, dims, &time));
    for (int field = 0; field < size.fields; field++) {
        char name[16];
        snprintf(name, sizeof name, "field%d", field);
        check(nc_def_var(file, name, NC_FLOAT, 3, dims, &variables[field]));
        check(nc_put_att_text(file, variables[field], "units", 1, "K"));
    }
    check(nc_enddef(file));
    spent += now() - begin;
    for (int step = 0; step < size.steps; step++) {
        size_t start[3] = {(size_t)step, 0, 0}, count[3] = {1, size.rows, size.columns};
        double seconds = step;
        double before = now();
        check(nc_put_vara_double(file, time, start, count, &seconds));
        spent += now() - before;
        for (int field = 0; field < size.fields; field++) {
            for (size_t at = 0; at < cells; at++) values[at] = (float)(step + field) + (float)at * 0.25f;
            before = now();
            check(nc_put_vara_float(file, variables[field], start, count, values));
            spent += now() - before;
        }
        if (step == 1) second = now();
    }
    double before = now();
    check(nc_close(file));
    spent += now() - before;
    printf("{\"write_ms\": %.3f, \"begin_s\": %.6f, \"second_s\": %.6f}\n", spent * 1e3, begin, second);
    free(values);
    return 0;
}

static int read_history(const char *path, HistorySize size) {
    int file, variable;
    size_t cells = size.rows * size.columns;
    float *values = malloc(cells * sizeof *values);
    if (!values) return 1;
    double first = 0;
    check(nc_open(path, NC_NOWRITE, &file));
    for (int step = 0; step < size.steps; step++) {
        size_t start[3] = {(size_t)step, 0, 0}, count[3] = {1, size.rows, size.columns};
        for (int field = 0; field < size.fields; field++) {
            char name[16];
            snprintf(name, sizeof name, "field%d", field);
            check(nc_inq_varid(file, name, &variable));
            check(nc_get_vara_float(file, variable, start, count, values));
            if (values[cells - 1] != (float)(step + field) + (float)(cells - 1) * 0.25f) return 1;
            if (step == 0 && field == 0) first = now();
        }
    }
    check(nc_close(file));
    printf("{\"first_s\": %.6f}\n", first);
    free(values);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    HistorySize size = {strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10), atoi(argv[5]), atoi(argv[6])};
    if (size.fields > FIELDS_MAX) return 2;
    return strcmp(argv[1], "read") == 0 ? read_history(argv[2], size) : write_history(argv[2], size);
}
