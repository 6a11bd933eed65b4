/* MPI_File_sync of a file that is read, too: each rank stages what it wrote in a bundle, which only these ranks read and
 * which the pool removes when they end, however they end. */
#define _GNU_SOURCE
#include "publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The payload: `count`, then for each extent its offset and bytes, then the data of all of them. */
static unsigned char *pack(const extent_list *list, size_t *bytes) {
    size_t head = (2 * list->count + 1) * sizeof(uint64_t);
    *bytes = head + (size_t)jmpi_total(list);
    unsigned char *packed = calloc(*bytes, 1);
    if (!packed)
        return NULL;
    uint64_t *numbers = (uint64_t *)(void *)packed;
    unsigned char *data = packed + head;
    *numbers++ = list->count;
    for (size_t i = 0; i < list->count; i++) {
        *numbers++ = list->items[i].offset;
        *numbers++ = list->items[i].bytes;
        if (list->items[i].data)
            memcpy(data, list->items[i].data, (size_t)list->items[i].bytes);
        data += list->items[i].bytes;
    }
    return packed;
}

/* The extents of a payload, whose data stay in its memory. */
static bool unpack(const unsigned char *packed, size_t bytes, extent_list *out) {
    uint64_t count, pair[2];
    *out = (extent_list){0};
    if (bytes < sizeof count)
        return false;
    memcpy(&count, packed, sizeof count);
    if (count > (bytes - sizeof count) / sizeof pair)
        return false;
    size_t at = sizeof count + (size_t)count * sizeof pair;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(pair, packed + sizeof count + i * sizeof pair, sizeof pair);
        if (pair[1] > bytes - at || !jmpi_append(out, pair[0], pair[1], packed + at))
            return false;
        at += (size_t)pair[1];
    }
    return true;
}

static jct_attributes_t *key_of_part(const open_file *file, uint64_t sync, int rank) {
    char name[64];
    snprintf(name, sizeof name, "sync %llu of rank %d", (unsigned long long)sync, rank);
    return jmpi_key_of(file->exchanged_in, name);
}

/* A path that no other file has. */
static int open_bundle(open_file *file) {
    if (file->synced)
        return JCT_OK;
    struct timespec now;
    char host[64] = "";
    if (file->rank == 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        gethostname(host, sizeof host - 1);
        snprintf(file->exchanged_in, sizeof file->exchanged_in, "mpi-io/%s.%ld.%lld.%ld", host, (long)getpid(),
                 (long long)now.tv_sec, now.tv_nsec);
    }
    if (jmpi_real.Bcast(file->exchanged_in, sizeof file->exchanged_in, MPI_BYTE, 0, file->comm))
        return JCT_IO;
    return jmpi_jct.jct_bundle_open(jmpi_pool(), file->exchanged_in, NULL, "schema=free", &file->synced);
}

static int stage(open_file *file) {
    const file_period *period = file->period;
    if (!period || period->number != file->periods_ended)
        return JCT_OK;
    size_t bytes;
    unsigned char *packed = pack(&period->extents, &bytes);
    jct_attributes_t *key = key_of_part(file, file->syncs, file->rank);
    int code = packed && key ? jmpi_jct.jct_bundle_offer(file->synced, key, packed, bytes, "schema=free")
                             : JCT_LIMIT_EXCEEDED;
    jmpi_jct.jct_attributes_free(key);
    free(packed);
    return code;
}

int jmpi_exchange(open_file *file) {
    int error = jmpi_settle_writes(file), code = JCT_OK;
    bool has_written = file->period && file->period->number == file->periods_ended;
    uint64_t agreed[4] = {(uint64_t)error, has_written, jmpi_size_of(file), file->is_late};
    error = jmpi_greatest(file, agreed, 4);
    if (error || agreed[0])
        return error ? error : MPI_ERR_NO_MEM;
    file->size_at_least = agreed[2];
    if (!agreed[1])
        return MPI_SUCCESS;
    if (!(file->amode & MPI_MODE_RDWR) || file->ranks == 1) {
        file->periods_ended++;
        return MPI_SUCCESS;
    }
    code = open_bundle(file);
    code = code ? code : stage(file);
    agreed[0] = (uint64_t)code;
    error = jmpi_greatest(file, agreed, 1);
    file->syncs++;
    file->periods_ended++;
    if (code)
        return jmpi_error_of(file, "MPI_File_sync", code);
    return error ? error : agreed[0] ? MPI_ERR_IO : MPI_SUCCESS;
}

static int receive_part(open_file *file, uint64_t sync, int rank) {
    jct_attributes_t *key = key_of_part(file, sync, rank);
    jct_object_t *object = NULL;
    int code = key ? jmpi_jct.jct_demand_key(jmpi_pool(), key, "schema=free,incomplete", 0, &object) : JCT_LIMIT_EXCEEDED;
    jmpi_jct.jct_attributes_free(key);
    if (code)
        return code == JCT_NOT_FOUND ? JCT_OK : code; /* the rank wrote nothing */
    held_object *held = malloc(sizeof *held);
    extent_list theirs;
    size_t bytes;
    const void *data = jmpi_jct.jct_object_data(object, &bytes);
    if (!held || !unpack(data, bytes, &theirs)) {
        free(held);
        jmpi_jct.jct_object_release(object);
        return JCT_LIMIT_EXCEEDED;
    }
    *held = (held_object){.object = object, .next = file->held};
    file->held = held;
    return jmpi_overlay(&file->seen, &theirs, &file->seen) ? JCT_OK : JCT_LIMIT_EXCEEDED;
}

/* What this rank wrote in the period that the call ended is put over what others wrote in it, only where it wrote later:
 * the periods of this rank are applied again in their order. */
static int see_period_again(open_file *file, uint64_t number) {
    for (const file_period *each = file->period; each; each = each->next) {
        if (each->number <= number)
            continue;
        extent_list copy = {0};
        for (size_t i = 0; i < each->extents.count; i++)
            if (!jmpi_append(&copy, each->extents.items[i].offset, each->extents.items[i].bytes,
                             each->extents.items[i].data))
                return JCT_LIMIT_EXCEEDED;
        if (!jmpi_overlay(&file->seen, &copy, &file->seen))
            return JCT_LIMIT_EXCEEDED;
    }
    return JCT_OK;
}

int jmpi_receive_exchanged(open_file *file) {
    int code = JCT_OK;
    if (file->syncs_received == file->syncs)
        return JCT_OK;
    uint64_t last = file->periods_ended;
    for (; file->syncs_received < file->syncs && !code; file->syncs_received++)
        for (int rank = 0; rank < file->ranks && !code; rank++)
            code = receive_part(file, file->syncs_received, rank);
    return code ? code : see_period_again(file, last ? last - 1 : 0);
}

void jmpi_forget_exchanged(open_file *file) {
    while (file->held) {
        held_object *held = file->held;
        file->held = held->next;
        jmpi_jct.jct_object_release(held->object);
        free(held);
    }
    jmpi_extents_free(&file->seen);
    if (file->synced) {
        if (file->rank == 0)
            jmpi_jct.jct_bundle_abort(file->synced);
        jmpi_jct.jct_bundle_close(file->synced);
        file->synced = NULL;
    }
}
