/* The definitions of a file as an object of the pool: an image of a netCDF file without the data of intercepted
 * variables. */
#ifndef JUNCTURA_NETCDF_DEFINITIONS_H
#define JUNCTURA_NETCDF_DEFINITIONS_H

#include "open_file.h"

/* The names of the objects that every file has besides its variables. No netCDF name begins with a dot. */
#define DEFINITIONS_NAME ".definitions"
#define STATE_NAME ".state"

/* Makes a file in memory and returns its descriptor, -1 where it fails; its path is written to `path`. Unlink it when the
 * real library has it open. */
int definitions_file(char *path, size_t room);

/* Offers the definitions of a file that is open, or was closed just now; a file whose variables are not all intercepted
 * offers them only when it `is_closed`. */
int definitions_offer(OpenFile *file, bool is_closed);

/* Waits for the definitions of a file, and writes them to its image. Returns a status. */
int definitions_receive(OpenFile *file);

/* Returns a definitions-only copy of the open file `ncid` in a new file in memory: its descriptor; -1 where it fails. */
int definitions_copy(int ncid, int format, const char *of);

#endif
