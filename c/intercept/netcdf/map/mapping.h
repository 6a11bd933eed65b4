/* The mapping file: attributes of objects by variable, the schema of these objects, and their retention. */
#ifndef JUNCTURA_NETCDF_MAPPING_H
#define JUNCTURA_NETCDF_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/* One line: `name = value` of a section. */
typedef struct {
    char *variables;
    char *name;
    char *value;
    int number;
} MapLine;

typedef struct MapRules {
    char *path;
    size_t count;
    MapLine *lines;
    /* Options of offers: "" or ",retention=...". */
    char *retention;
    /* The same of objects of the schema netcdf. */
    char *options;
    /* A line cannot be read; it was named. */
    bool is_invalid;
} MapRules;

/* The kinds of words in braces. */
typedef enum { WORD_OF_FILE, WORD_DIM, WORD_BASE, WORD_VALID, WORD_LEAD } WordKind;

/* Finds the text for a word in braces, such as "name" or "global:TITLE"; false where there is none. */
typedef bool MapLookup(void *context, const char *word, char *text, size_t room);

/* Returns the rules of the file that JUNCTURA_NETCDF_MAP names, read once; empty without one. */
MapRules *map_rules(void);

/* Whether a line applies to a variable. */
bool map_applies(const MapLine *line, const char *variable);

/* Returns the schema of a variable's objects: that of the last section that applies. NULL: netcdf. */
const char *map_schema(const MapRules *rules, const char *variable);

/* Returns the kind of a word, and what follows its prefix. */
WordKind map_word(const char *word, const char **rest);

/* Reads "NAME", "NAME/NUMBER" or "NAME*NUMBER": the name of a dimension, and a factor. False where it is none. */
bool map_dim(const char *text, char *name, size_t room, double *factor);

/* Writes the value of a line into `text`, with the words in braces replaced. False where a word has no text; `failed`,
 * unless NULL, is then this word. */
bool map_expand(const MapLine *line, MapLookup *lookup, void *context, char *text, size_t room, char *failed);

/* Words in braces are shorter. */
enum { MAP_WORD_MAX = 300 };

#endif
