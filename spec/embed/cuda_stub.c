/* A stand-in for libcuda.so.1 without a GPU: memory is the host's, everything
 * enqueued has run when the call returns, and of the kernels only fill does
 * anything. For what can be tested of src/cuda on any machine: drivers that are
 * too old or damaged, failing calls, contexts, copies.
 *
 * Environment: CUDA_STUB_VERSION (13000); CUDA_STUB_WITHOUT, a function that it
 * lacks; CUDA_STUB_FAIL, "cuLaunchKernel:701": a function that fails, with its
 * result; CUDA_STUB_DEVICES (1). */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/driver_types.h"

/* One object stands for each handle that nothing is kept in. */
static char context, stream, module, pool;
static _Thread_local CUcontext current;
static size_t used, reserved;

static CUresult result_of(const char *function) {
  const char *fail = getenv("CUDA_STUB_FAIL");
  size_t length = strlen(function);
  if (fail == NULL || strncmp(fail, function, length) != 0 ||
      fail[length] != ':')
    return CUDA_SUCCESS;
  return (CUresult)atoi(fail + length + 1);
}

/* What needs a context says so when it is not current. */
static CUresult result_in_context(const char *function) {
  return current == (CUcontext)(void *)&context ? result_of(function)
                                                : (CUresult)201;
}

static int number(const char *variable, int absent) {
  const char *value = getenv(variable);
  return value != NULL ? atoi(value) : absent;
}

/* ---- devices and contexts ------------------------------------------------ */

static CUresult init(unsigned int flags) {
  (void)flags;
  return number("CUDA_STUB_DEVICES", 1) > 0 ? result_of("cuInit")
                                            : CUDA_ERROR_NO_DEVICE;
}

static CUresult error_name(CUresult result, const char **name) {
  *name = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : (int)result == 701 ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
                               : "CUDA_ERROR_OF_THE_STUB";
  return CUDA_SUCCESS;
}

static CUresult error_string(CUresult result, const char **text) {
  (void)result;
  *text = "as asked for";
  return CUDA_SUCCESS;
}

static CUresult device_count(int *count) {
  *count = number("CUDA_STUB_DEVICES", 1);
  return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

static CUresult device_name(char *name, int room, CUdevice device) {
  snprintf(name, (size_t)room, "stub %d", device);
  return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute attribute,
                                 CUdevice device) {
  (void)device;
  *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_PITCH                  ? 1 << 20
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                       : 1;
  return CUDA_SUCCESS;
}

static CUresult device_memory(size_t *total, CUdevice device) {
  (void)device;
  *total = (size_t)1 << 30;
  return CUDA_SUCCESS;
}

static CUresult device_pci(char *text, int room, CUdevice device) {
  (void)device;
  snprintf(text, (size_t)room, "0000:00:00.0");
  return CUDA_SUCCESS;
}

static CUresult context_retain(CUcontext *out, CUdevice device) {
  (void)device;
  *out = (CUcontext)(void *)&context;
  return result_of("cuDevicePrimaryCtxRetain");
}

static CUresult context_current(CUcontext *out) {
  *out = current;
  return CUDA_SUCCESS;
}

static CUresult context_set(CUcontext to) {
  current = to;
  return CUDA_SUCCESS;
}

/* ---- memory -------------------------------------------------------------- */

static CUresult memory_info(size_t *available, size_t *total) {
  *total = (size_t)1 << 30;
  *available = *total - reserved;
  return CUDA_SUCCESS;
}

static CUresult memory_take(CUdeviceptr *address, size_t nbytes,
                            const char *function) {
  CUresult result = result_in_context(function);
  size_t *bytes = result == CUDA_SUCCESS ? malloc(nbytes + 16) : NULL;
  if (result == CUDA_SUCCESS && bytes == NULL)
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS)
    return result;
  *bytes = nbytes;
  used += nbytes;
  reserved = reserved > used ? reserved : used;
  *address = (CUdeviceptr)(size_t)(bytes + 2);
  return CUDA_SUCCESS;
}

static CUresult memory_give(CUdeviceptr address) {
  size_t *bytes = (size_t *)(size_t)address - 2;
  used -= *bytes;
  free(bytes);
  return result_in_context("cuMemFree");
}

static CUresult memory_allocate(CUdeviceptr *address, size_t nbytes) {
  return memory_take(address, nbytes, "cuMemAlloc");
}

static CUresult memory_allocate_host(void **bytes, size_t nbytes,
                                     unsigned int flags) {
  (void)flags;
  *bytes = malloc(nbytes);
  return result_in_context("cuMemHostAlloc");
}

