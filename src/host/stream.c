/* Streams of the host device: a bounded queue and the worker that empties it.
 *
 * The queue is lock-free while both sides are busy. A side that has to wait
 * first says so (`sleeping`, `waiters`), then looks again, then sleeps; the
 * other side changes its count, then looks whether somebody sleeps. All four
 * are sequentially consistent, so one of the two always sees the other. */
#define _GNU_SOURCE
#include "host/host.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* How long an idle worker looks for work before it sleeps, in nanoseconds: a
 * few times what it costs to wake it, which the producer would pay. */
enum { IDLE_TIME = 20000, LOOKS = 64 };

static void processor_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* ---- life ---------------------------------------------------------------- */

tl_status host_stream_create(tl_device_impl *device, tl_stream_impl **out,
                             tl_error *error) {
  *out = NULL;
  tl_stream_impl *stream = tl_allocate(
      device->options.faults, "allocate: host stream", sizeof *stream, error);
  if (stream == NULL)
    return TL_OUT_OF_MEMORY;
  atomic_init(&stream->references, 1);
  stream->device = device;
  host_device_retain(device);
  pthread_mutex_init(&stream->lock, NULL);
  host_condition_init(&stream->wake);
  host_condition_init(&stream->progress);
  *out = stream;
  return TL_OK;
}

/* The queue is not cleared: only what is used of it takes memory, and a stream
 * with a few operations in flight stays small. */
static tl_status queue_make(tl_stream_impl *stream, tl_error *error) {
  const tl_device_options *options = &stream->device->options;
  uint64_t size = 2 * (uint64_t)options->queue_depth;
  size_t nbytes = (size * sizeof *stream->queue + 63) / 64 * 64;
  tl_status status = tl_fault(options->faults, "allocate: host queue", error);
  if (status != TL_OK)
    return status;
  stream->queue = aligned_alloc(64, nbytes);
  if (stream->queue == NULL)
    return tl_fail(error, TL_OUT_OF_MEMORY,
                   "host: no memory for a stream's queue (asked %zu bytes)",
                   nbytes);
  stream->size = size;
  return TL_OK;
}

void host_stream_retain(tl_stream_impl *stream) {
  atomic_fetch_add(&stream->references, 1);
}

void host_stream_release(tl_stream_impl *stream) {
  if (atomic_fetch_sub(&stream->references, 1) != 1)
    return;
  tl_device_impl *device = stream->device;
  pthread_mutex_destroy(&stream->lock);
  pthread_cond_destroy(&stream->wake);
  pthread_cond_destroy(&stream->progress);
  free(stream->queue);
  free(stream);
  host_device_release(device);
}

void host_stream_destroy(tl_stream_impl *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->closing = true;
  pthread_cond_signal(&stream->wake);
  pthread_mutex_unlock(&stream->lock);
  host_stream_release(stream);
}

/* ---- the worker ---------------------------------------------------------- */

/* Wakes the waiting threads once one of them has what it waits for, and not at
 * every operation: that would take a core from the work each time. */
static void progress_announce(tl_stream_impl *stream) {
  if (atomic_load(&stream->waiters) == 0)
    return;
  bool reached = false;
  pthread_mutex_lock(&stream->lock);
  for (host_waiter *w = stream->waiting; w != NULL && !reached; w = w->next)
    reached = atomic_load(w->count) >= w->value;
  if (reached)
    pthread_cond_broadcast(&stream->progress);
  pthread_mutex_unlock(&stream->lock);
}

static void operation_run(tl_stream_impl *stream, host_operation *operation) {
  operation->run(operation);
  for (int i = 0; i < 3; i++)
    if (operation->keep[i] != NULL)
      host_memory_release(operation->keep[i]);
  if (operation->launch)
    atomic_fetch_add(&stream->launches, 1);
  atomic_fetch_add(operation->slot ? &stream->slots : &stream->others, 1);
  atomic_fetch_add(&stream->done, 1);
  progress_announce(stream);
}

/* Waits for an operation; false: the stream is closing and the queue empty. */
static bool worker_wait(tl_stream_impl *stream, uint64_t done) {
  int64_t end = host_now() + IDLE_TIME;
  do {
    for (int i = 0; i < LOOKS; i++) {
      if (atomic_load(&stream->pushed) != done)
        return true;
      processor_pause();
    }
    sched_yield(); /* the producer may be on this very core */
  } while (host_now() < end);
  pthread_mutex_lock(&stream->lock);
  atomic_store(&stream->sleeping, true);
  while (atomic_load(&stream->pushed) == done && !stream->closing)
    pthread_cond_wait(&stream->wake, &stream->lock);
  atomic_store(&stream->sleeping, false);
  pthread_mutex_unlock(&stream->lock);
  return atomic_load(&stream->pushed) != done;
}

static void *worker_main(void *argument) {
  tl_stream_impl *stream = argument;
  (void)prctl(PR_SET_TIMERSLACK, 1); /* spins end within microseconds */
  uint64_t done = 0;
  while (worker_wait(stream, done))
    operation_run(stream, &stream->queue[done++ % stream->size]);
  host_stream_release(stream);
  return NULL;
}

/* Starts the worker with all signals blocked: they are the host program's. */
static int worker_start(tl_stream_impl *stream) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  host_stream_retain(stream);
  int failure = pthread_create(&thread, &attributes, worker_main, stream);
  if (failure != 0)
    host_stream_release(stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return failure;
}

