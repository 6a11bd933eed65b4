/* The part of Catalyst's interface that the tests and the examples use, for the test double beside it. Programs that are
 * compiled with this header compile with that of Catalyst 2.0, too: names and arguments are the same. */
#ifndef CATALYST_DOUBLE_H
#define CATALYST_DOUBLE_H

#include <stdint.h>

#ifndef CATALYST_DOUBLE_PLAIN
/* As Catalyst exports its own copy of Conduit. */
#define conduit_node_create catalyst_conduit_node_create
#define conduit_node_destroy catalyst_conduit_node_destroy
#define conduit_node_fetch catalyst_conduit_node_fetch
#define conduit_node_append catalyst_conduit_node_append
#define conduit_node_child catalyst_conduit_node_child
#define conduit_node_has_path catalyst_conduit_node_has_path
#define conduit_node_name catalyst_conduit_node_name
#define conduit_node_number_of_children catalyst_conduit_node_number_of_children
#define conduit_node_dtype catalyst_conduit_node_dtype
#define conduit_node_data_ptr catalyst_conduit_node_data_ptr
#define conduit_node_set_char8_str catalyst_conduit_node_set_char8_str
#define conduit_node_set_path_char8_str catalyst_conduit_node_set_path_char8_str
#define conduit_node_set_path_int32 catalyst_conduit_node_set_path_int32
#define conduit_node_set_path_int64 catalyst_conduit_node_set_path_int64
#define conduit_node_set_path_float64 catalyst_conduit_node_set_path_float64
#define conduit_node_set_path_external_int8_ptr catalyst_conduit_node_set_path_external_int8_ptr
#define conduit_node_set_path_external_int16_ptr catalyst_conduit_node_set_path_external_int16_ptr
#define conduit_node_set_path_external_int32_ptr catalyst_conduit_node_set_path_external_int32_ptr
#define conduit_node_set_path_external_int64_ptr catalyst_conduit_node_set_path_external_int64_ptr
#define conduit_node_set_path_external_uint8_ptr catalyst_conduit_node_set_path_external_uint8_ptr
#define conduit_node_set_path_external_uint16_ptr catalyst_conduit_node_set_path_external_uint16_ptr
#define conduit_node_set_path_external_uint32_ptr catalyst_conduit_node_set_path_external_uint32_ptr
#define conduit_node_set_path_external_uint64_ptr catalyst_conduit_node_set_path_external_uint64_ptr
#define conduit_node_set_path_external_float32_ptr catalyst_conduit_node_set_path_external_float32_ptr
#define conduit_node_set_path_external_float64_ptr catalyst_conduit_node_set_path_external_float64_ptr
#define conduit_node_set_path_external_int8_ptr_detailed catalyst_conduit_node_set_path_external_int8_ptr_detailed
#define conduit_node_set_path_external_int16_ptr_detailed catalyst_conduit_node_set_path_external_int16_ptr_detailed
#define conduit_node_set_path_external_int32_ptr_detailed catalyst_conduit_node_set_path_external_int32_ptr_detailed
#define conduit_node_set_path_external_int64_ptr_detailed catalyst_conduit_node_set_path_external_int64_ptr_detailed
#define conduit_node_set_path_external_uint8_ptr_detailed catalyst_conduit_node_set_path_external_uint8_ptr_detailed
#define conduit_node_set_path_external_uint16_ptr_detailed catalyst_conduit_node_set_path_external_uint16_ptr_detailed
#define conduit_node_set_path_external_uint32_ptr_detailed catalyst_conduit_node_set_path_external_uint32_ptr_detailed
#define conduit_node_set_path_external_uint64_ptr_detailed catalyst_conduit_node_set_path_external_uint64_ptr_detailed
#define conduit_node_set_path_external_float32_ptr_detailed catalyst_conduit_node_set_path_external_float32_ptr_detailed
#define conduit_node_set_path_external_float64_ptr_detailed catalyst_conduit_node_set_path_external_float64_ptr_detailed
#define conduit_datatype_id catalyst_conduit_datatype_id
#define conduit_datatype_number_of_elements catalyst_conduit_datatype_number_of_elements
#define conduit_datatype_offset catalyst_conduit_datatype_offset
#define conduit_datatype_stride catalyst_conduit_datatype_stride
#define conduit_datatype_element_bytes catalyst_conduit_datatype_element_bytes
#define conduit_datatype_endianness catalyst_conduit_datatype_endianness
#define conduit_datatype_endianness_matches_machine catalyst_conduit_datatype_endianness_matches_machine
#endif

typedef int64_t conduit_index_t;
struct conduit_node_impl;
typedef struct conduit_node_impl conduit_node;
struct conduit_datatype_impl;
typedef struct conduit_datatype_impl conduit_datatype;

