/* Boxes of indices: cutting what others cover. */
#ifndef JUNCTURA_NETCDF_BOXES_H
#define JUNCTURA_NETCDF_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A box, and what it belongs to. `start` is followed by `count` in one allocation. */
typedef struct {
    uint64_t rank;
    size_t piece;
    uint64_t *start, *count;
} IndexBox;

typedef struct {
    size_t dims, count, room;
    IndexBox *boxes;
} BoxList;

/* Adds a box; what it covers of earlier ones is cut out of them. False without memory. */
bool boxes_add(BoxList *list, uint64_t rank, size_t piece, const uint64_t *start, const uint64_t *count);

/* Adds boxes of a rank for all indices of a shape that no box covers. `piece` marks them. */
bool boxes_complete(BoxList *list, const uint64_t *shape, uint64_t rank, size_t piece);

void boxes_free(BoxList *list);

#endif
