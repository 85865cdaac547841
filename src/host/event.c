/* Events of the host device. A record is a place in a stream; only an event
 * with timing puts an operation in the queue, to read the clock. */
#include "host/host.h"

#include <stdlib.h>

static void record_release(host_record *record) {
  if (record == NULL || atomic_fetch_sub(&record->references, 1) != 1)
    return;
  host_stream_release(record->stream);
  free(record);
}

tl_status host_event_create(tl_device_impl *device, bool timing,
                            tl_event_impl **out, tl_error *error) {
  *out = NULL;
  tl_event_impl *event = tl_allocate(
      device->options.faults, "allocate: host event", sizeof *event, error);
  if (event == NULL)
    return TL_OUT_OF_MEMORY;
  event->device = device;
  event->timing = timing;
  *out = event;
  return TL_OK;
}

void host_event_destroy(tl_event_impl *event) {
  record_release(event->record);
  free(event);
}

static void stamp_run(const host_operation *operation) {
  host_record *record = operation->with.record;
  atomic_store(&record->stamp, host_now());
  record_release(record);
}

tl_status host_event_record(tl_event_impl *event, tl_stream_impl *stream,
                            tl_error *error) {
  host_record *record =
      tl_allocate(event->device->options.faults, "allocate: host record",
                  sizeof *record, error);
  if (record == NULL)
    return TL_OUT_OF_MEMORY;
  if (event->timing) {
    tl_status status = host_stream_prepare(stream, true, error);
    if (status != TL_OK) {
      free(record);
      return status;
    }
  }
  atomic_init(&record->references, event->timing ? 2 : 1);
  record->stream = stream;
  record->place = atomic_load(&stream->pushed) + event->timing;
  host_stream_retain(stream);
  record_release(event->record);
  event->record = record;
  if (event->timing) {
    host_operation operation = {
        .run = stamp_run, .slot = true, .with.record = record};
    host_stream_push(stream, &operation);
  }
  return TL_OK;
}

tl_status host_event_query(tl_event_impl *event, bool *done, tl_error *error) {
  (void)error;
  const host_record *record = event->record;
  *done = atomic_load(&record->stream->done) >= record->place;
  return TL_OK;
}

tl_status host_event_wait(tl_event_impl *event, double seconds, bool *reached,
                          tl_error *error) {
  (void)error;
  const host_record *record = event->record;
  *reached = host_stream_wait_place(record->stream, record->place,
                                    host_deadline(seconds), true);
  return TL_OK;
}

tl_status host_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                             double *seconds, tl_error *error) {
  (void)error;
  *seconds = (double)(atomic_load(&later->record->stamp) -
                      atomic_load(&earlier->record->stamp)) *
             1e-9;
  return TL_OK;
}

static void wait_run(const host_operation *operation) {
  host_record *record = operation->with.record;
  host_stream_wait_place(record->stream, record->place, INT64_MAX, false);
  record_release(record);
}

tl_status host_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                 tl_error *error) {
  host_record *record = event->record;
  if (record->stream == stream)
    return TL_OK; /* in order anyway */
  tl_status status = host_stream_prepare(stream, false, error);
  if (status != TL_OK)
    return status;
  atomic_fetch_add(&record->references, 1);
  host_operation operation = {.run = wait_run, .with.record = record};
  host_stream_push(stream, &operation);
  return TL_OK;
}
