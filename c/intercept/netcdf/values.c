/* Checks calls of values with the real library, and states what they leave open. */
#define _GNU_SOURCE
#include "values.h"

#include <stdlib.h>

#include "map/mapped.h"
#include "parallel.h"
#include "reading.h"
#include "user_types.h"

/* All numbers of a call. */
typedef struct {
    size_t start[NC_MAX_VAR_DIMS], count[NC_MAX_VAR_DIMS];
    ptrdiff_t stride[NC_MAX_VAR_DIMS], map[NC_MAX_VAR_DIMS];
} StatedCall;

static const size_t zeros[NC_MAX_VAR_DIMS];

typedef int VarFunction(int, int, void *);
typedef int Var1Function(int, int, const size_t *, void *);
typedef int VaraFunction(int, int, const size_t *, const size_t *, void *);
typedef int VarsFunction(int, int, const size_t *, const size_t *, const ptrdiff_t *, void *);
typedef int VarmFunction(int, int, const size_t *, const size_t *, const ptrdiff_t *, const ptrdiff_t *, void *);

/* Makes the call to the real library. All pointers to values are passed in the same way. */
static int call_real(const ValueCall *call) {
    int status = NC_NOERR;
    real_depth++;
    switch (call->form) {
    case FORM_VAR: status = ((VarFunction *)call->real)(call->ncid, call->id, call->values); break;
    case FORM_VAR1: status = ((Var1Function *)call->real)(call->ncid, call->id, call->start, call->values); break;
    case FORM_VARA:
        status = ((VaraFunction *)call->real)(call->ncid, call->id, call->start, call->count, call->values);
        break;
    case FORM_VARS:
        status = ((VarsFunction *)call->real)(call->ncid, call->id, call->start, call->count, call->stride, call->values);
        break;
    case FORM_VARM:
        status = ((VarmFunction *)call->real)(call->ncid, call->id, call->start, call->count, call->stride, call->map,
                                              call->values);
        break;
    }
    real_depth--;
    return status;
}

/* Lets the real library check identifiers, modes and types with a call of no values. */
static int check_call(const ValueCall *call) {
    real_depth++;
    int status = ((VaraFunction *)call->real_part)(call->ncid, call->id, zeros, zeros, call->values);
    real_depth--;
    return status == NC_EINVALCOORDS || status == NC_EEDGE ? NC_NOERR : status;
}

typedef enum { CALL_INSIDE, CALL_OUTSIDE, CALL_BACKWARD, CALL_INVALID } CallBounds;

/* States all numbers of a call. An invalid call is one whose outcome only the real library knows. */
static CallBounds state_call(OpenFile *file, const FileVariable *variable, const ValueCall *call, StatedCall *stated) {
    size_t inner = 0;
    CallBounds bounds = CALL_INSIDE;
    bool is_part = call->form >= FORM_VARA;
    if (variable->dims > 0 && call->form != FORM_VAR && !call->start) return CALL_INVALID;
    for (size_t at = 0; at < variable->dims; at++) {
        const UnlimitedDim *dim = file_unlimited(file, variable->dimids[at]);
        size_t length = dim ? dim->length : variable->shape[inner];
        if (at > 0 || variable->record_dim < 0) inner++;
        stated->start[at] = call->form == FORM_VAR ? 0 : call->start[at];
        stated->stride[at] = is_part && call->stride ? call->stride[at] : 1;
        if (stated->stride[at] < 1) return CALL_BACKWARD;
        size_t left = length > stated->start[at] ? length - stated->start[at] : 0;
        if (call->form == FORM_VAR) stated->count[at] = length;
        else if (call->form == FORM_VAR1) stated->count[at] = 1;
        else if (call->count) stated->count[at] = call->count[at];
        else stated->count[at] = (left + (size_t)stated->stride[at] - 1) / (size_t)stated->stride[at];
        if (dim) {
            if (stated->count[at] > SIZE_MAX / 2 || stated->start[at] > SIZE_MAX / 2) return CALL_INVALID;
            continue;
        }
        if (stated->start[at] > length) bounds = CALL_OUTSIDE;
        if (stated->count[at] > 0 && (left == 0 || (stated->count[at] - 1) > (left - 1) / (size_t)stated->stride[at]))
            bounds = CALL_OUTSIDE;
    }
    ptrdiff_t weight = 1;
    for (size_t at = variable->dims; at-- > 0; weight *= (ptrdiff_t)stated->count[at])
        stated->map[at] = call->form == FORM_VARM && call->map ? call->map[at] : weight;
    return bounds;
}

