/* The implementation of the Catalyst 2 API named `junctura`: a program that calls Catalyst sends its meshes into a pool.
 *
 * libcatalyst loads this library by its name, and takes one symbol from it, `catalyst_api_impl`: a number and functions.
 * Version 1 of the structure has five functions; releases before `catalyst_results` read the first four.
 *
 * No call returns an error: a simulation must not end since its viewers receive nothing.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduit_nodes.h"
#include "mesh_object.h"
#include "mpi_ranks.h"
#include "run_options.h"
#include "step_offers.h"

/* catalyst_status_ok */
#define STATUS_OK 0

struct catalyst_impl {
    int version;
    int (*initialize)(const conduit_node *);
    int (*execute)(const conduit_node *);
    int (*finalize)(const conduit_node *);
    int (*about)(conduit_node *);
    int (*results)(conduit_node *);
};

/* Catalyst is one for a process, and is called by one thread. */
static struct {
    bool ready;
    struct conduit_functions functions;
    struct step_offers offers;
    struct mesh_tree tree;
} state;

/* Sets the options that are children of `catalyst/junctura`: texts and numbers. */
static void take_options(conduit_node *node) {
    conduit_index count;

    if (!node || state.functions.type_id(state.functions.dtype(node)) != CONDUIT_OBJECT)
        return;
    count = state.functions.number_of_children(node);
    for (conduit_index i = 0; i < count; i++) {
        conduit_node *child = state.functions.child(node, i);
        char value[1024], reason[512], *name = state.functions.name(child);
        int64_t number;

        if (conduit_text(&state.functions, child, value, sizeof value) < 0) {
            value[0] = 0;
            if (conduit_integer(&state.functions, child, &number))
                snprintf(value, sizeof value, "%lld", (long long)number);
        }
        if (name && strcmp(name, "pool") == 0) {
            if (!getenv("JUNCTURA_POOL"))
                snprintf(state.offers.url, sizeof state.offers.url, "%s", value);
        } else if (name && !run_options_set(&state.offers.options, name, value, reason, sizeof reason)) {
            step_offers_say(&state.offers, "catalyst/junctura: %s", reason);
        }
        free(name);
    }
}

static void find_ranks(conduit_node *root) {
    struct step_offers *offers = &state.offers;
    int64_t communicator = 0;
    bool has = conduit_integer(&state.functions, conduit_path(&state.functions, root, "catalyst/mpi_comm"),
                               &communicator);

    mpi_ranks_find(has, communicator, &offers->rank, &offers->ranks);
    if (offers->options.rank >= 0 && offers->options.ranks > offers->options.rank) {
        offers->rank = offers->options.rank;
        offers->ranks = offers->options.ranks;
    } else if (offers->options.rank >= 0 || offers->options.ranks >= 0) {
        step_offers_say(offers, "the options rank and ranks belong together, and rank must be less than ranks; both are "
                                "ignored");
    }
}

static int initialize(const conduit_node *params) {
    const char *url = getenv("JUNCTURA_POOL"), *text = getenv("JUNCTURA_CATALYST"), *missing;
    conduit_node *root = (conduit_node *)params;
    char reason[512];

    if (state.ready)
        return STATUS_OK;
    missing = conduit_functions_find(&state.functions);
    if (missing) {
        fprintf(stderr, "junctura: catalyst: the program has no function %s of Conduit; nothing is handed over\n", missing);
        return STATUS_OK;
    }
    state.ready = true;
    run_options_default(&state.offers.options);
    snprintf(state.offers.url, sizeof state.offers.url, "%s", url ? url : "");
    take_options(conduit_path(&state.functions, root, "catalyst/junctura"));
    if (text && !run_options_parse(&state.offers.options, text, reason, sizeof reason))
        step_offers_say(&state.offers, "JUNCTURA_CATALYST: %s", reason);
    find_ranks(root);
    if (!*state.offers.url)
        step_offers_say(&state.offers, "no pool is named, and nothing is handed over: set JUNCTURA_POOL, such as "
                                       "JUNCTURA_POOL=unix:NAME");
    step_offers_connect(&state.offers);
    return STATUS_OK;
}

