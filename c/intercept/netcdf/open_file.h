/* Files that are intercepted: what is known of each, its dimensions and its variables. */
#ifndef JUNCTURA_NETCDF_OPEN_FILE_H
#define JUNCTURA_NETCDF_OPEN_FILE_H

#include <pthread.h>
#include <sys/types.h>

#include "../common/intercept.h"
#include "map/mapping.h"
#include "pool_calls.h"
#include "slab.h"

/* The real function of a name. */
#define REAL(name)                                                              \
    __extension__({                                                             \
        static AnyFunction real_;                                               \
        if (!real_) real_ = real_function(#name);                               \
        (__typeof__(&name))real_;                                               \
    })

/* Calls the real function. libnetcdf calls its own functions by their names: those calls are not intercepted. */
#define CALL(name, ...)                        \
    __extension__({                            \
        real_depth++;                          \
        int status_ = REAL(name)(__VA_ARGS__); \
        real_depth--;                          \
        status_;                               \
    })

extern _Thread_local int real_depth;

/* Ends the program where libnetcdf has no such function. */
AnyFunction real_function(const char *name);

typedef enum { MODE_POOL, MODE_TEE } FileMode;

typedef struct {
    int id;
    /* With the names of its groups: "ocean/time". */
    char *name;
    /* The length that this program sees, and the one that the pool states. */
    size_t length, published;
    /* Values of its coordinate variable, NaN where none is known, and their unit. */
    double *times;
    size_t time_count;
    char units[256];
} UnlimitedDim;

/* A record, or a variable without records, that is being written. */
typedef struct OpenRecord {
    size_t record;
    /* Of this process, or of an allocation in the pool: see steps_data. */
    void *data;
    jct_allocation_t *allocation;
    size_t elements;
    /* Extents; those of further unlimited dimensions grow. */
    size_t *shape;
    /* One bit for each element, where it was written in parts. */
    unsigned char *bits;
    size_t written;
    /* Elements that were not written have no value yet. */
    bool has_gaps;
    /* An earlier version is in the pool. */
    bool is_again;
    struct OpenRecord *next;
} OpenRecord;

/* A part of a record that one rank writes. */
typedef struct RankPiece {
    size_t record;
    /* Collective calls of the file before: pieces of a later turn replace those of earlier ones. */
    int64_t turn;
    size_t *start, *count;
    void *data;
    struct RankPiece *next;
} RankPiece;

typedef struct {
    int group, id;
    /* With the names of its groups. */
    char *name;
    nc_type type;
    size_t dims;
    int *dimids;
    /* Of a record, or of the whole variable. 0 for unlimited dimensions. */
    size_t record_dims;
    size_t *shape;
    bool *grows;
    bool has_growing;
    /* The unlimited dimension in the first place; -1: it has no records. */
    int record_dim;
    bool is_handled;
    char fill[8];
    jct_attributes_t *attributes;
    bool has_time;
    unsigned checked_generation;
    nc_type checked_type;
    OpenRecord *open;
    RankPiece *pieces;
    bool is_collective;
    /* Elements of a record that all ranks have written. */
    size_t counted_record;
    int64_t counted;
    /* One behind the last record that was offered; 1 for a variable without records. */
    size_t offered;
    /* The schema of its objects, NULL for netcdf, and the options of their offers: as of the definitions when they were
     * checked. */
    const char *schema;
    char *options;
    unsigned mapped_generation;
    /* The dimensions of a record along which it is divided into objects. */
    bool *is_divided_by, is_divided;
    enum { ARRAY_UNKNOWN, ARRAY_YES, ARRAY_NO } array_attributes;
    /* A schema that refuses a second object of a key has no epochs. */
    bool has_no_epoch;
    /* Of a reader: the schema of its objects, as the state of the file gives it; NULL for netcdf. */
    char *elsewhere;
    /* What nc_get read last. */
    jct_object_t *held;
    void *held_copy;
    size_t *held_shape;
    size_t held_elements;
    size_t held_record;
    bool is_held, is_held_missing, is_in_pieces;
} FileVariable;

typedef struct ParallelFile ParallelFile;

/* Values of a coordinate variable without records. */
typedef struct {
    int dimid;
    double *values;
    size_t count;
} CoordinateValues;

typedef struct {
    int ncid;
    FileMode mode;
    bool is_written;
    /* The definitions are also written to the path, for programs that look for the file before they open it. */
    bool has_stub;
    /* The definitions come from the pool. */
    bool is_read;
    char *path, *folder, *name;
    FileReport *report;
    /* The file that the real library has open; -1 in the mode tee. */
    int image;
    int format;
    bool is_classic;
    bool is_defining, is_new;
    /* Definitions changed since they were offered. */
    bool is_dirty, is_announced, is_final_only;
    unsigned generation, loaded_generation;
    size_t dims;
    UnlimitedDim *unlimited;
    size_t variable_count;
    FileVariable *variables;
    size_t coordinate_count;
    CoordinateValues *coordinates;
    size_t last_found;
    pid_t owner;
    /* Of a reader: the writer. */
    char *writer;
    jct_follow_t *states;
    jct_subscription_t *departures;
    bool is_complete, is_gone, is_checked;
    ParallelFile *parallel;
    MapRules *map;
} OpenFile;

/* Returns the file of an identifier, or of one of its groups; NULL where it is not intercepted. */
OpenFile *file_of(int ncid);

/* Registers a file, and removes it. */
void file_add(OpenFile *file);
void file_remove(OpenFile *file);

/* Makes a file for a path; NULL without memory. `word` is the mode in the report. */
OpenFile *file_new(const char *path, FileMode mode, const char *word);
void file_free(OpenFile *file);

/* Reads dimensions and variables from the real library, where definitions have changed. */
int file_load(OpenFile *file);

/* Returns a variable, after file_load; NULL where there is none. */
FileVariable *file_variable(OpenFile *file, int group, int id);

/* Forgets what nc_get read last. */
void file_forget_held(FileVariable *variable);

/* Returns an unlimited dimension; NULL where it is none. */
UnlimitedDim *file_unlimited(OpenFile *file, int id);

/* Sets the attributes that are in the key of every object of the file. */
void file_key(const OpenFile *file, jct_attributes_t *attributes, const char *name);

/* Returns the attributes of a variable's objects, without those of a record. */
jct_attributes_t *file_attributes(OpenFile *file, FileVariable *variable);

/* Writes a selector of the objects of the file with a name into a text that the caller frees. NULL: all names. */
char *file_selector(const OpenFile *file, const char *name);

/* Finds the text for a word in braces of the mapping file: the name of a variable or of the file, or an attribute. */
bool file_look_up(const OpenFile *file, const FileVariable *variable, const char *word, char *text, size_t room);

/* Reads an attribute of a variable as a text into `text`; false where it has none. Numbers are written out. */
bool file_text_attribute(int group, int id, const char *name, char *text, size_t room);

#endif
