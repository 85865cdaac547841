/* Opening shared libraries, and saying what was tried. */
#define _GNU_SOURCE
#include "cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

tl_status cuda_library_open(const char *what, const char *const *names,
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
  return tl_fail(error, TL_UNSUPPORTED, "cuda: no %s found (tried: %s)", what,
                 tried);
}

/* dlsym gives an object pointer; this makes a function of it, as POSIX says. */
bool cuda_library_symbol(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}
