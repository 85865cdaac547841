/* Streams of the CUDA device, and the markers that say how far each has come.
 *
 * A launch into a full queue stays inside the driver until there is room, so
 * `busy` keeps other threads from the stream meanwhile, and none of them ever
 * waits for it. */
#define _GNU_SOURCE
#include "cuda/cuda.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE = 0, ENQUEUING, MARKING }; /* busy */

/* So many launches since somebody asked have a marker each; then they are an
 * eighth to a quarter of these launches apart, and WIDEST at most. */
enum { EXACT = 16, SHARE = 8, WIDEST = 32 };
enum { FIRST_ROOM = 64 }; /* markers of a ring */

static bool bounded(const tl_stream_impl *stream) {
  return stream->device->options.queue_depth > 0;
}

/* ---- life ---------------------------------------------------------------- */

tl_status cuda_stream_create(tl_device_impl *device, tl_stream_impl **out,
                             tl_error *error) {
  *out = NULL;
  tl_stream_impl *stream = tl_allocate(
      device->options.faults, "allocate: cuda stream", sizeof *stream, error);
  if (stream == NULL)
    return TL_OUT_OF_MEMORY;
  CUcontext before = cuda_enter(device);
  tl_status status = CUDA_CALL(&device->driver, error, cuStreamCreate,
                               &stream->stream, CU_STREAM_NON_BLOCKING);
  cuda_leave(device, before);
  if (status != TL_OK) {
    free(stream);
    return status;
  }
  stream->device = device;
  pthread_mutex_init(&stream->lock, NULL);
  *out = stream;
  return TL_OK;
}

void cuda_stream_uses_forget(tl_stream_impl *stream) {
  for (tl_memory_impl *m = stream->device->pending; m != NULL; m = m->next)
    for (size_t i = m->use_count; i-- > 0;)
      if (m->uses[i].stream == stream)
        m->uses[i] = m->uses[--m->use_count];
}

void cuda_stream_finish(tl_stream_impl *stream) {
  tl_device_impl *device = stream->device;
  const cuda_driver *driver = &device->driver;
  for (size_t i = 0; i < stream->room; i++)
    if (stream->markers[i].event != NULL)
      driver->cuEventDestroy(stream->markers[i].event);
  cuda_blas_forget(&device->code->blas, stream->stream);
  if (stream->workspace != 0)
    cuda_bytes_free(device, stream->workspace);
  driver->cuStreamDestroy(stream->stream);
  pthread_mutex_destroy(&stream->lock);
  free(stream->markers);
  free(stream);
}

/* A device that is closing may leave work in flight: its end waits for it. */
void cuda_stream_destroy(tl_stream_impl *stream) {
  tl_device_impl *device = stream->device;
  CUcontext before = cuda_enter(device);
  pthread_mutex_lock(&device->lock);
  if (device->driver.cuStreamQuery(stream->stream) == CUDA_ERROR_NOT_READY) {
    stream->next = device->orphans;
    device->orphans = stream;
  } else {
    cuda_stream_uses_forget(stream);
    cuda_stream_finish(stream);
  }
  pthread_mutex_unlock(&device->lock);
  cuda_leave(device, before);
}

/* ---- markers ------------------------------------------------------------- */

static cuda_marker *marker_at(tl_stream_impl *stream, size_t index) {
  return &stream->markers[(stream->first + index) % stream->room];
}

static cuda_counts enqueued_read(tl_stream_impl *stream) {
  cuda_counts counts;
  for (int i = 0; i < CUDA_COUNTS; i++)
    counts.of[i] = atomic_load(&stream->enqueued[i]);
  return counts;
}

/* The lock is held. */
static void completed_note(tl_stream_impl *stream, const cuda_counts *counts) {
  for (int i = 0; i < CUDA_COUNTS; i++)
    if (counts->of[i] > stream->completed.of[i])
      stream->completed.of[i] = counts->of[i];
}

/* Takes the completed markers out, by bisection: they end in order. The lock
 * is held and the context current. */
