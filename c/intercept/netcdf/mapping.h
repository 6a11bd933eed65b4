/* The mapping file: further attributes of objects by variable, and their retention. */
#ifndef JUNCTURA_NETCDF_MAPPING_H
#define JUNCTURA_NETCDF_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* One line: `name = value` of a section. */
typedef struct {
    char *variables;
    char *name;
    char *value;
} MapLine;

typedef struct MapRules {
    size_t count;
    MapLine *lines;
    char *options;
} MapRules;

/* Finds the text for a word in braces, such as "name" or "global:TITLE"; false where there is none. */
typedef bool MapLookup(void *context, const char *word, char *text, size_t room);

/* Returns the rules of the file that JUNCTURA_NETCDF_MAP names, read once; empty without one. */
MapRules *map_rules(void);

/* Whether a line applies to a variable. */
bool map_applies(const MapLine *line, const char *variable);

/* Writes the value of a line into `text`, with the words in braces replaced. False where a word has no text. */
bool map_expand(const MapLine *line, MapLookup *lookup, void *context, char *text, size_t room);

#endif
