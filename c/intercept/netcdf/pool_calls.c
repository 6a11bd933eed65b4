/* Loads the C library of Junctura and opens the pool of this process. */
#define _GNU_SOURCE
#include "pool_calls.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/intercept.h"

/* No status of the real library is below -1000. */
enum {
    STATUS_FIRST = -7000,
    STATUS_MAPPED = -7995,
    STATUS_MAP = -7996,
    STATUS_OF_RANKS = -7997,
    STATUS_UNSUPPORTED = -7998,
    STATUS_GONE = -7999
};

PoolCalls pool_calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jct_pool_t *pool;
static bool has_failed;
static char client_name[160];
static _Thread_local char last_text[1024];

static bool load_calls(void) {
#define POOL_CALL(name) && (pool_calls.name = (__typeof__(&name))intercept_junctura(#name))
    return true POOL_CALLS(POOL_CALL);
#undef POOL_CALL
}

static void name_client(void) {
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    snprintf(client_name, sizeof client_name, "netcdf-%.40s-%.60s-%ld", program_invocation_short_name, host,
             (long)getpid());
    for (char *at = client_name; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '.' && *at != '_') *at = '-';
}

static void open_pool(void) {
    const char *url = getenv("JUNCTURA_POOL");
    if (!url || !*url) {
        intercept_say("JUNCTURA_POOL is not set: set it to the address of a pool, such as unix:default");
        return;
    }
    if (!load_calls()) return;
    name_client();
    char options[256];
    snprintf(options, sizeof options, "name=%s,timeout=5s", client_name);
    if (JCT(jct_pool_open)(url, options, &pool) != JCT_OK)
        intercept_say("cannot open the pool %s: %s", url, JCT(jct_error_text)());
}

jct_pool_t *pool_of_process(void) {
    pthread_mutex_lock(&lock);
    if (!pool && !has_failed) {
        open_pool();
        has_failed = !pool;
    }
    pthread_mutex_unlock(&lock);
    return pool;
}

const char *pool_client_name(void) { return client_name; }

bool pool_is_full(int code) {
    if (code != JCT_POOL_FULL) return false;
    /* Only the end of the step itself could free the memory. */
    if (strstr(JCT(jct_error_cause)(), "bundles that are not complete")) return false;
    intercept_say_once(
        "the pool is full: the program waits until readers have released objects; a step must fit into the pool's memory");
    return true;
}

int pool_status(int code) {
    if (code == JCT_OK) return 0;
    const char *text = JCT(jct_error_text) ? JCT(jct_error_text)() : "";
    snprintf(last_text, sizeof last_text, "Junctura: %s", *text ? text : "the pool cannot be reached");
    return STATUS_FIRST - code;
}

int pool_status_gone(void) { return STATUS_GONE; }

int pool_status_unsupported(void) { return STATUS_UNSUPPORTED; }

int pool_status_of_ranks(void) { return STATUS_OF_RANKS; }

int pool_status_map(void) { return STATUS_MAP; }

int pool_status_mapped(void) { return STATUS_MAPPED; }

const char *pool_status_text(int status) {
    if (status == STATUS_MAP) return "Junctura: the mapping file cannot be used; the message names the line";
    if (status == STATUS_MAPPED) return "Junctura: the objects of this variable have another schema, which netCDF does not read";
    if (status == STATUS_OF_RANKS) return "Junctura: another rank could not offer its part: nothing of the step is visible";
    if (status == STATUS_GONE) return "Junctura: the program that writes this file ended before it closed the file";
    if (status == STATUS_UNSUPPORTED) return "Junctura: this write cannot be intercepted: write this file to disk";
    if (status > STATUS_FIRST || status < STATUS_GONE) return NULL;
    return *last_text ? last_text : "Junctura: the pool failed";
}
