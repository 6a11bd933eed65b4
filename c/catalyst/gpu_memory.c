#define _GNU_SOURCE
#include "gpu_memory.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) */
typedef int pointer_attribute(void *, int, uint64_t);

enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };
enum { TYPE_DEVICE = 2 };

/* hipPointerAttribute_t. Releases give other numbers to types of memory, so that the pointers decide. */
struct hip_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
    /* Of releases to come. */
    void *more[8];
};

/* hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr) */
typedef int hip_pointer_attributes(struct hip_attributes *, const void *);
/* hipError_t hipPeekAtLastError(void), hipError_t hipGetLastError(void) */
typedef int hip_error(void);

static pointer_attribute *cuda_ask;
static hip_pointer_attributes *hip_ask;
static hip_error *hip_peek, *hip_take;
/* How many libraries had been loaded when the functions were looked for. */
static unsigned long long libraries;

static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof found);
}

/* Libraries that the program has loaded; empty where it has not. */
struct loaded {
    unsigned long long libraries;
    char cuda[4096], hip[4096];
};

static void keep_if_named(char *place, size_t room, const char *path, const char *begin) {
    const char *slash = strrchr(path, '/');

    if (strncmp(slash ? slash + 1 : path, begin, strlen(begin)) == 0 && strlen(path) < room)
        strcpy(place, path);
}

static int look(struct dl_phdr_info *info, size_t size, void *context) {
    struct loaded *loaded = context;

    (void)size;
    loaded->libraries = info->dlpi_adds;
    /* The same libraries as before. */
    if (info->dlpi_adds == libraries)
        return 1;
    keep_if_named(loaded->cuda, sizeof loaded->cuda, info->dlpi_name, "libcuda.so");
    keep_if_named(loaded->hip, sizeof loaded->hip, info->dlpi_name, "libamdhip64.so");
    return 0;
}

/* Finds the functions of libraries that were loaded since the last call. `dlopen` by their names would read folders for each
 * that is not loaded. */
static void find_all(void) {
    struct loaded loaded;
    void *library;

    loaded.cuda[0] = loaded.hip[0] = 0;
    if (dl_iterate_phdr(look, &loaded) == 1)
        return;
    libraries = loaded.libraries;
    if (*loaded.cuda && (library = dlopen(loaded.cuda, RTLD_LAZY | RTLD_NOLOAD))) {
        find(library, "cuPointerGetAttribute", &cuda_ask);
        dlclose(library);
    }
    if (*loaded.hip && (library = dlopen(loaded.hip, RTLD_LAZY | RTLD_NOLOAD))) {
        find(library, "hipPointerGetAttributes", &hip_ask);
        find(library, "hipPeekAtLastError", &hip_peek);
        find(library, "hipGetLastError", &hip_take);
        dlclose(library);
    }
}

static bool is_cuda_memory(const void *address) {
    uint64_t type = 0, managed = 0;

    if (!cuda_ask || cuda_ask(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)address) != 0)
        return false;
    if ((uint32_t)type != TYPE_DEVICE)
        return false;
    return cuda_ask(&managed, IS_MANAGED, (uint64_t)(uintptr_t)address) != 0 || (managed & 0xff) == 0;
}

static bool is_hip_memory(const void *address) {
    struct hip_attributes attributes;
    bool had_error;

    if (!hip_ask)
        return false;
    memset(&attributes, 0, sizeof attributes);
    /* For memory of the host, the call can leave an error, which the program would take for one of its own. */
    had_error = hip_peek && hip_peek() != 0;
    if (hip_ask(&attributes, address) != 0) {
        if (hip_peek && hip_take && !had_error)
            hip_take();
        return false;
    }
    return attributes.device_pointer && !attributes.host_pointer && !attributes.is_managed;
}

bool gpu_memory_is(const void *address) {
    if (!address)
        return false;
    find_all();
    return is_cuda_memory(address) || is_hip_memory(address);
}
