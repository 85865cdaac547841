/* Opening shared libraries, and saying what was tried. */
#define _GNU_SOURCE
#include "core/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

tl_status tl_library_open(const char *what, const char *const *names,
                          void **library, tl_error *error) {
  char tried[512] = "";
  for (size_t i = 0; names[i] != NULL; i++) {
    *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (*library != NULL)
      return TL_OK;
    size_t used = strlen(tried);
    const char *why = dlerror();
    snprintf(tried + used, sizeof tried - used, "%s%s", i > 0 ? "; " : "",
             why != NULL ? why : names[i]);
  }
  return tl_fail(error, TL_UNSUPPORTED, "%s found (tried: %s)", what, tried);
}

/* dlsym gives an object pointer; this makes a function of it, as POSIX says. */
bool tl_library_symbol(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

tl_status tl_library_read(void *library, const tl_symbol *symbols, size_t count,
                          const char *what, const char *needed,
                          tl_error *error) {
  for (size_t i = 0; i < count; i++)
    if (!tl_library_symbol(library, symbols[i].name, symbols[i].function))
      return tl_fail(error, TL_UNSUPPORTED, "%s has no %s: %s", what,
                     symbols[i].name, needed);
  return TL_OK;
}
