/* The race detector: vector clocks over streams, uses of elements by memory.
 *
 * A launch comes after an earlier one if the two are on one stream, if the host
 * knew that the earlier one was done when it made the later one, or if the
 * later one's stream waits for an event that was recorded behind the earlier
 * one. Two uses of the same elements that are ordered in none of these ways,
 * one of them a write, are a race: which comes first is a matter of luck.
 * (Happens- before by vector clocks: Lamport, 1978; Mattern, 1989.)
 *
 * What the host knows is kept with each timeline, so that a stream's clock
 * holds only what it has learned from events, and stays short. */
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- order --------------------------------------------------------------- */

sim_timeline *sim_timeline_retain(sim_timeline *timeline) {
  timeline->references++;
  return timeline;
}

void sim_timeline_release(sim_timeline *timeline) {
  if (--timeline->references == 0)
    free(timeline);
}

sim_order *sim_order_retain(sim_order *order) {
  if (order != NULL)
    order->references++;
  return order;
}

void sim_order_release(sim_order *order) {
  if (order == NULL || --order->references > 0)
    return;
  for (size_t i = 0; i < order->count; i++)
    sim_timeline_release(order->after[i].timeline);
  free(order);
}

/* Adds to an order that is being made, which has the room; what the host knows
 * and what is of the stream itself goes without saying. */
static void order_add(sim_order *order, const sim_timeline *own,
                      sim_timeline *timeline, uint64_t launches) {
  if (timeline == own || launches <= timeline->known)
    return;
  for (size_t i = 0; i < order->count; i++)
    if (order->after[i].timeline == timeline) {
      if (order->after[i].launches < launches)
        order->after[i].launches = launches;
      return;
    }
  order->after[order->count++] =
      (struct sim_after){sim_timeline_retain(timeline), launches};
}

static void order_add_all(sim_order *order, const sim_timeline *own,
                          const sim_order *from) {
  for (size_t i = 0; from != NULL && i < from->count; i++)
    order_add(order, own, from->after[i].timeline, from->after[i].launches);
}

tl_status sim_order_behind(tl_stream_impl *stream, const sim_record *record,
                           tl_error *error) {
  size_t room = 1 + (stream->order != NULL ? stream->order->count : 0) +
                (record->order != NULL ? record->order->count : 0);
  sim_order *order =
      tl_allocate(stream->device->options.faults, "allocate: sim order",
                  sizeof *order + room * sizeof order->after[0], error);
  if (order == NULL)
    return TL_OUT_OF_MEMORY;
  order->references = 1;
  order_add_all(order, stream->timeline, stream->order);
  order_add_all(order, stream->timeline, record->order);
  order_add(order, stream->timeline, record->timeline, record->launches);
  sim_order_release(stream->order);
  stream->order = order;
  return TL_OK;
}

static void timeline_learn(sim_timeline *timeline, uint64_t launches) {
  if (timeline->known < launches)
    timeline->known = launches;
}

void sim_order_learn(sim_timeline *timeline, uint64_t launches,
                     const sim_order *order) {
  timeline_learn(timeline, launches);
  for (size_t i = 0; order != NULL && i < order->count; i++)
    timeline_learn(order->after[i].timeline, order->after[i].launches);
}

static bool access_known(const sim_access *access) {
  return access->launch <= access->timeline->known;
}

/* Whether the stream's next launch comes after the access. */
static bool access_before(const sim_access *access,
                          const tl_stream_impl *stream) {
  if (access->timeline == stream->timeline || access_known(access))
    return true;
  const sim_order *order = stream->order;
  for (size_t i = 0; order != NULL && i < order->count; i++)
    if (order->after[i].timeline == access->timeline)
      return order->after[i].launches >= access->launch;
  return false;
}

/* ---- elements ------------------------------------------------------------ */

static size_t block_reach(const tl_block *b) {
  return (b->planes - 1) * b->plane_pitch + (b->rows - 1) * b->pitch + b->width;
}

/* Whether bytes low to high - 1 have one in common with a plane's rows, which
 * start at `first`. */
static bool rows_meet(const tl_block *b, size_t first, size_t low,
                      size_t high) {
  if (high <= first)
    return false;
  size_t from = low > first ? low - first : 0, to = high - first;
  size_t row =
      from < b->width || b->pitch == 0 ? 0 : (from - b->width) / b->pitch + 1;
  return row < b->rows && row * b->pitch < to;
}

static bool interval_meets(const tl_block *b, size_t low, size_t high) {
  for (size_t plane = 0; plane < b->planes; plane++)
    if (rows_meet(b, b->offset + plane * b->plane_pitch, low, high))
      return true;
  return false;
}

/* Exact: row by row of the block that has fewer. */
static bool blocks_meet(const tl_block *a, const tl_block *b) {
  if (a->offset + block_reach(a) <= b->offset ||
      b->offset + block_reach(b) <= a->offset)
    return false;
  if (a->rows * a->planes > b->rows * b->planes) {
    const tl_block *other = a;
    a = b;
    b = other;
  }
  for (size_t plane = 0; plane < a->planes; plane++)
    for (size_t row = 0; row < a->rows; row++) {
      size_t low = a->offset + plane * a->plane_pitch + row * a->pitch;
      if (interval_meets(b, low, low + a->width))
        return true;
    }
  return false;
}