static tl_status stream_start(tl_stream_impl *stream, tl_error *error) {
  tl_faults *faults = stream->device->options.faults;
  if (stream->queue == NULL && queue_make(stream, error) != TL_OK)
    return (tl_status)error->code;
  if (tl_fault(faults, "host thread", error) != TL_OK)
    return (tl_status)error->code;
  int failure = worker_start(stream);
  if (failure != 0)
    return tl_fail(error, TL_DRIVER, "host: no thread for the stream: %s",
                   strerror(failure));
  stream->started = true;
  return TL_OK;
}

/* ---- waiting ------------------------------------------------------------- */

/* What a thread can wait for: a count that has to reach a value. */
static bool count_wait(tl_stream_impl *stream, atomic_uint_least64_t *count,
                       uint64_t value, int64_t deadline, bool may_spin) {
  if (atomic_load(count) >= value)
    return true;
  if (may_spin && stream->device->options.wait == TL_WAIT_SPIN) {
    while (atomic_load(count) < value && host_now() < deadline)
      sched_yield();
    return atomic_load(count) >= value;
  }
  bool in_time = true;
  host_waiter self = {.count = count, .value = value};
  pthread_mutex_lock(&stream->lock);
  self.next = stream->waiting;
  stream->waiting = &self;
  atomic_fetch_add(&stream->waiters, 1);
  while (atomic_load(count) < value && in_time)
    in_time = host_condition_wait(&stream->progress, &stream->lock, deadline);
  atomic_fetch_sub(&stream->waiters, 1);
  host_waiter **link = &stream->waiting;
  while (*link != &self)
    link = &(*link)->next;
  *link = self.next;
  pthread_mutex_unlock(&stream->lock);
  return atomic_load(count) >= value;
}

bool host_stream_wait_place(tl_stream_impl *stream, uint64_t place,
                            int64_t deadline, bool may_spin) {
  return count_wait(stream, &stream->done, place, deadline, may_spin);
}

tl_status host_stream_wait(tl_stream_impl *stream, uint64_t launches,
                           double seconds, bool *reached, tl_error *error) {
  (void)error;
  int64_t deadline = host_deadline(seconds);
  *reached =
      launches == TL_EVERYTHING
          ? host_stream_wait_place(stream, atomic_load(&stream->pushed),
                                   deadline, true)
          : count_wait(stream, &stream->launches, launches, deadline, true);
  return TL_OK;
}

void host_stream_completed(tl_stream_impl *stream, uint64_t *least,
                           uint64_t *most) {
  *least = *most = atomic_load(&stream->launches);
}

tl_status host_stream_query(tl_stream_impl *stream, bool *done,
                            tl_error *error) {
  (void)error;
  *done = atomic_load(&stream->done) == atomic_load(&stream->pushed);
  return TL_OK;
}

/* ---- the producer's side ------------------------------------------------- */

/* The queue has room for `depth` holders of slots, and for as many others. */
static bool room_wait(tl_stream_impl *stream, bool slot, double seconds) {
  uint64_t depth = (uint64_t)stream->device->options.queue_depth;
  uint64_t taken = slot ? stream->slots_taken : stream->others_taken;
  atomic_uint_least64_t *done = slot ? &stream->slots : &stream->others;
  uint64_t needed = taken >= depth ? taken - depth + 1 : 0;
  return atomic_load(done) >= needed ||
         count_wait(stream, done, needed, host_deadline(seconds), true);
}

tl_status host_stream_reserve(tl_stream_impl *stream, bool slot, double seconds,
                              bool *reached, tl_error *error) {
  (void)error;
  *reached = !stream->started || room_wait(stream, slot, seconds);
  return TL_OK;
}

tl_status host_stream_prepare(tl_stream_impl *stream, bool slot,
                              tl_error *error) {
  if (!stream->started) {
    tl_status status = stream_start(stream, error);
    if (status != TL_OK)
      return status;
  }
  room_wait(stream, slot, -1);
  return TL_OK;
}

void host_stream_push(tl_stream_impl *stream, const host_operation *operation) {
  for (int i = 0; i < 3; i++)
    if (operation->keep[i] != NULL)
      host_memory_retain(operation->keep[i]);
  *(operation->slot ? &stream->slots_taken : &stream->others_taken) += 1;
  uint64_t pushed = atomic_load(&stream->pushed);
  stream->queue[pushed % stream->size] = *operation;
  atomic_store(&stream->pushed, pushed + 1);
  if (!atomic_load(&stream->sleeping))
    return;
  pthread_mutex_lock(&stream->lock);
  pthread_cond_signal(&stream->wake);
  pthread_mutex_unlock(&stream->lock);
}

/* ---- spin ---------------------------------------------------------------- */

static void spin_run(const host_operation *operation) {
  if (operation->with.seconds == 0)
    return;
  int64_t until = host_now() + (int64_t)(operation->with.seconds * 1e9);
  struct timespec end = {.tv_sec = (time_t)(until / 1000000000),
                         .tv_nsec = (long)(until % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
    continue;
}

tl_status host_spin(tl_stream_impl *stream, double seconds, tl_error *error) {
  tl_status status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  host_operation operation = {
      .run = spin_run, .launch = true, .slot = true, .with.seconds = seconds};
  host_stream_push(stream, &operation);
  return TL_OK;
}
