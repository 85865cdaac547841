/* Virtual time: when operations start and end, and how the clock moves.
 *
 * An operation is settled once its end is known: after the one before it, and
 * not while it waits for a record that is not settled or is a closed gate whose
 * time has not run out. So at the head of what is not settled there is always a
 * closed gate somewhere, and its time-out is the next thing to happen. */
#include "sim/sim.h"

static int64_t later_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static sim_operation *operation_at(tl_stream_impl *stream, uint64_t number) {
  return &stream->queue[(number - 1) % stream->room];
}

void sim_spend(tl_device_impl *device, double seconds) {
  device->now = sim_later(device->now, sim_nanoseconds(seconds));
}

int64_t sim_deadline(const tl_device_impl *device, double seconds) {
  return seconds < 0 ? INT64_MAX
                     : sim_later(device->now, sim_nanoseconds(seconds));
}

/* ---- settling ------------------------------------------------------------ */

/* A gate ends when it is opened, or by itself when its time has run out. */
static bool gate_settle(sim_operation *operation, int64_t start, int64_t now) {
  tl_gate_impl *gate = operation->gate;
  operation->end = sim_later(start, gate->timeout);
  if (gate->open)
    operation->end = later_of(start, gate->opened);
  else if (operation->end > now)
    return false;
  else
    gate->timed_out = true;
  return true;
}

/* Finds the end of a stream's next operation; false: it can't be known yet. */
static bool operation_settle(tl_stream_impl *stream, sim_operation *operation) {
  tl_device_impl *device = stream->device;
  int64_t start = later_of(stream->free, operation->ready);
  sim_record *record = operation->record;
  switch (operation->kind) {
  case SIM_LAUNCH:
    start = sim_later(start, operation->gap);
    operation->end = sim_later(
        start, operation->scaled ? sim_scaled(device, operation->length,
                                              operation->index, start)
                                 : operation->length);
    break;
  case SIM_RECORD:
    operation->end = sim_later(start, operation->length);
    record->known = true;
    record->time = operation->end;
    break;
  case SIM_WAIT:
    if (!record->known)
      return false;
    operation->end = later_of(start, record->time);
    break;
  case SIM_GATE:
    if (!gate_settle(operation, start, device->now))
      return false;
    break;
  }
  stream->free = operation->end;
  return true;
}

/* True: something has become known. */
static bool stream_settle(tl_stream_impl *stream) {
  uint64_t before = stream->settled;
  while (stream->settled < stream->pushed &&
         operation_settle(stream, operation_at(stream, stream->settled + 1)))
    stream->settled++;
  return stream->settled > before;
}

static void stream_end(tl_stream_impl *stream) {
  while (stream->ended < stream->settled) {
    sim_operation *operation = operation_at(stream, stream->ended + 1);
    if (operation->end > stream->device->now)
      return;
    stream->ended++;
    stream->slots_free = operation->slots;
    stream->launches_ended = operation->launches;
    sim_operation_end(operation);
  }
}

void sim_settle_stream(tl_stream_impl *stream) {
  stream_settle(stream);
  stream_end(stream);
}

void sim_settle(tl_device_impl *device) {
  if (!device->unsettled && device->settled_at == device->now)
    return;
  bool more = true;
  while (more) {
    more = false;
    for (tl_stream_impl *s = device->streams; s != NULL; s = s->next)
      more = stream_settle(s) || more;
  }
  for (tl_stream_impl *s = device->streams; s != NULL; s = s->next)
    stream_end(s);
  device->unsettled = false;
  device->settled_at = device->now;
}

/* ---- waiting ------------------------------------------------------------- */

/* When the next closed gate gives up: all is settled that can be. */
static int64_t next_timeout(tl_device_impl *device) {
  int64_t next = INT64_MAX;
  for (tl_stream_impl *s = device->streams; s != NULL; s = s->next) {
    if (s->settled == s->pushed)
      continue;
    const sim_operation *head = operation_at(s, s->settled + 1);
    if (head->kind == SIM_GATE && head->end < next)
      next = head->end;
  }
  return next;
}

/* Moves the clock to the next event, or to the deadline; false: that is past.
 */
static bool clock_move(tl_device_impl *device, int64_t next, int64_t deadline) {
  bool in_time = next <= deadline;
  device->now = later_of(device->now, in_time ? next : deadline);
  sim_settle(device);
  return in_time;
}

bool sim_reach(tl_stream_impl *stream, uint64_t number, int64_t deadline) {
  tl_device_impl *device = stream->device;
  sim_settle(device);
  bool in_time = true;
  while (stream->ended < number && in_time)
    in_time =
        clock_move(device,
                   stream->settled >= number ? operation_at(stream, number)->end
                                             : next_timeout(device),
                   deadline);
  return stream->ended >= number;
}

bool sim_reach_record(tl_device_impl *device, const sim_record *record,
                      int64_t deadline) {
  sim_settle(device);
  bool in_time = true;
  while (!(record->known && record->time <= device->now) && in_time)
    in_time = clock_move(
        device, record->known ? record->time : next_timeout(device), deadline);
  return record->known && record->time <= device->now;
}

/* A wait that ends at its limit takes just that long, but for one of 0: so a
 * wait in parts takes what it takes in one, and a loop of them comes to an
 * end. */
void sim_charge_wait(tl_device_impl *device, int64_t began, int64_t deadline,
                     bool reached) {
  const tl_sim_options *s = &device->settings;
  if (reached) {
    sim_spend(device,
              s->sync_cost + (device->now > began ? s->sync_latency : 0));
    return;
  }
  int64_t least = sim_later(began, sim_nanoseconds(s->sync_cost));
  device->now = later_of(deadline, least);
}