static DataCall data_call(OpenFile *file, FileVariable *variable, const ValueCall *call, const StatedCall *stated) {
    nc_type type = call->type == NC_NAT ? variable->type : call->type;
    return (DataCall){file, variable, stated->start, stated->count, stated->stride, stated->map, type, call->values};
}

/* Finds the variable of a call. NULL: `status` is the outcome of the call. */
static FileVariable *called_variable(OpenFile *file, const ValueCall *call, bool is_put, int *status) {
    FileVariable *variable = file_variable(file, call->ncid, call->id);
    if (variable && variable->is_handled) return variable;
    if (variable) intercept_fell_through(call->name, file->path);
    if (variable && is_put && file->parallel) {
        /* Each rank has definitions of its own: values of all but one would be lost. */
        *status = pool_status_unsupported();
        return NULL;
    }
    *status = call_real(call);
    if (variable && is_put && *status == NC_NOERR) user_types_written(file, variable);
    return NULL;
}

/* Lets the real library check a call, once for each type in memory and state of the definitions. */
static int checked(OpenFile *file, FileVariable *variable, const ValueCall *call) {
    if (variable->checked_generation == file->generation && variable->checked_type == call->type) return NC_NOERR;
    int status = check_call(call);
    if (status != NC_NOERR) return status;
    variable->checked_generation = file->generation;
    variable->checked_type = call->type;
    return NC_NOERR;
}

int values_put(OpenFile *file, const ValueCall *call) {
    int status = NC_NOERR, of_file = NC_NOERR;
    StatedCall stated;
    if (file->mode == MODE_TEE) {
        FileVariable *variable = file_variable(file, call->ncid, call->id);
        if (!variable || !variable->is_handled || !file->is_written) return call_real(call);
        CallBounds bounds = state_call(file, variable, call, &stated);
        of_file = call_real(call);
        if ((of_file != NC_NOERR && of_file != NC_ERANGE) || bounds != CALL_INSIDE) return of_file;
        status = mapped_check(file, variable);
        if (status != NC_NOERR) return status;
        DataCall data = data_call(file, variable, call, &stated);
        status = file->parallel ? parallel_put(&data) : steps_put(&data);
        return status != NC_NOERR ? status : of_file;
    }
    FileVariable *variable = called_variable(file, call, true, &status);
    if (!variable) return status;
    if (state_call(file, variable, call, &stated) != CALL_INSIDE) return call_real(call);
    status = checked(file, variable, call);
    if (status == NC_NOERR) status = mapped_check(file, variable);
    if (status != NC_NOERR) return status;
    DataCall data = data_call(file, variable, call, &stated);
    return file->parallel ? parallel_put(&data) : steps_put(&data);
}

int values_get(OpenFile *file, const ValueCall *call) {
    if (file->mode == MODE_TEE) return call_real(call);
    int status = NC_NOERR;
    FileVariable *variable = called_variable(file, call, false, &status);
    if (!variable) return status;
    bool needs_lengths = call->form == FORM_VAR || (call->form >= FORM_VARA && !call->count);
    if (needs_lengths && variable->record_dim >= 0 && file->is_read && !file->is_written) {
        status = reading_complete(file);
        if (status != NC_NOERR) return status;
    }
    StatedCall stated;
    CallBounds bounds = state_call(file, variable, call, &stated);
    if (bounds == CALL_INVALID) return call_real(call);
    if (bounds == CALL_BACKWARD) return NC_ESTRIDE;
    DataCall data = data_call(file, variable, call, &stated);
    if (bounds == CALL_OUTSIDE) return reading_bounds(&data);
    /* A scalar has no call of no values: the real library would allocate a text. */
    bool is_text = variable->type == NC_STRING && variable->dims == 0;
    status = is_text ? NC_NOERR : checked(file, variable, call);
    return status == NC_NOERR ? reading_get(&data) : status;
}
