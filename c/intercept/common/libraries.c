/* Finds functions: the next definition of an interposed one, and those of the C library of Junctura. */
#define _GNU_SOURCE
#include "intercept.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *library;
    char path[PATH_MAX];
} LoadedLibrary;

static AnyFunction as_function(void *address) {
    AnyFunction function;
    memcpy(&function, &address, sizeof function);
    return function;
}

static int is_library(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    LoadedLibrary *wanted = context;
    const char *name = info->dlpi_name ? info->dlpi_name : "", *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    if (strncmp(name, wanted->library, strlen(wanted->library)) != 0) return 0;
    snprintf(wanted->path, sizeof wanted->path, "%s", info->dlpi_name);
    return 1;
}

AnyFunction intercept_next(const char *function, const char *library) {
    void *address = dlsym(RTLD_NEXT, function);
    if (!address) {
        /* A library that was loaded by dlopen is not among those behind this one. */
        LoadedLibrary wanted = {library, ""};
        if (dl_iterate_phdr(is_library, &wanted)) {
            void *handle = dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
            if (handle) address = dlsym(handle, function);
        }
    }
    return as_function(address);
}

/* Its address tells where this library was loaded from. */
static const char place;

static void *load_junctura(void) {
    static const char *const names[] = {"libjunctura.so.0", "libjunctura_c.so"};
    Dl_info here;
    char path[PATH_MAX];
    const char *slash = dladdr(&place, &here) && here.dli_fname ? strrchr(here.dli_fname, '/') : NULL;
    for (size_t at = 0; slash && at < sizeof names / sizeof *names; at++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, names[at]);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
    }
    return dlopen(names[0], RTLD_NOW | RTLD_LOCAL);
}

AnyFunction intercept_junctura(const char *function) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *library;
    pthread_mutex_lock(&lock);
    if (!library) library = load_junctura();
    void *address = library ? dlsym(library, function) : NULL;
    pthread_mutex_unlock(&lock);
    if (!library) intercept_say_once("cannot load the library of Junctura: %s", dlerror());
    else if (!address) intercept_say_once("the library of Junctura has no %s: it is of another version", function);
    return as_function(address);
}
