/* The bounded queue, seen from a second thread: behind a closed gate exactly
 * `depth` launches are accepted, the next one waits, and nothing is lost. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tap.h"

static tl_error error;

static void nap(long milliseconds) {
  const struct timespec t = {.tv_nsec = milliseconds * 1000000};
  nanosleep(&t, NULL);
}

static tl_device *host_open(int32_t depth) {
  const tl_device_options options = {.size = sizeof options,
                                     .queue_depth = depth};
  tl_device *device;
  must(tl_device_open("host", &options, &device, &error), &error);
  return device;
}

static tl_stream *stream_create(tl_device *device) {
  tl_stream *stream;
  must(tl_stream_create(device, &stream, &error), &error);
  return stream;
}

/* Launch i of a chain that only comes out right in order: an even one puts
 * i / 2 into the cell, an odd one copies the cell to its place in the log. */
static tl_status chain_launch(tl_stream *stream, tl_buffer *cell,
                              tl_buffer *log, int64_t i, tl_error *e) {
  const int64_t one[] = {1};
  if (i % 2 == 0)
    return fill_with(cell, (double)(i / 2), stream, e);
  tl_buffer *place;
  tl_status status = tl_buffer_view(log, i / 2, 1, one, NULL, &place, e);
  if (status == TL_OK) {
    status = tl_buffer_copy(place, cell, stream, e);
    tl_buffer_release(place);
  }
  return status;
}

static void chain_create(tl_device *device, int64_t launches, tl_buffer **cell,
                         tl_buffer **log) {
  const int64_t one[] = {1}, half[] = {launches / 2};
  must(tl_buffer_create(device, TL_FLOAT32, 1, one, cell, &error), &error);
  must(tl_buffer_create(device, TL_FLOAT32, 1, half, log, &error), &error);
}

static int chain_faults(tl_buffer *log, int64_t launches) {
  float numbers[16384];
  int faults = 0;
  must(tl_buffer_download(log, numbers, (size_t)launches / 2 * sizeof(float),
                          &error),
       &error);
  for (int64_t i = 0; i < launches / 2; i++)
    faults += numbers[i] != (float)i;
  return faults;
}

/* ---- the second thread --------------------------------------------------- */

/* What it watches, and what it found. */
typedef struct watch {
  tl_device *device;
  tl_gate *gate; /* its own from its start on */
  uint64_t stream;
  int depth;
  atomic_int returned;   /* launches that have come back to the caller */
  atomic_bool opened;    /* the gate is about to be opened */
  bool filled;           /* `depth` of them did come back */
  bool stayed;           /* and no more while it watched */
  bool marks_right;      /* the device counted the same, none complete */
  bool other_ran;        /* a stream of its own was not held up */
  bool gate_was_in_time; /* the gate had not timed out */
} watch;

static tl_mark mark_of(watch *w) {
  tl_mark marks[16], none = {0};
  int64_t nanoseconds;
  int32_t count;
  tl_error e;
  if (tl_device_stamp(w->device, &nanoseconds, marks, 16, &count, &e) != TL_OK)
    return none;
  for (int32_t i = 0; i < count && i < 16; i++)
    if (marks[i].stream == w->stream)
      return marks[i];
  return none;
}

static bool other_stream_runs(tl_device *device) {
  const int64_t one[] = {1};
  tl_stream *stream = NULL;
  tl_buffer *buffer = NULL;
  tl_error e;
  bool reached;
  float value = 0;
  bool ran =
      tl_stream_create(device, &stream, &e) == TL_OK &&
      tl_buffer_create(device, TL_FLOAT32, 1, one, &buffer, &e) == TL_OK &&
      fill_with(buffer, 9, stream, &e) == TL_OK &&
      tl_stream_synchronize(stream, 20, &reached, &e) == TL_OK && reached &&
      tl_buffer_download(buffer, &value, sizeof value, &e) == TL_OK &&
      value == 9;
  tl_buffer_release(buffer);
  tl_stream_release(stream);
  return ran;
}

static void *watch_main(void *argument) {
  watch *w = argument;
  for (int i = 0; i < 20000 && atomic_load(&w->returned) < w->depth; i++)
    nap(1);
  w->filled = atomic_load(&w->returned) == w->depth;
  w->other_ran = other_stream_runs(w->device);
  w->stayed = w->marks_right = true;
  for (int i = 0; i < 60; i++, nap(1)) {
    tl_mark mark = mark_of(w);
    w->marks_right = w->marks_right && mark.launched == (uint64_t)w->depth &&
                     mark.completed_most == 0;
    w->stayed = w->stayed && atomic_load(&w->returned) == w->depth;
  }
  tl_error e;
  bool opened = false;
  atomic_store(&w->opened, true);
  w->gate_was_in_time = tl_gate_open(w->gate, &opened, &e) == TL_OK && opened;
  return NULL;
}

/* Enqueues three times what fits, while the other thread watches. */
static void depth_holds(int32_t option, int depth) {
  tl_device *device = host_open(option);
  tl_stream *stream = stream_create(device);
  tl_buffer *cell, *log;
  pthread_t thread;
  int launches = 3 * depth;
  launches += launches % 2;
  watch w = {
      .device = device, .stream = tl_stream_number(stream), .depth = depth};
  chain_create(device, launches, &cell, &log);
  must(tl_gate_create(stream, 60, &w.gate, &error), &error);
  if (pthread_create(&thread, NULL, watch_main, &w) != 0)
    tap_bail("no thread");
  bool waited = true;
  for (int i = 0; i < launches; i++) {
    must(chain_launch(stream, cell, log, i, &error), &error);
    if (i == depth) /* the first one that did not fit */
      waited = atomic_load(&w.opened);
    atomic_fetch_add(&w.returned, 1);
  }
  pthread_join(thread, NULL);
  expect(w.filled);
  expect(w.stayed);
  expect(w.marks_right);
  expect(w.other_ran);
  expect(w.gate_was_in_time);
  expect(waited);
  expect(chain_faults(log, launches) == 0);
  tl_mark mark = mark_of(&w);
  expect(mark.launched == (uint64_t)launches);
  expect(mark.completed_least == (uint64_t)launches);
  tl_gate_release(w.gate);
  tl_buffer_release(log);
  tl_buffer_release(cell);
  tl_stream_release(stream);
  tl_device_release(device);
}

