/* The policy of every back-end call, once: faults, empty outputs, lost
 * devices. */
#include "core/call.h"

#include <stdio.h>

static tl_status call_fault(tl_device *device, const char *site,
                            tl_error *error) {
  tl_status status = tl_fault(device->options.faults, site, error);
  return tl_device_settle(device, status, error);
}

static inline tl_status call_begin(tl_device *device, const char *site,
                                   tl_error *error) {
  return device->options.faults == NULL ? TL_OK
                                        : call_fault(device, site, error);
}

tl_status tl_call_properties(tl_device *device, tl_properties *properties,
                             tl_error *error) {
  if (call_begin(device, "properties", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->properties(device->impl, properties, error),
      error);
}

tl_status tl_call_allocate(tl_device *device, size_t nbytes, bool pinned,
                           tl_memory_impl **memory, tl_error *error) {
  *memory = NULL;
  if (call_begin(device, pinned ? "allocate_pinned" : "allocate", error) !=
      TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device,
      device->backend->allocate(device->impl, nbytes, pinned, memory, error),
      error);
}

tl_status tl_call_trim(tl_device *device, tl_error *error) {
  if (device->backend->trim == NULL)
    return TL_OK;
  if (call_begin(device, "trim", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(device, device->backend->trim(device->impl, error),
                          error);
}

tl_status tl_call_write(tl_device *device, const tl_block *to, const void *from,
                        tl_error *error) {
  if (call_begin(device, "write", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->write(device->impl, to, from, error), error);
}

tl_status tl_call_read(tl_device *device, const tl_block *from, void *to,
                       tl_error *error) {
  if (call_begin(device, "read", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->read(device->impl, from, to, error), error);
}

tl_status tl_call_stream_create(tl_device *device, tl_stream_impl **stream,
                                tl_error *error) {
  *stream = NULL;
  if (call_begin(device, "stream_create", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->stream_create(device->impl, stream, error),
      error);
}

tl_status tl_call_stream_query(tl_stream *stream, bool *done, tl_error *error) {
  tl_device *device = stream->object.device;
  *done = false;
  if (call_begin(device, "stream_query", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->stream_query(stream->impl, done, error), error);
}

tl_status tl_call_stream_wait(tl_stream *stream, uint64_t launches,
                              double seconds, bool *reached, tl_error *error) {
  tl_device *device = stream->object.device;
  *reached = false;
  if (call_begin(device, "stream_wait", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(device,
                          device->backend->stream_wait(stream->impl, launches,
                                                       seconds, reached, error),
                          error);
}

tl_status tl_call_stream_reserve(tl_stream *stream, bool slot, double seconds,
                                 bool *reached, tl_error *error) {
  tl_device *device = stream->object.device;
  *reached = device->backend->stream_reserve == NULL;
  if (*reached)
    return TL_OK;
  if (call_begin(device, "stream_reserve", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(device,
                          device->backend->stream_reserve(
                              stream->impl, slot, seconds, reached, error),
                          error);
}

tl_status tl_call_spin(tl_stream *stream, double seconds, tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "spin", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->spin(stream->impl, seconds, error), error);
}

tl_status tl_call_fill(tl_stream *stream, const tl_block *block,
                       const void *element, size_t element_size,
                       tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "fill", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device,
      device->backend->fill(stream->impl, block, element, element_size, error),
      error);
}

tl_status tl_call_random(tl_stream *stream, const tl_block *block,
                         tl_dtype dtype, tl_distribution distribution,
                         uint64_t seed, tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "random", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(device,
                          device->backend->random(stream->impl, block, dtype,
                                                  distribution, seed, error),
                          error);
}

tl_status tl_call_copy(tl_stream *stream, const tl_block *to,
                       const tl_block *from, tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "copy", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->copy(stream->impl, to, from, error), error);
}

tl_status tl_call_matmul(tl_stream *stream, int32_t kernel,
                         const tl_matmul_problem *problem, tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "matmul", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->matmul(stream->impl, kernel, problem, error),
      error);
}

tl_status tl_call_prepare(tl_device *device, int32_t kernel, tl_error *error) {
  if (call_begin(device, "prepare", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->prepare(device->impl, kernel, error), error);
}

tl_status tl_call_event_create(tl_device *device, bool timing,
                               tl_event_impl **event, tl_error *error) {
  *event = NULL;
  if (call_begin(device, "event_create", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->event_create(device->impl, timing, event, error),
      error);
}

tl_status tl_call_event_record(tl_device *device, tl_event_impl *event,
                               tl_stream *stream, tl_error *error) {
  if (call_begin(device, "event_record", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->event_record(event, stream->impl, error), error);
}

tl_status tl_call_event_query(tl_device *device, tl_event_impl *event,
                              bool *done, tl_error *error) {
  *done = false;
  if (call_begin(device, "event_query", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->event_query(event, done, error), error);
}

tl_status tl_call_event_wait(tl_device *device, tl_event_impl *event,
                             double seconds, bool *reached, tl_error *error) {
  *reached = false;
  if (call_begin(device, "event_wait", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->event_wait(event, seconds, reached, error),
      error);
}

tl_status tl_call_event_elapsed(tl_device *device, tl_event_impl *earlier,
                                tl_event_impl *later, double *seconds,
                                tl_error *error) {
  *seconds = 0;
  if (call_begin(device, "event_elapsed", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->event_elapsed(earlier, later, seconds, error),
      error);
}

tl_status tl_call_stream_wait_event(tl_stream *stream, tl_event_impl *event,
                                    tl_error *error) {
  tl_device *device = stream->object.device;
  if (call_begin(device, "stream_wait_event", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->stream_wait_event(stream->impl, event, error),
      error);
}

tl_status tl_call_gate_create(tl_stream *stream, double timeout,
                              tl_gate_impl **gate, tl_error *error) {
  tl_device *device = stream->object.device;
  *gate = NULL;
  if (call_begin(device, "gate_create", error) != TL_OK)
    return (tl_status)error->code;
  return tl_device_settle(
      device, device->backend->gate_create(stream->impl, timeout, gate, error),
      error);
}

/* ---- clean-up ------------------------------------------------------------ */

static void call_cleanup(tl_device *device, const char *site,
                         const char *what) {
  tl_error error;
  if (tl_fault(device->options.faults, site, &error) == TL_OK)
    return;
  tl_error kept;
  tl_fail(&kept, (tl_status)error.code, "%s: cleaning up %s: %.800s",
          device->id, what, error.text);
  tl_device_keep_cleanup_error(device, &kept);
}

void tl_call_release(tl_device *device, tl_memory_impl *memory,
                     const tl_place *uses, size_t count, size_t nbytes) {
  char what[64];
  snprintf(what, sizeof what, "a buffer of %zu bytes", nbytes);
  call_cleanup(device, "release", what);
  device->backend->release(device->impl, memory, uses, count);
}

void tl_call_stream_destroy(tl_device *device, tl_stream_impl *stream,
                            uint64_t number) {
  char what[64];
  snprintf(what, sizeof what, "stream %llu", (unsigned long long)number);
  call_cleanup(device, "stream_destroy", what);
  device->backend->stream_destroy(stream);
}

void tl_call_event_destroy(tl_device *device, tl_event_impl *event) {
  call_cleanup(device, "event_destroy", "an event");
  device->backend->event_destroy(event);
}

void tl_event_drop(tl_device *device, tl_event_impl *event) {
  pthread_mutex_lock(&device->lock);
  tl_call_event_destroy(device, event);
  pthread_mutex_unlock(&device->lock);
}

void tl_call_gate_destroy(tl_device *device, tl_gate_impl *gate) {
  call_cleanup(device, "gate_destroy", "a gate");
  device->backend->gate_destroy(gate);
}
