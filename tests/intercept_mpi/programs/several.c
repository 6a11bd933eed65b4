/* Several files that are open at once: of all ranks, of a half of them, of one. several write|read */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 6, ROWS = 4, COLUMNS = 12, STEPS = 3 };

static void must(int is_true, const char *what, int at) {
    if (is_true) return;
    fprintf(stderr, "failed: %s of file %d\n", what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* File 0 and 1: arrays of columns; 2: bytes in steps; 3: an ordinary file; 4: of a half of the ranks; 5: of each rank. */
static const char *const names[FILES] = {"first.array", "second.array", "steps.bytes", "plain.dat", "half%d.array", "own%d.bytes"};

static int value(int file, int step, int element) { return file * 1000000 + step * 10000 + element; }

static void run(int is_writer) {
    int rank, ranks, half;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm halves;
    MPI_Comm_split(MPI_COMM_WORLD, half = rank % 2, rank, &halves);
    MPI_Comm of[FILES] = {MPI_COMM_WORLD, MPI_COMM_WORLD, MPI_COMM_WORLD, MPI_COMM_WORLD, halves, MPI_COMM_SELF};
    MPI_File files[FILES];
    MPI_Datatype boxes[FILES];
    int columns[FILES], first[FILES];
    int mode = is_writer ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    for (int at = 0; at < FILES; at++) {
        char name[64];
        int own, all;
        MPI_Comm_rank(of[at], &own);
        MPI_Comm_size(of[at], &all);
        snprintf(name, sizeof name, names[at], at == 4 ? half : rank);
        must(MPI_File_open(of[at], name, mode, MPI_INFO_NULL, &files[at]) == MPI_SUCCESS, "open", at);
        first[at] = COLUMNS * own / all;
        columns[at] = COLUMNS * (own + 1) / all - first[at];
        int sizes[2] = {ROWS, COLUMNS}, counts[2] = {ROWS, columns[at]}, starts[2] = {0, first[at]};
        MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_INT, &boxes[at]);
        MPI_Type_commit(&boxes[at]);
        must(MPI_File_set_view(files[at], 0, MPI_INT, boxes[at], "native", MPI_INFO_NULL) == MPI_SUCCESS, "view", at);
    }
    /* An array has one step, bytes have several. The files take turns. */
    for (int step = 0; step < STEPS; step++) {
        int values[FILES][ROWS * COLUMNS];
        MPI_Request request = MPI_REQUEST_NULL;
        for (int at = 0; at < FILES; at++) {
            if (step > 0 && (at < 2 || at == 4)) continue;
            int count = ROWS * columns[at];
            for (int element = 0; is_writer && element < count; element++) {
                int row = element / columns[at], column = first[at] + element % columns[at];
                values[at][element] = value(at, step, row * COLUMNS + column);
            }
            int failed;
            if (at == 2) {
                failed = is_writer ? MPI_File_iwrite_all(files[at], values[at], count, MPI_INT, &request)
                                   : MPI_File_iread_all(files[at], values[at], count, MPI_INT, &request);
            } else {
                failed = is_writer ? MPI_File_write_all(files[at], values[at], count, MPI_INT, MPI_STATUS_IGNORE)
                                   : MPI_File_read_all(files[at], values[at], count, MPI_INT, MPI_STATUS_IGNORE);
            }
            must(!failed, "transfer", at);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int at = 0; !is_writer && at < FILES; at++) {
            if (step > 0 && (at < 2 || at == 4)) continue;
            for (int element = 0; element < ROWS * columns[at]; element++) {
                int row = element / columns[at], column = first[at] + element % columns[at];
                must(values[at][element] == value(at, step, row * COLUMNS + column), "value", at);
            }
        }
    }
    static const int order[FILES] = {2, 0, 5, 3, 4, 1};
    for (int at = 0; at < FILES; at++) {
        must(MPI_File_close(&files[order[at]]) == MPI_SUCCESS, "close", order[at]);
        MPI_Type_free(&boxes[order[at]]);
    }
    MPI_Comm_free(&halves);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    if (count == 2) run(strcmp(words[1], "write") == 0);
    MPI_Finalize();
    return count == 2 ? 0 : 2;
}
