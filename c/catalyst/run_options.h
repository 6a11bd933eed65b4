/* Options of a run: text such as "case=wing,every=10,retention=10min", in the environment variable JUNCTURA_CATALYST, or
 * as children of the node `catalyst/junctura` of catalyst_initialize. The environment prevails.
 *
 *   case=NAME            the case of the objects (default: the name of the program)
 *   channels=NAME|(A,B)  sends these channels only
 *   every=N              sends the steps whose number is a multiple of N (default: 1)
 *   mesh=checked         offers the mesh once, and again when its arrays have changed (default)
 *        fixed           takes the mesh of the first step for that of all, and does not look at its arrays again
 *        inside          sends the mesh with each step
 *   full=oldest          where the pool is full: removes the oldest steps of this run that no requirement is owed (default)
 *        wait            leaves them, and waits
 *   timeout=TIME         how long a step may wait for memory before it is left out (default: 60s)
 *   retry=TIME           least time between two attempts to reach a pool that is gone (default: 5s)
 *   retention=...        of the steps, as in jct_offer
 *   rank=N, ranks=N      where neither MPI nor the launcher states them
 *   report               prints a summary on standard error at the end
 */
#ifndef JUNCTURA_RUN_OPTIONS_H
#define JUNCTURA_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Characters of the name of a case or channel, which are parts of a bundle's path. */
#define RUN_NAME_MOST 128

enum mesh_policy { MESH_CHECKED, MESH_FIXED, MESH_INSIDE };

struct run_options {
    char case_name[RUN_NAME_MOST + 1];
    /* ",A,B,"; empty: all. */
    char channels[1024];
    int64_t every;
    enum mesh_policy mesh;
    bool evicts;
    double timeout, retry;
    char retention[256];
    /* Negative where they are not stated. */
    int64_t rank, ranks;
    bool report;
};

void run_options_default(struct run_options *options);

/* Sets one option. Returns false, and a reason of at most `room - 1` bytes, where it is none or has a wrong value. */
bool run_options_set(struct run_options *options, const char *name, const char *value, char *reason, int room);

/* Sets the options of a text; stops at the first that is wrong. */
bool run_options_parse(struct run_options *options, const char *text, char *reason, int room);

/* Whether a channel is sent. */
bool run_options_wants(const struct run_options *options, const char *channel);

/* Whether a text can be the name of a case or channel: letters, digits and ._+:-=,@ */
bool run_name_is_valid(const char *name);

#endif
