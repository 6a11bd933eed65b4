#define _GNU_SOURCE
#include "lookup.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The library of MPI by a handle of its own, for programs that load it so that its symbols are not global. */
static int find_library(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    if (!object->dlpi_name || !*object->dlpi_name)
        return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    /* Its own functions, not those of a library that it needs. */
    Dl_info where;
    void *function = dlsym(library, "PMPI_Init");
    if (function && dladdr(function, &where) && where.dli_fbase == (void *)object->dlpi_addr) {
        *(void **)found = library;
        return 1;
    }
    dlclose(library);
    return 0;
}

static void *mpi_library(void) {
    static void *library;
    if (!library)
        dl_iterate_phdr(find_library, &library);
    return library;
}

bool jmpi_next(const char *name, void *place) {
    void *address = dlsym(RTLD_NEXT, name);
    if (!address && mpi_library())
        address = dlsym(mpi_library(), name);
    memcpy(place, &address, sizeof address);
    return address != NULL;
}

bool jmpi_next_of_counts(const char *name, void *place, bool *is_narrow) {
    char plain[64];
    size_t letters = strlen(name);
    *is_narrow = false;
    if (jmpi_next(name, place))
        return true;
    if (letters < 3 || letters >= sizeof plain || strcmp(name + letters - 2, "_c"))
        return false;
    memcpy(plain, name, letters - 2);
    plain[letters - 2] = 0;
    *is_narrow = jmpi_next(plain, place);
    return *is_narrow;
}

static void *find_constant(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address && mpi_library())
        address = dlsym(mpi_library(), name);
    return address;
}

/* Constants that were found, by the address of the literal that names them. */
enum { FOUND_MAX = 512 };

void *jmpi_constant(const char *name) {
    static struct {
        const char *name;
        void *address;
    } found[FOUND_MAX];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    size_t place = ((uintptr_t)name / 4) % FOUND_MAX;
    pthread_mutex_lock(&lock);
    bool is_known = found[place].name == name;
    void *address = is_known ? found[place].address : find_constant(name);
    if (!is_known && address) {
        found[place].name = name;
        found[place].address = address;
    }
    pthread_mutex_unlock(&lock);
    return address;
}
