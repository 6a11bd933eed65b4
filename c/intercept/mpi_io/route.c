#include "route.h"
#include "../common/intercept.h"

#include <stdlib.h>
#include <string.h>

/* Messages have fewer bytes than an int counts. */
#define MESSAGE_BYTES ((uint64_t)1 << 30)

/* An extent that is sent; the data of all of them follow each other. */
typedef struct sent_extent {
    uint64_t offset, bytes, period;
} sent_extent;

/* What one rank sends to another. */
typedef struct rank_parcel {
    uint64_t entries, bytes;
    sent_extent *table;
    unsigned char *data;
} rank_parcel;

/* Periods of this rank, the oldest first. */
static const file_period **periods_of(const open_file *file, size_t *count) {
    size_t all = 0;
    for (const file_period *each = file->period; each; each = each->next)
        all++;
    const file_period **sorted = calloc(all + 1, sizeof *sorted);
    *count = all;
    for (const file_period *each = file->period; sorted && each; each = each->next)
        sorted[--all] = each;
    return sorted;
}

/* Counts what goes to each rank; fills tables and data where there is memory for them. */
static void divide(const file_period *const *periods, size_t count, uint64_t size, uint64_t block, rank_parcel *to,
                   bool is_filled) {
    for (size_t period = 0; period < count; period++) {
        const extent_list *list = &periods[period]->extents;
        for (size_t i = 0; i < list->count; i++) {
            uint64_t offset = list->items[i].offset, end = offset + list->items[i].bytes;
            end = end < size ? end : size;
            while (offset < end) {
                uint64_t owner = offset / block, next = (owner + 1) * block, until = next < end ? next : end;
                rank_parcel *parcel = &to[owner];
                if (is_filled) {
                    const unsigned char *data = list->items[i].data;
                    parcel->table[parcel->entries] = (sent_extent){offset, until - offset, periods[period]->number};
                    if (data)
                        memcpy(parcel->data + parcel->bytes, data + (offset - list->items[i].offset), until - offset);
                    else
                        memset(parcel->data + parcel->bytes, 0, until - offset);
                }
                parcel->entries++;
                parcel->bytes += until - offset;
                offset = until;
            }
        }
    }
}

static bool make_room(rank_parcel *parcels, int ranks) {
    for (int rank = 0; rank < ranks; rank++) {
        rank_parcel *one = &parcels[rank];
        if (one->entries == 0)
            continue;
        if (one->entries > SIZE_MAX / sizeof *one->table)
            return false;
        one->table = malloc((size_t)one->entries * sizeof *one->table);
        one->data = intercept_memory((size_t)one->bytes);
        if (!one->table || !one->data)
            return false;
    }
    return true;
}

static void free_parcels(rank_parcel *parcels, int ranks) {
    for (int rank = 0; parcels && rank < ranks; rank++) {
        free(parcels[rank].table);
        free(parcels[rank].data);
    }
    free(parcels);
}

/* Requests of one rank to one other at a time are few: parcels are sent in turns, rank r to r + 1, r + 2, ... */
static int begin(bool is_sent, void *data, uint64_t bytes, int rank, int tag, const open_file *file, MPI_Request *to,
                 int *count) {
    int error = MPI_SUCCESS;
    for (uint64_t at = 0; at < bytes && !error; at += MESSAGE_BYTES) {
        int length = (int)(bytes - at < MESSAGE_BYTES ? bytes - at : MESSAGE_BYTES);
        unsigned char *from = (unsigned char *)data + at;
        error = is_sent ? jmpi_real.Isend(from, length, MPI_BYTE, rank, tag, file->comm, &to[(*count)++])
                        : jmpi_real.Irecv(from, length, MPI_BYTE, rank, tag, file->comm, &to[(*count)++]);
    }
    return error;
}

