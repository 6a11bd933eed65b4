/* parallel_writer PATH STEPS ACCESS READ: ranks write a field by columns, then read it by rows where READ is 1.
 * ACCESS: independent, collective. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 10 };

static void check(int status, const char *what) {
    if (status == NC_NOERR) return;
    fprintf(stderr, "%s: %s\n", what, nc_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

static void write_file(const char *path, int steps, int access, int rank, int ranks) {
    int file, dims[3], time, field, total, fixed;
    CHECK(nc_create_par(path, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    CHECK(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    CHECK(nc_def_dim(file, "y", ROWS, &dims[1]));
    CHECK(nc_def_dim(file, "x", COLUMNS, &dims[2]));
    CHECK(nc_def_var(file, "time", NC_DOUBLE, 1, dims, &time));
    CHECK(nc_def_var(file, "field", NC_FLOAT, 3, dims, &field));
    CHECK(nc_def_var(file, "total", NC_INT, 2, dims, &total));
    CHECK(nc_def_var(file, "fixed", NC_SHORT, 2, dims + 1, &fixed));
    CHECK(nc_put_att_text(file, time, "units", 27, "hours since 2026-01-01 00:0"));
    CHECK(nc_put_att_text(file, field, "units", 1, "K"));
    CHECK(nc_enddef(file));
    CHECK(nc_var_par_access(file, time, NC_COLLECTIVE));
    CHECK(nc_var_par_access(file, field, NC_COLLECTIVE));
    CHECK(nc_var_par_access(file, total, NC_COLLECTIVE));
    if (access == NC_INDEPENDENT) {
        /* A record variable can only be extended by collective writes in a file on disk: here by its last record. */
        float values[ROWS * COLUMNS] = {0};
        size_t start[3] = {(size_t)steps - 1, 0, 0}, count[3] = {1, ROWS, COLUMNS};
        CHECK(nc_put_vara_float(file, field, start, count, values));
        CHECK(nc_var_par_access(file, field, NC_INDEPENDENT));
    }
    size_t first = (size_t)(COLUMNS * rank / ranks), columns = (size_t)(COLUMNS * (rank + 1) / ranks) - first;
    short shorts[ROWS * COLUMNS];
    for (size_t at = 0; at < ROWS * columns; at++) shorts[at] = (short)(at / columns * 100 + first + at % columns);
    size_t place[2] = {0, first}, extent[2] = {ROWS, columns};
    CHECK(nc_put_vara_short(file, fixed, place, extent, shorts));
    for (int step = 0; step < steps; step++) {
        float values[ROWS * COLUMNS];
        for (size_t row = 0; row < ROWS; row++)
            for (size_t column = 0; column < columns; column++)
                values[row * columns + column] = (float)(step * 1000 + (int)row * 100 + (int)(first + column));
        size_t start[3] = {(size_t)step, 0, first}, count[3] = {1, ROWS, columns}, one = rank == 0 ? 1 : 0;
        double hours = step * 6.0;
        int sums[ROWS];
        for (int row = 0; row < ROWS; row++) sums[row] = step + row;
        size_t sum_start[2] = {(size_t)step, 0}, sum_count[2] = {one, ROWS};
        CHECK(nc_put_vara_double(file, time, start, &one, &hours));
        CHECK(nc_put_vara_float(file, field, start, count, values));
        CHECK(nc_put_vara_int(file, total, sum_start, sum_count, sums));
    }
    CHECK(nc_close(file));
}

static void read_file(const char *path, int steps, int rank, int ranks) {
    int file, field, fixed, dim;
    size_t length;
    CHECK(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    CHECK(nc_inq_varid(file, "field", &field));
    CHECK(nc_inq_varid(file, "fixed", &fixed));
    CHECK(nc_inq_dimid(file, "time", &dim));
    CHECK(nc_inq_dimlen(file, dim, &length));
    if ((int)length != steps) check(NC_EINVAL, "the number of records");
    size_t first = (size_t)(ROWS * rank / ranks), rows = (size_t)(ROWS * (rank + 1) / ranks) - first;
    for (int step = 0; step < steps; step++) {
        double values[ROWS * COLUMNS];
        size_t start[3] = {(size_t)step, first, 0}, count[3] = {1, rows, COLUMNS};
        CHECK(nc_get_vara_double(file, field, start, count, values));
        for (size_t at = 0; at < rows * COLUMNS; at++)
            if (values[at] != (double)(step * 1000 + (int)(first + at / COLUMNS) * 100 + (int)(at % COLUMNS)))
                check(NC_EINVAL, "a value of the field");
    }
    size_t start[2] = {first, 1}, count[2] = {rows, COLUMNS / 2};
    ptrdiff_t stride[2] = {1, 2};
    int values[ROWS * COLUMNS];
    CHECK(nc_get_vars_int(file, fixed, start, count, stride, values));
    for (size_t at = 0; at < rows * (COLUMNS / 2); at++)
        if (values[at] != (int)((first + at / (COLUMNS / 2)) * 100 + at % (COLUMNS / 2) * 2 + 1))
            check(NC_EINVAL, "a value of the fixed variable");
    CHECK(nc_close(file));
}

int main(int argc, char **argv) {
    int rank, ranks;
    if (argc != 5) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(argv[4], "1") != 0)
        write_file(argv[1], atoi(argv[2]), strcmp(argv[3], "collective") == 0 ? NC_COLLECTIVE : NC_INDEPENDENT, rank, ranks);
    else
        read_file(argv[1], atoi(argv[2]), rank, ranks);
    MPI_Finalize();
    return 0;
}
