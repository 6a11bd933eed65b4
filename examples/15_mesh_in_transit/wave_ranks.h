/* Ranks of the solver: with MPI where it is compiled with WAVE_MPI, else one. */
#ifndef WAVE_RANKS_H
#define WAVE_RANKS_H

#include <stdint.h>

void ranks_begin(int *count, char ***words, int *rank, int *ranks);
/* The Fortran handle of the communicator of all ranks. */
int64_t ranks_communicator(void);
/* Exchanges the outer planes of a slab with the neighbors. */
void ranks_exchange(double *slab, int64_t plane, int64_t planes);
void ranks_end(void);

#endif