static tl_status markers_refresh(tl_stream_impl *stream, tl_error *error) {
  const cuda_driver *driver = &stream->device->driver;
  size_t done = 0, open = stream->count; /* markers before, and from here */
  while (done < open) {
    size_t middle = done == 0 && open == stream->count ? 0 : (done + open) / 2;
    CUresult result = driver->cuEventQuery(marker_at(stream, middle)->event);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
      return cuda_status(driver, "cuEventQuery", result, error);
    if (result == CUDA_SUCCESS)
      done = middle + 1;
    else
      open = middle;
  }
  if (done == 0)
    return TL_OK;
  completed_note(stream, &marker_at(stream, done - 1)->counts);
  stream->first = (stream->first + done) % stream->room;
  stream->count -= done;
  return TL_OK;
}

/* Makes room for one more marker with an event; false: there is no memory. */
static bool marker_room(tl_stream_impl *stream) {
  tl_error ignored;
  if (stream->count == stream->room && stream->room > 0)
    markers_refresh(stream, &ignored);
  if (stream->count == stream->room) {
    size_t room = stream->room > 0 ? 2 * stream->room : FIRST_ROOM;
    cuda_marker *markers = calloc(room, sizeof *markers);
    if (markers == NULL)
      return false;
    for (size_t i = 0; i < stream->count; i++)
      markers[i] = *marker_at(stream, i);
    free(stream->markers);
    stream->markers = markers;
    stream->first = 0;
    stream->room = room;
  }
  cuda_marker *marker = marker_at(stream, stream->count);
  return marker->event != NULL ||
         stream->device->driver.cuEventCreate(
             &marker->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
}

/* Puts a marker behind what is enqueued. A marker that can't be had is missed,
 * not needed: the next one serves, or a query of the whole stream. */
static void marker_put(tl_stream_impl *stream) {
  pthread_mutex_lock(&stream->lock);
  if (marker_room(stream)) {
    cuda_marker *marker = marker_at(stream, stream->count);
    marker->counts = enqueued_read(stream);
    if (stream->device->driver.cuEventRecord(marker->event, stream->stream) ==
        CUDA_SUCCESS)
      stream->count++;
  }
  pthread_mutex_unlock(&stream->lock);
}

/* Whether a count is known to have got so far, or a marker will tell. The lock
 * is held. */
static bool marker_tells(tl_stream_impl *stream, cuda_count kind,
                         uint64_t value) {
  return stream->completed.of[kind] >= value ||
         (stream->count > 0 &&
          marker_at(stream, stream->count - 1)->counts.of[kind] >= value);
}

/* What holds the stream back must not hold back the news of what came before:
 * the last launches get their marker, if they have none. */
static void marker_close(tl_stream_impl *stream) {
  uint64_t launches = atomic_load(&stream->enqueued[CUDA_LAUNCHES]);
  pthread_mutex_lock(&stream->lock);
  bool told = marker_tells(stream, CUDA_LAUNCHES, launches);
  pthread_mutex_unlock(&stream->lock);
  if (!told)
    marker_put(stream);
}

static bool marker_due(tl_stream_impl *stream, uint64_t launches) {
  uint64_t since = launches - atomic_load(&stream->asked);
  if (since <= EXACT || bounded(stream))
    return true;
  uint64_t apart = 1;
  while (apart < WIDEST && apart * SHARE <= since)
    apart *= 2;
  return (launches & (apart - 1)) == 0;
}

/* Whether all is done; then all counts are complete. The context is current. */
static tl_status stream_idle(tl_stream_impl *stream, bool *idle,
                             tl_error *error) {
  cuda_counts counts = enqueued_read(stream);
  const cuda_driver *driver = &stream->device->driver;
  CUresult result = driver->cuStreamQuery(stream->stream);
  *idle = result == CUDA_SUCCESS;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
    return cuda_status(driver, "cuStreamQuery", result, error);
  if (!*idle)
    return TL_OK;
  pthread_mutex_lock(&stream->lock);
  completed_note(stream, &counts);
  atomic_store(&stream->asked, counts.of[CUDA_LAUNCHES]);
  pthread_mutex_unlock(&stream->lock);
  return TL_OK;
}

/* Whether a count has got so far. Where no marker will tell, puts one now,
 * unless a launch is under way. The context is current. */
static tl_status count_reached(tl_stream_impl *stream, cuda_count kind,
                               uint64_t value, bool *reached, tl_error *error) {
  pthread_mutex_lock(&stream->lock);
  tl_status status = TL_OK;
  if (stream->completed.of[kind] < value)
    status = markers_refresh(stream, error);
  *reached = stream->completed.of[kind] >= value;
  bool told = marker_tells(stream, kind, value);
  pthread_mutex_unlock(&stream->lock);
  int idle = IDLE;
  if (status == TL_OK && !told &&
      atomic_compare_exchange_strong(&stream->busy, &idle, MARKING)) {
    marker_put(stream);
    atomic_store(&stream->busy, IDLE);
  }
  return status;
}

bool cuda_stream_reached(tl_stream_impl *stream, uint64_t launches) {
  tl_error ignored;
  pthread_mutex_lock(&stream->lock);
  bool reached = stream->completed.of[CUDA_LAUNCHES] >= launches;
  pthread_mutex_unlock(&stream->lock);
  if (!reached && stream->swept != stream->device->sweep) {
    stream->swept = stream->device->sweep;
    count_reached(stream, CUDA_LAUNCHES, launches, &reached, &ignored);
  }
  return reached;
}

void cuda_stream_completed(tl_stream_impl *stream, uint64_t *least,
                           uint64_t *most) {
  tl_error ignored; /* of a lost device: the next call says so */
  CUcontext before = cuda_enter(stream->device);
  pthread_mutex_lock(&stream->lock);
  uint64_t launches = atomic_load(&stream->enqueued[CUDA_LAUNCHES]);
  markers_refresh(stream, &ignored);
  *least = stream->completed.of[CUDA_LAUNCHES];
  *most = launches > *least ? launches : *least;
  for (size_t i = 0; i < stream->count; i++) {
    uint64_t place = marker_at(stream, i)->counts.of[CUDA_LAUNCHES];
    if (place > *least) { /* else it stands behind something else */
      *most = place - 1;
      break;
    }
  }
  atomic_store(&stream->asked, launches);
  pthread_mutex_unlock(&stream->lock);
  cuda_leave(stream->device, before);
}

/* ---- waiting ------------------------------------------------------------- */

tl_status cuda_stream_query(tl_stream_impl *stream, bool *done,
                            tl_error *error) {
  CUcontext before = cuda_enter(stream->device);
  tl_status status = stream_idle(stream, done, error);
  cuda_leave(stream->device, before);
  return status;
}

typedef struct count_subject {
  tl_stream_impl *stream;
  cuda_count kind;
  uint64_t value;
} count_subject;

static tl_status count_condition(void *subject, bool *met, tl_error *error) {
  const count_subject *s = subject;
  return count_reached(s->stream, s->kind, s->value, met, error);
}

/* All that is enqueued when the wait begins, or, if a launch is under way in
 * another thread, soon after: what comes later must not make the wait longer.
 */
typedef struct all_subject {
  tl_stream_impl *stream;
  CUevent event; /* behind it all, once recorded */
  bool recorded;
  cuda_counts counts; /* before the event */
} all_subject;

static void all_record(all_subject *s) {
  const cuda_driver *driver = &s->stream->device->driver;
  int idle = IDLE;
  if (!atomic_compare_exchange_strong(&s->stream->busy, &idle, MARKING))
    return;
  s->counts = enqueued_read(s->stream);
  s->recorded =
      (s->event != NULL ||
       driver->cuEventCreate(&s->event, CU_EVENT_DISABLE_TIMING) ==
           CUDA_SUCCESS) &&
      driver->cuEventRecord(s->event, s->stream->stream) == CUDA_SUCCESS;
  atomic_store(&s->stream->busy, IDLE);
}

static tl_status all_condition(void *subject, bool *met, tl_error *error) {
  all_subject *s = subject;
  const cuda_driver *driver = &s->stream->device->driver;
  if (!s->recorded) {
    tl_status status = stream_idle(s->stream, met, error);
    if (status == TL_OK && !*met)
      all_record(s);
    return status;
  }
  CUresult result = driver->cuEventQuery(s->event);
  *met = result == CUDA_SUCCESS;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
    return cuda_status(driver, "cuEventQuery", result, error);
  if (*met) {
    pthread_mutex_lock(&s->stream->lock);
    completed_note(s->stream, &s->counts);
    pthread_mutex_unlock(&s->stream->lock);
  }
  return TL_OK;
}

static tl_status all_wait(tl_stream_impl *stream, double seconds, bool *reached,
                          tl_error *error) {
  all_subject subject = {.stream = stream};
  tl_status status = cuda_wait(stream->device, all_condition, &subject, seconds,
                               reached, error);
  if (subject.event != NULL)
    stream->device->driver.cuEventDestroy(subject.event);
  return status;
}

tl_status cuda_stream_wait(tl_stream_impl *stream, uint64_t launches,
                           double seconds, bool *reached, tl_error *error) {
  tl_device_impl *device = stream->device;
  CUcontext before = cuda_enter(device);
  count_subject subject = {stream, CUDA_LAUNCHES, launches};
  tl_status status = launches == TL_EVERYTHING
                         ? all_wait(stream, seconds, reached, error)
                         : cuda_wait(device, count_condition, &subject, seconds,
                                     reached, error);
  cuda_leave(device, before);
  return status;
}

/* ---- room ---------------------------------------------------------------- */

/* The driver has a queue of its own, whose depth it does not say: this is about
 * a depth that was asked for when the device was opened. */
static tl_status room_wait(tl_stream_impl *stream, cuda_count kind,
                           double seconds, bool *reached, tl_error *error) {
  uint64_t depth = (uint64_t)stream->device->options.queue_depth;
  if (kind == CUDA_LAUNCHES)
    kind = CUDA_SLOTS;
  uint64_t taken = atomic_load(&stream->enqueued[kind]);
  *reached = taken < depth;
  if (*reached)
    return TL_OK;
  count_subject subject = {stream, kind, taken - depth + 1};
  CUcontext before = cuda_enter(stream->device);
  tl_status status = cuda_wait(stream->device, count_condition, &subject,
                               seconds, reached, error);
  cuda_leave(stream->device, before);
  return status;
}

tl_status cuda_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                              bool *reached, tl_error *error) {
  *reached = true;
  if (!bounded(stream))
    return TL_OK;
  return room_wait(stream, slot ? CUDA_SLOTS : CUDA_OTHERS, seconds, reached,
                   error);
}

