/* Device memory: limits and recovery, the uses that a read must wait for, and
 * the ready event behind the first contents. */
#include "core/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"

/* ---- life ---------------------------------------------------------------- */

static bool memory_finish(tl_object *object, bool force) {
  (void)force;
  tl_memory *memory = (tl_memory *)object;
  tl_device *device = object->device;
  if (memory->ready != NULL)
    tl_call_event_destroy(device, memory->ready);
  size_t places = 0;
  for (size_t i = 0; i < memory->use_count; i++) {
    const tl_use *use = &memory->uses[i];
    if (use->stream->impl != NULL)
      memory->places[places++] = (tl_place){use->stream->impl, use->position};
    tl_stream_forget(use->stream);
  }
  if (memory->impl != NULL)
    tl_call_release(device, memory->impl, memory->places, places,
                    memory->nbytes);
  free(memory->uses);
  free(memory);
  return true;
}

/* Takes the bytes out of what may be live, if they fit: so no number of threads
 * together passes the limit. */
static bool memory_count(tl_device *device, int64_t nbytes) {
  int64_t live = atomic_load(&device->live);
  do {
    if (nbytes > device->memory_limit - live)
      return false;
  } while (!atomic_compare_exchange_weak(&device->live, &live, live + nbytes));
  atomic_fetch_add(&device->buffers, 1);
  atomic_fetch_add(&device->allocations, 1);
  return true;
}

static void memory_uncount(tl_device *device, int64_t nbytes) {
  atomic_fetch_sub(&device->live, nbytes);
  atomic_fetch_sub(&device->buffers, 1);
}

static void peak_note(tl_device *device) {
  int64_t live = atomic_load(&device->live);
  int64_t peak = atomic_load(&device->peak);
  while (live > peak &&
         !atomic_compare_exchange_weak(&device->peak, &peak, live))
    continue;
}

/* The cause, where there is one, is what the back end said. */
static tl_status memory_exhausted(tl_device *device, int64_t nbytes,
                                  const char *cause, tl_error *error) {
  char why[200];
  snprintf(why, sizeof why, "%s%s", cause[0] != '\0' ? "; " : "", cause);
  int64_t live = atomic_load(&device->live);
  int64_t buffers = atomic_load(&device->buffers);
  int64_t limit = device->memory_limit;
  int64_t cached;
  int64_t left = tl_device_free_memory(
      device, device->backend->held_memory(device->impl), &cached);
  tl_fail(error, TL_OUT_OF_MEMORY,
          "%s: out of memory: asked %" PRId64 " bytes, live %" PRId64
          " in %" PRId64 " buffers, free %" PRId64 ", limit %" PRId64 "%s",
          device->id, nbytes, live, buffers, left, limit, why);
  error->asked = nbytes;
  error->live = live;
  error->free = left;
  error->limit = limit;
  error->buffers = (int32_t)buffers;
  return TL_OUT_OF_MEMORY;
}

/* One try. The bytes are counted as live when it succeeds. */
static tl_status memory_allocate(tl_device *device, size_t nbytes,
                                 tl_memory_impl **impl, tl_error *error) {
  int64_t held = device->backend->held_memory(device->impl);
  if ((int64_t)nbytes > device->memory_limit - held ||
      !memory_count(device, (int64_t)nbytes))
    return memory_exhausted(device, (int64_t)nbytes, "", error);
  tl_status status = TL_OK;
  if (nbytes > 0)
    status = tl_call_allocate(device, nbytes, false, impl, error);
  if (status == TL_OK)
    return TL_OK;
  memory_uncount(device, (int64_t)nbytes);
  if (status != TL_OUT_OF_MEMORY)
    return status;
  char cause[160];
  snprintf(cause, sizeof cause, "%.150s", error->text);
  return memory_exhausted(device, (int64_t)nbytes, cause, error);
}

/* Allocates; when there is too little, gives back what can be given back and
 * tries once more. Waits only if that can help: for queued work that still
 * uses closed buffers. */
static tl_status memory_acquire(tl_device *device, size_t nbytes,
                                tl_memory_impl **impl, tl_error *error) {
  tl_status status = memory_allocate(device, nbytes, impl, error);
  if (status != TL_OUT_OF_MEMORY)
    return status;
  tl_device_drain(device);
  int64_t live = atomic_load(&device->live);
  bool pending = device->backend->held_memory(device->impl) > live;
  if (pending && (int64_t)nbytes <= device->memory_limit - live) {
    bool reached;
    status = tl_device_synchronize(device, -1, &reached, error);
    if (status != TL_OK)
      return status;
    tl_device_drain(device);
  }
  status = tl_call_trim(device, error);
  return status == TL_OK ? memory_allocate(device, nbytes, impl, error)
                         : status;
}

static tl_status memory_acquire_pinned(tl_device *device, size_t nbytes,
                                       tl_memory_impl **impl, tl_error *error) {
  return nbytes > 0 ? tl_call_allocate(device, nbytes, true, impl, error)
                    : TL_OK;
}

