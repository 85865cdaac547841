/* The kernels of kernels/: loaded by the file, at the first use of one of it.
 * Machine code made at build time is used where there is some that the driver
 * and the device take; else NVRTC compiles the embedded source. */
#ifndef TIDELOCK_CUDA_MODULE_H
#define TIDELOCK_CUDA_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/driver.h"

/* Every entry point: the file, and the rest of its name. */
typedef enum cuda_function {
#define CUDA_KERNEL(id, file, name) id,
#include "cuda/kernel_list.h"
#undef CUDA_KERNEL
  CUDA_FUNCTION_COUNT
} cuda_function;

typedef enum cuda_file {
  CUDA_FILE_FILL = 0,
  CUDA_FILE_MATMUL,
  CUDA_FILE_RANDOM,
  CUDA_FILE_TIME,
  CUDA_FILE_COUNT
} cuda_file;

typedef struct cuda_modules {
  pthread_mutex_t lock; /* guards what follows, but for the functions */
  CUmodule module[CUDA_FILE_COUNT];
  _Atomic(CUfunction) function[CUDA_FUNCTION_COUNT];
  atomic_bool all; /* every function is loaded */
} cuda_modules;

typedef struct cuda_grid {
  unsigned int x, y, z;
} cuda_grid;

typedef struct cuda_block {
  unsigned int x, y;
} cuda_block;

/* Whether it has been made ready. */
bool cuda_function_ready(tl_device_impl *device, cuda_function function);
/* Makes a function ready; the context is current. */
tl_status cuda_function_get(tl_device_impl *device, cuda_function function,
                            CUfunction *out, tl_error *error);
/* The same for every function: then no launch loads any code. */
tl_status cuda_functions_load(tl_device_impl *device, tl_error *error);

#endif
