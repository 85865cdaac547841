/* The CUDA device itself: enumerating, opening, properties, waiting, closing.
 */
#define _GNU_SOURCE
#include "cuda/cuda.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* ---- enumerating --------------------------------------------------------- */

static tl_status device_enumerate(int32_t *openable, int32_t *listed,
                                  tl_error *error) {
  cuda_driver driver;
  int count = 0;
  *openable = *listed = 0;
  tl_status status = cuda_driver_open(&driver, error);
  if (status == TL_OK)
    status = CUDA_CALL(&driver, error, cuDeviceGetCount, &count);
  if (status == TL_OK && count == 0)
    status = tl_fail(error, TL_DRIVER, "cuda: the driver sees no GPU");
  *openable = *listed = count;
  return status;
}

static tl_status device_describe(int32_t ordinal, char *name, size_t room,
                                 tl_error *error) {
  cuda_driver driver;
  CUdevice device;
  tl_status status = cuda_driver_open(&driver, error);
  if (status == TL_OK)
    status = CUDA_CALL(&driver, error, cuDeviceGet, &device, ordinal);
  if (status == TL_OK)
    status =
        CUDA_CALL(&driver, error, cuDeviceGetName, name, (int)room, device);
  return status;
}

/* ---- the current context ------------------------------------------------- */

CUcontext cuda_enter(tl_device_impl *device) {
  CUcontext before = NULL;
  device->driver.cuCtxGetCurrent(&before);
  if (before != device->context)
    device->driver.cuCtxSetCurrent(device->context);
  return before;
}

void cuda_leave(tl_device_impl *device, CUcontext before) {
  if (before != device->context)
    device->driver.cuCtxSetCurrent(before);
}

/* ---- waiting ------------------------------------------------------------- */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The driver's own waits have no time limit. */
enum { POLL_TIME = 1000000, POLL_SHARE = 64, NAP_MOST = 100000 }; /* ns */

tl_status cuda_wait(tl_device_impl *device, cuda_condition *condition,
                    void *subject, double seconds, bool *met, tl_error *error) {
  tl_status status = condition(subject, met, error);
  if (status != TL_OK || *met || seconds == 0)
    return status;
  bool naps = device->options.wait == TL_WAIT_BLOCK;
  bool limited = seconds >= 0 && seconds < 1e9;
  int64_t began = now(), passed = 0;
  int slack = -1; /* the thread's own timer slack, while ours is set */
  int64_t limit = limited ? (int64_t)(seconds * 1e9) : INT64_MAX;
  while (status == TL_OK && !*met && passed < limit) {
    if (naps && passed > POLL_TIME) {
      if (slack < 0) {
        slack = prctl(PR_GET_TIMERSLACK);
        prctl(PR_SET_TIMERSLACK, 1);
      }
      int64_t nap = passed / POLL_SHARE;
      nap = nap < NAP_MOST ? nap : NAP_MOST;
      nap = nap < limit - passed ? nap : limit - passed;
      struct timespec t = {.tv_nsec = (long)nap};
      nanosleep(&t, NULL);
    } else {
      sched_yield();
    }
    status = condition(subject, met, error);
    passed = now() - began;
  }
  if (slack >= 0)
    prctl(PR_SET_TIMERSLACK, slack);
  return status;
}

/* ---- life ---------------------------------------------------------------- */

/* The one mutable global here, as primary contexts are the process's too: what
 * is loaded into each, and the devices that were closed with work in flight,
 * which are freed when the next one is opened or closed. */
static struct {
  pthread_mutex_t lock;
  cuda_code *codes;
  tl_device_impl *left;
  pthread_once_t exit;
  pid_t owner; /* of the gates: a child of fork has no such memory */
} process = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL, PTHREAD_ONCE_INIT, 0};

/* Calls no driver: it sets flags in memory that is there until the driver's own
 * exit handler runs, which was registered earlier and so comes later. */
static void gates_open(void) {
  if (getpid() != process.owner)
    return;
  for (cuda_code *code = process.codes; code != NULL; code = code->next)
    cuda_gates_open(code);
}

static void gates_open_at_exit(void) {
  process.owner = getpid();
  atexit(gates_open);
}

