/* Messages of a preload library on standard error. */
#define _GNU_SOURCE
#include "intercept.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { TEXT_MAX = 1024, SAID_MAX = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *said[SAID_MAX];

static void print(const char *text) {
    /* One call: lines of several ranks are not mixed. */
    fprintf(stderr, "junctura-%s: %s\n", intercept_library(), text);
}

void intercept_say(const char *format, ...) {
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print(text);
}

void intercept_say_once(const char *format, ...) {
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    size_t at = 0;
    while (at < SAID_MAX && said[at] && strcmp(said[at], text) != 0) at++;
    bool is_new = at < SAID_MAX && !said[at];
    if (is_new) said[at] = strdup(text);
    pthread_mutex_unlock(&lock);
    if (is_new) print(text);
}
