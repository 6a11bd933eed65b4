/* Conduit nodes of the running program.
 *
 * Catalyst passes meshes as opaque Conduit nodes. The functions that read a node are in the process already: libcatalyst
 * exports them as catalyst_conduit_*, an external Conduit as conduit_*. They are looked up by name, so this library
 * needs neither headers nor libraries of Catalyst and Conduit, and one binary fits every version.
 */
#ifndef JUNCTURA_CONDUIT_NODES_H
#define JUNCTURA_CONDUIT_NODES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct conduit_node_impl conduit_node;
typedef struct conduit_datatype_impl conduit_datatype;
typedef int64_t conduit_index;

/* The numbers of Conduit's types. */
enum conduit_type {
    CONDUIT_EMPTY = 0,
    CONDUIT_OBJECT = 1,
    CONDUIT_LIST = 2,
    CONDUIT_INT8 = 3,
    CONDUIT_INT16,
    CONDUIT_INT32,
    CONDUIT_INT64,
    CONDUIT_UINT8,
    CONDUIT_UINT16,
    CONDUIT_UINT32,
    CONDUIT_UINT64,
    CONDUIT_FLOAT32,
    CONDUIT_FLOAT64,
    CONDUIT_CHAR8_STR = 13
};

/* Functions of Conduit's C API, as the program has them. */
struct conduit_functions {
    conduit_index (*number_of_children)(conduit_node *);
    conduit_node *(*child)(conduit_node *, conduit_index);
    char *(*name)(const conduit_node *);
    const conduit_datatype *(*dtype)(const conduit_node *);
    void *(*data_ptr)(conduit_node *);
    conduit_index (*type_id)(const conduit_datatype *);
    conduit_index (*number_of_elements)(const conduit_datatype *);
    conduit_index (*offset)(const conduit_datatype *);
    conduit_index (*stride)(const conduit_datatype *);
    conduit_index (*element_bytes)(const conduit_datatype *);
    int (*endianness_matches_machine)(const conduit_datatype *);
    /* May be NULL: only catalyst_about needs it. */
    void (*set_path_char8_str)(conduit_node *, const char *, const char *);
};

/* Finds the functions under either name. Returns NULL, or the name of a function that is missing. */
const char *conduit_functions_find(struct conduit_functions *functions);

/* Returns the child at a path such as "catalyst/state", or NULL. */
conduit_node *conduit_path(const struct conduit_functions *functions, conduit_node *node, const char *path);

/* Reads a scalar, or the first element of an array, of any numeric type. Returns false where it is none. */
bool conduit_integer(const struct conduit_functions *functions, conduit_node *node, int64_t *value);
bool conduit_real(const struct conduit_functions *functions, conduit_node *node, double *value);

/* Copies a text of at most `room - 1` bytes, and returns its length; -1 where the node is none or is longer. */
int64_t conduit_text(const struct conduit_functions *functions, conduit_node *node, char *text, int64_t room);

#endif
