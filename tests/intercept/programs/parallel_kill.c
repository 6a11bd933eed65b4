/* A library that is loaded behind the preload library: it kills the rank KILLED_RANK before its collective call number KILLED_AT,
 * that is between any two steps of an offer. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

static void count_call(void) {
    static int calls;
    int rank = -1;
    const char *killed = getenv("KILLED_RANK"), *at = getenv("KILLED_AT");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (killed && at && rank == atoi(killed) && ++calls == atoi(at)) raise(SIGKILL);
}

int MPI_Allgather(const void *own, int count, MPI_Datatype type, void *all, int each, MPI_Datatype of_each, MPI_Comm ranks) {
    count_call();
    return PMPI_Allgather(own, count, type, all, each, of_each, ranks);
}

int MPI_Allgatherv(const void *own, int count, MPI_Datatype type, void *all, const int *counts, const int *places,
                   MPI_Datatype of_each, MPI_Comm ranks) {
    count_call();
    return PMPI_Allgatherv(own, count, type, all, counts, places, of_each, ranks);
}

int MPI_Barrier(MPI_Comm ranks) {
    count_call();
    return PMPI_Barrier(ranks);
}
