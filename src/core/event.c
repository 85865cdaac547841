/* Events: the state that back ends do not keep, and who may ask what. */
#include <stdlib.h>

#include "core/call.h"

struct tl_event {
  tl_object object;
  tl_event_impl *impl;
  bool timing;
  bool recorded;
};

static bool event_finish(tl_object *object, bool force) {
  (void)force;
  tl_event *event = (tl_event *)object;
  tl_call_event_destroy(object->device, event->impl);
  free(event);
  return true;
}

tl_status tl_event_create(tl_device *device, bool timing, tl_event **out,
                          tl_error *error) {
  *out = NULL;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK)
    return status;
  tl_device_drain(device);
  tl_event *event = tl_allocate(device->options.faults, "allocate: event",
                                sizeof *event, error);
  if (event == NULL)
    return TL_OUT_OF_MEMORY;
  status = tl_call_event_create(device, timing, &event->impl, error);
  if (status != TL_OK) {
    free(event);
    return status;
  }
  event->timing = timing;
  tl_object_begin(&event->object, device, event_finish);
  *out = event;
  return TL_OK;
}

void tl_event_retain(tl_event *event) {
  tl_object_retain(&event->object);
}

void tl_event_release(tl_event *event) {
  if (event != NULL)
    tl_object_release(&event->object);
}

tl_device *tl_event_device(const tl_event *event) {
  return event->object.device;
}

bool tl_event_recorded(const tl_event *event) {
  return event->recorded;
}

bool tl_event_timing(const tl_event *event) {
  return event->timing;
}

static tl_status event_check(const tl_event *event, const char *which,
                             tl_error *error) {
  tl_status status = tl_device_check(event->object.device, error);
  if (status == TL_OK && !event->recorded)
    status =
        tl_fail(error, TL_INVALID_ARGUMENT, "%s was never recorded", which);
  return status;
}

static tl_status same_device(const tl_stream *stream, const tl_event *event,
                             tl_error *error) {
  if (stream->object.device == event->object.device)
    return TL_OK;
  return tl_fail(
      error, TL_INVALID_ARGUMENT, "the event belongs to %s, the stream to %s",
      tl_device_id(event->object.device), tl_device_id(stream->object.device));
}

tl_status tl_stream_record(tl_stream *stream, tl_event *event,
                           tl_error *error) {
  tl_device *device = stream->object.device;
  tl_status status = tl_device_check(device, error);
  if (status == TL_OK)
    status = same_device(stream, event, error);
  if (status == TL_OK)
    status = tl_call_event_record(device, event->impl, stream, error);
  if (status == TL_OK)
    event->recorded = true;
  return status;
}

tl_status tl_stream_wait_event(tl_stream *stream, tl_event *event,
                               tl_error *error) {
  tl_status status = same_device(stream, event, error);
  if (status == TL_OK)
    status = event_check(event, "the event", error);
  if (status == TL_OK)
    status = tl_call_stream_wait_event(stream, event->impl, error);
  return status;
}

tl_status tl_event_done(tl_event *event, bool *done, tl_error *error) {
  *done = false;
  tl_status status = event_check(event, "the event", error);
  if (status == TL_OK)
    status =
        tl_call_event_query(event->object.device, event->impl, done, error);
  return status;
}

tl_status tl_event_synchronize(tl_event *event, double seconds, bool *reached,
                               tl_error *error) {
  *reached = false;
  tl_device *device = event->object.device;
  tl_status status = event_check(event, "the event", error);
  if (status != TL_OK)
    return status;
  status = tl_call_event_wait(device, event->impl, seconds, reached, error);
  if (status == TL_OK)
    status = tl_device_check(device, error); /* a fault may have surfaced */
  if (status != TL_OK)
    *reached = false;
  tl_device_drain(device);
  return status;
}

/* Has a time, or will have one. */
static tl_status event_check_timed(const tl_event *event, const char *which,
                                   tl_error *error) {
  if (!event->timing)
    return tl_fail(error, TL_INVALID_ARGUMENT, "%s was created without timing",
                   which);
  return event_check(event, which, error);
}

static tl_status event_check_done(tl_event *event, const char *which,
                                  tl_error *error) {
  bool done;
  tl_status status =
      tl_call_event_query(event->object.device, event->impl, &done, error);
  if (status == TL_OK && !done)
    status = tl_fail(error, TL_INVALID_ARGUMENT,
                     "%s is not finished: synchronize it first", which);
  return status;
}

tl_status tl_event_elapsed(tl_event *earlier, tl_event *later, double *seconds,
                           tl_error *error) {
  *seconds = 0;
  tl_device *device = earlier->object.device;
  if (device != later->object.device)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "the earlier event belongs to %s, the later one to %s",
                   tl_device_id(device), tl_device_id(later->object.device));
  tl_status status = event_check_timed(earlier, "the earlier event", error);
  if (status == TL_OK)
    status = event_check_timed(later, "the later event", error);
  if (status == TL_OK)
    status = event_check_done(earlier, "the earlier event", error);
  if (status == TL_OK)
    status = event_check_done(later, "the later event", error);
  if (status == TL_OK)
    status = tl_call_event_elapsed(device, earlier->impl, later->impl, seconds,
                                   error);
  return status;
}