/* ---- what every operation does ------------------------------------------- */

/* Only the thread that enqueues changes a count. */
static uint64_t count_add(tl_stream_impl *stream, cuda_count kind, bool one) {
  uint64_t count =
      atomic_load_explicit(&stream->enqueued[kind], memory_order_relaxed) + one;
  atomic_store_explicit(&stream->enqueued[kind], count, memory_order_release);
  return count;
}

tl_status cuda_stream_begin(tl_stream_impl *stream, cuda_count kind,
                            CUcontext *before, tl_error *error) {
  if (bounded(stream) && kind != CUDA_NOTHING) {
    bool reached;
    tl_status status = room_wait(stream, kind, -1, &reached, error);
    if (status != TL_OK)
      return status;
  }
  *before = cuda_enter(stream->device);
  for (int idle = IDLE; !atomic_compare_exchange_weak_explicit(
           &stream->busy, &idle, ENQUEUING, memory_order_acquire,
           memory_order_relaxed);
       idle = IDLE)
    sched_yield(); /* another thread puts a marker: that is short */
  if (kind == CUDA_OTHERS)
    marker_close(stream);
  return TL_OK;
}

tl_status cuda_stream_end(tl_stream_impl *stream, cuda_count kind,
                          CUcontext before, tl_status status) {
  if (status == TL_OK && kind != CUDA_NOTHING) {
    uint64_t launches = count_add(stream, CUDA_LAUNCHES, kind == CUDA_LAUNCHES);
    count_add(stream, CUDA_SLOTS, kind != CUDA_OTHERS);
    count_add(stream, CUDA_OTHERS, kind == CUDA_OTHERS);
    if (kind == CUDA_LAUNCHES ? marker_due(stream, launches) : bounded(stream))
      marker_put(stream);
  }
  atomic_store_explicit(&stream->busy, IDLE, memory_order_release);
  cuda_leave(stream->device, before);
  return status;
}

/* ---- spin ---------------------------------------------------------------- */

tl_status cuda_spin(tl_stream_impl *stream, double seconds, tl_error *error) {
  unsigned long long nanoseconds = (unsigned long long)(seconds * 1e9);
  void *arguments[] = {&nanoseconds};
  return cuda_launch(stream, CUDA_LAUNCHES, CUDA_SPIN, (cuda_grid){1, 1, 1},
                     (cuda_block){1, 1}, arguments, error);
}
