#define _GNU_SOURCE
#include "run_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:-=,@"

bool run_name_is_valid(const char *name) {
    size_t length = strlen(name);

    return length >= 1 && length <= RUN_NAME_MOST && strspn(name, ALLOWED) == length;
}

void run_options_default(struct run_options *options) {
    const char *program = program_invocation_short_name;

    memset(options, 0, sizeof *options);
    options->every = 1;
    options->evicts = true;
    options->timeout = 60;
    options->retry = 5;
    options->rank = options->ranks = -1;
    snprintf(options->case_name, sizeof options->case_name, "%s", program && *program ? program : "run");
    for (char *at = options->case_name; *at; at++)
        if (!strchr(ALLOWED, *at))
            *at = '-';
}

/* These write a value only where it is valid. */
static bool whole_number(const char *text, int64_t least, int64_t *value) {
    char *end;
    int64_t number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (!*text || *end != 0 || errno != 0 || number < least)
        return false;
    *value = number;
    return true;
}

static bool seconds(const char *text, double *value) {
    static const struct {
        const char *unit;
        double seconds;
    } UNITS[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
    char *end;
    double number = strtod(text, &end);

    if (end == text || !(number >= 0) || number > 1e9)
        return false;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (strcmp(end, UNITS[i].unit) == 0) {
            *value = number * UNITS[i].seconds;
            return true;
        }
    return false;
}

/* Which of some words a value is; -1: none. */
static int word_of(const char *value, const char *const *words) {
    for (int i = 0; words[i]; i++)
        if (strcmp(value, words[i]) == 0)
            return i;
    return -1;
}

static bool text_of(char *place, size_t room, const char *format, const char *value) {
    if (!*value || strlen(value) + strlen(format) > room)
        return false;
    snprintf(place, room, format, value);
    return true;
}

bool run_options_set(struct run_options *options, const char *name, const char *value, char *reason, int room) {
    static const char *const MESHES[] = {"checked", "fixed", "inside", NULL};
    static const char *const FULL[] = {"oldest", "wait", NULL};
    const char *expected;
    int word;

    if (strcmp(name, "case") == 0) {
        expected = "1 to 128 letters, digits or ._+:-=,@";
        if (run_name_is_valid(value) && text_of(options->case_name, sizeof options->case_name, "%s", value))
            return true;
    } else if (strcmp(name, "channels") == 0) {
        expected = "one name, or several in parentheses: channels=(a,b)";
        if (text_of(options->channels, sizeof options->channels, ",%s,", value))
            return true;
    } else if (strcmp(name, "every") == 0) {
        expected = "a number from 1";
        if (whole_number(value, 1, &options->every))
            return true;
    } else if (strcmp(name, "mesh") == 0) {
        expected = "checked, fixed or inside";
        word = word_of(value, MESHES);
        if (word >= 0) {
            options->mesh = (enum mesh_policy)word;
            return true;
        }
    } else if (strcmp(name, "full") == 0) {
        expected = "oldest or wait";
        word = word_of(value, FULL);
        if (word >= 0) {
            options->evicts = word == 0;
            return true;
        }
    } else if (strcmp(name, "timeout") == 0 || strcmp(name, "retry") == 0) {
        expected = "a time, such as 10s or 500ms";
        if (seconds(value, *name == 't' ? &options->timeout : &options->retry))
            return true;
    } else if (strcmp(name, "retention") == 0) {
        expected = "a retention, such as released:1 or 10min";
        if (text_of(options->retention, sizeof options->retention, "%s", value))
            return true;
    } else if (strcmp(name, "rank") == 0) {
        expected = "a number from 0";
        if (whole_number(value, 0, &options->rank))
            return true;
    } else if (strcmp(name, "ranks") == 0) {
        expected = "a number from 1";
        if (whole_number(value, 1, &options->ranks))
            return true;
    } else if (strcmp(name, "report") == 0) {
        expected = "nothing";
        options->report = true;
        if (!*value)
            return true;
    } else {
        snprintf(reason, (size_t)room,
                 "there is no option \"%s\"; options: case, channels, every, mesh, full, timeout, retry, retention, rank, "
                 "ranks, report",
                 name);
        return false;
    }
    snprintf(reason, (size_t)room, "%s=%s: expected %s", name, value, expected);
    return false;
}

/* The end of a value: a comma outside parentheses. */
static char *end_of(char *text) {
    for (int depth = 0; *text && (*text != ',' || depth > 0); text++)
        depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
    return text;
}

bool run_options_parse(struct run_options *options, const char *text, char *reason, int room) {
    char copy[4096], *at = copy;

    if (strlen(text) >= sizeof copy) {
        snprintf(reason, (size_t)room, "options have more than %zu bytes", sizeof copy - 1);
        return false;
    }
    strcpy(copy, text);
    while (*at) {
        char *end = end_of(at), *next = end + (*end == ','), *value;

        *end = 0;
        value = strchr(at, '=');
        if (value)
            *value++ = 0;
        else
            value = end;
        if (*value == '(' && end[-1] == ')')
            value++, end[-1] = 0;
        if (*at && !run_options_set(options, at, value, reason, room))
            return false;
        at = next;
    }
    return true;
}

bool run_options_wants(const struct run_options *options, const char *channel) {
    char between[RUN_NAME_MOST + 3];

    snprintf(between, sizeof between, ",%s,", channel);
    return !*options->channels || strstr(options->channels, between) != NULL;
}
