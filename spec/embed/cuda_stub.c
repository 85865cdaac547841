/* A stand-in for libcuda.so.1 without a GPU: each stream is a thread with a
 * queue of 1021 places, memory is the host's, and kernels are known by name. So
 * the device specs run on src/cuda on any machine, and drivers can be had that
 * are too old, damaged or failing.
 *
 * One lock and one condition for everything: it is slow, and simple.
 *
 * Environment: CUDA_STUB_VERSION (13000); CUDA_STUB_WITHOUT, a function that it
 * lacks; CUDA_STUB_FAIL, "cuLaunchKernel:701": a function that fails, with its
 * result; CUDA_STUB_DEVICES (1). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/driver_types.h"
#include "cuda_stub.h"

/* One object stands for each handle that nothing is kept in. */
static char context, module, pool;
static _Thread_local CUcontext current;
static size_t used, reserved; /* bytes; under the lock */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
} world = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

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
  pthread_mutex_lock(&world.lock);
  *available = *total - reserved;
  pthread_mutex_unlock(&world.lock);
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
  pthread_mutex_lock(&world.lock);
  used += nbytes;
  reserved = reserved > used ? reserved : used;
  pthread_mutex_unlock(&world.lock);
  *address = (CUdeviceptr)(size_t)(bytes + 2);
  return CUDA_SUCCESS;
}

static void memory_free(CUdeviceptr address) {
  size_t *bytes = (size_t *)(size_t)address - 2;
  pthread_mutex_lock(&world.lock);
  used -= *bytes;
  pthread_mutex_unlock(&world.lock);
  free(bytes);
}

static CUresult memory_give(CUdeviceptr address) {
  size_t nbytes = ((size_t *)(size_t)address)[-2];
  memory_free(address);
  pthread_mutex_lock(&world.lock);
  reserved -= nbytes; /* no pool keeps it */
  pthread_mutex_unlock(&world.lock);
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
  pthread_mutex_lock(&world.lock);
  reserved = used;
  pthread_mutex_unlock(&world.lock);
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
  pthread_mutex_lock(&world.lock);
  *(unsigned long long *)value =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? used : reserved;
  pthread_mutex_unlock(&world.lock);
  return CUDA_SUCCESS;
}

static CUresult pool_trim(CUmemoryPool which, size_t keep) {
  (void)which;
  pthread_mutex_lock(&world.lock);
  reserved = used > keep ? used : keep;
  pthread_mutex_unlock(&world.lock);
  return CUDA_SUCCESS;
}

static CUresult pool_allocate(CUdeviceptr *address, size_t nbytes,
                              CUmemoryPool which, CUstream on) {
  (void)which;
  (void)on;
  return memory_take(address, nbytes, "cuMemAllocFromPoolAsync");
}

/* ---- streams and events -------------------------------------------------- */

enum { DEPTH = 1021 };

/* One record of an event; counted, as waits and the event share it. */
typedef struct record {
  int references; /* under the lock, as all of it */
  bool done;
  struct timespec time;
} record;

struct CUevent_st {
  bool timing;
  record *latest; /* NULL: never recorded */
};

typedef struct operation operation;

struct operation {
  operation *next;
  void (*run)(operation *operation);
  bool slot; /* takes a place in the queue */
  const char *kernel;
  unsigned long long argument[20];
  CUDA_MEMCPY3D copy;
  record *event;
};

struct CUstream_st {
  operation *first, **last;
  uint64_t pushed, done;      /* operations */
  uint64_t slots, slots_done; /* of these, with a place */
  bool ends;                  /* destroyed: the thread frees it */
};

static void record_release(record *r) { /* the lock is held */
  if (r != NULL && --r->references == 0)
    free(r);
}

static void *stream_main(void *argument) {
  CUstream s = argument;
  pthread_mutex_lock(&world.lock);
  while (s->first != NULL || !s->ends) {
    operation *next = s->first;
    if (next == NULL) {
      pthread_cond_wait(&world.changed, &world.lock);
      continue;
    }
    pthread_mutex_unlock(&world.lock);
    next->run(next);
    pthread_mutex_lock(&world.lock);
    s->first = next->next;
    if (s->first == NULL)
      s->last = &s->first;
    s->done++;
    s->slots_done += next->slot;
    record_release(next->event);
    free(next);
    pthread_cond_broadcast(&world.changed);
  }
  pthread_mutex_unlock(&world.lock);
  free(s);
  return NULL;
}

static CUresult stream_create(CUstream *out, unsigned int flags) {
  CUresult result = flags == CU_STREAM_NON_BLOCKING
                        ? result_in_context("cuStreamCreate")
                        : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS)
    return result;
  pthread_t thread;
  pthread_attr_t attributes;
  *out = calloc(1, sizeof **out);
  (*out)->last = &(*out)->first;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 1 << 18);
  if (pthread_create(&thread, &attributes, stream_main, *out) != 0)
    result = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_attr_destroy(&attributes);
  return result;
}

