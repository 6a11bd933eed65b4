#define _GNU_SOURCE
#include "mpi_ranks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* MPICH's number for MPI_COMM_WORLD. */
#define MPICH_WORLD 0x44000000

typedef int flag_function(int *);
typedef int version_function(char *, int *);
typedef int number_by_pointer(void *, int *);
typedef int number_by_handle(int, int *);
typedef void *from_fortran(int);

static bool find(const char *name, void *function) {
    void *found = dlsym(RTLD_DEFAULT, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Open MPI has pointers for communicators, MPICH has numbers; the text of the version distinguishes them. */
static bool from_open_mpi(bool has_communicator, int communicator, int *rank, int *ranks) {
    number_by_pointer *rank_of, *size_of;
    from_fortran *handle_of;
    void *handle = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");

    if (has_communicator)
        handle = find("MPI_Comm_f2c", &handle_of) ? handle_of(communicator) : NULL;
    return handle && find("MPI_Comm_rank", &rank_of) && find("MPI_Comm_size", &size_of) &&
           rank_of(handle, rank) == 0 && size_of(handle, ranks) == 0;
}

static bool from_mpich(bool has_communicator, int communicator, int *rank, int *ranks) {
    number_by_handle *rank_of, *size_of;
    int handle = has_communicator ? communicator : MPICH_WORLD;

    return find("MPI_Comm_rank", &rank_of) && find("MPI_Comm_size", &size_of) && rank_of(handle, rank) == 0 &&
           size_of(handle, ranks) == 0;
}

static bool from_mpi(bool has_communicator, int communicator, int *rank, int *ranks) {
    flag_function *initialized, *finalized;
    version_function *version;
    char text[8192] = "";
    int flag = 0, length = 0;

    if (!find("MPI_Initialized", &initialized) || initialized(&flag) != 0 || !flag)
        return false;
    if (!find("MPI_Finalized", &finalized) || finalized(&flag) != 0 || flag)
        return false;
    /* MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, 8192 in MPICH. */
    if (!find("MPI_Get_library_version", &version) || version(text, &length) != 0)
        return false;
    text[sizeof text - 1] = 0;
    if (strstr(text, "Open MPI"))
        return from_open_mpi(has_communicator, communicator, rank, ranks);
    if (strstr(text, "MPICH") || strstr(text, "Intel(R) MPI") || strstr(text, "MVAPICH"))
        return from_mpich(has_communicator, communicator, rank, ranks);
    return false;
}

static bool number(const char *name, int64_t *value) {
    const char *text = getenv(name);
    char *end;

    if (!text || !*text)
        return false;
    *value = strtoll(text, &end, 10);
    return *end == 0 && *value >= 0;
}

static bool from_environment(int64_t *rank, int64_t *ranks) {
    /* SLURM_NTASKS is of the job: a program that srun has not started would be one of several. */
    static const char *const LAUNCHERS[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"},
        {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},   {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    };

    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++)
        if (number(LAUNCHERS[i][0], rank) && number(LAUNCHERS[i][1], ranks) && *rank < *ranks)
            return true;
    return false;
}

void mpi_ranks_find(bool has_communicator, int64_t communicator, int64_t *rank, int64_t *ranks) {
    int its_rank = 0, its_ranks = 1;

    if (from_mpi(has_communicator, (int)communicator, &its_rank, &its_ranks)) {
        *rank = its_rank, *ranks = its_ranks;
    } else if (!from_environment(rank, ranks)) {
        *rank = 0, *ranks = 1;
    }
}
