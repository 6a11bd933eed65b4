/* Times of the CF conventions: a number of units since a moment, such as "hours since 2026-11-29 00:00:00". */
#ifndef JUNCTURA_NETCDF_CF_TIME_H
#define JUNCTURA_NETCDF_CF_TIME_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    /* Seconds since 1970-01-01 00:00 UTC. */
    double base;
    double seconds_in_unit;
} CfTime;

/* Reads the units of a time. False where they are none: months and years have no fixed length. */
bool cf_time_read(const char *units, CfTime *time);

/* Whether the days of a calendar are those of the Gregorian one. */
bool cf_time_is_gregorian(const char *calendar);

/* Writes a moment by a format of strftime, in UTC; false where the text is too long or empty. */
bool cf_time_write(double seconds, const char *format, char *text, size_t room);

/* Returns the seconds of a unit, such as "hours"; 0 where it is none. */
double cf_time_unit(const char *unit);

#endif
