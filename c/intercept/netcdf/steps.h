/* Writing: records are gathered and offered step by step. */
#ifndef JUNCTURA_NETCDF_STEPS_H
#define JUNCTURA_NETCDF_STEPS_H

#include "open_file.h"

/* One call of nc_put_* or nc_get_*, with all numbers stated. */
typedef struct {
    OpenFile *file;
    FileVariable *variable;
    const size_t *start;
    const size_t *count;
    const ptrdiff_t *stride;
    const ptrdiff_t *map;
    nc_type type;
    void *memory;
} DataCall;

/* Takes the values of a call. The bounds are valid. */
int steps_put(const DataCall *call);

/* Offers all that was written, also in part. */
int steps_flush(OpenFile *file);

/* Offers the definitions where they have changed, before the first data with the state. */
int steps_announce(OpenFile *file);

/* Returns the record that is being written, NULL where there is none. */
OpenRecord *steps_find(const FileVariable *variable, size_t record);

/* Returns the elements of a record. Those that were not written have fill values from then on. */
void *steps_data(const FileVariable *variable, OpenRecord *record);

/* Returns the attributes of a record of a variable, of this shape; they are the variable's. */
jct_attributes_t *steps_describe(OpenFile *file, FileVariable *variable, size_t record, const size_t *shape);

/* Offers objects of renamed variables under their new names. */
int steps_rename(OpenFile *file);

/* Keeps the value of a coordinate variable for the attribute `time` of a record. */
int steps_set_time(OpenFile *file, const FileVariable *variable, size_t record, double value);

/* Offers the state of the file: whether it is closed, and the lengths of its unlimited dimensions. In the bundle of a
 * pipeline unless `members` is NULL. */
int steps_offer_state(OpenFile *file, jct_pipeline_t *members, bool is_closed);

#endif
