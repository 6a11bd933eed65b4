#include "wave_ranks.h"

#ifdef WAVE_MPI

#include <mpi.h>

static int mine, all;

void ranks_begin(int *count, char ***words, int *rank, int *ranks) {
    MPI_Init(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    *rank = mine, *ranks = all;
}

int64_t ranks_communicator(void) {
    return MPI_Comm_c2f(MPI_COMM_WORLD);
}

void ranks_exchange(double *slab, int64_t plane, int64_t planes) {
    int below = mine > 0 ? mine - 1 : MPI_PROC_NULL, above = mine + 1 < all ? mine + 1 : MPI_PROC_NULL, n = (int)plane;

    MPI_Sendrecv(slab + plane, n, MPI_DOUBLE, below, 0, slab + (planes - 1) * plane, n, MPI_DOUBLE, above, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(slab + (planes - 2) * plane, n, MPI_DOUBLE, above, 1, slab, n, MPI_DOUBLE, below, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

void ranks_end(void) {
    MPI_Finalize();
}

#else

void ranks_begin(int *count, char ***words, int *rank, int *ranks) {
    (void)count, (void)words;
    *rank = 0, *ranks = 1;
}

/* Nothing reads it without MPI. */
int64_t ranks_communicator(void) {
    return 0;
}

void ranks_exchange(double *slab, int64_t plane, int64_t planes) {
    (void)slab, (void)plane, (void)planes;
}

void ranks_end(void) {}

#endif
