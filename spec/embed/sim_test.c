/* The device of virtual time from C: its options, its clock, races by the
 * caller's places, threads, and a device that is closed with its gates shut. */
#include <math.h>
#include <pthread.h>

#include "tap.h"

static tl_error error;

static tl_device *sim_open(const tl_sim_options *sim) {
  tl_device_options options = {.size = sizeof options, .sim = sim};
  tl_device *device;
  must(tl_device_open("sim", &options, &device, &error), &error);
  return device;
}

static tl_buffer *zeros(tl_device *device, int64_t size, tl_stream *stream) {
  tl_buffer *buffer;
  float zero = 0;
  must(tl_buffer_create(device, TL_FLOAT32, 1, &size, &buffer, &error), &error);
  must(tl_buffer_fill(buffer, &zero, stream, &error), &error);
  return buffer;
}

static tl_stream *stream_of(tl_device *device) {
  tl_stream *stream;
  must(tl_stream_create(device, &stream, &error), &error);
  return stream;
}

static double now(tl_device *device) {
  int64_t nanoseconds;
  int32_t count;
  must(tl_device_stamp(device, &nanoseconds, NULL, 0, &count, &error), &error);
  return (double)nanoseconds * 1e-9;
}

static void test_settings(void) {
  tl_sim_options sim = {.size = sizeof sim}, has;
  tl_device_options with;
  const char *name;
  size_t offset, last = 0;
  bool flag;
  int32_t count = 0;
  while ((name = tl_sim_setting(count, &offset, &flag)) != NULL) {
    expect(offset == last + sizeof(double)); /* in order, and none left out */
    last = offset;
    count++;
  }
  expect(last + sizeof(double) == sizeof sim);
  expect(tl_sim_setting(-1, &offset, &flag) == NULL);

  sim.launch_cost = 5e-6;
  sim.gate_slots = -1; /* a negative number is 0, 0 the preset */
  tl_device *device = sim_open(&sim);
  sim.launch_cost = 9; /* the device has a copy */
  expect(tl_device_simulation(device, &has));
  expect(has.launch_cost == 5e-6 && has.gate_slots == 0);
  expect(has.kernel_gap == 1.3e-6 && has.launch_slots == 1);
  tl_device_opened_with(device, &with);
  expect(with.sim != NULL && with.sim->launch_cost == 5e-6);
  expect(with.sim->kernel_gap == 0);
  tl_device_release(device);

  must(tl_device_open("host", NULL, &device, &error), &error);
  expect(!tl_device_simulation(device, &has));
  tl_device_release(device);
}

static void test_settings_size(void) {
  struct {
    tl_sim_options known;
    double unknown[2];
  } sim;
  tl_sim_options has;
  memset(&sim, 0x7f, sizeof sim);
  sim.known.size = offsetof(tl_sim_options, launch_latency);
  sim.known.launch_cost = 1e-6;
  tl_device *device = sim_open(&sim.known);
  expect(tl_device_simulation(device, &has));
  expect(has.launch_cost == 1e-6 && has.launch_latency == 2e-6);
  tl_device_release(device);

  tl_device_options options = {.size = sizeof options, .sim = &sim.known};
  sim.known.size = 0;
  expect_fails(tl_device_open("sim", &options, &device, &error),
               TL_INVALID_ARGUMENT, "sizeof(tl_sim_options)", &error);
  sim.known = (tl_sim_options){.size = sizeof sim.known, .seed = NAN};
  expect_fails(tl_device_open("sim", &options, &device, &error),
               TL_INVALID_ARGUMENT, "sim: seed must be a whole number", &error);
  sim.known = (tl_sim_options){.size = sizeof sim.known, .naive_rate = -1};
  expect_fails(tl_device_open("sim", &options, &device, &error),
               TL_INVALID_ARGUMENT, "sim: naive_rate must be above 0", &error);
  expect_fails(tl_device_open("host", &options, &device, &error),
               TL_INVALID_ARGUMENT, "is not simulated", &error);
}

static void test_clock(void) {
  tl_device *device = sim_open(NULL);
  tl_stream *stream = stream_of(device);
  bool reached;
  double start = now(device);
  must(tl_stream_spin(stream, 1e6, &error), &error);
  must(tl_device_sleep(device, 2.5, &error), &error);
  expect(fabs(now(device) - start - 2.5) < 1e-5);
  must(tl_stream_synchronize(stream, 1.5, &reached, &error), &error);
  expect(!reached && fabs(now(device) - start - 4) < 1e-5);
  must(tl_device_synchronize(device, -1, &reached, &error), &error);
  expect(reached && fabs(now(device) - start - 1e6) < 1e-4);
  /* More than 292 years: the clock stops there, and nothing hangs. */
  for (int i = 0; i < 10000; i++)
    must(tl_stream_spin(stream, 1e6, &error), &error);
  must(tl_device_synchronize(device, -1, &reached, &error), &error);
  expect(reached);
  tl_stream_release(stream);
  tl_device_release(device);
}