static void test_depth_1(void) {
  depth_holds(1, 1);
}

static void test_depth_64(void) {
  depth_holds(64, 64);
}

static void test_depth_256(void) {
  depth_holds(256, 256);
}

static void test_depth_1024(void) {
  depth_holds(1024, 1024);
}

static void test_depth_default(void) {
  depth_holds(0, 1024);
}

/* ---- one thread ---------------------------------------------------------- */

static void test_reserve(void) {
  bool reached;
  tl_device *device = host_open(4);
  tl_stream *full = stream_create(device), *other = stream_create(device);
  tl_gate *gate;
  must(tl_gate_create(full, 60, &gate, &error), &error);
  for (int i = 0; i < 4; i++) {
    expect_ok(tl_stream_reserve(full, true, 0, &reached, &error), &error);
    expect(reached);
    must(tl_stream_spin(full, 0, &error), &error);
  }
  expect_ok(tl_stream_reserve(full, true, 0, &reached, &error), &error);
  expect(!reached);
  expect_ok(tl_stream_reserve(full, true, 0.01, &reached, &error), &error);
  expect(!reached);
  for (int i = 0; i < 40; i++) /* ten times its depth goes through the other */
    must(tl_stream_spin(other, 0, &error), &error);
  expect_ok(tl_stream_synchronize(other, -1, &reached, &error), &error);
  expect_ok(tl_stream_done(full, &reached, &error), &error);
  expect(!reached);
  expect_ok(tl_gate_open(gate, &reached, &error), &error);
  expect_ok(tl_stream_reserve(full, true, -1, &reached, &error), &error);
  expect(reached);
  tl_gate_release(gate);
  tl_stream_release(other);
  tl_stream_release(full);
  tl_device_release(device);
}

/* A gate that times out lets the launch that waits for it through. */
static void test_gate_times_out(void) {
  bool opened;
  tl_device *device = host_open(2);
  tl_stream *stream = stream_create(device);
  tl_gate *gate;
  must(tl_gate_create(stream, 0.02, &gate, &error), &error);
  for (int i = 0; i < 10; i++)
    expect_ok(tl_stream_spin(stream, 0, &error), &error);
  expect_ok(tl_gate_open(gate, &opened, &error), &error);
  expect(!opened);
  tl_gate_release(gate);
  tl_stream_release(stream);
  tl_device_release(device);
}

/* What takes no slot does not wait for one: a full queue can be gated, waited
 * on and marked by untimed events. */
static void test_full_takes_no_slots(void) {
  bool reached;
  tl_device *device = host_open(2);
  tl_stream *full = stream_create(device), *other = stream_create(device);
  tl_gate *first, *second;
  tl_event *event;
  must(tl_event_create(device, false, &event, &error), &error);
  must(tl_stream_record(other, event, &error), &error);
  must(tl_gate_create(full, 60, &first, &error), &error);
  must(tl_stream_spin(full, 0, &error), &error);
  must(tl_stream_spin(full, 0, &error), &error);
  expect_ok(tl_stream_wait_event(full, event, &error), &error);
  expect_ok(tl_stream_record(full, event, &error), &error);
  tl_gate_release(first);
  expect_ok(tl_event_synchronize(event, -1, &reached, &error), &error);
  must(tl_gate_create(full, 60, &second, &error), &error);
  tl_gate_release(second);
  tl_event_release(event);
  tl_stream_release(other);
  tl_stream_release(full);
  tl_device_release(device);
}

/* Nobody waits, nothing is lost. */
static void test_many(void) {
  enum { LAUNCHES = 20000 };
  bool reached;
  tl_device *device = host_open(0);
  tl_stream *stream = stream_create(device);
  tl_buffer *cell, *log;
  watch w = {.device = device, .stream = tl_stream_number(stream)};
  chain_create(device, LAUNCHES, &cell, &log);
  for (int i = 0; i < LAUNCHES; i++)
    must(chain_launch(stream, cell, log, i, &error), &error);
  expect_ok(tl_stream_synchronize(stream, -1, &reached, &error), &error);
  expect(chain_faults(log, LAUNCHES) == 0);
  expect(mark_of(&w).completed_least == LAUNCHES);
  tl_buffer_release(log);
  tl_buffer_release(cell);
  tl_stream_release(stream);
  tl_device_release(device);
}

int main(void) {
  test("a queue of 1 takes one launch; the next one waits", test_depth_1);
  test("a queue of 64 takes exactly 64 launches; the next one waits",
       test_depth_64);
  test("a queue of 256 takes exactly 256 launches; the next one waits",
       test_depth_256);
  test("a queue of 1024 takes exactly 1024 launches; the next one waits",
       test_depth_1024);
  test("the depth is 1024 where none is given", test_depth_default);
  test("room can be asked for, and a full stream holds up no other",
       test_reserve);
  test("a gate whose time runs out frees the launch that waits",
       test_gate_times_out);
  test("what takes no slot goes into a full queue", test_full_takes_no_slots);
  test("20000 launches without a wait all run, in order", test_many);
  return tap_end();
}