static int send_parcels(const open_file *file, rank_parcel *sent, rank_parcel *received) {
    int error = MPI_SUCCESS;
    for (int turn = 1; turn < file->ranks && !error; turn++) {
        int to = (file->rank + turn) % file->ranks, from = (file->rank + file->ranks - turn) % file->ranks, count = 0;
        rank_parcel *out = &sent[to], *in = &received[from];
        uint64_t out_table = out->entries * sizeof *out->table, in_table = in->entries * sizeof *in->table;
        size_t messages = 4 + (size_t)((out_table + out->bytes + in_table + in->bytes) / MESSAGE_BYTES);
        MPI_Request *requests = calloc(messages, sizeof *requests);
        MPI_Status *statuses = calloc(messages, sizeof *statuses);
        if (!requests || !statuses)
            error = MPI_ERR_NO_MEM;
        error = error ? error : begin(false, in->table, in_table, from, 0, file, requests, &count);
        error = error ? error : begin(false, in->data, in->bytes, from, 1, file, requests, &count);
        error = error ? error : begin(true, out->table, out_table, to, 0, file, requests, &count);
        error = error ? error : begin(true, out->data, out->bytes, to, 1, file, requests, &count);
        error = error ? error : jmpi_real.Waitall(count, requests, statuses);
        free(requests);
        free(statuses);
    }
    return error;
}

/* Extents of a period follow those of the period before in each table. `next` and `data` are zeros, one for each rank. */
static void apply(rank_parcel *parcels, int ranks, uint64_t periods, uint64_t first, uint64_t *next, uint64_t *data,
                  unsigned char *mine) {
    for (uint64_t period = 0; period < periods; period++) {
        for (int rank = 0; rank < ranks; rank++) {
            const rank_parcel *one = &parcels[rank];
            while (next[rank] < one->entries && one->table[next[rank]].period == period) {
                const sent_extent *extent = &one->table[next[rank]++];
                memcpy(mine + (extent->offset - first), one->data + data[rank], extent->bytes);
                data[rank] += extent->bytes;
            }
        }
    }
}

int jmpi_route(const open_file *file, uint64_t size, uint64_t block, unsigned char *mine) {
    size_t count;
    const file_period **periods = periods_of(file, &count);
    rank_parcel *sent = calloc((size_t)file->ranks, sizeof *sent), *received = calloc((size_t)file->ranks, sizeof *sent);
    uint64_t *numbers = calloc((size_t)file->ranks, 6 * sizeof *numbers), *theirs = numbers + 2 * file->ranks;
    uint64_t agreed[1], *next = theirs + 2 * file->ranks;
    bool is_good = periods && sent && received && numbers;
    if (is_good) {
        divide(periods, count, size, block, sent, false);
        is_good = make_room(sent, file->ranks);
        for (int rank = 0; rank < file->ranks; rank++) {
            numbers[2 * rank] = sent[rank].entries;
            numbers[2 * rank + 1] = sent[rank].bytes;
            sent[rank].entries = sent[rank].bytes = 0;
        }
    }
    if (is_good)
        divide(periods, count, size, block, sent, true);
    /* No rank waits for one that has no memory. */
    agreed[0] = !is_good;
    int error = jmpi_greatest(file, agreed, 1);
    error = error ? error : agreed[0] ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (!error)
        error = jmpi_real.Alltoall(numbers, 2, MPI_UINT64_T, theirs, 2, MPI_UINT64_T, file->comm);
    if (!error) {
        for (int rank = 0; rank < file->ranks; rank++)
            if (rank != file->rank)
                received[rank].entries = theirs[2 * rank], received[rank].bytes = theirs[2 * rank + 1];
        uint64_t no_memory = !make_room(received, file->ranks);
        error = jmpi_greatest(file, &no_memory, 1);
        error = error ? error : no_memory ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    if (!error)
        error = send_parcels(file, sent, received);
    if (!error) {
        rank_parcel own = received[file->rank];
        received[file->rank] = sent[file->rank];
        sent[file->rank] = own;
        apply(received, file->ranks, file->periods_ended + 1, (uint64_t)file->rank * block, next, next + file->ranks, mine);
    }
    free_parcels(sent, file->ranks);
    free_parcels(received, file->ranks);
    free(numbers);
    free(periods);
    return error;
}
