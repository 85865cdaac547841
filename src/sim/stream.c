/* Streams of the device of virtual time: queues of what has not ended. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---------------------------------------------------------------- */

tl_status sim_stream_create(tl_device_impl *device, tl_stream_impl **out,
                            tl_error *error) {
  *out = NULL;
  tl_faults *faults = device->options.faults;
  tl_stream_impl *stream =
      tl_allocate(faults, "allocate: sim stream", sizeof *stream, error);
  if (stream == NULL)
    return TL_OUT_OF_MEMORY;
  stream->timeline = tl_allocate(faults, "allocate: sim timeline",
                                 sizeof *stream->timeline, error);
  if (stream->timeline == NULL) {
    free(stream);
    return TL_OUT_OF_MEMORY;
  }
  stream->timeline->references = 1;
  stream->device = device;
  pthread_mutex_lock(&device->lock);
  stream->next = device->streams;
  device->streams = stream;
  pthread_mutex_unlock(&device->lock);
  *out = stream;
  return TL_OK;
}

void sim_operation_end(sim_operation *operation) {
  for (int i = 0; i < 3; i++)
    if (operation->keep[i] != NULL)
      sim_memory_release(operation->keep[i]);
  if (operation->record != NULL)
    sim_record_release(operation->record);
  if (operation->gate != NULL)
    sim_gate_release(operation->gate);
}

/* What has not ended is dropped where the device is closing; nobody can ask for
 * it any more. */
void sim_stream_destroy(tl_stream_impl *stream) {
  tl_device_impl *device = stream->device;
  pthread_mutex_lock(&device->lock);
  for (uint64_t i = stream->ended; i < stream->pushed; i++)
    sim_operation_end(&stream->queue[i % stream->room]);
  tl_stream_impl **link = &device->streams;
  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
  sim_timeline_release(stream->timeline);
  sim_order_release(stream->order);
  pthread_mutex_unlock(&device->lock);
  free(stream->queue);
  free(stream);
}

/* ---- questions and waits ------------------------------------------------- */

void sim_stream_completed(tl_stream_impl *stream, uint64_t *least,
                          uint64_t *most) {
  pthread_mutex_lock(&stream->device->lock);
  sim_settle(stream->device);
  *least = *most = stream->launches_ended;
  pthread_mutex_unlock(&stream->device->lock);
}

static void stream_learn(tl_stream_impl *stream) {
  sim_order_learn(stream->timeline, stream->launches, stream->order);
}

void sim_stream_poll(tl_stream_impl *stream) {
  tl_device_impl *device = stream->device;
  pthread_mutex_lock(&device->lock);
  sim_spend(device, device->settings.query_cost);
  sim_settle(device);
  if (stream->ended == stream->pushed)
    stream_learn(stream);
  pthread_mutex_unlock(&device->lock);
}

tl_status sim_stream_query(tl_stream_impl *stream, bool *done,
                           tl_error *error) {
  (void)error;
  pthread_mutex_lock(&stream->device->lock);
  sim_settle(stream->device);
  *done = stream->ended == stream->pushed;
  pthread_mutex_unlock(&stream->device->lock);
  return TL_OK;
}

/* The operation that is the stream's launch of that number; 0: it has ended. */
static uint64_t launch_number(const tl_stream_impl *stream, uint64_t launch) {
  if (launch <= stream->launches_ended)
    return 0;
  uint64_t number = stream->ended + 1;
  while (stream->queue[(number - 1) % stream->room].launches < launch)
    number++;
  return number;
}

tl_status sim_stream_wait(tl_stream_impl *stream, uint64_t launches,
                          double seconds, bool *reached, tl_error *error) {
  (void)error;
  tl_device_impl *device = stream->device;
  pthread_mutex_lock(&device->lock);
  int64_t began = device->now, deadline = sim_deadline(device, seconds);
  bool all = launches == TL_EVERYTHING;
  *reached = sim_reach(
      stream, all ? stream->pushed : launch_number(stream, launches), deadline);
  if (*reached && (all || launches == stream->launches))
    stream_learn(stream);
  else if (*reached)
    sim_order_learn(stream->timeline, launches, NULL);
  sim_charge_wait(device, began, deadline, *reached);
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

/* ---- the queue ----------------------------------------------------------- */

/* Moves the clock on until so many slots are free, or to the deadline. */
static bool slots_wait(tl_stream_impl *stream, double wanted,
                       int64_t deadline) {
  uint64_t depth = (uint64_t)stream->device->options.queue_depth;
  uint64_t slots = (uint64_t)wanted < depth ? (uint64_t)wanted : depth;
  uint64_t most = depth - slots; /* that may be taken */
  if (slots == 0 || stream->slots_taken - stream->slots_free <= most)
    return true;
  sim_settle_stream(stream);
  uint64_t number = stream->ended;
  uint64_t slots_free = stream->slots_free;
  while (stream->slots_taken - slots_free > most)
    slots_free = stream->queue[number++ % stream->room].slots;
  return number == stream->ended || sim_reach(stream, number, deadline);
}

void sim_stream_wait_slots(tl_stream_impl *stream, double slots) {
  slots_wait(stream, slots, INT64_MAX);
}

/* Whoever takes fewer slots of the two must not wait for more. */
tl_status sim_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                             bool *reached, tl_error *error) {
  (void)error;
  tl_device_impl *device = stream->device;
  const tl_sim_options *s = &device->settings;
  pthread_mutex_lock(&device->lock);
  double slots =
      s->launch_slots < s->event_slots ? s->launch_slots : s->event_slots;
  *reached =
      slots_wait(stream, slot ? slots : 0, sim_deadline(device, seconds));
  pthread_mutex_unlock(&device->lock);
  return TL_OK;
}

void sim_stream_describe(tl_stream_impl *stream, const tl_origin *origin) {
  stream->origin = *origin;
  strncpy(stream->source, origin->source, sizeof stream->source - 1);
}

tl_status sim_stream_prepare(tl_stream_impl *stream, tl_error *error) {
  sim_settle_stream(stream);
  if (stream->pushed - stream->ended < stream->room)
    return TL_OK;
  uint64_t room = stream->room == 0 ? 16 : 2 * stream->room;
  sim_operation *queue =
      tl_allocate(stream->device->options.faults, "allocate: sim queue",
                  room * sizeof *queue, error);
  if (queue == NULL)
    return TL_OUT_OF_MEMORY;
  for (uint64_t i = stream->ended; i < stream->pushed; i++)
    queue[i % room] = stream->queue[i % stream->room];
  free(stream->queue);
  stream->queue = queue;
  stream->room = room;
  return TL_OK;
}

void sim_stream_push(tl_stream_impl *stream, const sim_operation *operation,
                     double slots) {
  tl_device_impl *device = stream->device;
  for (int i = 0; i < 3; i++)
    if (operation->keep[i] != NULL)
      operation->keep[i]->references++;
  stream->slots_taken += (uint64_t)slots;
  stream->launches += operation->kind == SIM_LAUNCH;
  sim_operation *place = &stream->queue[stream->pushed++ % stream->room];
  *place = *operation;
  place->ready =
      sim_later(device->now, sim_nanoseconds(device->settings.launch_latency));
  place->slots = stream->slots_taken;
  place->launches = stream->launches;
  device->unsettled = true;
}
