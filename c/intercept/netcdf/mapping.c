/* The mapping file:
 *
 *   retention = released:2
 *   [*]
 *   run = {global:RUN}
 *   [T2 U10]
 *   level = surface
 *
 * Lines before the first section concern the file; sections list patterns of variables. */
#define _GNU_SOURCE
#include "mapping.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/intercept.h"

enum { LINES_MAX = 4096, NAME_MAX_IN_BRACES = 300 };

static MapRules rules;

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

static bool add_line(const char *variables, const char *name, const char *value) {
    if (rules.count == LINES_MAX) return false;
    MapLine *grown = realloc(rules.lines, (rules.count + 1) * sizeof *grown);
    if (!grown) return false;
    rules.lines = grown;
    rules.lines[rules.count++] = (MapLine){strdup(variables), strdup(name), strdup(value)};
    return true;
}

/* Options of an offer: those of the file that jct_offer knows. */
static void set_option(const char *name, const char *value) {
    char *all = NULL;
    int length = asprintf(&all, "%s,%s=%s", rules.options, name, value);
    if (length < 0) return;
    free(rules.options);
    rules.options = all;
}

static void read_line(char *line, char **section, const char *path, int number) {
    char *text = trimmed(line), *equals = strchr(text, '=');
    if (!*text || *text == '#') return;
    size_t length = strlen(text);
    if (*text == '[' && text[length - 1] == ']') {
        text[length - 1] = 0;
        free(*section);
        *section = strdup(trimmed(text + 1));
        return;
    }
    if (!equals || equals == text) {
        intercept_say("%s: line %d: expected NAME = VALUE or [VARIABLE ...]", path, number);
        return;
    }
    *equals = 0;
    char *name = trimmed(text), *value = trimmed(equals + 1);
    if (*section) {
        if (!add_line(*section, name, value)) intercept_say("%s: line %d: too many lines", path, number);
    } else if (strcmp(name, "retention") == 0) {
        set_option(name, value);
    } else {
        intercept_say("%s: line %d: %s is unknown: before the first section only retention is allowed", path, number, name);
    }
}

static void read_rules(void) {
    rules.options = strdup("schema=netcdf");
    const char *path = getenv("JUNCTURA_NETCDF_MAP");
    if (!path || !*path) return;
    FILE *in = fopen(path, "r");
    if (!in) {
        intercept_say("cannot read the mapping file %s: %s", path, strerror(errno));
        return;
    }
    char *line = NULL, *section = NULL;
    size_t room = 0;
    for (int number = 1; getline(&line, &room, in) >= 0; number++) read_line(line, &section, path, number);
    free(line);
    free(section);
    fclose(in);
}

MapRules *map_rules(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_rules);
    return &rules;
}

bool map_applies(const MapLine *line, const char *variable) {
    char *copy = strdup(line->variables), *rest = copy;
    bool applies = false;
    for (char *word = copy ? strtok_r(copy, " \t,", &rest) : NULL; word && !applies; word = strtok_r(NULL, " \t,", &rest))
        applies = fnmatch(word, variable, 0) == 0;
    free(copy);
    return applies;
}

bool map_expand(const MapLine *line, MapLookup *lookup, void *context, char *text, size_t room) {
    size_t used = 0;
    for (const char *at = line->value; *at;) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end) {
            char word[NAME_MAX_IN_BRACES];
            if ((size_t)(end - at) > sizeof word) return false;
            snprintf(word, sizeof word, "%.*s", (int)(end - at - 1), at + 1);
            if (!lookup(context, word, text + used, room - used)) return false;
            used += strlen(text + used);
            at = end + 1;
        } else {
            if (used + 1 >= room) return false;
            text[used++] = *at++;
        }
    }
    text[used] = 0;
    return used > 0;
}
