/* Memory for data of the program. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "intercept.h"

void *intercept_memory(size_t bytes) {
    const size_t page = (size_t)2 << 20;
    if (bytes < 2 * page || bytes > SIZE_MAX - page) return malloc(bytes ? bytes : 1);
    size_t whole = (bytes + page - 1) / page * page;
    void *data = aligned_alloc(page, whole);
    if (data) madvise(data, whole, MADV_HUGEPAGE);
    return data;
}
