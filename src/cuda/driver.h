/* The CUDA driver, libcuda: opened when first needed and never closed. No
 * toolkit is needed to build or to run; what is missing is said in a sentence.
 *
 * The oldest driver that serves is CUDA 11.3's (465): the first from which a
 * function can be had at a given version. Memory pools, of 11.2, are used where
 * the device has them. */
#ifndef TIDELOCK_CUDA_DRIVER_H
#define TIDELOCK_CUDA_DRIVER_H

#include "core/backend.h"
#include "cuda/driver_types.h"

enum { CUDA_OLDEST_DRIVER = 11030 };

/* The driver's functions, under their names without the cu. */
typedef struct cuda_driver {
  int version; /* CUDA version that the driver is for: 13000 */
#define CUDA_FUNCTION(name, version, parameters) CUresult(*name) parameters;
#define CUDA_OPTIONAL(name, version, parameters) CUresult(*name) parameters;
#include "cuda/driver_functions.h"
#undef CUDA_FUNCTION
#undef CUDA_OPTIONAL
} cuda_driver;

/* Opens the library, checks its version, reads the entry points and initializes
 * the driver. TL_UNSUPPORTED: there is no driver; TL_DRIVER: there is one, but
 * it can't be used. */
tl_status cuda_driver_open(cuda_driver *driver, tl_error *error);

/* The status for a result of `call`; fills the error unless it is a success.
 * After a fault of the device every call gives TL_DEVICE_LOST. */
tl_status cuda_status(const cuda_driver *driver, const char *call,
                      CUresult result, tl_error *error);

/* CUDA_CALL(driver, error, cuStreamQuery, stream): calls and translates. */
#define CUDA_CALL(driver, error, function, ...)                                \
  cuda_status(driver, #function, (driver)->function(__VA_ARGS__), error)

#endif
