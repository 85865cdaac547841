/* The host device itself: the processor, its properties, and time. */
#define _GNU_SOURCE
#include "host/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ordinals above 0 are further devices on the same processor, for code that
 * uses several: they can be opened, but only one is listed. */
enum { HOST_DEVICES = 8 };

/* ---- time ---------------------------------------------------------------- */

int64_t host_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t host_deadline(double seconds) {
  if (seconds < 0 || seconds > 1e9)
    return INT64_MAX;
  return host_now() + (int64_t)(seconds * 1e9);
}

void host_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool host_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                         int64_t deadline) {
  if (deadline == INT64_MAX)
    return pthread_cond_wait(condition, lock) == 0;
  struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
                           .tv_nsec = (long)(deadline % 1000000000)};
  return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

/* ---- the processor ------------------------------------------------------- */

static tl_status device_enumerate(int32_t *openable, int32_t *listed,
                                  tl_error *error) {
  (void)error;
  *openable = HOST_DEVICES;
  *listed = 1;
  return TL_OK;
}

/* Reads one "key : value" of /proc/cpuinfo; false: there is none. */
static bool cpuinfo_read(const char *key, char *value, size_t room) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL)
    return false;
  char line[256];
  bool found = false;
  while (!found && fgets(line, sizeof line, file) != NULL) {
    char *colon = strchr(line, ':');
    if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
      continue;
    snprintf(value, room, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    found = true;
  }
  fclose(file);
  return found;
}

static tl_status device_describe(int32_t ordinal, char *name, size_t room,
                                 tl_error *error) {
  (void)ordinal;
  (void)error;
  if (!cpuinfo_read("model name", name, room))
    snprintf(name, room, "CPU");
  return TL_OK;
}

static int64_t system_value(int name) {
  long value = sysconf(name);
  return value > 0 ? (int64_t)value : -1;
}

static int64_t device_total_memory(tl_device_impl *device) {
  (void)device;
  int64_t pages = system_value(_SC_PHYS_PAGES);
  int64_t size = system_value(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages * size : INT64_MAX;
}

static tl_status device_properties(tl_device_impl *device, tl_properties *p,
                                   tl_error *error) {
  *p = (tl_properties){.compute_capability_major = -1,
                       .compute_capability_minor = -1,
                       .max_threads_per_block = 1,
                       .max_block_dim = {1, 1, 1},
                       .max_grid_dim = {1, 1, 1},
                       .max_shared_memory_per_block = 0,
                       .async_engine_count = 0,
                       .can_map_host_memory = 1,
                       .warp_size = 1,
                       .unified_addressing = 1,
                       .pci_bus_id = -1,
                       .pci_device_id = -1,
                       .clock_rate = -1,
                       .driver_version = -1,
                       .memory_clock_rate = -1,
                       .memory_bus_width = -1,
                       .power_limit = -1,
                       .sm_clock = -1,
                       .memory_clock = -1,
                       .throttle_reasons = -1,
                       .other_processes = -1,
                       .mig = -1,
                       .mps = -1};
  device_describe(0, p->name, sizeof p->name, error);
  p->multiprocessor_count = system_value(_SC_NPROCESSORS_ONLN);
#ifdef _SC_LEVEL2_CACHE_SIZE
  p->l2_cache_size = system_value(_SC_LEVEL2_CACHE_SIZE);
#else
  p->l2_cache_size = -1;
#endif
  char megahertz[32];
  if (cpuinfo_read("cpu MHz", megahertz, sizeof megahertz))
    p->clock_rate = (int64_t)(strtod(megahertz, NULL) * 1e6);
  p->total_memory = device_total_memory(device);
  p->queue_depth = device->options.queue_depth;
  return TL_OK;
}

/* ---- life ---------------------------------------------------------------- */

static tl_status device_open(int32_t ordinal, const tl_device_options *options,
                             tl_device_impl **out, tl_error *error) {
  (void)ordinal;
  *out = NULL;
  tl_device_impl *device = tl_allocate(options->faults, "allocate: host device",
                                       sizeof *device, error);
  if (device == NULL)
    return TL_OUT_OF_MEMORY;
  atomic_init(&device->references, 1);
  device->options = *options;
  if (options->faults != NULL)
    tl_faults_retain(options->faults);
  host_blas_begin(&device->blas);
  *out = device;
  return TL_OK;
}

void host_device_retain(tl_device_impl *device) {
  atomic_fetch_add(&device->references, 1);
}

void host_device_release(tl_device_impl *device) {
  if (atomic_fetch_sub(&device->references, 1) != 1)
    return;
  tl_faults_release(device->options.faults);
  host_blas_end(&device->blas);
  free(device);
}

static int64_t device_held_memory(tl_device_impl *device) {
  return atomic_load(&device->held);
}

const tl_backend tl_host_backend = {
    .name = "host",
    .single = true,
    .default_queue_depth = 1024,
    .enumerate = device_enumerate,
    .describe = device_describe,
    .open = device_open,
    .close = host_device_release,
    .properties = device_properties,
    .total_memory = device_total_memory,
    .held_memory = device_held_memory,
    .allocate = host_allocate,
    .release = host_release,
    .trim = NULL,
    .write = host_write,
    .read = host_read,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_completed = host_stream_completed,
    .stream_query = host_stream_query,
    .stream_wait = host_stream_wait,
    .stream_reserve = host_stream_reserve,
    .spin = host_spin,
    .fill = host_fill,
    .random = host_random,
    .copy = host_copy,
    .matmul = host_matmul,
    .kernels = host_kernels,
    .kernel_count = HOST_KERNELS,
    .prepare = host_prepare,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_wait = host_event_wait,
    .event_elapsed = host_event_elapsed,
    .stream_wait_event = host_stream_wait_event,
    .gate_create = host_gate_create,
    .gate_open = host_gate_open,
    .gate_destroy = host_gate_destroy,
};