/* Surely all of b lies in a. */
static bool block_covers(const tl_block *a, const tl_block *b) {
  bool same = a->offset == b->offset && a->width == b->width &&
              a->rows == b->rows && a->pitch == b->pitch &&
              a->planes == b->planes && a->plane_pitch == b->plane_pitch;
  return same || (block_reach(a) == a->width && a->offset <= b->offset &&
                  a->offset + a->width >= b->offset + block_reach(b));
}

/* ---- uses ---------------------------------------------------------------- */

void sim_access_release(sim_access *access) {
  sim_timeline_release(access->timeline);
  sim_order_release(access->order);
}

void sim_race_settle(tl_memory_impl *memory) {
  for (size_t i = 0; i < memory->access_count; i++) {
    sim_access *access = &memory->accesses[i];
    sim_order_learn(access->timeline, access->launch, access->order);
    sim_access_release(access);
  }
  memory->access_count = 0;
}

/* Forgets what the host knows to be done: nothing can race with it. */
static void accesses_prune(tl_memory_impl *memory) {
  size_t kept = 0;
  for (size_t i = 0; i < memory->access_count; i++)
    if (access_known(&memory->accesses[i]))
      sim_access_release(&memory->accesses[i]);
    else
      memory->accesses[kept++] = memory->accesses[i];
  memory->access_count = kept;
}

/* Room for the uses of one launch, up to three of which are of this memory. */
static tl_status accesses_reserve(tl_memory_impl *memory, tl_error *error) {
  if (memory->access_count + 3 <= memory->access_room)
    return TL_OK;
  size_t room = memory->access_room == 0 ? 4 : 2 * memory->access_room;
  sim_access *accesses =
      tl_allocate(memory->device->options.faults, "allocate: sim accesses",
                  room * sizeof *accesses, error);
  if (accesses == NULL)
    return TL_OUT_OF_MEMORY;
  if (memory->access_count > 0)
    memcpy(accesses, memory->accesses, memory->access_count * sizeof *accesses);
  free(memory->accesses);
  memory->accesses = accesses;
  memory->access_room = room;
  return TL_OK;
}

static void describe(char *text, size_t room, const tl_origin *origin,
                     const char *source, const char *kernel) {
  int used = snprintf(text, room, "%s%s%s", origin->operation,
                      kernel != NULL ? " " : "", kernel != NULL ? kernel : "");
  if (source[0] != '\0')
    used += snprintf(text + used, room - (size_t)used, " (%s:%d)", source,
                     (int)origin->line);
  snprintf(text + used, room - (size_t)used, " on stream %" PRIu64,
           origin->stream);
}

static tl_status race_fail(const tl_stream_impl *stream, const sim_use *use,
                           const char *kernel, const sim_access *earlier,
                           tl_error *error) {
  char now[200], before[200];
  describe(now, sizeof now, &stream->origin, stream->source, kernel);
  describe(before, sizeof before, &earlier->origin, earlier->source,
           earlier->kernel);
  return tl_fail(error, TL_RACE,
                 "E-RACE: %s %s elements that %s %s, and nothing orders the "
                 "two: record an event behind the earlier one, and let stream "
                 "%" PRIu64 " wait_event for it",
                 now, use->write ? "writes" : "reads", before,
                 earlier->write ? "writes" : "reads", stream->origin.stream);
}

tl_status sim_race_check(tl_stream_impl *stream, const sim_use *use,
                         const char *kernel, tl_error *error) {
  tl_memory_impl *memory = use->block.memory;
  accesses_prune(memory);
  for (size_t i = 0; i < memory->access_count; i++) {
    const sim_access *access = &memory->accesses[i];
    if ((use->write || access->write) && !access_before(access, stream) &&
        blocks_meet(&use->block, &access->block))
      return race_fail(stream, use, kernel, access, error);
  }
  return accesses_reserve(memory, error);
}

/* An earlier use is forgotten where whatever races with it races with this one
 * too: it comes before this one, which uses its elements and no less strongly.
 */
void sim_race_note(tl_stream_impl *stream, const sim_use *use,
                   const char *kernel) {
  tl_memory_impl *memory = use->block.memory;
  size_t kept = 0;
  for (size_t i = 0; i < memory->access_count; i++) {
    sim_access *access = &memory->accesses[i];
    if ((use->write || !access->write) && access_before(access, stream) &&
        block_covers(&use->block, &access->block))
      sim_access_release(access);
    else
      memory->accesses[kept++] = *access;
  }
  sim_access *note = &memory->accesses[kept];
  memory->access_count = kept + 1;
  *note = (sim_access){.block = use->block,
                       .write = use->write,
                       .timeline = sim_timeline_retain(stream->timeline),
                       .launch = stream->launches,
                       .order = sim_order_retain(stream->order),
                       .kernel = kernel,
                       .origin = stream->origin};
  memcpy(note->source, stream->source, sizeof note->source);
}
