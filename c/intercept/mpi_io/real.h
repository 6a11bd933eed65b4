/* The functions and constants of the MPI library that the program uses. They are looked up while it runs: the library
 * that is preloaded is not linked with MPI, so that programs without MPI start as fast as before, and so that it finds
 * a library that was loaded later, such as that of mpi4py. */
#ifndef JUNCTURA_MPI_IO_REAL_H
#define JUNCTURA_MPI_IO_REAL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "lookup.h"

/* Constants of Open MPI are addresses in its library. */
#ifdef OMPI_PREDEFINED_GLOBAL
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)jmpi_constant(#global))
#define JMPI_FAMILY "Open MPI"
#else
#define JMPI_FAMILY "MPICH"
#endif

/* Handles are pointers or integers: see calls.c. */
#define JMPI_HANDLE(type, value) ((type)(intptr_t)(value))

#define JMPI_FUNCTIONS(X) \
    X(Comm_dup) X(Comm_free) X(Comm_rank) X(Comm_size) X(Comm_group) X(Barrier) X(Bcast) X(Allreduce) X(Allgather) \
    X(Allgatherv) X(Alltoall) X(Isend) X(Irecv) X(Waitall) X(Type_size_x) X(Type_get_extent_x) X(Type_get_envelope) \
    X(Type_get_contents) X(Type_dup) X(Type_free) X(Status_set_elements_x) X(Status_set_cancelled) X(Grequest_start) \
    X(Grequest_complete) X(Info_create) X(Info_dup) X(Info_free) X(Add_error_code) X(Add_error_string) \
    X(Add_error_class) X(File_open) X(File_close) X(File_set_view) X(File_write_at) X(File_set_atomicity) X(File_call_errhandler) \
    X(Finalized)

#define JMPI_MEMBER(name) __typeof__(&PMPI_##name) name;
typedef struct real_functions {
    JMPI_FUNCTIONS(JMPI_MEMBER)
} real_functions;
#undef JMPI_MEMBER

extern real_functions jmpi_real;

/* Looks all functions up, once. False where the program's MPI is of another family, or has not all of them. */
bool jmpi_find_functions(void);

#endif
