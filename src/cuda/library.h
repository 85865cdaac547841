/* Shared libraries that are opened at run time, and never closed: CUDA's own
 * threads and exit handlers live in them. */
#ifndef TIDELOCK_CUDA_LIBRARY_H
#define TIDELOCK_CUDA_LIBRARY_H

#include "core/backend.h"

/* The first of these names (up to NULL) that can be opened; else
 * TL_UNSUPPORTED, saying what was tried and why it failed. what: "driver
 * library". */
tl_status cuda_library_open(const char *what, const char *const *names,
                            void **library, tl_error *error);
/* Reads one symbol into a pointer to a function; false: it is not there. */
bool cuda_library_symbol(void *library, const char *name, void *function);

#endif
