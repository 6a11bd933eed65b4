/* A HIP runtime of three functions: addresses from 0x7000000000000000 are memory of a GPU, those from 0x7100000000000000
 * memory that HIP manages. It prints an error that a program would find after its end. */
#include <stdint.h>
#include <stdio.h>

struct attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
};

int hipPointerGetAttributes(struct attributes *attributes, const void *address);
int hipPeekAtLastError(void);
int hipGetLastError(void);

static int last_error;

int hipPointerGetAttributes(struct attributes *attributes, const void *address) {
    /* hipErrorInvalidValue: memory that the runtime does not know. */
    if ((uint64_t)(uintptr_t)address < 0x7000000000000000)
        return last_error = 1;
    attributes->type = 2;
    attributes->device_pointer = (void *)(uintptr_t)address;
    attributes->is_managed = (uint64_t)(uintptr_t)address >= 0x7100000000000000;
    return 0;
}

int hipPeekAtLastError(void) {
    return last_error;
}

int hipGetLastError(void) {
    int error = last_error;

    last_error = 0;
    return error;
}

__attribute__((destructor)) static void report(void) {
    if (last_error)
        fprintf(stderr, "fake HIP: the error %d is left\n", last_error);
}
