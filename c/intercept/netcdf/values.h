/* The functions of values: all forms of nc_put_* and nc_get_* of variables. */
#ifndef JUNCTURA_NETCDF_VALUES_H
#define JUNCTURA_NETCDF_VALUES_H

#include "open_file.h"

typedef enum { FORM_VAR, FORM_VAR1, FORM_VARA, FORM_VARS, FORM_VARM } CallForm;

/* A call as the program made it. `real` is the function that it called, `real_part` that of the form vara. */
typedef struct {
    CallForm form;
    const char *name;
    int ncid, id;
    const size_t *start, *count;
    const ptrdiff_t *stride, *map;
    /* NC_NAT: that of the variable. */
    nc_type type;
    void *values;
    AnyFunction real, real_part;
} ValueCall;

int values_put(OpenFile *file, const ValueCall *call);
int values_get(OpenFile *file, const ValueCall *call);

#endif
