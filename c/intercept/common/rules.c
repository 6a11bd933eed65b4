/* Rules by file pattern: "wrf*.nc=pool,hist*=tee,*=file". */
#define _GNU_SOURCE
#include "intercept.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static bool is_mode(const char *mode, const char *const *modes) {
    for (; *modes; modes++)
        if (strcmp(mode, *modes) == 0) return true;
    return false;
}

FileRules intercept_rules(const char *variable, const char *const *modes) {
    FileRules found = {0, NULL};
    const char *text = getenv(variable);
    if (!text || !*text) return found;
    char *copy = strdup(text), *rest = copy;
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *equals = strrchr(word, '=');
        if (!equals || equals == word || !is_mode(equals + 1, modes)) {
            intercept_say("%s: cannot read \"%s\": expected PATTERN=MODE, where MODE is one of:", variable, word);
            for (const char *const *mode = modes; *mode; mode++) intercept_say("%s:   %s", variable, *mode);
            continue;
        }
        *equals = 0;
        FileRule *grown = realloc(found.rules, (found.count + 1) * sizeof *grown);
        if (!grown) break;
        found.rules = grown;
        found.rules[found.count++] = (FileRule){strdup(word), strdup(equals + 1)};
    }
    free(copy);
    return found;
}

const char *intercept_mode(const FileRules *rules, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t at = 0; at < rules->count; at++) {
        const char *pattern = rules->rules[at].pattern;
        if (fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, path, 0) == 0) return rules->rules[at].mode;
    }
    return NULL;
}
