#include "extents.h"

#include <stdlib.h>

void jmpi_extents_free(extent_list *list) {
    free(list->items);
    *list = (extent_list){0};
}

bool jmpi_append(extent_list *list, uint64_t offset, uint64_t bytes, const unsigned char *data) {
    if (bytes == 0)
        return true;
    byte_extent *last = list->count ? &list->items[list->count - 1] : NULL;
    if (last && last->offset + last->bytes == offset &&
        (data ? last->data && last->data + last->bytes == data : !last->data)) {
        last->bytes += bytes;
        return true;
    }
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 8;
        byte_extent *grown = room > JMPI_EXTENTS_MAX ? NULL : realloc(list->items, room * sizeof *grown);
        if (!grown)
            return false;
        list->items = grown;
        list->room = room;
    }
    list->items[list->count++] = (byte_extent){.offset = offset, .bytes = bytes, .data = data};
    return true;
}

static uint64_t end_of(const byte_extent *extent) { return extent->offset + extent->bytes; }

/* Appends what an extent has from `from` up to `to`. */
static bool append_part(extent_list *list, const byte_extent *extent, uint64_t from, uint64_t to) {
    return from >= to ||
           jmpi_append(list, from, to - from, extent->data ? extent->data + (from - extent->offset) : NULL);
}

bool jmpi_overlay(extent_list *older, extent_list *newer, extent_list *out) {
    extent_list made = {0};
    bool is_good = true;
    size_t old = 0;
    uint64_t from = 0; /* the old extents are needed from here on */
    if (older->count == 0 || newer->count == 0) {
        made = older->count ? *older : *newer;
        *(older->count ? older : newer) = (extent_list){0};
    } else {
        for (size_t new = 0; new < newer->count && is_good; new++) {
            const byte_extent *next = &newer->items[new];
            while (is_good && old < older->count && older->items[old].offset < next->offset) {
                const byte_extent *one = &older->items[old];
                uint64_t start = one->offset > from ? one->offset : from;
                uint64_t end = end_of(one) < next->offset ? end_of(one) : next->offset;
                is_good = append_part(&made, one, start, end);
                if (end_of(one) > next->offset)
                    break;
                old++;
            }
            is_good = is_good && jmpi_append(&made, next->offset, next->bytes, next->data);
            from = end_of(next);
            while (old < older->count && end_of(&older->items[old]) <= from)
                old++;
        }
        for (; old < older->count && is_good; old++) {
            const byte_extent *one = &older->items[old];
            is_good = append_part(&made, one, one->offset > from ? one->offset : from, end_of(one));
        }
    }
    jmpi_extents_free(older);
    jmpi_extents_free(newer);
    if (!is_good)
        jmpi_extents_free(&made);
    *out = made;
    return is_good;
}

/* Sorts `count` extents as a merge sort does, where a merge replaces what overlaps. */
static bool settle(const byte_extent *written, size_t count, extent_list *out) {
    *out = (extent_list){0};
    size_t sorted = count ? 1 : 0;
    while (sorted < count && end_of(&written[sorted - 1]) <= written[sorted].offset)
        sorted++;
    if (sorted == count) {
        for (size_t i = 0; i < count; i++)
            if (!jmpi_append(out, written[i].offset, written[i].bytes, written[i].data))
                return false;
        return true;
    }
    extent_list first, second = {0};
    size_t middle = count / 2;
    if (!settle(written, middle, &first) || !settle(written + middle, count - middle, &second)) {
        jmpi_extents_free(&first);
        jmpi_extents_free(&second);
        return false;
    }
    return jmpi_overlay(&first, &second, out);
}

bool jmpi_settle(extent_list *written) {
    size_t sorted = 1;
    while (sorted < written->count && end_of(&written->items[sorted - 1]) <= written->items[sorted].offset)
        sorted++;
    if (sorted >= written->count)
        return true;
    extent_list made;
    bool is_good = settle(written->items, written->count, &made);
    if (!is_good)
        jmpi_extents_free(&made);
    jmpi_extents_free(written);
    *written = made;
    return is_good;
}

void jmpi_cut(extent_list *list, uint64_t size) {
    while (list->count && list->items[list->count - 1].offset >= size)
        list->count--;
    if (list->count && jmpi_end(list) > size)
        list->items[list->count - 1].bytes = size - list->items[list->count - 1].offset;
}

size_t jmpi_extent_from(const extent_list *list, uint64_t offset) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_of(&list->items[middle]) <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t jmpi_end(const extent_list *list) { return list->count ? end_of(&list->items[list->count - 1]) : 0; }

uint64_t jmpi_total(const extent_list *list) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += list->items[i].bytes;
    return bytes;
}
