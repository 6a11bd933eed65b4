/* Reading: records are received when they are asked for. */
#ifndef JUNCTURA_NETCDF_READING_H
#define JUNCTURA_NETCDF_READING_H

#include "steps.h"

/* Gives values to a call of nc_get_*. Waits for records that the writer has not offered yet. The bounds are valid, except
 * that of the first dimension where it is unlimited. */
int reading_get(const DataCall *call);

/* Returns the status of the real library for a call beyond the extents, NC_NOERR for one inside. */
int reading_bounds(const DataCall *call);

/* Opens the streams that tell of the writer, and reads the state of the file. */
int reading_begin(OpenFile *file);

/* Waits until the writer has closed the file, so that the lengths of unlimited dimensions are final. */
int reading_complete(OpenFile *file);

/* Takes the newest state without waiting, and forgets what was read. */
int reading_refresh(OpenFile *file);

#endif
