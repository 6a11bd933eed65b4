/* Ranks of MPI that pass one value each. `split`: ranks 1 and up have a communicator of their own, in reverse order. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "catalyst.h"

int main(int count, char **words) {
    int rank, split = count > 1 && strcmp(words[1], "split") == 0;
    conduit_node *node = conduit_node_create();
    double value;

    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* What launchers set must not be needed. */
    unsetenv("OMPI_COMM_WORLD_RANK"), unsetenv("PMI_RANK"), unsetenv("PMIX_RANK"), unsetenv("SLURM_PROCID");
    if (split) {
        MPI_Comm half;

        MPI_Comm_split(MPI_COMM_WORLD, rank > 0, -rank, &half);
        conduit_node_set_path_int64(node, "catalyst/mpi_comm", MPI_Comm_c2f(half));
    }
    if (split && rank == 0)
        conduit_node_set_path_char8_str(node, "catalyst/junctura/case", "alone");
    else
        conduit_node_set_path_char8_str(node, "catalyst/junctura/case", "solver");
    catalyst_initialize(node);
    conduit_node_destroy(node);
    node = conduit_node_create();
    value = rank;
    conduit_node_set_path_external_float64_ptr(node, "catalyst/channels/grid/data/fields/rank/values", &value, 1);
    catalyst_execute(node);
    catalyst_finalize(node);
    conduit_node_destroy(node);
    MPI_Finalize();
    return 0;
}
