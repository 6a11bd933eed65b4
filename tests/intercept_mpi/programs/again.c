/* Writes an array by one collective write, and then one element of it again, while the file is open. again NAME */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words) {
    enum { ROWS = 6, COLUMNS = 8 };
    int rank, ranks, late = -1, check = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int sizes[2] = {ROWS, COLUMNS}, counts[2] = {ROWS, COLUMNS / ranks}, starts[2] = {0, rank * (COLUMNS / ranks)};
    int *mine = malloc(sizeof *mine * (size_t)(counts[0] * counts[1] + 1));
    for (int i = 0; i < counts[0]; i++)
        for (int j = 0; j < counts[1]; j++)
            mine[i * counts[1] + j] = i * COLUMNS + starts[1] + j;
    MPI_Datatype box;
    MPI_File file;
    MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_INT, &box);
    MPI_Type_commit(&box);
    if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_view(file, 0, MPI_INT, box, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, mine, counts[0] * counts[1], MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    if (rank == ranks - 1)
        MPI_File_write_at(file, 3, &late, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    /* Every rank reads both what was written first and what was written later. */
    MPI_File_read_at(file, 3, &check, 1, MPI_INT, MPI_STATUS_IGNORE);
    if (check != -1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_File_read_at(file, 4, &check, 1, MPI_INT, MPI_STATUS_IGNORE);
    if (check != 4)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (MPI_File_close(&file))
        MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Type_free(&box);
    free(mine);
    MPI_Finalize();
    return 0;
}
