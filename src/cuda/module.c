/* Loading kernels, and launching them. */
#include "cuda/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "cuda/embedded.h"
#include "cuda/nvrtc.h"

static const struct {
  cuda_file file;
  const char *name;
} functions[CUDA_FUNCTION_COUNT] = {
#define CUDA_KERNEL(id, file, name) [id] = {file, name},
#include "cuda/kernel_list.h"
#undef CUDA_KERNEL
};

/* The source through NVRTC, when there is no machine code that serves. */
static tl_status module_compile(tl_device_impl *device, cuda_file file,
                                tl_error *error) {
  void *image;
  tl_status status =
      cuda_nvrtc_compile(cuda_file_names[file], cuda_sources[file], "philox.h",
                         cuda_philox_header, device->capability, &image, error);
  if (status != TL_OK)
    return status;
  status = CUDA_CALL(&device->driver, error, cuModuleLoadData,
                     &device->code->modules.module[file], image);
  free(image);
  return status;
}

/* The lock is held. A failure says what either way failed with. */
static tl_status module_load(tl_device_impl *device, cuda_file file,
                             tl_error *error) {
  cuda_modules *modules = &device->code->modules;
  char note[160] = "built without nvcc";
  tl_status status = tl_fault(device->options.faults, "cuda module", error);
  if (status != TL_OK || modules->module[file] != NULL)
    return status;
  if (cuda_fatbins[file] != NULL) {
    status = CUDA_CALL(&device->driver, error, cuModuleLoadData,
                       &modules->module[file], cuda_fatbins[file]);
    if (status == TL_OK || status == TL_DEVICE_LOST ||
        status == TL_OUT_OF_MEMORY)
      return status;
    snprintf(note, sizeof note, "its machine code: %.130s", error->text);
  }
  status = module_compile(device, file, error);
  if (status != TL_OK) {
    char why[800];
    snprintf(why, sizeof why, "%.790s", error->text);
    tl_fail(error, status, "cuda: kernels/%s can't be used: %s; then: %s",
            cuda_file_names[file], note, why);
  }
  return status;
}

/* The slow way: the first use. The lock is held. */
static tl_status function_load(tl_device_impl *device, cuda_function function,
                               tl_error *error) {
  cuda_file file = functions[function].file;
  CUfunction loaded;
  tl_status status = module_load(device, file, error);
  if (status == TL_OK)
    status =
        CUDA_CALL(&device->driver, error, cuModuleGetFunction, &loaded,
                  device->code->modules.module[file], functions[function].name);
  if (status == TL_OK)
    atomic_store_explicit(&device->code->modules.function[function], loaded,
                          memory_order_release);
  return status;
}

bool cuda_function_ready(tl_device_impl *device, cuda_function function) {
  return atomic_load_explicit(&device->code->modules.function[function],
                              memory_order_acquire) != NULL;
}

tl_status cuda_function_get(tl_device_impl *device, cuda_function function,
                            CUfunction *out, tl_error *error) {
  _Atomic(CUfunction) *known = &device->code->modules.function[function];
  tl_status status = TL_OK;
  *out = atomic_load_explicit(known, memory_order_acquire);
  if (*out != NULL)
    return TL_OK;
  pthread_mutex_lock(&device->code->modules.lock);
  if (atomic_load(known) == NULL)
    status = function_load(device, function, error);
  *out = atomic_load(known);
  pthread_mutex_unlock(&device->code->modules.lock);
  return status;
}

tl_status cuda_functions_load(tl_device_impl *device, tl_error *error) {
  tl_status status = TL_OK;
  if (atomic_load(&device->code->modules.all))
    return TL_OK;
  for (int i = 0; i < CUDA_FUNCTION_COUNT && status == TL_OK; i++) {
    CUfunction function;
    int registers; /* asking makes a lazy driver load it */
    status = cuda_function_get(device, (cuda_function)i, &function, error);
    if (status == TL_OK)
      status = CUDA_CALL(&device->driver, error, cuFuncGetAttribute, &registers,
                         CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  }
  if (status == TL_OK)
    atomic_store(&device->code->modules.all, true);
  return status;
}

static tl_status kernel_launch(tl_stream_impl *stream, cuda_function function,
                               cuda_grid grid, cuda_block block,
                               void **arguments, tl_error *error) {
  tl_device_impl *device = stream->device;
  CUfunction kernel;
  tl_status status = cuda_function_get(device, function, &kernel, error);
  if (status != TL_OK)
    return status;
  CUresult result = device->driver.cuLaunchKernel(
      kernel, grid.x, grid.y, grid.z, block.x, block.y, 1, 0, stream->stream,
      arguments, NULL);
  if (result == CUDA_SUCCESS)
    return TL_OK;
  char call[160];
  snprintf(call, sizeof call,
           "cuLaunchKernel of %s, grid %ux%ux%u, block %ux%u",
           functions[function].name, grid.x, grid.y, grid.z, block.x, block.y);
  return cuda_status(&device->driver, call, result, error);
}

tl_status cuda_launch(tl_stream_impl *stream, cuda_count kind,
                      cuda_function function, cuda_grid grid, cuda_block block,
                      void **arguments, tl_error *error) {
  CUcontext before;
  tl_status status = cuda_stream_begin(stream, kind, &before, error);
  if (status != TL_OK)
    return status;
  status = kernel_launch(stream, function, grid, block, arguments, error);
  return cuda_stream_end(stream, kind, before, status);
}
