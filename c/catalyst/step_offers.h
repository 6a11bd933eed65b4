/* Offers steps of meshes into a pool, and keeps a simulation running whatever the pool does.
 *
 * Each rank offers one object for each channel and step; with several ranks the objects are members of a bundle, so a step
 * is visible whole, or not at all. The shared arrays of a mesh are offered once, before the first step that refers to them.
 *
 * Policy:
 * - A pool that is full: the oldest steps of this run that no requirement is owed are removed; then the step waits, for at
 *   most the option `timeout`. A step that finds no memory is left out, and later steps do not wait until one has found
 *   memory again.
 * - A pool that cannot be reached: steps are left out; a new connection is tried with a step, no more often than the
 *   option `retry` states.
 * - Every reason is printed once.
 */
#ifndef JUNCTURA_STEP_OFFERS_H
#define JUNCTURA_STEP_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "junctura.h"
#include "mesh_object.h"
#include "run_options.h"

/* The shared arrays of a rank's mesh, as they were offered. */
struct offered_mesh {
    char identifier[MESH_HASH_TEXT];
    /* Of its key, and of the last step that refers to it. */
    int64_t step, last;
};

struct mesh_channel {
    char name[RUN_NAME_MOST + 1];
    struct offered_mesh *meshes;
    size_t mesh_count, mesh_room;
    /* The mesh of the step before, and how many steps have had another one than the step before them. */
    char before[MESH_HASH_TEXT];
    int64_t changes;
    /* Steps that were offered, oldest first, from `steps_begin`. */
    int64_t *steps;
    size_t steps_begin, steps_end, steps_room;
    /* The bundle of the last step, open until the next: members of other ranks may follow much later. */
    jct_bundle_t *bundle;
    struct mesh_channel *next;
};

struct step_offers {
    struct run_options options;
    char url[1024];
    int64_t rank, ranks;
    jct_pool_t *pool;
    jct_attributes_t *attributes;
    struct mesh_channel *channels;
    double next_try;
    bool gave_up;
    /* Hashes of reasons that were printed. */
    uint64_t said[64];
    size_t said_count;
    /* Of the report. */
    uint64_t offered, left_out, meshes;
    double bytes, seconds, slowest;
};

/* Prints a message on standard error, once for each text. */
void step_offers_say(struct step_offers *offers, const char *format, ...);

/* Opens the pool if it is not open and it is time to try. */
bool step_offers_connect(struct step_offers *offers);

/* Offers the tree of a channel as a step. */
void step_offers_offer(struct step_offers *offers, const char *channel, int64_t step, bool has_time, double time,
                       struct mesh_tree *tree);

/* Closes the pool and frees everything. */
void step_offers_end(struct step_offers *offers);

#endif
