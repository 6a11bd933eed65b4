/* The rank of this process and the number of ranks: Catalyst passes neither. */
#ifndef JUNCTURA_MPI_RANKS_H
#define JUNCTURA_MPI_RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds both, from the first of these that has them:
 * - MPI, where the program uses it: in `communicator`, the Fortran handle of `catalyst/mpi_comm`, where it has one, else
 *   in MPI_COMM_WORLD. Open MPI, MPICH and what is made of MPICH (Intel, Cray, MVAPICH).
 * - environment variables of launchers: mpirun, mpiexec, srun, flux.
 * A process that has neither is rank 0 of 1. */
void mpi_ranks_find(bool has_communicator, int64_t communicator, int64_t *rank, int64_t *ranks);

#endif