/* The number of the step, and its time, of a node with `timestep`, `cycle` and `time`. */
static void read_state(conduit_node *node, int64_t *step, bool *has_time, double *time) {
    const struct conduit_functions *functions = &state.functions;

    if (!node)
        return;
    if (!conduit_integer(functions, conduit_path(functions, node, "timestep"), step))
        conduit_integer(functions, conduit_path(functions, node, "cycle"), step);
    *has_time = conduit_real(functions, conduit_path(functions, node, "time"), time) || *has_time;
}

static void take_channel(conduit_node *channel, const char *name, int64_t step, bool has_time, double time) {
    static const char *const TYPES[] = {"mesh", "multimesh", "amrmesh"};
    const struct conduit_functions *functions = &state.functions;
    struct step_offers *offers = &state.offers;
    conduit_node *data = conduit_path(functions, channel, "data");
    char type[64] = "mesh";
    bool known = false;

    if (!run_options_wants(&offers->options, name))
        return;
    if (!run_name_is_valid(name)) {
        step_offers_say(offers, "channel \"%s\" is not handed over: its name must have 1 to %d letters, digits or ._+:-=,@",
                        name, RUN_NAME_MOST);
        return;
    }
    conduit_text(functions, conduit_path(functions, channel, "type"), type, sizeof type);
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        known = known || strcmp(type, TYPES[i]) == 0;
    if (!known) {
        step_offers_say(offers, "channel %s has the type %s, which is not supported; types: mesh, multimesh, amrmesh", name,
                        type);
        return;
    }
    read_state(conduit_path(functions, channel, "state"), &step, &has_time, &time);
    if (step < 0) {
        step_offers_say(offers, "channel %s: steps with negative numbers are left out", name);
        return;
    }
    if (step % offers->options.every != 0)
        return;
    if (!data) {
        step_offers_say(offers, "channel %s has no node `data`; every rank must pass one, if need be an empty one", name);
        return;
    }
    if (!mesh_tree_read(&state.tree, functions, data)) {
        step_offers_say(offers, "channel %s is left out: %s", name, state.tree.error);
        offers->left_out++;
        return;
    }
    step_offers_offer(offers, name, step, has_time, time, &state.tree);
}

static int execute(const conduit_node *params) {
    const struct conduit_functions *functions = &state.functions;
    conduit_node *root = (conduit_node *)params, *channels;
    bool has_time = false;
    int64_t step = 0;
    double time = 0;

    if (!state.ready)
        return STATUS_OK;
    read_state(conduit_path(functions, root, "catalyst/state"), &step, &has_time, &time);
    channels = conduit_path(functions, root, "catalyst/channels");
    if (!channels || functions->type_id(functions->dtype(channels)) != CONDUIT_OBJECT)
        return STATUS_OK;
    for (conduit_index i = 0, count = functions->number_of_children(channels); i < count; i++) {
        conduit_node *channel = functions->child(channels, i);
        char *name = functions->name(channel);

        if (name)
            take_channel(channel, name, step, has_time, time);
        free(name);
    }
    return STATUS_OK;
}

static int finalize(const conduit_node *params) {
    (void)params;
    if (state.ready) {
        step_offers_end(&state.offers);
        mesh_tree_free(&state.tree);
        state.ready = false;
    }
    return STATUS_OK;
}

static int about(conduit_node *params) {
    struct conduit_functions functions;

    if (params && conduit_functions_find(&functions) == NULL && functions.set_path_char8_str) {
        functions.set_path_char8_str(params, "catalyst/implementation", "junctura");
        functions.set_path_char8_str(params, "catalyst/junctura/version", jct_version());
    }
    return STATUS_OK;
}

/* Nothing flows back into the simulation. */
static int results(conduit_node *params) {
    (void)params;
    return STATUS_OK;
}

__attribute__((visibility("default"))) extern const struct catalyst_impl catalyst_api_impl;
const struct catalyst_impl catalyst_api_impl = {1, initialize, execute, finalize, about, results};
