/* steps write PATH STEPS [DIE]: writes steps of two fields; reads a line of standard input before each step, and prints one
 * after it; is killed behind its call number DIE.
 * steps read PATH: reads steps until there are no more, prints one line for each, then the reason of the end. */
#define _POSIX_C_SOURCE 200809L
#include <netcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 30, COLUMNS = 40, CELLS = ROWS * COLUMNS };

static int calls, die = -1;

static void check(int status, const char *what) {
    if (status != NC_NOERR) {
        printf("%s: %s\n", what, nc_strerror(status));
        exit(1);
    }
    if (++calls == die) raise(SIGKILL);
}
#define CHECK(call) check(call, #call)

static void fill(float *values, int step, int variable) {
    for (int at = 0; at < CELLS; at++) values[at] = (float)(step * 10000 + variable * 5000 + at);
}

static int write_steps(const char *path, int steps) {
    int file, dims[3], time, fields[2], rows;
    float values[CELLS];
    char line[16];
    CHECK(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "y", ROWS, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "time", NC_DOUBLE, 1, dims, &time));
    CHECK(nc_put_att_text(file, time, "units", 30, "seconds since 2026-01-01 00:00"));
    CHECK(nc_def_var(file, "T2", NC_FLOAT, 3, dims, &fields[0]));
    CHECK(nc_def_var(file, "U10", NC_FLOAT, 3, dims, &fields[1]));
    CHECK(nc_def_var(file, "row", NC_FLOAT, 1, dims + 1, &rows));
    CHECK(nc_enddef(file));
    fill(values, 0, 0);
    CHECK(nc_put_var_float(file, rows, values));
    for (int step = 0; step < steps; step++) {
        if (die < 0 && !fgets(line, sizeof line, stdin)) return 1;
        size_t start[3] = {(size_t)step, 0, 0}, count[3] = {1, ROWS, COLUMNS};
        double seconds = step * 60.0;
        CHECK(nc_put_vara_double(file, time, start, count, &seconds));
        for (int variable = 0; variable < 2; variable++) {
            fill(values, step, variable);
            /* The second field comes in two halves. */
            size_t half[3] = {1, ROWS / 2, COLUMNS}, lower[3] = {(size_t)step, ROWS / 2, 0};
            if (variable == 0) {
                CHECK(nc_put_vara_float(file, fields[0], start, count, values));
            } else {
                CHECK(nc_put_vara_float(file, fields[1], start, half, values));
                CHECK(nc_put_vara_float(file, fields[1], lower, half, values + CELLS / 2));
            }
        }
        printf("wrote %d\n", step);
        fflush(stdout);
    }
    if (die < 0 && !fgets(line, sizeof line, stdin)) return 1;
    CHECK(nc_close(file));
    printf("%d calls\n", calls);
    return 0;
}

static int read_steps(const char *path) {
    int file, fields[2];
    int status = nc_open(path, NC_NOWRITE, &file);
    if (status != NC_NOERR) {
        printf("open: %s\n", nc_strerror(status));
        return 0;
    }
    CHECK(nc_inq_varid(file, "T2", &fields[0]));
    CHECK(nc_inq_varid(file, "U10", &fields[1]));
    for (int step = 0;; step++) {
        float values[CELLS], expected[CELLS];
        size_t start[3] = {(size_t)step, 0, 0}, count[3] = {1, ROWS, COLUMNS};
        for (int variable = 0; variable < 2; variable++) {
            status = nc_get_vara_float(file, fields[variable], start, count, values);
            if (status != NC_NOERR) {
                printf("end: %d %s\n", variable, nc_strerror(status));
                nc_close(file);
                return 0;
            }
            fill(expected, step, variable);
            if (memcmp(values, expected, sizeof values) != 0) {
                printf("step %d: wrong values\n", step);
                return 1;
            }
        }
        printf("step %d\n", step);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "read") == 0) return read_steps(argv[2]);
    if (argc < 4) return 2;
    if (argc == 5) die = atoi(argv[4]);
    return write_steps(argv[2], atoi(argv[3]));
}
