/* Conversion of values between netCDF types, with the rules of libnetcdf. */
#ifndef JUNCTURA_NETCDF_CONVERT_H
#define JUNCTURA_NETCDF_CONVERT_H

#include <stdbool.h>
#include <stddef.h>

#include "netcdf_api.h"

/* Returns the bytes of a value of a type, 0 for a type that is not intercepted. A NC_STRING is a pointer. */
size_t convert_size(nc_type type);

/* Returns the name of a type for arrays in a pool, such as "f4"; NULL for NC_STRING and for a type that is not
 * intercepted. */
const char *convert_name(nc_type type);

/* Copies `count` values from `source` to `target`, whose neighbours are `source_step` and `target_step` values apart.
 * Returns NC_NOERR; NC_ERANGE where a value is out of range of the target's type, after all values were converted;
 * NC_ECHAR where one type is text and the other is not. `loose`: a NC_BYTE takes any unsigned char, as in classic files.
 * Texts are copied, those that the target had are freed if `owned`. */
int convert_run(nc_type from, const void *source, ptrdiff_t source_step, nc_type to, void *target, ptrdiff_t target_step,
                size_t count, bool loose, bool owned);

#endif
