/* What the environment asks for. */
#ifndef JUNCTURA_MPI_IO_SETTINGS_H
#define JUNCTURA_MPI_IO_SETTINGS_H

#include <stdbool.h>

typedef enum file_mode { MODE_FILE, MODE_ARRAY, MODE_BYTES } file_mode;

/* Whether JUNCTURA_MPI_IO has a rule at all. */
bool jmpi_is_wanted(void);

/* The mode of a file by the first rule of JUNCTURA_MPI_IO that matches it; MODE_FILE without one. */
file_mode jmpi_mode_of(const char *path);
const char *jmpi_mode_name(file_mode mode);

/* Seconds that a reader waits for a file, and a writer until its readers have an earlier file of the same name:
 * JUNCTURA_MPI_IO_TIMEOUT. Negative: without limit. */
double jmpi_timeout(void);

/* Options of offers, such as "retention=released:2": JUNCTURA_MPI_IO_RETENTION. */
const char *jmpi_offer_options(void);

#endif
