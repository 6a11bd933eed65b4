/* What benches/intercept_mpi.py measures. Prints the seconds of the slowest rank.
 * mpi_io write|read SIZE NAME: an array of SIZE x SIZE doubles by columns, or by rows.
 * mpi_io small CALLS NAME: writes of 8 bytes.
 * mpi_io rows ROWS NAME: ROWS rows of as many doubles as there are ranks, by columns; prints the seconds of
 * MPI_File_set_view and of the whole. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void access_array(const char *what, int size, MPI_File *file, double *data, int elements, int along) {
    int sizes[2] = {size, size}, counts[2] = {size, size}, starts[2] = {0, 0};
    MPI_Datatype box;
    starts[along] = (int)((long)size * rank / ranks);
    counts[along] = (int)((long)size * (rank + 1) / ranks) - starts[along];
    MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &box);
    MPI_Type_commit(&box);
    MPI_File_set_view(*file, 0, MPI_DOUBLE, box, "native", MPI_INFO_NULL);
    if (*what == 'w')
        MPI_File_write_all(*file, data, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);
    else
        MPI_File_read_all(*file, data, elements, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_Type_free(&box);
}

/* Each rank has one element of each row: as many runs of 8 bytes as there are rows. */
static int write_rows(int rows, const char *name) {
    int sizes[2] = {rows, ranks}, counts[2] = {rows, 1}, starts[2] = {0, rank};
    double *data = calloc((size_t)rows, sizeof *data), own[2], most[2];
    MPI_Datatype box;
    MPI_File file;
    MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_DOUBLE, &box);
    MPI_Type_commit(&box);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    double plan = MPI_Wtime();
    MPI_File_set_view(file, 0, MPI_DOUBLE, box, "native", MPI_INFO_NULL);
    own[0] = MPI_Wtime() - plan;
    MPI_File_write_all(file, data, rows, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    own[1] = MPI_Wtime() - start;
    MPI_Reduce(own, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f %.9f\n", most[0], most[1]);
    free(data);
    MPI_Finalize();
    return 0;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* An access that fails takes no time. */
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    const char *what = words[1];
    if (!strcmp(what, "rows"))
        return write_rows(atoi(words[2]), words[3]);
    int size = atoi(words[2]), is_small = !strcmp(what, "small");
    int mine = is_small ? 1 : (int)((long)size * (rank + 1) / ranks) - (int)((long)size * rank / ranks);
    size_t elements = is_small ? 1 : (size_t)mine * (size_t)size;
    double *data = malloc(elements * sizeof *data), most;
    MPI_File file;
    for (size_t i = 0; i < elements; i++)
        data[i] = (double)i;
    int amode = *what == 'r' ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (MPI_File_open(MPI_COMM_WORLD, words[3], amode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (is_small)
        for (int i = 0; i < size; i++)
            MPI_File_write_at(file, i * 8L, data, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
    else
        access_array(what, size, &file, data, (int)elements, *what == 'w');
    MPI_File_close(&file);
    double own = MPI_Wtime() - start;
    MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f\n", most);
    free(data);
    MPI_Finalize();
    return 0;
}
