/* Variables that the mapping file sends to another schema than netcdf: one object for each record, or for each index of the
 * dimensions whose values are among its attributes. */
#ifndef JUNCTURA_NETCDF_MAPPED_H
#define JUNCTURA_NETCDF_MAPPED_H

#include "../steps.h"

/* Finds the schema of a variable's objects, and checks the lines of the mapping file that apply to it: once for each state of
 * the definitions. A line that cannot be used is named on standard error. */
int mapped_check(OpenFile *file, FileVariable *variable);

/* Checks all variables. */
int mapped_check_all(OpenFile *file);

/* Keeps the values of a coordinate variable without records, of `count` elements. */
int mapped_note(OpenFile *file, const FileVariable *variable, const void *data, size_t count);

/* Returns the attributes of an object, which the caller frees: of a record with this shape, at the indices of the divided
 * dimensions. `status` states why there are none. */
jct_attributes_t *mapped_describe(OpenFile *file, FileVariable *variable, size_t record, const size_t *shape,
                                  const size_t *index, int *status);

/* Offers a record of a variable, or stages it in a bundle unless that is NULL; counts the bytes in the report. */
int mapped_offer(OpenFile *file, FileVariable *variable, const OpenRecord *record, jct_bundle_t *bundle);

/* The status of a variable whose objects netCDF does not read, after a message that names their schema. */
int mapped_refuse(const OpenFile *file, const FileVariable *variable);

#endif
