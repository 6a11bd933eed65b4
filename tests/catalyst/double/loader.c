/* The loader of the test double: finds an implementation as libcatalyst does, and passes calls on to it.
 *
 * The name is CATALYST_IMPLEMENTATION_NAME, or `catalyst_load/implementation` of the node, which has precedence unless
 * CATALYST_IMPLEMENTATION_PREFER_ENV is set. The folders are `catalyst_load/search_paths`, CATALYST_IMPLEMENTATION_PATHS, and
 * `catalyst` beside this library. Compiled with CATALYST_DOUBLE_OLD it is a loader before `catalyst_results`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalyst.h"

struct catalyst_impl {
    int version;
    enum catalyst_status (*initialize)(const conduit_node *);
    enum catalyst_status (*execute)(const conduit_node *);
    enum catalyst_status (*finalize)(const conduit_node *);
    enum catalyst_status (*about)(conduit_node *);
#ifndef CATALYST_DOUBLE_OLD
    enum catalyst_status (*results)(conduit_node *);
#endif
};

static const struct catalyst_impl *implementation;

static void *open_in(const char *folder, size_t length, const char *name) {
    char path[4096];

    snprintf(path, sizeof path, "%.*s/libcatalyst-%s.so", (int)length, folder, name);
    void *library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);

    if (!library && getenv("CATALYST_DEBUG"))
        fprintf(stderr, "%s\n", dlerror());
    return library;
}

static void *from_node(conduit_node *node, const char *name) {
    void *library = NULL;

    if (!conduit_node_has_path(node, "catalyst_load/search_paths"))
        return NULL;
    node = conduit_node_fetch(node, "catalyst_load/search_paths");
    for (conduit_index_t i = 0; !library && i < conduit_node_number_of_children(node); i++) {
        const char *folder = conduit_node_data_ptr(conduit_node_child(node, i));

        library = open_in(folder, strlen(folder), name);
    }
    return library;
}

static void *from_environment(const char *name) {
    const char *folders = getenv("CATALYST_IMPLEMENTATION_PATHS");
    void *library = NULL;

    while (!library && folders && *folders) {
        size_t length = strcspn(folders, ":");

        library = open_in(folders, length, name);
        folders += length + (folders[length] == ':');
    }
    return library;
}

static void *from_beside(const char *name) {
    char folder[4096];
    void *address = dlsym(RTLD_DEFAULT, "catalyst_initialize");
    Dl_info info;

    if (!dladdr(address, &info))
        return NULL;
    snprintf(folder, sizeof folder, "%.*s/catalyst", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
    return open_in(folder, strlen(folder), name);
}

static enum catalyst_status load(conduit_node *node) {
    const char *prefer = getenv("CATALYST_IMPLEMENTATION_PREFER_ENV"), *name = getenv("CATALYST_IMPLEMENTATION_NAME");
    int preferred = prefer && *prefer;
    void *library = NULL;

    if (!(preferred && name) && conduit_node_has_path(node, "catalyst_load/implementation"))
        name = conduit_node_data_ptr(conduit_node_fetch(node, "catalyst_load/implementation"));
    /* No name: calls do nothing. */
    if (!name)
        return catalyst_status_ok;
    if (preferred)
        library = from_environment(name);
    if (!library)
        library = from_node(node, name);
    if (!library && !preferred)
        library = from_environment(name);
    if (!library)
        library = from_beside(name);
    if (!library)
        return catalyst_status_error_not_found;
    implementation = dlsym(library, "catalyst_api_impl");
    if (!implementation)
        return catalyst_status_error_not_catalyst;
    if (implementation->version != 1)
        return catalyst_status_error_unsupported_version;
    if (!implementation->initialize || !implementation->execute || !implementation->finalize || !implementation->about)
        return catalyst_status_error_incomplete;
    return catalyst_status_ok;
}

enum catalyst_status catalyst_initialize(const conduit_node *params) {
    if (!implementation) {
        enum catalyst_status status = load((conduit_node *)params);

        if (status != catalyst_status_ok)
            return status;
    }
    return implementation ? implementation->initialize(params) : catalyst_status_ok;
}

enum catalyst_status catalyst_execute(const conduit_node *params) {
    return implementation ? implementation->execute(params) : catalyst_status_ok;
}

enum catalyst_status catalyst_finalize(const conduit_node *params) {
    return implementation ? implementation->finalize(params) : catalyst_status_ok;
}

enum catalyst_status catalyst_about(conduit_node *params) {
    return implementation ? implementation->about(params) : catalyst_status_ok;
}

#ifndef CATALYST_DOUBLE_OLD
enum catalyst_status catalyst_results(conduit_node *params) {
    return implementation ? implementation->results(params) : catalyst_status_ok;
}
#endif
