/* Opening libcuda, and what its results mean. */
#include "cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library.h"

/* cuGetProcAddress of CUDA 11.3; 12.0 added a parameter under another name. */
typedef CUresult get_function(const char *name, void *function, int version,
                              unsigned long long flags);

static tl_status version_read(cuda_driver *driver, void *library,
                              tl_error *error) {
  CUresult (*read)(int *);
  if (!tl_library_symbol(library, "cuDriverGetVersion", &read) ||
      read(&driver->version) != CUDA_SUCCESS)
    return tl_fail(error, TL_DRIVER,
                   "cuda: libcuda does not say which version it is");
  if (driver->version < CUDA_OLDEST_DRIVER)
    return tl_fail(
        error, TL_DRIVER,
        "cuda: the driver is too old: it is for CUDA %d.%d, tidelock "
        "needs one for CUDA %d.%d or later: update the NVIDIA driver",
        driver->version / 1000, driver->version % 1000 / 10,
        CUDA_OLDEST_DRIVER / 1000, CUDA_OLDEST_DRIVER % 1000 / 10);
  return TL_OK;
}

static tl_status function_missing(const cuda_driver *driver, const char *name,
                                  tl_error *error) {
  return tl_fail(error, TL_DRIVER,
                 "cuda: the driver (for CUDA %d.%d) has no %s: it is damaged, "
                 "or no NVIDIA driver",
                 driver->version / 1000, driver->version % 1000 / 10, name);
}

static tl_status functions_read(cuda_driver *driver, void *library,
                                tl_error *error) {
  get_function *get;
  if (!tl_library_symbol(library, "cuGetProcAddress", &get))
    return function_missing(driver, "cuGetProcAddress", error);
#define CUDA_OPTIONAL(name, version, parameters)                               \
  if (get(#name, &driver->name, version, 0) != CUDA_SUCCESS)                   \
    driver->name = NULL;
#define CUDA_FUNCTION(name, version, parameters)                               \
  CUDA_OPTIONAL(name, version, parameters)                                     \
  if (driver->name == NULL)                                                    \
    return function_missing(driver, #name, error);
#include "cuda/driver_functions.h"
#undef CUDA_FUNCTION
#undef CUDA_OPTIONAL
  return TL_OK;
}

/* Why the driver sees no device; the environment may be why. */
static tl_status devices_missing(tl_error *error) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (visible == NULL)
    return tl_fail(error, TL_DRIVER, "cuda: the driver sees no GPU");
  return tl_fail(error, TL_DRIVER,
                 "cuda: the driver sees no GPU (CUDA_VISIBLE_DEVICES is "
                 "'%.64s')",
                 visible);
}

tl_status cuda_driver_open(cuda_driver *driver, tl_error *error) {
  static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  void *library;
  *driver = (cuda_driver){0};
  tl_status status =
      tl_library_open("cuda: no driver library", names, &library, error);
  if (status == TL_OK)
    status = version_read(driver, library, error);
  if (status == TL_OK)
    status = functions_read(driver, library, error);
  if (status != TL_OK)
    return status;
  CUresult result = driver->cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    return devices_missing(error);
  if (cuda_status(driver, "cuInit", result, error) != TL_OK)
    error->code = TL_DRIVER; /* no device of ours is lost by it */
  return result == CUDA_SUCCESS ? TL_OK : TL_DRIVER;
}

/* ---- results ------------------------------------------------------------- */

/* Whether the context is unusable from now on: what the documentation calls a
 * state in which "any further CUDA work will return the same error". */
static bool result_is_fatal(CUresult result) {
  switch ((int)result) {
  case CUDA_ERROR_DEINITIALIZED:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_UNKNOWN:
    return true;
  default: /* stack, instruction, address and launch errors */
    return result >= CUDA_ERROR_HARDWARE_STACK_ERROR &&
           result <= CUDA_ERROR_LAUNCH_FAILED;
  }
}

static tl_status result_status(CUresult result) {
  if (result_is_fatal(result))
    return TL_DEVICE_LOST;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return TL_OUT_OF_MEMORY;
  return result == CUDA_ERROR_NOT_SUPPORTED ? TL_UNSUPPORTED : TL_DRIVER;
}

tl_status cuda_status(const cuda_driver *driver, const char *call,
                      CUresult result, tl_error *error) {
  if (result == CUDA_SUCCESS)
    return TL_OK;
  const char *name = NULL, *text = NULL;
  driver->cuGetErrorName(result, &name);
  driver->cuGetErrorString(result, &text);
  char number[32];
  snprintf(number, sizeof number, "error %d", (int)result);
  return tl_fail(error, result_status(result), "cuda: %s: %s%s%s%s", call,
                 name != NULL ? name : number, text != NULL ? " (" : "",
                 text != NULL ? text : "", text != NULL ? ")" : "");
}
