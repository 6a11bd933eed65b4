/* Recognizes memory of a GPU, which the processor must not read. */
#ifndef JUNCTURA_GPU_MEMORY_H
#define JUNCTURA_GPU_MEMORY_H

#include <stdbool.h>

/* Returns whether an address is memory of a GPU. Only a program that has loaded the driver of CUDA or the runtime of HIP has
 * such memory; memory that they manage for both sides can be read, and counts as memory of the host. */
bool gpu_memory_is(const void *address);

#endif
