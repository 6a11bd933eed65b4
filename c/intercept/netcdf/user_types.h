/* Variables of user-defined types in a file in the pool. Their values are part of the definitions. */
#ifndef JUNCTURA_NETCDF_USER_TYPES_H
#define JUNCTURA_NETCDF_USER_TYPES_H

#include "open_file.h"

/* Notes what the real library has written: the definitions are offered again, and unlimited dimensions may have grown. */
void user_types_written(OpenFile *file, const FileVariable *variable);

/* Gives unlimited dimensions of the definitions the lengths that the pool states, before the definitions are closed. */
int user_types_extend(OpenFile *file);

#endif
