/* The mapping file:
 *
 *   retention = released:2
 *   [*]
 *   run = {global:RUN}
 *   [T2 U10]
 *   level = surface
 *   [ta]
 *   schema = mars
 *   date = {base:%Y-%m-%d}
 *   levelist = {dim:plev/100}
 *
 * Lines before the first section concern the file; sections list patterns of variables. */
#define _GNU_SOURCE
#include "mapping.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/intercept.h"
#include "cf_time.h"

enum { LINES_MAX = 4096 };

static MapRules rules;

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text)) text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1])) *--end = 0;
    return text;
}

/* Names a line that cannot be read. */
static void refuse(int number, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(int number, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    intercept_say("%s: line %d: %s", rules.path, number, text);
    rules.is_invalid = true;
}

static bool add_line(const char *variables, const char *name, const char *value, int number) {
    if (rules.count == LINES_MAX) return false;
    MapLine *grown = realloc(rules.lines, (rules.count + 1) * sizeof *grown);
    if (!grown) return false;
    rules.lines = grown;
    rules.lines[rules.count++] = (MapLine){strdup(variables), strdup(name), strdup(value), number};
    return true;
}

WordKind map_word(const char *word, const char **rest) {
    static const struct {
        const char *prefix;
        WordKind kind;
    } kinds[] = {{"dim:", WORD_DIM}, {"base:", WORD_BASE}, {"valid:", WORD_VALID}, {"lead:", WORD_LEAD}};
    for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
        size_t letters = strlen(kinds[at].prefix);
        *rest = word + letters;
        if (strncmp(word, kinds[at].prefix, letters) == 0) return kinds[at].kind;
    }
    *rest = word;
    return WORD_OF_FILE;
}

bool map_dim(const char *text, char *name, size_t room, double *factor) {
    size_t letters = strcspn(text, "/*");
    *factor = 1;
    if (letters == 0 || letters >= room) return false;
    snprintf(name, room, "%.*s", (int)letters, text);
    if (!text[letters]) return true;
    char *end;
    double number = strtod(text + letters + 1, &end);
    if (end == text + letters + 1 || *end || !(number > 0)) return false;
    *factor = text[letters] == '/' ? 1 / number : number;
    return true;
}

/* Checks the words in braces of a value. */
static void check_words(const char *value, int number) {
    char word[MAP_WORD_MAX], name[MAP_WORD_MAX];
    for (const char *at = strchr(value, '{'); at; at = strchr(at + 1, '{')) {
        const char *end = strchr(at, '}'), *rest;
        double factor;
        if (!end || end == at + 1 || (size_t)(end - at) > sizeof word) {
            refuse(number, "expected {WORD} at %s", at);
            return;
        }
        snprintf(word, sizeof word, "%.*s", (int)(end - at - 1), at + 1);
        WordKind kind = map_word(word, &rest);
        if (kind == WORD_DIM && !map_dim(rest, name, sizeof name, &factor))
            refuse(number, "{%s}: expected {dim:NAME}, {dim:NAME/NUMBER} or {dim:NAME*NUMBER}", word);
        if (kind == WORD_LEAD && cf_time_unit(rest) == 0)
            refuse(number, "{%s}: the unit is seconds, minutes, hours or days", word);
        if ((kind == WORD_BASE || kind == WORD_VALID) && !strchr(rest, '%'))
            refuse(number, "{%s}: expected a format of a date, such as {base:%%Y-%%m-%%d}", word);
    }
}

static void read_line(char *line, char **section, int number) {
    char *text = trimmed(line), *equals = strchr(text, '=');
    if (!*text || *text == '#') return;
    size_t length = strlen(text);
    if (*text == '[' && text[length - 1] == ']') {
        text[length - 1] = 0;
        free(*section);
        *section = strdup(trimmed(text + 1));
        if (!**section) refuse(number, "the section names no variable");
        return;
    }
    if (!equals || equals == text) {
        refuse(number, "expected NAME = VALUE or [VARIABLE ...]");
        return;
    }
    *equals = 0;
    char *name = trimmed(text), *value = trimmed(equals + 1);
    if (!*value) {
        refuse(number, "%s has no value", name);
    } else if (*section) {
        if (strcmp(name, "schema") == 0 && strchr(value, '{')) refuse(number, "the schema is a name, without words in braces");
        check_words(value, number);
        if (!add_line(*section, name, value, number)) refuse(number, "too many lines");
    } else if (strcmp(name, "retention") == 0) {
        free(rules.retention);
        if (asprintf(&rules.retention, ",retention=%s", value) < 0) rules.retention = NULL;
    } else {
        refuse(number, "%s is unknown: before the first section only retention is allowed", name);
    }
}

static void read_file(const char *path) {
    rules.path = strdup(path);
    FILE *in = fopen(path, "r");
    if (!in) {
        intercept_say("cannot read the mapping file %s: %s", path, strerror(errno));
        rules.is_invalid = true;
        return;
    }
    char *line = NULL, *section = NULL;
    size_t room = 0;
    for (int number = 1; getline(&line, &room, in) >= 0; number++) read_line(line, &section, number);
    free(line);
    free(section);
    fclose(in);
}

static void read_rules(void) {
    const char *path = getenv("JUNCTURA_NETCDF_MAP");
    rules.retention = strdup("");
    if (path && *path) read_file(path);
    if (asprintf(&rules.options, "schema=netcdf%s", rules.retention ? rules.retention : "") < 0) rules.options = NULL;
    if (!rules.retention || !rules.options) rules.is_invalid = true;
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

const char *map_schema(const MapRules *of, const char *variable) {
    const char *schema = NULL;
    for (size_t at = 0; at < of->count; at++)
        if (strcmp(of->lines[at].name, "schema") == 0 && map_applies(&of->lines[at], variable)) schema = of->lines[at].value;
    return schema && strcmp(schema, "netcdf") != 0 ? schema : NULL;
}

bool map_expand(const MapLine *line, MapLookup *lookup, void *context, char *text, size_t room, char *failed) {
    size_t used = 0;
    for (const char *at = line->value; *at;) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end) {
            char word[MAP_WORD_MAX];
            if ((size_t)(end - at) > sizeof word) return false;
            snprintf(word, sizeof word, "%.*s", (int)(end - at - 1), at + 1);
            if (!lookup(context, word, text + used, room - used)) {
                if (failed) snprintf(failed, MAP_WORD_MAX, "%s", word);
                return false;
            }
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
