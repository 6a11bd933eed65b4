/* Writes or reads an array that is distributed over a grid of ranks in blocks, in either order of dimensions.
 * cyclic write|read NAME ROWS COLUMNS GRID_ROWS GRID_COLUMNS BLOCK C|F */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    int rank, ranks, size, wrong = 0, all, got = -1;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int sizes[2] = {atoi(words[3]), atoi(words[4])}, grid[2] = {atoi(words[5]), atoi(words[6])}, block = atoi(words[7]);
    int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, blocks[2] = {block, block};
    int is_fortran = *words[8] == 'F', is_write = *words[1] == 'w';
    MPI_Datatype type;
    MPI_Type_create_darray(ranks, rank, 2, sizes, kinds, blocks, grid, is_fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                           MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    int elements = size / (int)sizeof(int), next = 0, *mine = calloc((size_t)elements + 1, sizeof *mine);
    int *wanted = calloc((size_t)elements + 1, sizeof *wanted);
    /* Elements of this rank in the order of the file; the first dimension is the fastest in Fortran's. */
    int fast = is_fortran ? 0 : 1, slow = 1 - fast, place[2] = {rank / grid[1], rank % grid[1]};
    for (int i = 0; i < sizes[slow]; i++)
        for (int j = 0; j < sizes[fast]; j++)
            if (i / block % grid[slow] == place[slow] && j / block % grid[fast] == place[fast])
                wanted[next++] = i * sizes[fast] + j;
    if (next != elements)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_File file;
    MPI_Status status;
    int amode = is_write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    if (MPI_File_open(MPI_COMM_WORLD, words[2], amode, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
    if (is_write)
        MPI_File_write_all(file, wanted, elements, MPI_INT, &status);
    else
        MPI_File_read_all(file, mine, elements, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    wrong = got != elements;
    for (int i = 0; i < elements && !is_write; i++)
        wrong += mine[i] != wanted[i];
    if (MPI_File_close(&file))
        wrong++;
    MPI_Type_free(&type);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    free(mine);
    free(wanted);
    MPI_Finalize();
    return 0;
}
