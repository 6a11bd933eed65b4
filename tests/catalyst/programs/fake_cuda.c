/* A CUDA driver of one function: addresses from 0x7000000000000000 are memory of a GPU, those from 0x7100000000000000
 * memory that CUDA manages. */
#include <stdint.h>

int cuPointerGetAttribute(void *data, int attribute, uint64_t address);

int cuPointerGetAttribute(void *data, int attribute, uint64_t address) {
    /* CUDA_ERROR_INVALID_VALUE: memory that the driver does not know. */
    if (address < 0x7000000000000000)
        return 1;
    if (attribute == 2)
        *(unsigned int *)data = 2;
    else if (attribute == 8)
        *(unsigned char *)data = address >= 0x7100000000000000;
    return 0;
}
