/* Reads runs of a file whose numbers are their places, and counts bytes that are wrong. runs NAME OFFSET BYTES ... */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    MPI_File file;
    long wrong = 0;
    MPI_Init(&count, &words);
    if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int word = 2; word + 1 < count; word += 2) {
        long offset = atol(words[word]), bytes = atol(words[word + 1]);
        unsigned char *data = malloc((size_t)bytes);
        MPI_Status status;
        int got;
        if (MPI_File_read_at(file, offset, data, (int)bytes, MPI_BYTE, &status))
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Get_count(&status, MPI_BYTE, &got);
        wrong += got != bytes;
        for (long at = offset; at < offset + got; at++)
            wrong += data[at - offset] != (unsigned char)((uint32_t)(at / 4) >> at % 4 * 8);
        free(data);
    }
    MPI_File_close(&file);
    printf("%ld wrong\n", wrong);
    MPI_Finalize();
    return 0;
}
