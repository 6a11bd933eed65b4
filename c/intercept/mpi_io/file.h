/* A file of MPI that is in the pool: what the program did with it since it was opened. */
#ifndef JUNCTURA_MPI_IO_FILE_H
#define JUNCTURA_MPI_IO_FILE_H

#include "data/claims.h"
#include "data/extents.h"
#include "data/flatten.h"
#include "library/settings.h"
#include "source.h"

#include <pthread.h>

/* A view; accesses that were not carried out yet keep the view that they were made through. */
typedef struct file_view {
    int users;
    uint64_t displacement, etype_bytes, data_bytes; /* of an element of the filetype */
    bool is_flat;
    flat_type flat; /* see jmpi_flatten_view */
    array_claim claim;
    MPI_Datatype etype, filetype; /* duplicates, for get_view */
    char representation[MPI_MAX_DATAREP_STRING + 1];
} file_view;

/* One write: the data are kept until the file is complete. */
typedef struct written_record {
    file_view *view;
    uint64_t from, bytes; /* of the view's data */
    unsigned char *data;
    array_claim claim;
    struct written_record *next;
} written_record;

/* What was written between two calls of MPI_File_sync. */
typedef struct file_period {
    uint64_t number; /* the same on all ranks */
    extent_list extents;
    struct file_period *next; /* the one before */
} file_period;

/* Memory of data, freed with the file. */
typedef struct kept_memory {
    unsigned char *data;
    struct kept_memory *next;
} kept_memory;

/* Objects whose payloads are read until the file is closed. */
typedef struct held_object {
    jct_object_t *object;
    struct held_object *next;
} held_object;

typedef struct open_file {
    MPI_File handle; /* of a scratch file, which the program gets: functions that are not intercepted have a valid one */
    MPI_File real;   /* where has_moved: the file that all calls go to since the pool could not have it */
    MPI_Comm comm;
    int rank, ranks, amode;
    char *path, *folder, *name;
    file_mode mode;
    bool has_moved, is_atomic, is_split;
    uint64_t split_bytes;
    pthread_mutex_t lock;

    file_view *view;
    uint64_t position; /* elements of the view */
    object_source *base; /* what was in the pool when the file was opened */
    bool base_is_own;    /* it is the array that was offered since */
    uint64_t base_bytes; /* those that were not cut off since */

    written_record *first, *last; /* writes that are not in `period` yet */
    uint64_t writes, written_bytes, read_bytes;
    file_period *period;   /* what this rank wrote, the newest first */
    uint64_t periods_ended;
    extent_list seen;      /* what this rank reads besides `base`: all of `period`, and of other ranks what was synced */
    kept_memory *memory;
    bool has_size;
    uint64_t size_at_least; /* as set_size and preallocate state it, and as all ranks agreed at the last sync */

    /* An array that was offered with a collective write. */
    bool has_tried, is_offered, is_late, must_be_whole;
    jct_layout_t *layout;
    array_claim *claims; /* room for those of all ranks */
    char type[8];
    int dimensions;
    uint64_t shape[JMPI_DIMENSIONS_MAX];
    file_view *offered_view; /* this rank's piece is `offered_mine` bytes of the view's data */
    uint64_t offered_from, offered_mine, offered_bytes, offered_until; /* of all ranks; as set_size cut it */

    /* What ranks wrote before MPI_File_sync, until the file is closed. */
    jct_bundle_t *synced;
    char exchanged_in[160];
    uint64_t syncs, syncs_received;
    held_object *held;
    struct open_file *next;
} open_file;

/* The file of a handle; NULL for one that is not in the pool. */
open_file *jmpi_find(const void *handle);
void jmpi_add(open_file *file);
void jmpi_remove(open_file *file);

/* Frees what a file has. The handle is closed by the caller. */
void jmpi_file_free(open_file *file);

/* Views */
int jmpi_view_new(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char *representation,
                  file_view **out);
void jmpi_view_free(file_view *view);
/* Takes the filetype apart, before runs of the view are needed: arrays are exchanged without. The class of an error. */
int jmpi_flatten_view(file_view *view);
/* The offset in the file of a byte of the view's data. */
uint64_t jmpi_view_offset(const file_view *view, uint64_t byte);

/* Puts all writes into the current period. MPI_SUCCESS, or the class of an error. */
int jmpi_settle_writes(open_file *file);
/* The current period; NULL where there is no memory. */
file_period *jmpi_period(open_file *file);

/* Appends the extents of one write, in the order of its data. False where there is no memory. */
bool jmpi_append_record(extent_list *to, const written_record *record);

/* Keeps memory until the file is closed, and frees it even where this fails. */
bool jmpi_keep(open_file *file, unsigned char *data);

/* The size of the file as this rank knows it. */
uint64_t jmpi_size_of(const open_file *file);

/* The greatest of the numbers of all ranks. */
int jmpi_greatest(const open_file *file, uint64_t *numbers, int count);

/* An error of MPI with the text of an error of the pool; prints it on standard error, too. */
int jmpi_error_of(const open_file *file, const char *call, int code);
/* As that, for an error that is found here. */
int jmpi_error(const open_file *file, int class, const char *call, const char *text);

#endif