tl_status tl_memory_create(tl_device *device, size_t nbytes, bool pinned,
                           tl_memory **out, tl_error *error) {
  *out = NULL;
  tl_device_drain(device);
  tl_memory *memory = tl_allocate(device->options.faults, "allocate: buffer",
                                  sizeof *memory, error);
  if (memory == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status =
      pinned ? memory_acquire_pinned(device, nbytes, &memory->impl, error)
             : memory_acquire(device, nbytes, &memory->impl, error);
  if (status != TL_OK) {
    free(memory);
    return status;
  }
  peak_note(device);
  memory->nbytes = nbytes;
  memory->pinned = pinned;
  atomic_init(&memory->holders, 1);
  tl_object_begin(&memory->object, device, memory_finish);
  *out = memory;
  return TL_OK;
}

void tl_memory_retain(tl_memory *memory) {
  atomic_fetch_add(&memory->holders, 1);
}

void tl_memory_release(tl_memory *memory) {
  if (atomic_fetch_sub(&memory->holders, 1) != 1)
    return;
  if (!memory->pinned)
    memory_uncount(memory->object.device, (int64_t)memory->nbytes);
  tl_object_release(&memory->object);
}

/* ---- uses ---------------------------------------------------------------- */

/* Forgets the uses that are done. */
static void uses_prune(tl_memory *memory) {
  tl_device *device = memory->object.device;
  size_t kept = 0;
  for (size_t i = 0; i < memory->use_count; i++) {
    tl_use use = memory->uses[i];
    if (tl_stream_reached(device, use.stream, use.position))
      tl_stream_forget(use.stream);
    else
      memory->uses[kept++] = use;
  }
  memory->use_count = kept;
}

static tl_use *use_find(tl_memory *memory, const tl_stream *stream) {
  for (size_t i = 0; i < memory->use_count; i++)
    if (memory->uses[i].stream == stream)
      return &memory->uses[i];
  return NULL;
}

tl_status tl_memory_expect_use(tl_memory *memory, tl_stream *stream,
                               tl_error *error) {
  if (use_find(memory, stream) != NULL)
    return TL_OK;
  uses_prune(memory);
  if (memory->use_count < memory->use_room)
    return TL_OK;
  size_t room = memory->use_room == 0 ? 2 : 2 * memory->use_room;
  tl_use *uses =
      tl_allocate(memory->object.device->options.faults, "allocate: uses",
                  room * (sizeof *uses + sizeof *memory->places), error);
  if (uses == NULL)
    return TL_OUT_OF_MEMORY;
  if (memory->use_count > 0)
    memcpy(uses, memory->uses, memory->use_count * sizeof *uses);
  free(memory->uses);
  memory->uses = uses;
  memory->places = (tl_place *)(void *)(uses + room);
  memory->use_room = room;
  return TL_OK;
}

void tl_memory_note_use(tl_memory *memory, tl_stream *stream,
                        uint64_t position) {
  tl_use *use = use_find(memory, stream);
  if (use == NULL) {
    use = &memory->uses[memory->use_count++];
    use->stream = stream;
    tl_stream_remember(stream);
  }
  use->position = position;
  use->awaited = true;
}

tl_status tl_memory_wait(tl_memory *memory, double seconds, bool *reached,
                         tl_error *error) {
  *reached = true;
  tl_device *device = memory->object.device;
  int64_t began = 0;
  bool timed = seconds > 0 && memory->use_count > 1;
  if (timed)
    began = tl_device_clock(device, false);
  for (size_t i = 0; i < memory->use_count; i++) {
    tl_use *use = &memory->uses[i];
    double left = seconds;
    if (timed)
      left -= (double)(tl_device_clock(device, false) - began) * 1e-9;
    tl_status status = tl_stream_wait(device, use->stream, use->position,
                                      seconds < 0 ? -1 : (left > 0 ? left : 0),
                                      reached, error);
    if (status != TL_OK)
      *reached = false;
    if (!*reached)
      return status;
  }
  uses_prune(memory);
  tl_status status = tl_device_check(device, error); /* a fault may surface */
  *reached = status == TL_OK;
  return status;
}

/* ---- the first contents -------------------------------------------------- */

void tl_memory_set_ready(tl_memory *memory, tl_event_impl *ready,
                         uint64_t stream) {
  memory->ready = ready;
  memory->ready_stream = stream;
  for (size_t i = 0; i < memory->use_count; i++)
    memory->uses[i].awaited = memory->uses[i].stream->number == stream;
}

tl_status tl_memory_await_ready(tl_memory *memory, tl_stream *stream,
                                tl_error *error) {
  if (memory->ready == NULL || memory->ready_stream == stream->number)
    return TL_OK;
  const tl_use *use = use_find(memory, stream);
  if (use != NULL && use->awaited)
    return TL_OK; /* an earlier launch waits already */
  bool done;
  tl_status status =
      tl_call_event_query(memory->object.device, memory->ready, &done, error);
  if (status != TL_OK)
    return status;
  if (done) {
    tl_event_drop(memory->object.device, memory->ready);
    memory->ready = NULL;
    return TL_OK;
  }
  return tl_call_stream_wait_event(stream, memory->ready, error);
}
