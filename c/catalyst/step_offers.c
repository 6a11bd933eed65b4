#define _GNU_SOURCE
#include "step_offers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONTENT_TYPE "application/vnd.junctura.mesh"
/* A mesh that has changed with so many steps in a row is sent inside the steps. */
#define CHANGES_MOST 2

static double now(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void step_offers_say(struct step_offers *offers, const char *format, ...) {
    char text[2048];
    uint64_t hash = 14695981039346656037u;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (size_t i = 0; i < offers->said_count; i++)
        if (offers->said[i] == hash)
            return;
    if (offers->said_count == sizeof offers->said / sizeof *offers->said)
        return;
    offers->said[offers->said_count++] = hash;
    if (offers->ranks > 1)
        fprintf(stderr, "junctura: catalyst: rank %lld: %s\n", (long long)offers->rank, text);
    else
        fprintf(stderr, "junctura: catalyst: %s\n", text);
}

bool step_offers_connect(struct step_offers *offers) {
    char options[64];
    int code;

    if (offers->pool)
        return true;
    if (!*offers->url || now() < offers->next_try)
        return false;
    snprintf(options, sizeof options, "name=catalyst-%lld,timeout=2ms", (long long)offers->rank);
    code = jct_pool_open(offers->url, options, &offers->pool);
    if (code == JCT_OK && !offers->attributes)
        offers->attributes = jct_attributes_new();
    if (code == JCT_OK && offers->attributes)
        return true;
    jct_pool_close(offers->pool);
    offers->pool = NULL;
    offers->next_try = now() + offers->options.retry;
    step_offers_say(offers,
                    "the pool at %s cannot be opened (%s); the simulation continues, and its steps are left out until the "
                    "pool can be reached",
                    offers->url, jct_error_text());
    return false;
}

/* Closes the pool and forgets what it had: a pool that is reached again may be another one. */
static void disconnect(struct step_offers *offers) {
    for (struct mesh_channel *channel = offers->channels; channel; channel = channel->next) {
        jct_bundle_close(channel->bundle);
        channel->bundle = NULL;
        channel->mesh_count = 0;
        channel->before[0] = 0;
        channel->changes = 0;
        channel->steps_begin = channel->steps_end = 0;
    }
    jct_pool_close(offers->pool);
    offers->pool = NULL;
    offers->next_try = now() + offers->options.retry;
}

static struct mesh_channel *channel_of(struct step_offers *offers, const char *name) {
    struct mesh_channel *channel;

    for (channel = offers->channels; channel; channel = channel->next)
        if (strcmp(channel->name, name) == 0)
            return channel;
    channel = calloc(1, sizeof *channel);
    if (!channel)
        return NULL;
    snprintf(channel->name, sizeof channel->name, "%s", name);
    channel->next = offers->channels;
    return offers->channels = channel;
}

/* Says why a call failed, and gives a pool up that is gone. Always false, so that a caller can return it. */
static bool failed(struct step_offers *offers, const struct mesh_channel *channel, int code, const char *what) {
    if (code == JCT_DISCONNECTED || code == JCT_CLOSED || code == JCT_UNAVAILABLE) {
        step_offers_say(offers,
                        "the pool at %s is gone (%s); the simulation continues, and its steps are left out until the pool "
                        "can be reached",
                        offers->url, jct_error_text());
        disconnect(offers);
    } else if (code == JCT_ALREADY_EXISTS) {
        step_offers_say(offers,
                        "case %s has steps in the pool already, which stay as they are; remove them (junctura pool "
                        "withdraw-all case=%s --forget), or set another case in JUNCTURA_CATALYST",
                        offers->options.case_name, offers->options.case_name);
    } else if (code == JCT_BUNDLE_CLOSED) {
        /* A pool remembers the paths of bundles for a while after their objects were removed. */
        step_offers_say(offers, "case %s has, or had, steps in the pool, which are not replaced; set another case in "
                                "JUNCTURA_CATALYST",
                        offers->options.case_name);
    } else if (code == JCT_NOT_FOUND || code == JCT_SCHEMA_MISMATCH) {
        step_offers_say(offers, "%s of channel %s: %s; serve the pool with --schema mesh", what, channel->name,
                        jct_error_text());
    } else {
        step_offers_say(offers, "%s of channel %s: %s", what, channel->name, jct_error_text());
    }
    return false;
}

/* Whether a step of this rank refers to shared arrays, also one that waits in its bundle for other ranks. */
static bool is_in_use(struct step_offers *offers, const struct mesh_channel *channel, const struct offered_mesh *mesh) {
    char selector[512];
    const char *key = NULL;
    jct_list_t *list;
    bool in_use;

    snprintf(selector, sizeof selector, "case=\"%s\",channel=\"%s\",rank=%lld,part=fields,step>=%lld,step<=%lld",
             offers->options.case_name, channel->name, (long long)offers->rank, (long long)mesh->step,
             (long long)mesh->last);
    if (jct_list(offers->pool, selector, "incomplete", &list) != JCT_OK)
        return true;
    in_use = jct_list_next(list, &key, NULL) != JCT_OK || key;
    jct_list_close(list);
    return in_use;
}

/* Removes the oldest shared arrays, if other ones are current, and all steps that refer to them were removed. */
static void withdraw_mesh(struct step_offers *offers, struct mesh_channel *channel) {
    struct offered_mesh *mesh = channel->meshes;

    if (channel->mesh_count < 2 || is_in_use(offers, channel, mesh))
        return;
    jct_attributes_clear(offers->attributes);
    jct_attributes_set_text(offers->attributes, "case", offers->options.case_name);
    jct_attributes_set_text(offers->attributes, "channel", channel->name);
    jct_attributes_set_int(offers->attributes, "step", mesh->step);
    jct_attributes_set_int(offers->attributes, "rank", offers->rank);
    jct_attributes_set_text(offers->attributes, "part", "mesh");
    if (jct_withdraw(offers->pool, offers->attributes, "schema=mesh", 0, NULL) == JCT_TIMEOUT)
        return;
    channel->mesh_count--;
    memmove(mesh, mesh + 1, channel->mesh_count * sizeof *mesh);
}

/* Removes the oldest step that may be removed. Returns whether one was. */
static bool evict(struct step_offers *offers, struct mesh_channel *channel) {
    for (size_t i = channel->steps_begin; i < channel->steps_end; i++) {
        char selector[512];
        uint64_t count = 0;
        int64_t step = channel->steps[i];
        int code;

        /* All ranks' objects at once: a step is whole, or gone. */
        snprintf(selector, sizeof selector, "case=\"%s\",channel=\"%s\",step=%lld,part=fields",
                 offers->options.case_name, channel->name, (long long)step);
        code = jct_withdraw_all(offers->pool, selector, NULL, 0, &count);
        if (code == JCT_TIMEOUT)
            continue;
        if (code != JCT_OK)
            return failed(offers, channel, code, "removal of the oldest step");
        memmove(channel->steps + channel->steps_begin + 1, channel->steps + channel->steps_begin,
                (i - channel->steps_begin) * sizeof *channel->steps);
        channel->steps_begin++;
        return true;
    }
    return false;
}

static bool evict_any(struct step_offers *offers, struct mesh_channel *channel) {
    if (evict(offers, channel))
        return true;
    for (struct mesh_channel *other = offers->channels; other && offers->pool; other = other->next)
        if (other != channel && evict(offers, other))
            return true;
    return false;
}

static void remember(struct mesh_channel *channel, int64_t step) {
    if (channel->steps_begin > 1024 && channel->steps_begin > channel->steps_end / 2) {
        channel->steps_end -= channel->steps_begin;
        memmove(channel->steps, channel->steps + channel->steps_begin, channel->steps_end * sizeof *channel->steps);
        channel->steps_begin = 0;
    }
    if (channel->steps_end == channel->steps_room) {
        size_t room = channel->steps_room ? channel->steps_room * 2 : 256;
        int64_t *grown = realloc(channel->steps, room * sizeof *grown);

        /* A step that is not remembered is not removed. */
        if (!grown)
            return;
        channel->steps = grown;
        channel->steps_room = room;
    }
    channel->steps[channel->steps_end++] = step;
}

/* Memory for a payload; waits and removes old steps as the options state. */
static jct_allocation_t *allocate(struct step_offers *offers, struct mesh_channel *channel, uint64_t bytes) {
    double deadline = now() + (offers->gave_up ? 0 : offers->options.timeout);

    for (;;) {
        jct_allocation_t *allocation;
        int code = channel->bundle ? jct_bundle_allocate(channel->bundle, bytes, &allocation, NULL)
                                   : jct_allocate(offers->pool, bytes, &allocation, NULL);

        if (code == JCT_OK) {
            offers->gave_up = false;
            return allocation;
        }
        if (code != JCT_POOL_FULL && code != JCT_TIMEOUT) {
            failed(offers, channel, code, "memory for a step");
            return NULL;
        }
        if (offers->options.evicts && evict_any(offers, channel))
            continue;
        if (!offers->pool)
            return NULL;
        if (now() >= deadline) {
            step_offers_say(offers,
                            "the pool at %s is full, and steps are left out: give it more memory (--budget), or remove "
                            "what requirements are owed",
                            offers->url);
            offers->gave_up = true;
            return NULL;
        }
        /* The pool may refuse at once. */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* Copies a part of a payload: the first use of memory of the pool costs less by this call than by its address. */
static bool write_part(void *allocation, uint64_t at, const void *data, size_t bytes) {
    return jct_allocation_write(allocation, at, data, bytes) == JCT_OK;
}

/* Memory with the payload that was planned; NULL where there is none. */
static jct_allocation_t *filled(struct step_offers *offers, struct mesh_channel *channel, uint64_t bytes,
                                const struct mesh_tree *tree) {
    jct_allocation_t *allocation = allocate(offers, channel, bytes);
    struct mesh_sink sink = {write_part, allocation};

    if (!allocation || mesh_object_write(tree, &sink))
        return allocation;
    failed(offers, channel, jct_error_code(), "the copy of a step");
    jct_allocation_free(allocation);
    return NULL;
}

static void set_attributes(struct step_offers *offers, const struct mesh_channel *channel, int64_t step,
                           const char *part, const char *mesh) {
    jct_attributes_t *attributes = offers->attributes;

    jct_attributes_clear(attributes);
    jct_attributes_set_text(attributes, "case", offers->options.case_name);
    jct_attributes_set_text(attributes, "channel", channel->name);
    jct_attributes_set_int(attributes, "step", step);
    jct_attributes_set_int(attributes, "rank", offers->rank);
    jct_attributes_set_text(attributes, "part", part);
    jct_attributes_set_int(attributes, "ranks", offers->ranks);
    jct_attributes_set_text(attributes, "content_type", CONTENT_TYPE);
    if (mesh)
        jct_attributes_set_text(attributes, "mesh", mesh);
}

/* Offers the shared arrays under the number of a step. */
static bool offer_mesh(struct step_offers *offers, struct mesh_channel *channel, int64_t step, const char *identifier,
                       struct mesh_tree *tree) {
    uint64_t bytes = mesh_object_plan(tree, MESH_SHARED);
    jct_allocation_t *allocation;
    int code;

    if (bytes == 0) {
        step_offers_say(offers, "channel %s: the tree of the mesh exceeds the limit of the format", channel->name);
        return false;
    }
    if (channel->mesh_count == channel->mesh_room) {
        size_t room = channel->mesh_room ? channel->mesh_room * 2 : 4;
        struct offered_mesh *grown = realloc(channel->meshes, room * sizeof *grown);

        if (!grown)
            return false;
        channel->meshes = grown;
        channel->mesh_room = room;
    }
    allocation = filled(offers, channel, bytes, tree);
    if (!allocation)
        return false;
    set_attributes(offers, channel, step, "mesh", identifier);
    code = jct_allocation_offer(allocation, offers->attributes, "schema=mesh");
    if (code != JCT_OK)
        return failed(offers, channel, code, "the mesh");
    offers->meshes++;
    offers->bytes += (double)bytes;
    struct offered_mesh *mesh = &channel->meshes[channel->mesh_count++];

    strcpy(mesh->identifier, identifier);
    mesh->step = mesh->last = step;
    return true;
}

/* Makes sure that the pool has the shared arrays of a step, and decides how the step refers to them. Returns false where
 * the step must be left out. */
static bool share(struct step_offers *offers, struct mesh_channel *channel, int64_t step, struct mesh_tree *tree,
                  enum mesh_part *part) {
    struct offered_mesh *current = channel->mesh_count ? &channel->meshes[channel->mesh_count - 1] : NULL;
    char identifier[MESH_HASH_TEXT];

    *part = MESH_WHOLE;
    if (offers->options.mesh == MESH_INSIDE || tree->shared_leaves == 0)
        return true;
    *part = MESH_FIELDS;
    if (offers->options.mesh == MESH_FIXED && current) {
        current->last = step;
        return true;
    }
    mesh_tree_identify(tree, identifier);
    channel->changes = *channel->before && strcmp(identifier, channel->before) != 0 ? channel->changes + 1 : 0;
    strcpy(channel->before, identifier);
    if (current && strcmp(current->identifier, identifier) == 0) {
        current->last = step;
        return true;
    }
    if (channel->changes >= CHANGES_MOST) {
        *part = MESH_WHOLE;
        return true;
    }
    return offer_mesh(offers, channel, step, identifier, tree);
}

static bool open_bundle(struct step_offers *offers, struct mesh_channel *channel, int64_t step) {
    char path[2 * RUN_NAME_MOST + 32], options[64];
    jct_bundle_t *bundle;
    int code;

    snprintf(path, sizeof path, "%s/%s/%lld", offers->options.case_name, channel->name, (long long)step);
    snprintf(options, sizeof options, "schema=mesh,members=%lld", (long long)offers->ranks);
    code = jct_bundle_open(offers->pool, path, NULL, options, &bundle);
    jct_bundle_close(channel->bundle);
    channel->bundle = bundle;
    return code == JCT_OK || failed(offers, channel, code, "the bundle");
}

static bool offer_step(struct step_offers *offers, struct mesh_channel *channel, int64_t step, bool has_time,
                       double time, struct mesh_tree *tree) {
    jct_allocation_t *allocation;
    enum mesh_part part;
    char options[320];
    uint64_t bytes;
    int code;

    if (!share(offers, channel, step, tree, &part))
        return false;
    bytes = mesh_object_plan(tree, part);
    if (bytes == 0) {
        step_offers_say(offers, "channel %s: the tree of a step exceeds the limit of the format", channel->name);
        return false;
    }
    if (offers->ranks > 1 && !open_bundle(offers, channel, step))
        return false;
    allocation = filled(offers, channel, bytes, tree);
    if (!allocation)
        return false;
    set_attributes(offers, channel, step, "fields",
                   part == MESH_FIELDS ? channel->meshes[channel->mesh_count - 1].identifier : NULL);
    if (has_time)
        jct_attributes_set_real(offers->attributes, "time", time);
    snprintf(options, sizeof options, *offers->options.retention ? "schema=mesh,retention=(%s)" : "schema=mesh",
             offers->options.retention);
    code = channel->bundle ? jct_allocation_stage(allocation, channel->bundle, offers->attributes, options)
                           : jct_allocation_offer(allocation, offers->attributes, options);
    if (code != JCT_OK)
        return failed(offers, channel, code, "a step");
    remember(channel, step);
    withdraw_mesh(offers, channel);
    offers->bytes += (double)bytes;
    return true;
}

void step_offers_offer(struct step_offers *offers, const char *name, int64_t step, bool has_time, double time,
                       struct mesh_tree *tree) {
    double begin = now(), took;
    struct mesh_channel *channel = channel_of(offers, name);

    if (channel && step_offers_connect(offers) && offer_step(offers, channel, step, has_time, time, tree))
        offers->offered++;
    else
        offers->left_out++;
    took = now() - begin;
    offers->seconds += took;
    offers->slowest = took > offers->slowest ? took : offers->slowest;
}

void step_offers_end(struct step_offers *offers) {
    if (offers->options.report || offers->left_out)
        fprintf(stderr,
                "junctura: catalyst: rank %lld: %llu steps offered, %llu left out, %llu meshes, %.3f MB, %.3f ms a step, "
                "the slowest %.3f ms\n",
                (long long)offers->rank, (unsigned long long)offers->offered, (unsigned long long)offers->left_out,
                (unsigned long long)offers->meshes, offers->bytes / 1e6,
                offers->seconds * 1e3 / (double)(offers->offered + offers->left_out ? offers->offered + offers->left_out : 1),
                offers->slowest * 1e3);
    disconnect(offers);
    while (offers->channels) {
        struct mesh_channel *channel = offers->channels;

        offers->channels = channel->next;
        free(channel->meshes);
        free(channel->steps);
        free(channel);
    }
    jct_attributes_free(offers->attributes);
    memset(offers, 0, sizeof *offers);
}
