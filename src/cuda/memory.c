/* Memory of the CUDA device, from a pool of its own, and pinned memory.
 *
 * Released memory stays pending until the host sees that its last uses have
 * run; then it goes back on a stream that never waits. Freeing behind the uses
 * on that stream instead would put a wait and a free into a launch queue for
 * each buffer, and block when a held-back stream has left a thousand. */
#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEP_LEAST = 32 }; /* pending, before a release looks through them */

/* Pinned memory, and memory of a device without pools, is slow to get, and
 * giving it back waits for all work on the device: so it is kept for the next
 * one, whichever device of the context that is, until there is too little or
 * somebody trims. Sizes are rounded up to find it again; where more than this
 * is kept, a larger piece serves too. */
static const size_t spare_most = (size_t)256 << 20;
static const size_t spare_least = 4096;

/* ---- life ---------------------------------------------------------------- */

static tl_status pool_open(tl_device_impl *device, tl_error *error) {
  const cuda_driver *driver = &device->driver;
  int supported = 0;
  if (driver->cuMemAllocFromPoolAsync == NULL ||
      driver->cuMemFreeAsync == NULL || driver->cuMemPoolCreate == NULL ||
      driver->cuMemPoolDestroy == NULL ||
      driver->cuMemPoolSetAttribute == NULL ||
      driver->cuMemPoolGetAttribute == NULL ||
      driver->cuMemPoolTrimTo == NULL ||
      driver->cuDeviceGetAttribute(&supported,
                                   CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                   device->device) != CUDA_SUCCESS ||
      supported == 0)
    return TL_OK;
  CUmemPoolProps properties = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->device}};
  tl_status status =
      CUDA_CALL(driver, error, cuMemPoolCreate, &device->pool, &properties);
  if (status != TL_OK)
    return status;
  unsigned long long keep = UINT64_MAX; /* what trim is for */
  int never = 0; /* an allocation waits for nobody's work */
  status = CUDA_CALL(driver, error, cuMemPoolSetAttribute, device->pool,
                     CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  if (status == TL_OK)
    status =
        CUDA_CALL(driver, error, cuMemPoolSetAttribute, device->pool,
                  CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &never);
  return status;
}

tl_status cuda_memory_open(tl_device_impl *device, tl_error *error) {
  const cuda_driver *driver = &device->driver;
  tl_status status = CUDA_CALL(driver, error, cuStreamCreate,
                               &device->memory_stream, CU_STREAM_NON_BLOCKING);
  if (status == TL_OK)
    status = CUDA_CALL(driver, error, cuStreamCreate, &device->transfer_stream,
                       CU_STREAM_NON_BLOCKING);
  if (status == TL_OK)
    status = pool_open(device, error);
  return status;
}

/* ---- bytes of the device ------------------------------------------------- */

/* Whole pages of the device for what is large, as cuMemAlloc gives them: a pool
 * would start a buffer where the last one ended. */
enum { LARGE = 1 << 20, DEVICE_PAGE = 2 << 20 };

tl_status cuda_bytes_allocate(tl_device_impl *device, size_t nbytes,
                              CUdeviceptr *address, tl_error *error) {
  if (nbytes >= LARGE && nbytes <= SIZE_MAX - DEVICE_PAGE)
    nbytes = (nbytes + DEVICE_PAGE - 1) / DEVICE_PAGE * DEVICE_PAGE;
  const cuda_driver *driver = &device->driver;
  if (device->pool == NULL)
    return CUDA_CALL(driver, error, cuMemAlloc, address, nbytes);
  tl_status status = CUDA_CALL(driver, error, cuMemAllocFromPoolAsync, address,
                               nbytes, device->pool, device->memory_stream);
  /* The stream never has work, so this is no wait: it makes the memory every
   * other stream's to use. */
  if (status == TL_OK)
    status =
        CUDA_CALL(driver, error, cuStreamSynchronize, device->memory_stream);
  return status;
}

void cuda_bytes_free(tl_device_impl *device, CUdeviceptr address) {
  if (device->pool != NULL)
    device->driver.cuMemFreeAsync(address, device->memory_stream);
  else
    device->driver.cuMemFree(address);
}

/* ---- memory that is kept ------------------------------------------------- */

/* A size that is likely to be asked for again: 1/8 is the most that is added
 * to large ones. */
static size_t spare_round(size_t nbytes) {
  size_t step = spare_least;
  while (step < nbytes / 16)
    step *= 2;
  return (nbytes + step - 1) / step * step;
}

