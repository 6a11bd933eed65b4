/* Variables of user-defined types in a file in the pool. */
#define _GNU_SOURCE
#include "user_types.h"

#include <stdlib.h>

static size_t length_in_definitions(const FileVariable *variable, int dim) {
    size_t length = 0;
    return CALL(nc_inq_dimlen, variable->group, dim, &length) == NC_NOERR ? length : 0;
}

void user_types_written(OpenFile *file, const FileVariable *variable) {
    file->is_dirty = true;
    for (size_t at = 0; at < variable->dims; at++) {
        UnlimitedDim *dim = file_unlimited(file, variable->dimids[at]);
        size_t length = dim ? length_in_definitions(variable, dim->id) : 0;
        if (dim && length > dim->length) dim->length = length;
    }
}

/* Writes the fill value, or zeros, as the last element: the real library then fills what is before it. What a fill value
 * points to stays allocated: libnetcdf before 4.9 cannot free it. */
static int write_last(OpenFile *file, const FileVariable *variable, const size_t *last) {
    size_t bytes = 0;
    int status = CALL(nc_inq_type, file->ncid, variable->type, NULL, &bytes);
    void *value = status == NC_NOERR ? calloc(1, bytes ? bytes : 1) : NULL;
    if (!value) return status == NC_NOERR ? NC_ENOMEM : status;
    CALL(nc_get_att, variable->group, variable->id, "_FillValue", value);
    status = CALL(nc_put_var1, variable->group, variable->id, last, value);
    free(value);
    return status;
}

int user_types_extend(OpenFile *file) {
    int status = file_load(file);
    for (size_t each = 0; status == NC_NOERR && each < file->variable_count; each++) {
        const FileVariable *variable = &file->variables[each];
        if (variable->is_handled) continue;
        size_t last[NC_MAX_VAR_DIMS] = {0};
        bool is_shorter = false, has_elements = true;
        for (size_t at = 0; at < variable->dims; at++) {
            const UnlimitedDim *dim = file_unlimited(file, variable->dimids[at]);
            if (!dim) continue;
            if (dim->length == 0) has_elements = false;
            else last[at] = dim->length - 1;
            is_shorter |= length_in_definitions(variable, dim->id) < dim->length;
        }
        if (is_shorter && has_elements) status = write_last(file, variable, last);
    }
    return status;
}
