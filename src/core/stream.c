/* Streams: making and ending them, waiting, and the log of launches that an
 * asynchronous failure is explained with. */
#include "core/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/launch.h"

/* ---- life ---------------------------------------------------------------- */

static void stream_unlink(tl_device *device, tl_stream *stream) {
  tl_stream **link = &device->streams;
  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
}

/* Ends the back end's stream once its work is done and nobody waits on it. A
 * lost device has nothing to wait for. The struct lives on while a buffer
 * remembers it. */
static bool stream_finish(tl_object *object, bool force) {
  tl_stream *stream = (tl_stream *)object;
  tl_device *device = object->device;
  bool done = false;
  tl_error ignored;
  if (stream->pins == 0 && device->backend->stream_query(
                               stream->impl, &done, &ignored) == TL_DEVICE_LOST)
    done = true;
  if (!done && !force)
    return false;
  stream_unlink(device, stream);
  device->gone_launches += atomic_load(&stream->launched);
  tl_call_stream_destroy(device, stream->impl, stream->number);
  stream->impl = NULL;
  tl_stream_forget(stream);
  return true;
}

static tl_status stream_begin(tl_device *device, tl_stream **out,
                              tl_error *error) {
  *out = NULL;
  tl_stream *stream = tl_allocate(device->options.faults, "allocate: stream",
                                  sizeof *stream, error);
  if (stream == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status = tl_call_stream_create(device, &stream->impl, error);
  if (status != TL_OK) {
    free(stream);
    return status;
  }
  atomic_init(&stream->references, 1);
  *out = stream;
  return TL_OK;
}

/* Makes the stream known to its device. The lock is held. */
static void stream_link(tl_device *device, tl_stream *stream) {
  stream->number = ++device->stream_count;
  stream->next = device->streams;
  device->streams = stream;
}

tl_status tl_stream_create(tl_device *device, tl_stream **out,
                           tl_error *error) {
  *out = NULL;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_device_drain(device);
  tl_stream *stream;
  status = stream_begin(device, &stream, error);
  if (status != TL_OK)
    return status;
  tl_object_begin(&stream->object, device, stream_finish);
  pthread_mutex_lock(&device->lock);
  stream_link(device, stream);
  pthread_mutex_unlock(&device->lock);
  *out = stream;
  return TL_OK;
}

/* The device's own stream has one handle that is the device's and holds no
 * reference to it; every other handle holds one. */
static tl_status default_stream_open(tl_device *device, tl_error *error) {
  tl_stream *stream;
  tl_status status = stream_begin(device, &stream, error);
  if (status != TL_OK)
    return status;
  atomic_init(&stream->object.handles, 1);
  stream->object.device = device;
  stream->object.finish = stream_finish;
  stream->own = true;
  pthread_mutex_lock(&device->lock);
  bool first = device->default_stream == NULL;
  stream_link(device, stream);
  if (first)
    device->default_stream = stream;
  else
    stream_finish(&stream->object, true); /* another thread was faster */
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

static tl_stream *default_stream_get(tl_device *device) {
  pthread_mutex_lock(&device->lock);
  tl_stream *stream = device->default_stream;
  pthread_mutex_unlock(&device->lock);
  return stream;
}

tl_status tl_stream_choose(tl_device *device, tl_stream *given,
                           tl_stream **stream, tl_error *error) {
  if (given != NULL && given->object.device != device)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "the stream belongs to %s, the work to %s",
                   given->object.device->id, device->id);
  *stream = given != NULL ? given : default_stream_get(device);
  if (*stream != NULL)
    return TL_OK;
  tl_status status = default_stream_open(device, error);
  if (status == TL_OK)
    *stream = default_stream_get(device);
  return status;
}

void tl_stream_retain(tl_stream *stream) {
  tl_object_retain(&stream->object);
  if (stream->own)
    tl_device_retain(stream->object.device);
}

void tl_stream_release(tl_stream *stream) {
  if (stream == NULL)
    return;
  tl_device *device = stream->object.device;
  if (stream->own) {
    atomic_fetch_sub(&stream->object.handles, 1);
    tl_device_release(device);
    return;
  }
  tl_object_release(&stream->object);
}

void tl_stream_remember(tl_stream *stream) {
  atomic_fetch_add(&stream->references, 1);
}

void tl_stream_forget(tl_stream *stream) {
  if (atomic_fetch_sub(&stream->references, 1) == 1)
    free(stream);
}

tl_device *tl_stream_device(const tl_stream *stream) {
  return stream->object.device;
}

uint64_t tl_stream_number(const tl_stream *stream) {
  return stream->number;
}

/* ---- progress ------------------------------------------------------------ */

bool tl_stream_reached_locked(tl_stream *stream, uint64_t launches) {
  if (stream->impl == NULL)
    return true;
  uint64_t least, most;
  stream->object.device->backend->stream_completed(stream->impl, &least, &most);
  return least >= launches;
}

bool tl_stream_reached(tl_device *device, tl_stream *stream,
                       uint64_t launches) {
  pthread_mutex_lock(&device->lock);
  bool reached = tl_stream_reached_locked(stream, launches);
  pthread_mutex_unlock(&device->lock);
  return reached;
}

tl_status tl_stream_wait(tl_device *device, tl_stream *stream,
                         uint64_t launches, double seconds, bool *reached,
                         tl_error *error) {
  *reached = true;
  pthread_mutex_lock(&device->lock);
  bool gone = stream->impl == NULL;
  stream->pins += !gone;
  pthread_mutex_unlock(&device->lock);
  if (gone)
    return TL_OK;
  tl_status status =
      tl_call_stream_wait(stream, launches, seconds, reached, error);
  pthread_mutex_lock(&device->lock);
  stream->pins--;
  pthread_mutex_unlock(&device->lock);
  return status;
}

tl_status tl_stream_synchronize(tl_stream *stream, double seconds,
                                bool *reached, tl_error *error) {
  tl_device *device = stream->object.device;
  *reached = false;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  status = tl_call_stream_wait(stream, TL_EVERYTHING, seconds, reached, error);
  if (status == TL_OK)
    status = tl_device_check(device, error); /* a fault may have surfaced */
  if (status != TL_OK)
    *reached = false;
  tl_device_drain(device);
  return status;
}

tl_status tl_stream_done(tl_stream *stream, bool *done, tl_error *error) {
  *done = false;
  tl_status status = tl_device_check(stream->object.device, error);
  if (status != TL_OK)
    return status;
  if (stream->object.device->backend->stream_poll != NULL)
    stream->object.device->backend->stream_poll(stream->impl);
  return tl_call_stream_query(stream, done, error);
}

tl_status tl_stream_inflight(tl_stream *stream, int64_t *least, int64_t *most,
                             tl_error *error) {
  *least = *most = 0;
  tl_device *device = stream->object.device;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  if (device->backend->stream_poll != NULL)
    device->backend->stream_poll(stream->impl);
  uint64_t done_least, done_most;
  uint64_t launched = atomic_load(&stream->launched);
  device->backend->stream_completed(stream->impl, &done_least, &done_most);
  *least = (int64_t)(launched - done_most);
  *most = (int64_t)(launched - done_least);
  return TL_OK;
}

uint64_t tl_stream_launches(const tl_stream *stream) {
  return atomic_load(&stream->launched);
}

tl_status tl_stream_reserve(tl_stream *stream, bool slot, double seconds,
                            bool *reached, tl_error *error) {
  tl_device *device = stream->object.device;
  *reached = device->backend->stream_reserve == NULL ||
             (device->options.queue_depth == 0 &&
              device->backend->default_queue_depth == 0);
  if (*reached) /* the device does not say how deep its queue is */
    return TL_OK;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = tl_call_stream_reserve(stream, slot, seconds, reached, error);
  return status;
}

/* ---- the log of launches ------------------------------------------------- */

void tl_stream_locate(tl_stream *stream, const char *source, int32_t line,
                      const void *caller) {
  strncpy(stream->source, source, sizeof stream->source - 1);
  stream->line = line;
  stream->caller = caller;
}

bool tl_stream_relocate(tl_stream *stream, const void *caller, int32_t line) {
  if (caller == NULL || stream->caller != caller)
    return false;
  stream->line = line;
  return true;
}

static void log_lock(tl_stream *stream) {
  while (atomic_flag_test_and_set_explicit(&stream->log_busy,
                                           memory_order_acquire))
    continue;
}

static void log_unlock(tl_stream *stream) {
  atomic_flag_clear_explicit(&stream->log_busy, memory_order_release);
}

void tl_stream_log(tl_stream *stream, uint64_t position, const char *operation,
                   const char *kernel) {
  log_lock(stream);
  tl_logged *entry = &stream->log[(position - 1) % TL_LOG_LENGTH];
  entry->operation = operation;
  entry->kernel = kernel;
  memcpy(entry->source, stream->source, sizeof entry->source);
  entry->line = stream->line;
  atomic_store_explicit(&stream->launched, position, memory_order_release);
  log_unlock(stream);
}

void tl_stream_describe_log(tl_stream *stream, char *text, size_t room) {
  log_lock(stream);
  uint64_t launched = atomic_load(&stream->launched);
  uint64_t first = launched > TL_LOG_LENGTH ? launched - TL_LOG_LENGTH : 0;
  size_t used = (size_t)snprintf(
      text, room, " stream %llu:", (unsigned long long)stream->number);
  for (uint64_t i = first; i < launched && used < room; i++) {
    const tl_logged *l = &stream->log[i % TL_LOG_LENGTH];
    used += (size_t)snprintf(text + used, room - used, "%s %s%s%s",
                             i > first ? "," : "", l->operation,
                             l->kernel != NULL ? " " : "",
                             l->kernel != NULL ? l->kernel : "");
    if (l->source[0] != '\0' && used < room)
      used += (size_t)snprintf(text + used, room - used, " (%s:%d)", l->source,
                               (int)l->line);
  }
  log_unlock(stream);
}

/* ---- operations ---------------------------------------------------------- */

tl_status tl_stream_spin(tl_stream *stream, double seconds, tl_error *error) {
  if (!(seconds >= 0) || seconds > 1e6)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "spin: seconds must be 0 to 1e6, got %g", seconds);
  tl_launch launch = {.stream = stream, .operation = "spin"};
  tl_status status = tl_launch_begin(&launch, error);
  if (status != TL_OK)
    return status;
  return tl_launch_end(&launch, tl_call_spin(stream, seconds, error), error);
}