void cuda_exit_prepare(void) {
  pthread_once(&process.exit, gates_open_at_exit);
}

/* Ends what has run. True: nothing is in flight any more. */
static bool device_settle(tl_device_impl *device) {
  pthread_mutex_lock(&device->lock);
  cuda_memory_sweep(device);
  for (tl_stream_impl **link = &device->orphans; *link != NULL;) {
    tl_stream_impl *stream = *link, *next = stream->next;
    if (device->driver.cuStreamQuery(stream->stream) == CUDA_ERROR_NOT_READY) {
      link = &stream->next;
      continue;
    }
    cuda_stream_uses_forget(stream);
    cuda_stream_finish(stream);
    *link = next;
  }
  bool settled = device->orphans == NULL;
  pthread_mutex_unlock(&device->lock);
  return settled;
}

static void device_free(tl_device_impl *device) {
  cuda_memory_close(device);
  tl_faults_release(device->options.faults);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

/* Frees the device if nothing is in flight. */
static bool device_finish(tl_device_impl *device) {
  CUcontext before = cuda_enter(device);
  cuda_driver driver = device->driver;
  CUcontext ours = device->context;
  bool settled = device_settle(device);
  if (settled)
    device_free(device);
  if (before != ours)
    driver.cuCtxSetCurrent(before);
  return settled;
}

static void left_sweep(void) {
  pthread_mutex_lock(&process.lock);
  for (tl_device_impl **link = &process.left; *link != NULL;) {
    tl_device_impl *device = *link, *next = device->next;
    if (device->owner == (int64_t)getpid() && device_finish(device))
      *link = next;
    else
      link = &device->next;
  }
  pthread_mutex_unlock(&process.lock);
}

static void device_close(tl_device_impl *device) {
  left_sweep();
  if (device_finish(device))
    return;
  pthread_mutex_lock(&process.lock);
  device->next = process.left;
  process.left = device;
  pthread_mutex_unlock(&process.lock);
}

static int attribute(const tl_device_impl *device, CUdevice_attribute which) {
  int value = -1;
  device->driver.cuDeviceGetAttribute(&value, which, device->device);
  return value;
}

static tl_status context_open(tl_device_impl *device, tl_error *error) {
  const cuda_driver *driver = &device->driver;
  size_t total = 0;
  tl_status status =
      CUDA_CALL(driver, error, cuDeviceGet, &device->device, device->ordinal);
  if (status == TL_OK)
    status = CUDA_CALL(driver, error, cuDeviceTotalMem, &total, device->device);
  if (status == TL_OK)
    status = CUDA_CALL(driver, error, cuDevicePrimaryCtxRetain,
                       &device->context, device->device);
  device->total = (int64_t)total;
  device->max_pitch = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  device->processors =
      attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  device->capability =
      10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
      attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return status;
}

/* Finds what is loaded into the device's context, or begins it. */
static tl_status code_open(tl_device_impl *device, tl_error *error) {
  pthread_mutex_lock(&process.lock);
  cuda_code *code = process.codes;
  while (code != NULL && code->context != device->context)
    code = code->next;
  if (code == NULL &&
      (code = tl_allocate(device->options.faults, "allocate: cuda code",
                          sizeof *code, error)) != NULL) {
    code->context = device->context;
    pthread_mutex_init(&code->modules.lock, NULL);
    pthread_mutex_init(&code->blas.opening, NULL);
    pthread_mutex_init(&code->blas.lock, NULL);
    pthread_mutex_init(&code->nvml.opening, NULL);
    pthread_mutex_init(&code->gate_lock, NULL);
    pthread_mutex_init(&code->spare_lock, NULL);
    code->next = process.codes;
    process.codes = code;
  }
  pthread_mutex_unlock(&process.lock);
  device->code = code;
  return code != NULL ? TL_OK : TL_OUT_OF_MEMORY;
}

static tl_status device_open(int32_t ordinal, const tl_device_options *options,
                             tl_device_impl **out, tl_error *error) {
  *out = NULL;
  left_sweep();
  tl_device_impl *device = tl_allocate(options->faults, "allocate: cuda device",
                                       sizeof *device, error);
  if (device == NULL)
    return TL_OUT_OF_MEMORY;
  device->options = *options;
  device->ordinal = ordinal;
  device->owner = (int64_t)getpid();
  tl_status status = cuda_driver_open(&device->driver, error);
  if (status == TL_OK)
    status = context_open(device, error);
  if (status == TL_OK)
    status = code_open(device, error);
  if (status != TL_OK) {
    free(device);
    return status;
  }
  pthread_mutex_init(&device->lock, NULL);
  if (options->faults != NULL)
    tl_faults_retain(options->faults);
  CUcontext before = cuda_enter(device);
  status = cuda_memory_open(device, error);
  cuda_leave(device, before);
  if (status != TL_OK) {
    device_close(device);
    return status;
  }
  *out = device;
  return TL_OK;
}

/* ---- properties ---------------------------------------------------------- */

static int64_t hertz(int kilohertz) {
  return kilohertz > 0 ? (int64_t)kilohertz * 1000 : -1;
}

/* NULL: the GPU has no PCI id to ask with. */
static const cuda_nvml *device_nvml(tl_device_impl *device) {
  char pci_id[32] = "";
  if (device->driver.cuDeviceGetPCIBusId(pci_id, (int)sizeof pci_id,
                                         device->device) != CUDA_SUCCESS)
    return NULL;
  cuda_nvml_open(&device->code->nvml, pci_id);
  return &device->code->nvml;
}

static tl_status device_properties(tl_device_impl *device, tl_properties *p,
                                   tl_error *error) {
  const struct {
    int64_t *value;
    CUdevice_attribute which;
  } numbers[] = {
      {&p->compute_capability_major,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {&p->compute_capability_minor,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {&p->max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {&p->max_block_dim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
      {&p->max_block_dim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
      {&p->max_block_dim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z},
      {&p->max_grid_dim[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
      {&p->max_grid_dim[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
      {&p->max_grid_dim[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
      {&p->max_shared_memory_per_block,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
      {&p->async_engine_count, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
      {&p->can_map_host_memory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
      {&p->multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {&p->warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {&p->unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
      {&p->pci_bus_id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
      {&p->pci_device_id, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
      {&p->l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {&p->memory_bus_width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
  };
  const cuda_driver *driver = &device->driver;
  tl_status status = CUDA_CALL(driver, error, cuDeviceGetName, p->name,
                               (int)sizeof p->name, device->device);
  if (status != TL_OK)
    return status;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    *numbers[i].value = attribute(device, numbers[i].which);
  p->clock_rate = hertz(attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  p->memory_clock_rate =
      hertz(attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
  p->driver_version = driver->version;
  p->total_memory = device->total;
  p->queue_depth =
      device->options.queue_depth > 0 ? device->options.queue_depth : -1;
  p->power_limit = p->sm_clock = p->memory_clock = p->throttle_reasons = -1;
  p->other_processes = p->mig = p->mps = -1;
  const cuda_nvml *nvml = device_nvml(device);
  if (nvml != NULL)
    cuda_nvml_read(nvml, p);
  return TL_OK;
}

static int64_t device_total_memory(tl_device_impl *device) {
  return device->total;
}

const tl_backend tl_cuda_backend = {
    .name = "cuda",
    .single = false,
    .default_queue_depth = 0, /* the driver's */
    .enumerate = device_enumerate,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .properties = device_properties,
    .precision_override = cuda_blas_overrides,
    .total_memory = device_total_memory,
    .held_memory = cuda_held_memory,
    .memory_info = cuda_memory_info,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .trim = cuda_trim,
    .write = cuda_write,
    .read = cuda_read,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_completed = cuda_stream_completed,
    .stream_query = cuda_stream_query,
    .stream_wait = cuda_stream_wait,
    .stream_reserve = cuda_stream_reserve,
    .spin = cuda_spin,
    .fill = cuda_fill,
    .random = cuda_random,
    .copy = cuda_copy,
    .matmul = cuda_matmul,
    .kernels = cuda_kernels,
    .kernel_count = CUDA_KERNELS,
    .prepare = cuda_prepare,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .event_elapsed = cuda_event_elapsed,
    .stream_wait_event = cuda_stream_wait_event,
    .gate_create = cuda_gate_create,
    .gate_open = cuda_gate_open,
    .gate_destroy = cuda_gate_destroy,
};