static void spare_put(tl_device_impl *device, tl_memory_impl *memory) {
  cuda_code *code = device->code;
  pthread_mutex_lock(&code->spare_lock);
  memory->next = code->spare;
  code->spare = memory;
  code->spare_bytes += memory->room;
  pthread_mutex_unlock(&code->spare_lock);
}

static tl_memory_impl *spare_take(tl_device_impl *device, size_t room,
                                  bool pinned) {
  cuda_code *code = device->code;
  tl_memory_impl **found = NULL;
  pthread_mutex_lock(&device->lock);
  cuda_memory_sweep(device);
  pthread_mutex_unlock(&device->lock);
  pthread_mutex_lock(&code->spare_lock);
  for (tl_memory_impl **m = &code->spare; *m != NULL; m = &(*m)->next)
    if (((*m)->host != NULL) == pinned &&
        ((*m)->room == room || (found == NULL && (*m)->room > room &&
                                code->spare_bytes > spare_most)))
      found = m;
  tl_memory_impl *memory = found != NULL ? *found : NULL;
  if (memory != NULL) {
    *found = memory->next;
    code->spare_bytes -= memory->room;
  }
  pthread_mutex_unlock(&code->spare_lock);
  return memory;
}

/* Bytes of the device that are kept. */
static int64_t spare_bytes(tl_device_impl *device) {
  cuda_code *code = device->code;
  int64_t bytes = 0;
  pthread_mutex_lock(&code->spare_lock);
  for (tl_memory_impl *m = code->spare; m != NULL; m = m->next)
    bytes += m->host == NULL ? (int64_t)m->room : 0;
  pthread_mutex_unlock(&code->spare_lock);
  return bytes;
}

/* Gives all of it back: waits, and holds no lock. */
static void spare_free(tl_device_impl *device) {
  cuda_code *code = device->code;
  pthread_mutex_lock(&code->spare_lock);
  tl_memory_impl *spare = code->spare;
  code->spare = NULL;
  code->spare_bytes = 0;
  pthread_mutex_unlock(&code->spare_lock);
  while (spare != NULL) {
    tl_memory_impl *memory = spare;
    spare = memory->next;
    if (memory->host != NULL)
      device->driver.cuMemFreeHost(memory->host);
    else
      device->driver.cuMemFree(memory->address);
    free(memory);
  }
}