static CUresult stream_destroy(CUstream s) {
  pthread_mutex_lock(&world.lock);
  s->ends = true;
  pthread_cond_broadcast(&world.changed);
  pthread_mutex_unlock(&world.lock);
  return CUDA_SUCCESS;
}

/* Waits for a place, where the operation takes one, and puts it in. */
static void stream_push(CUstream s, const operation *like) {
  operation *made = malloc(sizeof *made);
  *made = *like;
  made->next = NULL;
  pthread_mutex_lock(&world.lock);
  while (made->slot && s->slots - s->slots_done >= DEPTH)
    pthread_cond_wait(&world.changed, &world.lock);
  *s->last = made;
  s->last = &made->next;
  s->pushed++;
  s->slots += made->slot;
  pthread_cond_broadcast(&world.changed);
  pthread_mutex_unlock(&world.lock);
}

static CUresult stream_query(CUstream s) {
  CUresult result = result_in_context("cuStreamQuery");
  pthread_mutex_lock(&world.lock);
  if (result == CUDA_SUCCESS && s->done < s->pushed)
    result = CUDA_ERROR_NOT_READY;
  pthread_mutex_unlock(&world.lock);
  return result;
}

static CUresult stream_synchronize(CUstream s) {
  pthread_mutex_lock(&world.lock);
  for (uint64_t pushed = s->pushed; s->done < pushed;)
    pthread_cond_wait(&world.changed, &world.lock);
  pthread_mutex_unlock(&world.lock);
  return result_in_context("cuStreamSynchronize");
}

static void wait_run(operation *o) {
  pthread_mutex_lock(&world.lock);
  while (!o->event->done)
    pthread_cond_wait(&world.changed, &world.lock);
  pthread_mutex_unlock(&world.lock);
}

static CUresult stream_wait(CUstream s, CUevent event, unsigned int flags) {
  (void)flags;
  CUresult result = result_in_context("cuStreamWaitEvent");
  operation o = {.run = wait_run};
  pthread_mutex_lock(&world.lock);
  o.event = event->latest;
  if (o.event != NULL)
    o.event->references++;
  pthread_mutex_unlock(&world.lock);
  if (o.event != NULL)
    stream_push(s, &o);
  return result;
}

static CUresult event_create(CUevent *event, unsigned int flags) {
  CUresult result = result_in_context("cuEventCreate");
  if (result != CUDA_SUCCESS)
    return result;
  *event = calloc(1, sizeof **event);
  (*event)->timing = flags == CU_EVENT_DEFAULT;
  return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event) {
  pthread_mutex_lock(&world.lock);
  record_release(event->latest);
  pthread_mutex_unlock(&world.lock);
  free(event);
  return CUDA_SUCCESS;
}

static void record_run(operation *o) {
  pthread_mutex_lock(&world.lock);
  clock_gettime(CLOCK_MONOTONIC, &o->event->time);
  o->event->done = true;
  pthread_mutex_unlock(&world.lock);
}

static CUresult event_record(CUevent event, CUstream s) {
  CUresult result = result_in_context("cuEventRecord");
  if (result != CUDA_SUCCESS)
    return result;
  operation o = {.run = record_run,
                 .slot = event->timing,
                 .event = calloc(1, sizeof *o.event)};
  o.event->references = 2;
  pthread_mutex_lock(&world.lock);
  record_release(event->latest);
  event->latest = o.event;
  pthread_mutex_unlock(&world.lock);
  stream_push(s, &o);
  return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event) {
  CUresult result = result_in_context("cuEventQuery");
  pthread_mutex_lock(&world.lock);
  if (result == CUDA_SUCCESS && event->latest != NULL && !event->latest->done)
    result = CUDA_ERROR_NOT_READY;
  pthread_mutex_unlock(&world.lock);
  return result;
}

