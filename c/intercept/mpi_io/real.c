#include "real.h"

#include <stddef.h>

real_functions jmpi_real;

static const char *const names[] = {
#define JMPI_NAME(name) "PMPI_" #name,
    JMPI_FUNCTIONS(JMPI_NAME)
#undef JMPI_NAME
};

/* Only Open MPI has this symbol. */
static bool is_this_family(void) {
    bool is_open = jmpi_constant("ompi_mpi_comm_world") != NULL;
#ifdef OPEN_MPI
    return is_open;
#else
    return !is_open;
#endif
}

bool jmpi_find_functions(void) {
    if (!is_this_family())
        return false;
    unsigned char *places = (unsigned char *)&jmpi_real;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!jmpi_next(names[i], places + i * sizeof(void *)))
            return false;
    return true;
}
