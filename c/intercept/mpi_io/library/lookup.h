/* Finds functions and constants of the MPI library that the program has loaded. Knows no header of MPI. */
#ifndef JUNCTURA_MPI_IO_LOOKUP_H
#define JUNCTURA_MPI_IO_LOOKUP_H

#include <stdbool.h>

/* Puts the address of the function that would be called without this library into the pointer at `place`. */
bool jmpi_next(const char *name, void *place);

/* The same for a function whose name ends with _c: where the MPI library has no large counts, the function without this
 * ending, and `is_narrow` is true. */
bool jmpi_next_of_counts(const char *name, void *place, bool *is_narrow);

/* The address of a symbol of the MPI library; NULL where it has none. */
void *jmpi_constant(const char *name);

#endif
