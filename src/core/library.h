/* Shared libraries that back ends open at run time, and never close: their
 * threads and exit handlers live in them. */
#ifndef TIDELOCK_CORE_LIBRARY_H
#define TIDELOCK_CORE_LIBRARY_H

#include "core/backend.h"

/* A function that a library must have. */
typedef struct tl_symbol {
  const char *name;
  void *function; /* the pointer to fill */
} tl_symbol;

/* The first of these names (up to NULL) that can be opened; else
 * TL_UNSUPPORTED, saying what was tried and why it failed. what: "cuda: no
 * driver library". */
tl_status tl_library_open(const char *what, const char *const *names,
                          void **library, tl_error *error);
/* Reads one symbol into a pointer to a function; false: it is not there. */
bool tl_library_symbol(void *library, const char *name, void *function);
/* Reads them all; else TL_UNSUPPORTED, naming the first that is missing, as in
 * "<what> has no <name>: <needed>". */
tl_status tl_library_read(void *library, const tl_symbol *symbols, size_t count,
                          const char *what, const char *needed,
                          tl_error *error);

#endif
