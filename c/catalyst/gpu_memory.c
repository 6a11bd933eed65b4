#define _GNU_SOURCE
#include "gpu_memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

/* CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) */
typedef int pointer_attribute(void *, int, uint64_t);

enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };
enum { TYPE_DEVICE = 2 };

static pointer_attribute *of_driver(void) {
    static pointer_attribute *function;

    if (!function) {
        /* Loaded by the program, or not at all. */
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *found;

        found = driver ? dlsym(driver, "cuPointerGetAttribute") : NULL;
        memcpy(&function, &found, sizeof found);
    }
    return function;
}

bool gpu_memory_is(const void *address) {
    pointer_attribute *ask = of_driver();
    uint64_t type = 0, managed = 0;

    if (!ask || !address || ask(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)address) != 0)
        return false;
    if ((uint32_t)type != TYPE_DEVICE)
        return false;
    return ask(&managed, IS_MANAGED, (uint64_t)(uintptr_t)address) != 0 || (managed & 0xff) == 0;
}
