/* Events of the device of virtual time: a record is an operation, and keeps
 * where it was and when it ended. */
#include "sim/sim.h"

#include <stdlib.h>

void sim_record_release(sim_record *record) {
  if (record == NULL || --record->references > 0)
    return;
  sim_timeline_release(record->timeline);
  sim_order_release(record->order);
  free(record);
}

tl_status sim_event_create(tl_device_impl *device, bool timing,
                           tl_event_impl **out, tl_error *error) {
  *out = NULL;
  tl_event_impl *event = tl_allocate(
      device->options.faults, "allocate: sim event", sizeof *event, error);
  if (event == NULL)
    return TL_OUT_OF_MEMORY;
  event->device = device;
  event->timing = timing;
  *out = event;
  return TL_OK;
}

void sim_event_destroy(tl_event_impl *event) {
  pthread_mutex_lock(&event->device->lock);
  sim_record_release(event->record);
  pthread_mutex_unlock(&event->device->lock);
  free(event);
}

/* A new record of what the stream has enqueued, held by its event and by the
 * operation to come. */
static void event_set(tl_event_impl *event, tl_stream_impl *stream,
                      sim_record *record) {
  *record = (sim_record){.references = 2,
                         .timeline = sim_timeline_retain(stream->timeline),
                         .launches = stream->launches,
                         .order = sim_order_retain(stream->order)};
  sim_record_release(event->record);
  event->record = record;
}

tl_status sim_event_record(tl_event_impl *event, tl_stream_impl *stream,
                           tl_error *error) {
  tl_device_impl *device = stream->device;
  const tl_sim_options *s = &device->settings;
  sim_record *record = tl_allocate(
      device->options.faults, "allocate: sim record", sizeof *record, error);
  if (record == NULL)
    return TL_OUT_OF_MEMORY;
  double slots = event->timing ? s->event_slots : s->untimed_event_slots;
  pthread_mutex_lock(&device->lock);
  tl_status status = sim_stream_prepare(stream, error);
  if (status == TL_OK) {
    sim_stream_wait_slots(stream, slots);
    sim_spend(device, event->timing ? s->event_cost : s->untimed_event_cost);
    event_set(event, stream, record);
    sim_operation operation = {
        .kind = SIM_RECORD,
        .length = event->timing ? sim_nanoseconds(s->event_time) : 0,
        .record = record};
    sim_stream_push(stream, &operation, slots);
  }
  pthread_mutex_unlock(&device->lock);
  if (status != TL_OK)
    free(record);
  return status;
}

static void record_learn(const sim_record *record) {
  sim_order_learn(record->timeline, record->launches, record->order);
}

tl_status sim_event_query(tl_event_impl *event, bool *done, tl_error *error) {
  (void)error;
  tl_device_impl *device = event->device;
  pthread_mutex_lock(&device->lock);
  sim_spend(device, device->settings.query_cost);
  *done = sim_reach_record(device, event->record, device->now);
  if (*done)
    record_learn(event->record);
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

tl_status sim_event_wait(tl_event_impl *event, double seconds, bool *reached,
                         tl_error *error) {
  (void)error;
  tl_device_impl *device = event->device;
  pthread_mutex_lock(&device->lock);
  int64_t began = device->now, deadline = sim_deadline(device, seconds);
  *reached = sim_reach_record(device, event->record, deadline);
  if (*reached)
    record_learn(event->record);
  sim_charge_wait(device, began, deadline, *reached);
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

tl_status sim_event_elapsed(tl_event_impl *earlier, tl_event_impl *later,
                            double *seconds, tl_error *error) {
  (void)error;
  pthread_mutex_lock(&earlier->device->lock);
  *seconds = (double)(later->record->time - earlier->record->time) * 1e-9;
  pthread_mutex_unlock(&earlier->device->lock);
  return TL_OK;
}

tl_status sim_stream_wait_event(tl_stream_impl *stream, tl_event_impl *event,
                                tl_error *error) {
  tl_device_impl *device = stream->device;
  sim_record *record = event->record;
  double slots = device->settings.wait_event_slots;
  pthread_mutex_lock(&device->lock);
  tl_status status = sim_stream_prepare(stream, error);
  if (status == TL_OK)
    status = sim_order_behind(stream, record, error);
  if (status == TL_OK) {
    sim_stream_wait_slots(stream, slots);
    sim_spend(device, device->settings.wait_event_cost);
    record->references++;
    sim_operation operation = {.kind = SIM_WAIT, .record = record};
    sim_stream_push(stream, &operation, slots);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}
