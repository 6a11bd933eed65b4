/* Writes files call by call. Rank 0 prints the name of each call before it, and waits for a line; so a test can end the
 * program between any two calls. steps NAME */
#include <mpi.h>
#include <stdio.h>

enum { NUMBERS = 4000 };

static int rank, ranks;

static void stop_before(const char *call) {
    char line[8];
    if (rank == 0) {
        puts(call);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int count, char **words) {
    static int numbers[NUMBERS];
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = rank * NUMBERS + i;
    stop_before("open");
    MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    stop_before("set_view");
    MPI_File_set_view(file, (MPI_Offset)rank * (MPI_Offset)sizeof numbers, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    stop_before("write_all");
    MPI_File_write_all(file, numbers, NUMBERS / 2, MPI_INT, MPI_STATUS_IGNORE);
    stop_before("sync");
    MPI_File_sync(file);
    stop_before("write_at");
    MPI_File_write_at(file, NUMBERS / 2, numbers + NUMBERS / 2, NUMBERS / 2, MPI_INT, MPI_STATUS_IGNORE);
    stop_before("close");
    MPI_File_close(&file);
    stop_before("finalize");
    MPI_Finalize();
    return 0;
}