static tl_status pinned_allocate(tl_device_impl *device, tl_memory_impl *memory,
                                 tl_error *error) {
  const cuda_driver *driver = &device->driver;
  tl_status status = TL_OUT_OF_MEMORY;
  for (int tries = 0; tries < 2 && status == TL_OUT_OF_MEMORY; tries++) {
    if (tries > 0)
      spare_free(device);
    status =
        CUDA_CALL(driver, error, cuMemHostAlloc, &memory->host, memory->room,
                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  }
  if (status != TL_OK)
    return status;
  status = CUDA_CALL(driver, error, cuMemHostGetDevicePointer, &memory->address,
                     memory->host, 0);
  if (status != TL_OK)
    driver->cuMemFreeHost(memory->host);
  return status;
}

/* ---- freeing what is not in use ------------------------------------------ */

/* The lock is held, here and below. */
static void memory_free(tl_device_impl *device, tl_memory_impl *memory) {
  if (memory->uses != memory->few)
    free(memory->uses);
  memory->uses = memory->few;
  memory->use_count = 0;
  if (memory->host == NULL)
    atomic_fetch_sub(&device->held, (int64_t)memory->nbytes);
  if (memory->host != NULL || device->pool == NULL) {
    spare_put(device, memory);
  } else {
    cuda_bytes_free(device, memory->address);
    free(memory);
  }
}

/* Drops the uses that have ended; true: there are none left. */
static bool uses_ended(tl_memory_impl *memory) {
  for (size_t i = memory->use_count; i-- > 0;)
    if (memory->uses[i].stream != NULL &&
        cuda_stream_reached(memory->uses[i].stream, memory->uses[i].launches))
      memory->uses[i] = memory->uses[--memory->use_count];
  return memory->use_count == 0;
}

void cuda_memory_sweep(tl_device_impl *device) {
  if (device->pending == NULL)
    return;
  CUcontext before = cuda_enter(device);
  device->sweep++;
  for (tl_memory_impl **link = &device->pending; *link != NULL;) {
    tl_memory_impl *memory = *link;
    if (!uses_ended(memory)) {
      link = &memory->next;
      continue;
    }
    *link = memory->next;
    device->pending_count--;
    memory_free(device, memory);
  }
  device->pending_sweep = 2 * device->pending_count + SWEEP_LEAST;
  cuda_leave(device, before);
}

void cuda_memory_close(tl_device_impl *device) {
  const cuda_driver *driver = &device->driver;
  while (device->pending != NULL) {
    tl_memory_impl *memory = device->pending;
    device->pending = memory->next;
    memory_free(device, memory);
  }
  if (device->memory_stream != NULL)
    driver->cuStreamDestroy(device->memory_stream);
  if (device->transfer_stream != NULL)
    driver->cuStreamDestroy(device->transfer_stream);
  if (device->pool != NULL)
    driver->cuMemPoolDestroy(device->pool);
}

/* ---- the slots ----------------------------------------------------------- */

tl_status cuda_allocate(tl_device_impl *device, size_t nbytes, bool pinned,
                        tl_memory_impl **out, tl_error *error) {
  *out = NULL;
  bool kept = pinned || device->pool == NULL;
  size_t room = kept ? spare_round(nbytes) : nbytes;
  tl_memory_impl *memory = kept ? spare_take(device, room, pinned) : NULL;
  if (memory == NULL) {
    memory = tl_allocate(device->options.faults, "allocate: cuda memory",
                         sizeof *memory, error);
    if (memory == NULL)
      return TL_OUT_OF_MEMORY;
    memory->room = room;
    memory->uses = memory->few;
    CUcontext before = cuda_enter(device);
    tl_status status =
        pinned ? pinned_allocate(device, memory, error)
               : cuda_bytes_allocate(device, room, &memory->address, error);
    cuda_leave(device, before);
    if (status != TL_OK) {
      free(memory);
      return status;
    }
  }
  memory->nbytes = nbytes;
  if (!pinned)
    atomic_fetch_add(&device->held, (int64_t)nbytes);
  *out = memory;
  return TL_OK;
}

/* Keeps the uses with the memory. Without memory for them it waits for the
 * device to be closed. */
static void uses_keep(tl_memory_impl *memory, const tl_place *uses,
                      size_t count) {
  if (count > CUDA_USES) {
    memory->uses = malloc(count * sizeof *uses);
    if (memory->uses == NULL) {
      memory->uses = memory->few;
      memory->few[0] = (tl_place){NULL, UINT64_MAX};
      memory->use_count = 1;
      return;
    }
  }
  if (count > 0)
    memcpy(memory->uses, uses, count * sizeof *uses);
  memory->use_count = count;
}

void cuda_release(tl_device_impl *device, tl_memory_impl *memory,
                  const tl_place *uses, size_t count) {
  CUcontext before = cuda_enter(device);
  uses_keep(memory, uses, count);
  pthread_mutex_lock(&device->lock);
  device->sweep++;
  if (uses_ended(memory)) {
    memory_free(device, memory);
  } else {
    memory->next = device->pending;
    device->pending = memory;
    if (++device->pending_count >= device->pending_sweep)
      cuda_memory_sweep(device);
  }
  pthread_mutex_unlock(&device->lock);
  cuda_leave(device, before);
}

int64_t cuda_held_memory(tl_device_impl *device) {
  pthread_mutex_lock(&device->lock);
  cuda_memory_sweep(device);
  pthread_mutex_unlock(&device->lock);
  return atomic_load(&device->held);
}

void cuda_memory_info(tl_device_impl *device, int64_t *cached,
                      int64_t *available) {
  const cuda_driver *driver = &device->driver;
  unsigned long long reserved = 0, used = 0;
  size_t free_bytes = 0, total = 0;
  *cached = spare_bytes(device);
  *available = INT64_MAX;
  CUcontext before = cuda_enter(device);
  if (device->pool != NULL &&
      driver->cuMemPoolGetAttribute(device->pool,
                                    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                    &reserved) == CUDA_SUCCESS &&
      driver->cuMemPoolGetAttribute(device->pool,
                                    CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                    &used) == CUDA_SUCCESS)
    *cached += reserved > used ? (int64_t)(reserved - used) : 0;
  if (driver->cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS)
    *available = (int64_t)free_bytes + *cached;
  cuda_leave(device, before);
}

tl_status cuda_trim(tl_device_impl *device, tl_error *error) {
  const cuda_driver *driver = &device->driver;
  tl_status status = TL_OK;
  CUcontext before = cuda_enter(device);
  pthread_mutex_lock(&device->lock);
  cuda_memory_sweep(device);
  pthread_mutex_unlock(&device->lock);
  spare_free(device);
  if (device->pool != NULL) {
    status = CUDA_CALL(driver, error, cuStreamSynchronize,
                       device->memory_stream); /* frees, and no work */
    if (status == TL_OK)
      status = CUDA_CALL(driver, error, cuMemPoolTrimTo, device->pool, 0);
  }
  cuda_leave(device, before);
  return status;
}