static void test_race(void) {
  tl_device *device = sim_open(NULL);
  tl_stream *s = stream_of(device), *t = stream_of(device);
  tl_buffer *x = zeros(device, 10, s);
  float one = 1;
  bool reached;
  must(tl_device_synchronize(device, -1, &reached, &error), &error);
  tl_stream_locate(s, "first.c", 12, NULL);
  tl_stream_locate(t, "second.c", 34, NULL);
  must(tl_buffer_fill(x, &one, s, &error), &error);
  expect_fails(tl_buffer_fill(x, &one, t, &error), TL_RACE,
               "E-RACE: fill (second.c:34) on stream 2 writes elements that "
               "fill (first.c:12) on stream 1 writes",
               &error);
  expect(strcmp(tl_status_name(TL_RACE), "race") == 0);
  expect(!tl_device_is_lost(device, &error));
  tl_buffer_release(x);
  tl_stream_release(s);
  tl_stream_release(t);
  tl_device_release(device);
}

/* ---- threads ------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 300 };

static void *thread_main(void *argument) {
  tl_device *device = argument;
  tl_error mine;
  int64_t size = 64, index = 63, wrong = 0;
  tl_stream *stream;
  tl_buffer *buffer, *copy;
  if (tl_stream_create(device, &stream, &mine) != TL_OK ||
      tl_buffer_create(device, TL_FLOAT32, 1, &size, &buffer, &mine) != TL_OK ||
      tl_buffer_create(device, TL_FLOAT32, 1, &size, &copy, &mine) != TL_OK)
    return "not made";
  for (int i = 0; i < ROUNDS; i++) {
    float value = (float)i, got = -1;
    tl_gate *gate;
    bool opened;
    wrong += tl_gate_create(stream, 1e-3, &gate, &mine) != TL_OK;
    wrong += tl_buffer_fill(buffer, &value, stream, &mine) != TL_OK;
    wrong += tl_buffer_copy(copy, buffer, stream, &mine) != TL_OK;
    wrong += tl_gate_open(gate, &opened, &mine) != TL_OK;
    tl_gate_release(gate);
    wrong += tl_buffer_get(copy, &index, &got, &mine) != TL_OK;
    wrong += got != value;
  }
  tl_buffer_release(buffer);
  tl_buffer_release(copy);
  tl_stream_release(stream);
  return wrong == 0 ? NULL : "wrong";
}

static void test_threads(void) {
  tl_device *device = sim_open(NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, thread_main, device) != 0)
      tap_bail("no thread");
  for (int i = 0; i < THREADS; i++) {
    void *complaint = NULL;
    pthread_join(threads[i], &complaint);
    expect(complaint == NULL);
  }
  expect(now(device) > ROUNDS * 3e-6);
  tl_device_release(device);
}

/* Gates that nobody opens, a wait for what is behind one, memory in use. */
static void test_close(void) {
  tl_device *device = sim_open(NULL);
  tl_stream *s = stream_of(device), *t = stream_of(device);
  tl_gate *gate;
  tl_event *event;
  tl_buffer *x = zeros(device, 1000, s), *y = zeros(device, 1000, t);
  must(tl_gate_create(s, 100, &gate, &error), &error);
  must(tl_buffer_copy(y, x, t, &error), &error);
  must(tl_event_create(device, true, &event, &error), &error);
  must(tl_stream_spin(s, 1, &error), &error);
  must(tl_stream_record(s, event, &error), &error);
  must(tl_stream_wait_event(t, event, &error), &error);
  must(tl_stream_spin(t, 1, &error), &error);
  tl_buffer_release(x);
  tl_buffer_release(y);
  tl_stream_release(t);
  tl_stream_release(s);
  tl_event_release(event);
  tl_device_close(device);
  tl_device_release(device);
  tl_gate_release(gate);
  expect(true);
}

int main(void) {
  test("settings are the preset's, another's or none, and are copied",
       test_settings);
  test("settings of another size, and wrong ones", test_settings_size);
  test("time is virtual, and has an end", test_clock);
  test("a race names the caller's two places", test_race);
  test("threads share the device and its clock", test_threads);
  test("a device is closed with work behind a shut gate", test_close);
  return tap_end();
}
