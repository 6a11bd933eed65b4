#include "pool.h"
#include "../common/intercept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

pool_functions jmpi_jct;

static const char *const names[] = {
#define JMPI_NAME(name) #name,
    JMPI_POOL_FUNCTIONS(JMPI_NAME)
#undef JMPI_NAME
};

static jct_pool_t *pool;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* False after a message. */
static bool load(void) {
    unsigned char *places = (unsigned char *)&jmpi_jct;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AnyFunction function = intercept_junctura(names[i]);
        if (!function)
            return false;
        memcpy(places + i * sizeof function, &function, sizeof function);
    }
    return true;
}

static void open_pool(void) {
    const char *url = getenv("JUNCTURA_POOL");
    if (!url || !*url) {
        intercept_say_once("JUNCTURA_POOL names no pool: files are not intercepted");
        return;
    }
    if (!load())
        return;
    if (jmpi_jct.jct_abi() != JCT_ABI)
        intercept_say_once("libjunctura.so.0 has another ABI: files are not intercepted");
    else if (jmpi_jct.jct_pool_open(url, "schema=free", &pool))
        intercept_say_once("files are not intercepted: %s", jmpi_jct.jct_error_text());
}

jct_pool_t *jmpi_pool(void) {
    pthread_once(&opened, open_pool);
    return pool;
}