/* Byte orders. */
enum { CONDUIT_ENDIANNESS_DEFAULT_ID = 0, CONDUIT_ENDIANNESS_BIG_ID = 1, CONDUIT_ENDIANNESS_LITTLE_ID = 2 };

enum catalyst_status {
    catalyst_status_ok = 0,
    catalyst_status_error_no_implementation,
    catalyst_status_error_already_loaded,
    catalyst_status_error_not_found,
    catalyst_status_error_not_catalyst,
    catalyst_status_error_incomplete,
    catalyst_status_error_unsupported_version
};

enum catalyst_status catalyst_initialize(const conduit_node *params);
enum catalyst_status catalyst_execute(const conduit_node *params);
enum catalyst_status catalyst_finalize(const conduit_node *params);
enum catalyst_status catalyst_about(conduit_node *params);
enum catalyst_status catalyst_results(conduit_node *params);

conduit_node *conduit_node_create(void);
void conduit_node_destroy(conduit_node *node);
conduit_node *conduit_node_fetch(conduit_node *node, const char *path);
conduit_node *conduit_node_append(conduit_node *node);
conduit_node *conduit_node_child(conduit_node *node, conduit_index_t index);
int conduit_node_has_path(const conduit_node *node, const char *path);
char *conduit_node_name(const conduit_node *node);
conduit_index_t conduit_node_number_of_children(conduit_node *node);
const conduit_datatype *conduit_node_dtype(const conduit_node *node);
void *conduit_node_data_ptr(conduit_node *node);
void conduit_node_set_char8_str(conduit_node *node, const char *value);
void conduit_node_set_path_char8_str(conduit_node *node, const char *path, const char *value);
void conduit_node_set_path_int32(conduit_node *node, const char *path, int32_t value);
void conduit_node_set_path_int64(conduit_node *node, const char *path, int64_t value);
void conduit_node_set_path_float64(conduit_node *node, const char *path, double value);
void conduit_node_set_path_external_int8_ptr(conduit_node *, const char *path, int8_t *, conduit_index_t count);
void conduit_node_set_path_external_int16_ptr(conduit_node *, const char *path, int16_t *, conduit_index_t count);
void conduit_node_set_path_external_int32_ptr(conduit_node *, const char *path, int32_t *, conduit_index_t count);
void conduit_node_set_path_external_int64_ptr(conduit_node *, const char *path, int64_t *, conduit_index_t count);
void conduit_node_set_path_external_uint8_ptr(conduit_node *, const char *path, uint8_t *, conduit_index_t count);
void conduit_node_set_path_external_uint16_ptr(conduit_node *, const char *path, uint16_t *, conduit_index_t count);
void conduit_node_set_path_external_uint32_ptr(conduit_node *, const char *path, uint32_t *, conduit_index_t count);
void conduit_node_set_path_external_uint64_ptr(conduit_node *, const char *path, uint64_t *, conduit_index_t count);
void conduit_node_set_path_external_float32_ptr(conduit_node *, const char *path, float *, conduit_index_t count);
void conduit_node_set_path_external_float64_ptr(conduit_node *, const char *path, double *, conduit_index_t count);
/* Offset, stride and the size of an element are in bytes. */
#define CATALYST_DOUBLE_DETAILED(NAME, TYPE)                                                                              \
    void conduit_node_set_path_external_##NAME##_ptr_detailed(                                                            \
        conduit_node *node, const char *path, TYPE *data, conduit_index_t count, conduit_index_t offset,                  \
        conduit_index_t stride, conduit_index_t element_bytes, conduit_index_t endianness)
CATALYST_DOUBLE_DETAILED(int8, int8_t);
CATALYST_DOUBLE_DETAILED(int16, int16_t);
CATALYST_DOUBLE_DETAILED(int32, int32_t);
CATALYST_DOUBLE_DETAILED(int64, int64_t);
CATALYST_DOUBLE_DETAILED(uint8, uint8_t);
CATALYST_DOUBLE_DETAILED(uint16, uint16_t);
CATALYST_DOUBLE_DETAILED(uint32, uint32_t);
CATALYST_DOUBLE_DETAILED(uint64, uint64_t);
CATALYST_DOUBLE_DETAILED(float32, float);
CATALYST_DOUBLE_DETAILED(float64, double);
conduit_index_t conduit_datatype_id(const conduit_datatype *type);
conduit_index_t conduit_datatype_number_of_elements(const conduit_datatype *type);
conduit_index_t conduit_datatype_offset(const conduit_datatype *type);
conduit_index_t conduit_datatype_stride(const conduit_datatype *type);
conduit_index_t conduit_datatype_element_bytes(const conduit_datatype *type);
conduit_index_t conduit_datatype_endianness(const conduit_datatype *type);
int conduit_datatype_endianness_matches_machine(const conduit_datatype *type);

#endif
