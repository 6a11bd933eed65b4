#include "settings.h"
#include "../common/intercept.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const modes[] = {"file", "array", "bytes", NULL};
static FileRules rules;
static double timeout = -1;
static char options[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_timeout(void) {
    const char *text = getenv("JUNCTURA_MPI_IO_TIMEOUT");
    char *end;
    if (!text || !*text)
        return;
    timeout = strtod(text, &end);
    if (*end || !(timeout >= 0)) {
        intercept_say("JUNCTURA_MPI_IO_TIMEOUT=%s is no number of seconds: readers wait for ever", text);
        timeout = -1;
    }
}

static void read_settings(void) {
    intercept_begin("mpiio");
    rules = intercept_rules("JUNCTURA_MPI_IO", modes);
    read_timeout();
    const char *retention = getenv("JUNCTURA_MPI_IO_RETENTION");
    if (retention && *retention)
        snprintf(options, sizeof options, "schema=free,retention=(%s)", retention);
    else
        snprintf(options, sizeof options, "schema=free");
}

bool jmpi_is_wanted(void) {
    pthread_once(&once, read_settings);
    return rules.count > 0;
}

file_mode jmpi_mode_of(const char *path) {
    const char *name = jmpi_is_wanted() ? intercept_mode(&rules, path) : NULL;
    file_mode mode = MODE_FILE;
    while (name && strcmp(modes[mode], name))
        mode++;
    return mode;
}

const char *jmpi_mode_name(file_mode mode) { return modes[mode]; }

double jmpi_timeout(void) { return timeout; }

const char *jmpi_offer_options(void) { return options; }