static CUresult memory_host_address(CUdeviceptr *address, void *bytes,
                                    unsigned int flags) {
  (void)flags;
  *address = (CUdeviceptr)(size_t)bytes;
  return CUDA_SUCCESS;
}

static CUresult memory_free_host(void *bytes) {
  free(bytes);
  return result_in_context("cuMemFreeHost");
}

static CUresult pool_create(CUmemoryPool *out,
                            const CUmemPoolProps *properties) {
  (void)properties;
  *out = (CUmemoryPool)(void *)&pool;
  return result_of("cuMemPoolCreate");
}

static CUresult pool_destroy(CUmemoryPool which) {
  (void)which;
  reserved = used;
  return CUDA_SUCCESS;
}

static CUresult pool_set(CUmemoryPool which, CUmemPool_attribute attribute,
                         void *value) {
  (void)which;
  (void)attribute;
  (void)value;
  return CUDA_SUCCESS;
}

static CUresult pool_get(CUmemoryPool which, CUmemPool_attribute attribute,
                         void *value) {
  (void)which;
  *(unsigned long long *)value =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? used : reserved;
  return CUDA_SUCCESS;
}

static CUresult pool_trim(CUmemoryPool which, size_t keep) {
  (void)which;
  reserved = used > keep ? used : keep;
  return CUDA_SUCCESS;
}

static CUresult pool_allocate(CUdeviceptr *address, size_t nbytes,
                              CUmemoryPool which, CUstream on) {
  (void)which;
  (void)on;
  return memory_take(address, nbytes, "cuMemAllocFromPoolAsync");
}

static CUresult pool_free(CUdeviceptr address, CUstream on) {
  (void)on;
  return memory_give(address);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t nbytes,
                     CUstream on) {
  (void)on;
  memcpy((void *)(size_t)to, (const void *)(size_t)from, nbytes);
  return result_in_context("cuMemcpyAsync");
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream on) {
  (void)on;
  const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? c->srcHost
                         : (const char *)(size_t)c->srcDevice;
  char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST
                 ? c->dstHost
                 : (char *)(size_t)c->dstDevice;
  if (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes ||
      c->srcPitch > 1 << 20 || c->dstPitch > 1 << 20)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t z = 0; z < c->Depth; z++)
    for (size_t y = 0; y < c->Height; y++)
      memcpy(to + (z * c->dstHeight + y) * c->dstPitch,
             from + (z * c->srcHeight + y) * c->srcPitch, c->WidthInBytes);
  return result_in_context("cuMemcpy3DAsync");
}

/* ---- streams and events -------------------------------------------------- */

static CUresult stream_create(CUstream *out, unsigned int flags) {
  *out = (CUstream)(void *)&stream;
  return flags == CU_STREAM_NON_BLOCKING ? result_in_context("cuStreamCreate")
                                         : CUDA_ERROR_INVALID_VALUE;
}

static CUresult stream_destroy(CUstream on) {
  (void)on;
  return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream on) {
  (void)on;
  return result_in_context("cuStreamQuery");
}

static CUresult stream_synchronize(CUstream on) {
  (void)on;
  return result_in_context("cuStreamSynchronize");
}

static CUresult stream_wait(CUstream on, CUevent event, unsigned int flags) {
  (void)on;
  (void)event;
  (void)flags;
  return result_in_context("cuStreamWaitEvent");
}

static CUresult event_create(CUevent *event, unsigned int flags) {
  (void)flags;
  *event = calloc(1, sizeof(struct timespec));
  return result_in_context("cuEventCreate");
}

static CUresult event_destroy(CUevent event) {
  free(event);
  return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream on) {
  (void)on;
  clock_gettime(CLOCK_MONOTONIC, (struct timespec *)(void *)event);
  return result_in_context("cuEventRecord");
}

static CUresult event_query(CUevent event) {
  (void)event;
  return result_in_context("cuEventQuery");
}

