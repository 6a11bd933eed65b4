/* Writes an array by columns, or reads it by rows and counts the elements that differ.
 * grid write NAME | grid read NAME... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 60, COLUMNS = 48 };

static int rank, ranks;

/* The part of a dimension that this rank has. */
static int part(int size, int *start) {
    int rest = size % ranks;
    *start = rank * (size / ranks) + (rank < rest ? rank : rest);
    return size / ranks + (rank < rest);
}

static MPI_File file_of(const char *name, int amode, int *counts, int *starts) {
    int sizes[2] = {ROWS, COLUMNS};
    MPI_Datatype box;
    MPI_File file;
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &box);
    MPI_Type_commit(&box);
    MPI_File_set_view(file, 0, MPI_DOUBLE, box, "native", MPI_INFO_NULL);
    MPI_Type_free(&box);
    return file;
}

static void write_columns(const char *name) {
    int counts[2] = {ROWS, 0}, starts[2] = {0, 0};
    counts[1] = part(COLUMNS, &starts[1]);
    double *mine = malloc(sizeof *mine * (size_t)(ROWS * counts[1] + 1));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < counts[1]; j++)
            mine[i * counts[1] + j] = i * COLUMNS + starts[1] + j;
    MPI_File file = file_of(name, MPI_MODE_CREATE | MPI_MODE_WRONLY, counts, starts);
    MPI_File_write_all(file, mine, ROWS * counts[1], MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    free(mine);
}

static int read_rows(const char *name) {
    int counts[2] = {0, COLUMNS}, starts[2] = {0, 0}, wrong = 0, all, count;
    counts[0] = part(ROWS, &starts[0]);
    double *mine = malloc(sizeof *mine * (size_t)(counts[0] * COLUMNS + 1));
    MPI_Status status;
    MPI_Offset size;
    MPI_File file = file_of(name, MPI_MODE_RDONLY, counts, starts);
    MPI_File_get_size(file, &size);
    MPI_File_read_all(file, mine, counts[0] * COLUMNS, MPI_DOUBLE, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    MPI_File_close(&file);
    wrong += size != ROWS * COLUMNS * 8 || count != counts[0] * COLUMNS;
    for (int i = 0; i < counts[0]; i++)
        for (int j = 0; j < COLUMNS; j++)
            wrong += mine[i * COLUMNS + j] != (starts[0] + i) * COLUMNS + j;
    free(mine);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 2; i < count; i++) {
        if (!strcmp(words[1], "write")) {
            write_columns(words[i]);
        } else {
            int wrong = read_rows(words[i]);
            if (rank == 0)
                printf("%s: %d wrong\n", words[i], wrong);
        }
    }
    MPI_Finalize();
    return 0;
}
