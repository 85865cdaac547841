/* The device of virtual time itself: what it says it is, its clock, its life.
 */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIM_DEVICES = 8 }; /* one of them is listed, as on the host */

static const char name[] = "simulated H200";

static tl_status device_enumerate(int32_t *openable, int32_t *listed,
                                  tl_error *error) {
  (void)error;
  *openable = SIM_DEVICES;
  *listed = 1;
  return TL_OK;
}

static tl_status device_describe(int32_t ordinal, char *text, size_t room,
                                 tl_error *error) {
  (void)ordinal;
  (void)error;
  snprintf(text, room, "%s", name);
  return TL_OK;
}

static int64_t device_total_memory(tl_device_impl *device) {
  (void)device;
  int64_t pages = (int64_t)sysconf(_SC_PHYS_PAGES);
  int64_t size = (int64_t)sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages * size : INT64_MAX;
}

enum { SW_POWER_CAP = 0x4 }; /* as NVML has it */

static int64_t device_throttle_reasons(tl_device_impl *device) {
  pthread_mutex_lock(&device->lock);
  sim_settle(device);
  bool throttled = sim_throttled(device, device->now);
  pthread_mutex_unlock(&device->lock);
  return throttled ? SW_POWER_CAP : 0;
}

/* The limits of the device that is simulated; what it does not simulate, clocks
 * and power, is not told. */
static tl_status device_properties(tl_device_impl *device, tl_properties *p,
                                   tl_error *error) {
  *p = (tl_properties){.compute_capability_major = 9,
                       .compute_capability_minor = 0,
                       .max_threads_per_block = 1024,
                       .max_block_dim = {1024, 1024, 64},
                       .max_grid_dim = {2147483647, 65535, 65535},
                       .max_shared_memory_per_block = 49152,
                       .async_engine_count = 3,
                       .can_map_host_memory = 1,
                       .multiprocessor_count = 132,
                       .warp_size = 32,
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
                       .other_processes = -1,
                       .mig = -1,
                       .mps = -1};
  p->l2_cache_size = (int64_t)device->settings.l2_cache_size;
  p->total_memory = device_total_memory(device);
  p->queue_depth = device->options.queue_depth;
  p->throttle_reasons = device_throttle_reasons(device);
  return device_describe(0, p->name, sizeof p->name, error);
}

static void device_simulation(tl_device_impl *device,
                              tl_sim_options *settings) {
  *settings = device->settings;
}

/* ---- time ---------------------------------------------------------------- */

static int64_t device_clock(tl_device_impl *device, bool charged) {
  pthread_mutex_lock(&device->lock);
  if (charged)
    sim_spend(device, device->settings.clock_cost);
  int64_t now = device->now;
  pthread_mutex_unlock(&device->lock);
  return now;
}

static void device_sleep(tl_device_impl *device, double seconds) {
  pthread_mutex_lock(&device->lock);
  sim_spend(device, seconds);
  pthread_mutex_unlock(&device->lock);
}

/* ---- life ---------------------------------------------------------------- */

static tl_status device_open(int32_t ordinal, const tl_device_options *options,
                             tl_device_impl **out, tl_error *error) {
  (void)ordinal;
  *out = NULL;
  tl_device_impl *device = tl_allocate(options->faults, "allocate: sim device",
                                       sizeof *device, error);
  if (device == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status = sim_settings_read(options->sim, &device->settings, error);
  if (status != TL_OK) {
    free(device);
    return status;
  }
  device->options = *options;
  if (options->faults != NULL)
    tl_faults_retain(options->faults);
  host_blas_begin(&device->blas);
  pthread_mutex_init(&device->lock, NULL);
  *out = device;
  return TL_OK;
}

/* Nothing runs, so nothing outlives this call: the core has let go of all that
 * was made on the device. */
static void device_close(tl_device_impl *device) {
  tl_faults_release(device->options.faults);
  host_blas_end(&device->blas);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

static int64_t device_held_memory(tl_device_impl *device) {
  pthread_mutex_lock(&device->lock);
  sim_settle(device);
  int64_t held = device->held;
  pthread_mutex_unlock(&device->lock);
  return held;
}

const tl_backend tl_sim_backend = {
    .name = "sim",
    .single = true,
    .simulated = true,
    .default_queue_depth = 1024,
    .enumerate = device_enumerate,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .properties = device_properties,
    .simulation = device_simulation,
    .clock = device_clock,
    .sleep = device_sleep,
    .stream_poll = sim_stream_poll,
    .total_memory = device_total_memory,
    .held_memory = device_held_memory,
    .allocate = sim_allocate,
    .release = sim_release,
    .trim = NULL,
    .write = sim_write,
    .read = sim_read,
    .stream_create = sim_stream_create,
    .stream_destroy = sim_stream_destroy,
    .stream_completed = sim_stream_completed,
    .stream_query = sim_stream_query,
    .stream_wait = sim_stream_wait,
    .stream_reserve = sim_stream_reserve,
    .stream_describe = sim_stream_describe,
    .spin = sim_spin,
    .fill = sim_fill,
    .random = sim_random,
    .copy = sim_copy,
    .matmul = sim_matmul,
    .kernels = sim_kernels,
    .kernel_count = SIM_KERNELS,
    .prepare = sim_prepare,
    .event_create = sim_event_create,
    .event_destroy = sim_event_destroy,
    .event_record = sim_event_record,
    .event_query = sim_event_query,
    .event_wait = sim_event_wait,
    .event_elapsed = sim_event_elapsed,
    .stream_wait_event = sim_stream_wait_event,
    .gate_create = sim_gate_create,
    .gate_open = sim_gate_open,
    .gate_destroy = sim_gate_destroy,
};
