/* Memory of the device of virtual time: the host's, with what it takes to find
 * races and to compute nothing twice. */
#include "sim/sim.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

tl_status sim_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                       tl_memory_impl **out, tl_error *error) {
  *out = NULL;
  tl_memory_impl *memory = tl_allocate(
      device->options.faults, "allocate: sim memory", sizeof *memory, error);
  if (memory == NULL)
    return TL_OUT_OF_MEMORY;
  /* Zeroed, so that even contents nobody made are the same in every run. */
  if (nbytes > SIZE_MAX - ALIGNMENT ||
      (memory->block = calloc(1, nbytes + ALIGNMENT)) == NULL) {
    free(memory);
    return tl_fail(error, TL_OUT_OF_MEMORY, "sim: the system has no %zu bytes",
                   nbytes);
  }
  size_t past = (uintptr_t)memory->block % ALIGNMENT;
  memory->bytes = (unsigned char *)memory->block + (ALIGNMENT - past);
  memory->references = 1;
  memory->device = device;
  memory->pinned = pinned;
  memory->counted = pinned ? 0 : nbytes;
  pthread_mutex_lock(&device->lock);
  memory->version = ++device->versions;
  device->held += (int64_t)memory->counted;
  sim_spend(device, device->settings.allocate_cost);
  pthread_mutex_unlock(&device->lock);
  *out = memory;
  return TL_OK;
}

void sim_memory_release(tl_memory_impl *memory) {
  if (--memory->references > 0)
    return;
  memory->device->held -= (int64_t)memory->counted;
  for (size_t i = 0; i < memory->access_count; i++)
    sim_access_release(&memory->accesses[i]);
  free(memory->accesses);
  free(memory->block);
  free(memory);
}

/* Operations have references of their own until they end. */
void sim_release(tl_device_impl *device, tl_memory_impl *memory,
                 const tl_place *uses, size_t count) {
  (void)uses;
  (void)count;
  pthread_mutex_lock(&device->lock);
  sim_memory_release(memory);
  pthread_mutex_unlock(&device->lock);
}

/* ---- reading and writing: the core has waited for all uses --------------- */

static void transfer_spend(tl_device_impl *device, const tl_block *block) {
  const tl_sim_options *s = &device->settings;
  double bytes =
      (double)block->width * (double)block->rows * (double)block->planes;
  sim_race_settle(block->memory);
  sim_spend(device, bytes / s->host_bandwidth);
}

tl_status sim_write(tl_device_impl *device, const tl_block *to,
                    const void *from, tl_error *error) {
  (void)error;
  pthread_mutex_lock(&device->lock);
  transfer_spend(device, to);
  to->memory->version = ++device->versions;
  host_block_write(to->memory->bytes, to, from);
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

tl_status sim_read(tl_device_impl *device, const tl_block *from, void *to,
                   tl_error *error) {
  (void)error;
  pthread_mutex_lock(&device->lock);
  transfer_spend(device, from);
  host_block_read(from->memory->bytes, from, to);
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}
