/* Files that several ranks of MPI write together. */
#ifndef JUNCTURA_NETCDF_PARALLEL_H
#define JUNCTURA_NETCDF_PARALLEL_H

#include "steps.h"

/* Joins the ranks of a communicator, whose number is that of C. Collective. */
int parallel_begin(OpenFile *file, MpiHandle communicator);

/* Takes the values of a call. Collective where the access of the variable is. */
int parallel_put(const DataCall *call);

/* Offers all that the ranks wrote. Collective. */
int parallel_flush(OpenFile *file);

/* Whether this rank offers what all have in common: definitions and state. */
bool parallel_is_first(const OpenFile *file);

/* Waits for all ranks. */
void parallel_wait(const OpenFile *file);

/* Leaves the communicator. Collective. */
void parallel_end(OpenFile *file);

/* Sets the access of a variable, or of all variables: NC_INDEPENDENT or NC_COLLECTIVE. */
int parallel_access(OpenFile *file, int group, int id, int access);

/* The element type of a variable's arrays in pieces. */
const char *parallel_type(const FileVariable *variable);

/* Returns the handle in C of a communicator, and of an info object, of Fortran. */
MpiHandle parallel_of_fortran(int communicator);
MpiHandle parallel_info_of_fortran(int info);

#endif
