/* Finds functions and constants of the MPI library that the program has loaded. Knows no header of MPI. */
#ifndef JUNCTURA_MPI_IO_LOOKUP_H
#define JUNCTURA_MPI_IO_LOOKUP_H

#include <stdbool.h>

/* Puts the address of the function that would be called without this library into the pointer at `place`. */
bool jmpi_next(const char *name, void *place);

/* The address of a symbol of the MPI library; NULL where it has none. */
void *jmpi_constant(const char *name);

#endif
