/* Errors: filling the caller's struct, and the names of the codes. */
#include "core/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tl_status tl_fail(tl_error *error, tl_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (error != NULL) {
    memset(error, 0, offsetof(tl_error, text));
    error->code = (int32_t)code;
    vsnprintf(error->text, sizeof error->text, format, arguments);
  }
  va_end(arguments);
  return code;
}

const char *tl_status_name(int32_t status) {
  static const char *const names[] = {
      [TL_OK] = "ok",
      [TL_INVALID_ARGUMENT] = "invalid_argument",
      [TL_OUT_OF_MEMORY] = "out_of_memory",
      [TL_DEVICE_LOST] = "device_lost",
      [TL_TIMED_OUT] = "timed_out",
      [TL_LIMIT] = "limit",
      [TL_UNSUPPORTED] = "unsupported",
      [TL_DRIVER] = "driver",
      [TL_IO] = "io",
      [TL_WOULD_BLOCK] = "would_block",
      [TL_RACE] = "race",
  };
  if (status < 0 || (size_t)status >= sizeof names / sizeof names[0])
    return "unknown";
  return names[status];
}

const char *tl_version(void) {
  return TL_VERSION;
}
