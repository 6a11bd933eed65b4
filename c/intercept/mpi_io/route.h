/* Sends extents to the ranks that own their places in the file. */
#ifndef JUNCTURA_MPI_IO_ROUTE_H
#define JUNCTURA_MPI_IO_ROUTE_H

#include "file.h"

/* Each rank owns `block` bytes of the file, in the order of ranks. Writes into `mine` what all ranks wrote there: the
 * periods in their order, in each of them the ranks in theirs. The class of an error. */
int jmpi_route(const open_file *file, uint64_t size, uint64_t block, unsigned char *mine);

#endif