static CUresult event_elapsed(float *milliseconds, CUevent from, CUevent to) {
  const struct timespec *a = (const void *)from, *b = (const void *)to;
  *milliseconds = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 +
                          (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return CUDA_SUCCESS;
}

/* ---- kernels ------------------------------------------------------------- */

static CUresult module_load(CUmodule *out, const void *image) {
  (void)image;
  *out = (CUmodule)(void *)&module;
  return result_in_context("cuModuleLoadData");
}

/* A function is its name. */
static CUresult module_function(CUfunction *out, CUmodule which,
                                const char *name) {
  (void)which;
  memcpy(out, &name, sizeof name);
  return CUDA_SUCCESS;
}

static CUresult function_attribute(int *value, CUfunction_attribute attribute,
                                   CUfunction function) {
  (void)attribute;
  (void)function;
  *value = 32;
  return CUDA_SUCCESS;
}

/* width, rows, planes, first, pitch, plane_pitch, value: as in fill.cu. */
static void fill(size_t element_size, void **arguments) {
  unsigned long long a[7];
  for (int i = 0; i < 7; i++)
    memcpy(&a[i], arguments[i], sizeof a[i]);
  for (size_t z = 0; z < a[2]; z++)
    for (size_t y = 0; y < a[1]; y++)
      for (size_t x = 0; x < a[0]; x++)
        memcpy((char *)(size_t)a[3] + z * a[5] + y * a[4] + x * element_size,
               &a[6], element_size);
}

static CUresult launch(CUfunction function, unsigned int grid_x,
                       unsigned int grid_y, unsigned int grid_z,
                       unsigned int block_x, unsigned int block_y,
                       unsigned int block_z, unsigned int shared, CUstream on,
                       void **arguments, void **extra) {
  (void)shared;
  (void)on;
  (void)extra;
  const char *name = (const char *)(const void *)function;
  CUresult result = result_in_context("cuLaunchKernel");
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 ||
      block_x * block_y * block_z > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && strncmp(name, "fill_", 5) == 0)
    fill((size_t)atoi(name + 5), arguments);
  return result;
}

/* ---- the library's own entry points -------------------------------------- */

static const struct {
  const char *name;
  void (*function)(void);
} functions[] = {
#define ENTRY(name, function)                                                  \
  { #name, (void (*)(void))function }
    ENTRY(cuGetErrorName, error_name),
    ENTRY(cuGetErrorString, error_string),
    ENTRY(cuInit, init),
    ENTRY(cuDeviceGetCount, device_count),
    ENTRY(cuDeviceGet, device_get),
    ENTRY(cuDeviceGetName, device_name),
    ENTRY(cuDeviceGetAttribute, device_attribute),
    ENTRY(cuDeviceTotalMem, device_memory),
    ENTRY(cuDeviceGetPCIBusId, device_pci),
    ENTRY(cuDevicePrimaryCtxRetain, context_retain),
    ENTRY(cuCtxGetCurrent, context_current),
    ENTRY(cuCtxSetCurrent, context_set),
    ENTRY(cuMemGetInfo, memory_info),
    ENTRY(cuMemAlloc, memory_allocate),
    ENTRY(cuMemFree, memory_give),
    ENTRY(cuMemHostAlloc, memory_allocate_host),
    ENTRY(cuMemHostGetDevicePointer, memory_host_address),
    ENTRY(cuMemFreeHost, memory_free_host),
    ENTRY(cuMemPoolCreate, pool_create),
    ENTRY(cuMemPoolDestroy, pool_destroy),
    ENTRY(cuMemPoolSetAttribute, pool_set),
    ENTRY(cuMemPoolGetAttribute, pool_get),
    ENTRY(cuMemPoolTrimTo, pool_trim),
    ENTRY(cuMemAllocFromPoolAsync, pool_allocate),
    ENTRY(cuMemFreeAsync, pool_free),
    ENTRY(cuMemcpyAsync, copy),
    ENTRY(cuMemcpy3DAsync, copy_3d),
    ENTRY(cuStreamCreate, stream_create),
    ENTRY(cuStreamDestroy, stream_destroy),
    ENTRY(cuStreamQuery, stream_query),
    ENTRY(cuStreamSynchronize, stream_synchronize),
    ENTRY(cuStreamWaitEvent, stream_wait),
    ENTRY(cuEventCreate, event_create),
    ENTRY(cuEventDestroy, event_destroy),
    ENTRY(cuEventRecord, event_record),
    ENTRY(cuEventQuery, event_query),
    ENTRY(cuEventElapsedTime, event_elapsed),
    ENTRY(cuModuleLoadData, module_load),
    ENTRY(cuModuleGetFunction, module_function),
    ENTRY(cuFuncGetAttribute, function_attribute),
    ENTRY(cuLaunchKernel, launch),
};

__attribute__((visibility("default"))) CUresult
cuDriverGetVersion(int *version);
__attribute__((visibility("default"))) CUresult
cuGetProcAddress(const char *name, void *function, int version,
                 unsigned long long flags);

CUresult cuDriverGetVersion(int *version) {
  *version = number("CUDA_STUB_VERSION", 13000);
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void *function, int version,
                          unsigned long long flags) {
  (void)flags;
  const char *without = getenv("CUDA_STUB_WITHOUT");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0 && version <= 13000 &&
        (without == NULL || strcmp(without, name) != 0)) {
      memcpy(function, &functions[i].function, sizeof functions[i].function);
      return CUDA_SUCCESS;
    }
  return (CUresult)500; /* not found */
}
