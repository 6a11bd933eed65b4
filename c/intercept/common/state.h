/* What the parts of the common code share. */
#ifndef JUNCTURA_INTERCEPT_STATE_H
#define JUNCTURA_INTERCEPT_STATE_H

/* The name of this library. */
const char *intercept_library(void);

#endif