static CUresult event_elapsed(float *milliseconds, CUevent from, CUevent to) {
  const struct timespec *a = &from->latest->time, *b = &to->latest->time;
  *milliseconds = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 +
                          (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return result_in_context("cuEventElapsedTime");
}

/* ---- in a stream's order ------------------------------------------------- */

static void free_run(operation *o) {
  memory_free(o->argument[0]);
}

static CUresult pool_free(CUdeviceptr address, CUstream s) {
  stream_push(s, &(operation){.run = free_run, .argument = {address}});
  return result_in_context("cuMemFreeAsync");
}

static void copy_run(operation *o) {
  memcpy((void *)(size_t)o->argument[0], (const void *)(size_t)o->argument[1],
         o->argument[2]);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t nbytes,
                     CUstream s) {
  CUresult result = result_in_context("cuMemcpyAsync");
  if (result == CUDA_SUCCESS)
    stream_push(s, &(operation){.run = copy_run,
                                .slot = true,
                                .argument = {to, from, nbytes}});
  return result;
}

static void copy_3d_run(operation *o) {
  const CUDA_MEMCPY3D *c = &o->copy;
  const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? c->srcHost
                         : (const char *)(size_t)c->srcDevice;
  char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST
                 ? c->dstHost
                 : (char *)(size_t)c->dstDevice;
  for (size_t z = 0; z < c->Depth; z++)
    for (size_t y = 0; y < c->Height; y++)
      memcpy(to + (z * c->dstHeight + y) * c->dstPitch,
             from + (z * c->srcHeight + y) * c->srcPitch, c->WidthInBytes);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream s) {
  CUresult result = result_in_context("cuMemcpy3DAsync");
  if (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes ||
      c->srcPitch > 1 << 20 || c->dstPitch > 1 << 20)
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    stream_push(s, &(operation){.run = copy_3d_run, .slot = true, .copy = *c});
  return result;
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

static void spin_run(operation *o) {
  struct timespec t = {.tv_sec = (time_t)(o->argument[0] / 1000000000),
                       .tv_nsec = (long)(o->argument[0] % 1000000000)};
  if (o->argument[0] > 0)
    nanosleep(&t, NULL);
}

static void gate_run(operation *o) {
  volatile uint32_t *state = (volatile uint32_t *)(size_t)o->argument[0];
  struct timespec began, now, nap = {.tv_nsec = 50000};
  clock_gettime(CLOCK_MONOTONIC, &began);
  unsigned long long passed = 0;
  while (state[0] == 0 && passed < o->argument[1]) {
    nanosleep(&nap, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    passed = (unsigned long long)((now.tv_sec - began.tv_sec) * 1000000000 +
                                  now.tv_nsec - began.tv_nsec);
  }
  __sync_synchronize();
  if (state[0] == 0)
    state[1] = 1;
  state[2] = 1;
}

/* width, rows, planes, first, pitch, plane_pitch: as in fill.cu. */
static char *element_at(const operation *o, unsigned long long index,
                        size_t size) {
  unsigned long long row = index / o->argument[0];
  return (char *)(size_t)o->argument[3] +
         row / o->argument[1] * o->argument[5] +
         row % o->argument[1] * o->argument[4] + index % o->argument[0] * size;
}

static void fill_run(operation *o) {
  size_t size = (size_t)atoi(o->kernel + strlen("fill_"));
  unsigned long long count = o->argument[0] * o->argument[1] * o->argument[2];
  for (unsigned long long i = 0; i < count; i++)
    memcpy(element_at(o, i, size), &o->argument[6], size);
}

static void random_run(operation *o) {
  unsigned long long count = o->argument[0] * o->argument[1] * o->argument[2];
  for (unsigned long long i = 0; i < count; i++)
    stub_random(o->kernel + strlen("random_"), o->argument[6], i,
                element_at(o, i, stub_element_size(o->kernel)));
}

static void matmul_run(operation *o) {
  stub_matmul(o->kernel, o->argument);
}

/* How many arguments a kernel takes: 8 bytes each, but for a product's factors.
 */
static const struct {
  const char *prefix;
  int arguments;
  void (*run)(operation *);
} kernels[] = {{"spin", 1, spin_run},       {"gate", 2, gate_run},
               {"fill_", 7, fill_run},      {"random_", 7, random_run},
               {"matmul_", 17, matmul_run}, {"bad", 0, spin_run}};

static CUresult launch(CUfunction function, unsigned int grid_x,
                       unsigned int grid_y, unsigned int grid_z,
                       unsigned int block_x, unsigned int block_y,
                       unsigned int block_z, unsigned int shared, CUstream on,
                       void **arguments, void **extra) {
  (void)shared;
  (void)extra;
  operation o = {.kernel = (const char *)(const void *)function, .slot = true};
  CUresult result = result_in_context("cuLaunchKernel");
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 ||
      block_x * block_y * block_z > 1024)
    result = CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS || on == NULL)
    return result;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    if (strncmp(o.kernel, kernels[i].prefix, strlen(kernels[i].prefix)) != 0)
      continue;
    o.run = kernels[i].run;
    bool wide = strstr(o.kernel, "_float64") != NULL;
    for (int a = 0; a < kernels[i].arguments; a++)
      memcpy(&o.argument[a], arguments[a], a >= 15 && !wide ? 4 : 8);
  }
  if (o.run == NULL)
    return (CUresult)500;
  stream_push(on, &o);
  return CUDA_SUCCESS;
}

/* For the stand-in of cuBLAS. */
void cuda_stub_matmul(CUstream stream, const char *kernel,
                      const unsigned long long argument[17]) {
  operation o = {.run = matmul_run, .kernel = kernel, .slot = true};
  memcpy(o.argument, argument, 17 * sizeof *argument);
  stream_push(stream, &o);
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
