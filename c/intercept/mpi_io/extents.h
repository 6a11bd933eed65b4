/* What a rank wrote: extents of a file that do not overlap, where later writes replace earlier ones. */
#ifndef JUNCTURA_MPI_IO_EXTENTS_H
#define JUNCTURA_MPI_IO_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Extents that a file of one rank may have: 1.5 GiB of memory. */
#define JMPI_EXTENTS_MAX ((size_t)1 << 26)

typedef struct byte_extent {
    uint64_t offset, bytes;
    const unsigned char *data; /* NULL: zeros */
} byte_extent;

/* Sorted by offset. */
typedef struct extent_list {
    byte_extent *items;
    size_t count, room;
} extent_list;

/* Appends an extent behind all others, and joins it with the last one where the data are contiguous, too. False where
 * there is no memory. */
bool jmpi_append(extent_list *list, uint64_t offset, uint64_t bytes, const unsigned char *data);

/* Sorts extents in the order in which they were written; later ones replace earlier ones where they overlap. */
bool jmpi_settle(extent_list *written);

/* Extents of both lists; `newer` replaces `older` where they overlap. Both are consumed, also where it fails. */
bool jmpi_overlay(extent_list *older, extent_list *newer, extent_list *out);

/* Removes what is at `size` or behind it. */
void jmpi_cut(extent_list *list, uint64_t size);

/* The first extent that ends behind an offset. */
size_t jmpi_extent_from(const extent_list *list, uint64_t offset);

/* The end of the last extent; 0 of an empty list. */
uint64_t jmpi_end(const extent_list *list);
uint64_t jmpi_total(const extent_list *list);

void jmpi_extents_free(extent_list *list);

#endif
