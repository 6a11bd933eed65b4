/* Boxes of indices. A box minus another is at most two boxes for each dimension. */
#include "boxes.h"

#include <stdlib.h>
#include <string.h>

static bool append(BoxList *list, uint64_t rank, size_t piece, const uint64_t *start, const uint64_t *count) {
    for (size_t at = 0; at < list->dims; at++)
        if (count[at] == 0) return true;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        IndexBox *grown = realloc(list->boxes, room * sizeof *grown);
        if (!grown) return false;
        list->boxes = grown;
        list->room = room;
    }
    uint64_t *numbers = malloc((2 * list->dims + 1) * sizeof *numbers);
    if (!numbers) return false;
    memcpy(numbers, start, list->dims * sizeof *numbers);
    memcpy(numbers + list->dims, count, list->dims * sizeof *numbers);
    list->boxes[list->count++] = (IndexBox){rank, piece, numbers, numbers + list->dims};
    return true;
}

static bool overlap(size_t dims, const uint64_t *start, const uint64_t *count, const IndexBox *box) {
    for (size_t at = 0; at < dims; at++)
        if (start[at] >= box->start[at] + box->count[at] || box->start[at] >= start[at] + count[at]) return false;
    return true;
}

/* Appends the parts of a box that are outside of another, which it overlaps. The box is cut down to the common part. */
static bool append_outside(BoxList *list, const IndexBox *box, const uint64_t *start, const uint64_t *count) {
    for (size_t at = 0; at < list->dims; at++) {
        uint64_t first = box->start[at], length = box->count[at], end = first + length, other_end = start[at] + count[at];
        bool is_added = true;
        if (first < start[at]) {
            box->count[at] = start[at] - first;
            is_added = append(list, box->rank, box->piece, box->start, box->count);
            box->start[at] = first = start[at];
        }
        if (is_added && end > other_end) {
            box->start[at] = other_end;
            box->count[at] = end - other_end;
            is_added = append(list, box->rank, box->piece, box->start, box->count);
            box->start[at] = first;
            end = other_end;
        }
        box->count[at] = end - first;
        if (!is_added) return false;
    }
    return true;
}

/* Removes from all boxes what a box covers. */
static bool cut(BoxList *list, const uint64_t *start, const uint64_t *count) {
    size_t known = list->count, kept = 0;
    bool is_done = true;
    for (size_t at = 0; at < known; at++) {
        IndexBox box = list->boxes[at];
        if (!is_done || !overlap(list->dims, start, count, &box)) {
            list->boxes[kept++] = box;
            continue;
        }
        is_done = append_outside(list, &box, start, count);
        free(box.start);
    }
    size_t added = list->count - known;
    memmove(list->boxes + kept, list->boxes + known, added * sizeof *list->boxes);
    list->count = kept + added;
    return is_done;
}

bool boxes_add(BoxList *list, uint64_t rank, size_t piece, const uint64_t *start, const uint64_t *count) {
    for (size_t at = 0; at < list->dims; at++)
        if (count[at] == 0) return true;
    return cut(list, start, count) && append(list, rank, piece, start, count);
}

bool boxes_complete(BoxList *list, const uint64_t *shape, uint64_t rank, size_t piece) {
    BoxList missing = {list->dims, 0, 0, NULL};
    uint64_t *zeros = calloc(list->dims + 1, sizeof *zeros);
    bool is_done = zeros && append(&missing, rank, piece, zeros, shape);
    for (size_t at = 0; is_done && at < list->count; at++)
        is_done = cut(&missing, list->boxes[at].start, list->boxes[at].count);
    for (size_t at = 0; is_done && at < missing.count; at++)
        is_done = append(list, rank, piece, missing.boxes[at].start, missing.boxes[at].count);
    free(zeros);
    boxes_free(&missing);
    return is_done;
}

void boxes_free(BoxList *list) {
    for (size_t at = 0; at < list->count; at++) free(list->boxes[at].start);
    free(list->boxes);
}
