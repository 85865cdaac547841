/* Ends of life and failures: releases in any order with work in flight, every
 * site failed in turn, and a device that is lost. */
#include "product.h"
#include "tap.h"

static tl_error error;

static tl_device *host_open(tl_faults *faults) {
  const tl_device_options options = {.size = sizeof options, .faults = faults};
  tl_device *device;
  must(tl_device_open("host", &options, &device, &error), &error);
  return device;
}

static const tl_matmul_options *tiled_on(tl_stream *stream,
                                         tl_matmul_options *options) {
  *options = (tl_matmul_options){
      .size = sizeof *options, .stream = stream, .kernel = "tiled"};
  return options;
}

/* The next order of the numbers, as a dictionary has it; false: the last. */
static bool order_next(int *order, int count) {
  int i = count - 2;
  while (i >= 0 && order[i] > order[i + 1])
    i--;
  if (i < 0)
    return false;
  int j = count - 1;
  while (order[j] < order[i])
    j--;
  int swapped = order[i];
  order[i] = order[j];
  order[j] = swapped;
  for (int low = i + 1, high = count - 1; low < high; low++, high--) {
    swapped = order[low];
    order[low] = order[high];
    order[high] = swapped;
  }
  return true;
}

/* ---- releases ------------------------------------------------------------ */

/* A product behind a closed gate, and everything it needs. */
typedef struct work {
  tl_device *device;
  tl_stream *stream;
  tl_gate *gate;
  tl_event *event;
  tl_buffer *a, *b, *c;
} work;

static void work_begin(work *w) {
  tl_matmul_options options;
  w->device = host_open(NULL);
  must(tl_stream_create(w->device, &w->stream, &error), &error);
  must(tl_event_create(w->device, true, &w->event, &error), &error);
  must(product_factors(w->device, TL_FLOAT32, &w->a, &w->b, &error), &error);
  must(product_result(w->device, TL_FLOAT32, &w->c, &error), &error);
  must(tl_gate_create(w->stream, 30, &w->gate, &error), &error);
  must(tl_matmul(w->a, w->b, w->c, tiled_on(w->stream, &options), &error),
       &error);
  must(tl_stream_record(w->stream, w->event, &error), &error);
}

static void work_release(work *w, int which) {
  switch (which) {
  case 0:
    tl_device_release(w->device);
    break;
  case 1:
    tl_stream_release(w->stream);
    break;
  case 2:
    tl_buffer_release(w->a);
    break;
  case 3:
    tl_buffer_release(w->b);
    break;
  case 4:
    tl_event_release(w->event);
    break;
  case 5:
    tl_gate_release(w->gate);
    break;
  default:
    tl_buffer_release(w->c);
    break;
  }
}

/* The result is kept to the end: it keeps the device, and it is right. */
static void test_release_before_run(void) {
  int order[] = {0, 1, 2, 3, 4};
  do {
    work w;
    work_begin(&w);
    for (int i = 0; i < 5; i++)
      work_release(&w, order[i]);
    tl_gate_release(w.gate);
    double sum;
    int wrong;
    expect_ok(product_read(w.c, &sum, &wrong, &error), &error);
    expect(sum == PRODUCT_SUM);
    tl_buffer_release(w.c);
  } while (order_next(order, 5));
}

/* The gate is opened at any point among the releases, and nothing is kept. */
static void test_release_any_order(void) {
  int order[] = {0, 1, 2, 4, 5, 6};
  int count = 0;
  do {
    work w;
    work_begin(&w);
    for (int i = 0; i < 6; i++) {
      work_release(&w, order[i]);
      if (order[i] == 2)
        work_release(&w, 3);
    }
    count++;
  } while (order_next(order, 6));
  expect(count == 720);
}

/* Memory of a closed buffer is not used again while queued work needs it. */
static void test_memory_not_reused(void) {
  const int64_t shape[] = {PRODUCT_M, PRODUCT_K};
  work w;
  tl_stream *other;
  bool reached;
  work_begin(&w);
  must(tl_stream_create(w.device, &other, &error), &error);
  tl_buffer_release(w.a);
  tl_buffer_release(w.b);
  for (int i = 0; i < 10; i++) {
    tl_buffer *buffer;
    must(tl_buffer_create(w.device, TL_FLOAT32, 2, shape, &buffer, &error),
         &error);
    must(fill_with(buffer, -1e9, other, &error), &error);
    tl_buffer_release(buffer);
  }
  expect_ok(tl_stream_synchronize(other, -1, &reached, &error), &error);
  tl_memory_info info;
  expect_ok(tl_device_memory(w.device, &info, &error), &error);
  expect(info.pending == (PRODUCT_M * PRODUCT_K + PRODUCT_K * PRODUCT_N) * 4);
  tl_gate_release(w.gate);
  double sum;
  int wrong;
  expect_ok(product_read(w.c, &sum, &wrong, &error), &error);
  expect(sum == PRODUCT_SUM && wrong == 0);
  expect_ok(tl_device_synchronize(w.device, -1, &reached, &error), &error);
  expect_ok(tl_device_memory(w.device, &info, &error), &error);
  expect(info.pending == 0);
  tl_buffer_release(w.c);
  tl_event_release(w.event);
  tl_stream_release(w.stream);
  tl_stream_release(other);
  tl_device_release(w.device);
}

/* A stream that is dropped still does its work, and the device waits for it. */
static void test_dropped_stream(void) {
  const int64_t shape[] = {1000};
  float numbers[1000];
  bool reached;
  tl_device *device = host_open(NULL);
  tl_buffer *buffer;
  tl_stream *stream;
  tl_event *event;
  must(tl_buffer_create(device, TL_FLOAT32, 1, shape, &buffer, &error), &error);
  must(tl_stream_create(device, &stream, &error), &error);
  must(tl_event_create(device, true, &event, &error), &error);
  must(tl_stream_spin(stream, 0.05, &error), &error);
  must(fill_with(buffer, 7, stream, &error), &error);
  must(tl_stream_record(stream, event, &error), &error);
  tl_stream_release(stream);
  expect_ok(tl_device_synchronize(device, -1, &reached, &error), &error);
  expect(reached);
  expect_ok(tl_event_done(event, &reached, &error), &error);
  expect(reached);
  expect_ok(tl_buffer_download(buffer, numbers, sizeof numbers, &error),
            &error);
  expect(numbers[0] == 7 && numbers[999] == 7);
  tl_event_release(event);
  tl_buffer_release(buffer);
  tl_device_release(device);
}

/* ---- every site in turn -------------------------------------------------- */

/* Everything the scenario makes; what is NULL was not made. */
typedef struct made {
  tl_stream *first, *second;
  tl_event *begin, *end;
  tl_gate *gate;
  tl_buffer *a, *b, *c, *copy, *view;
} made;

static tl_status scenario_make(tl_device *device, made *m, tl_error *e) {
  const int64_t part[] = {2, 2}, apart[] = {PRODUCT_N};
  tl_properties properties;
  tl_status status = tl_device_properties(device, &properties, e);
  if (status == TL_OK)
    status = tl_stream_create(device, &m->first, e);
  if (status == TL_OK)
    status = tl_stream_create(device, &m->second, e);
  if (status == TL_OK)
    status = tl_event_create(device, true, &m->begin, e);
  if (status == TL_OK)
    status = tl_event_create(device, true, &m->end, e);
  if (status == TL_OK)
    status = product_factors(device, TL_FLOAT32, &m->a, &m->b, e);
  if (status == TL_OK)
    status = product_result(device, TL_FLOAT32, &m->c, e);
  if (status == TL_OK)
    status = product_result(device, TL_FLOAT32, &m->copy, e);
  if (status == TL_OK)
    status = tl_buffer_view(m->copy, 0, 2, part, apart, &m->view, e);
  return status;
}

/* The gate gives up soon: where an event cannot be recorded, the launch behind
 * it waits for its own end instead. */
static tl_status scenario_launch(made *m, tl_error *e) {
  const int64_t first[] = {0, 0};
  float value;
  tl_matmul_options options;
  tl_status status = tl_gate_create(m->first, 0.02, &m->gate, e);
  if (status == TL_OK)
    status = tl_stream_record(m->first, m->begin, e);
  if (status == TL_OK)
    status = tl_matmul(m->a, m->b, m->c, tiled_on(m->first, &options), e);
  if (status == TL_OK)
    status = tl_stream_record(m->first, m->end, e);
  if (status == TL_OK)
    status = tl_stream_wait_event(m->second, m->end, e);
  bool opened;
  if (status == TL_OK)
    status = tl_gate_open(m->gate, &opened, e);
  if (status == TL_OK)
    status = tl_stream_spin(m->second, 0, e);
  if (status == TL_OK)
    status = tl_buffer_copy(m->copy, m->c, m->second, e);
  if (status == TL_OK)
    status = fill_with(m->c, 0, m->second, e);
  if (status == TL_OK)
    status = tl_buffer_get(m->view, first, &value, e);
  if (status == TL_OK)
    status = tl_buffer_set(m->view, first, &value, e);
  return status;
}

static tl_status scenario_wait(tl_device *device, made *m, tl_error *e) {
  bool yes;
  double seconds, sum;
  int wrong;
  tl_status status = tl_stream_done(m->second, &yes, e);
  if (status == TL_OK)
    status = tl_event_done(m->end, &yes, e);
  if (status == TL_OK)
    status = tl_stream_synchronize(m->first, -1, &yes, e);
  if (status == TL_OK)
    status = tl_event_synchronize(m->end, -1, &yes, e);
  if (status == TL_OK)
    status = tl_event_elapsed(m->begin, m->end, &seconds, e);
  if (status == TL_OK)
    status = product_read(m->copy, &sum, &wrong, e);
  if (status == TL_OK)
    expect(sum == PRODUCT_SUM && wrong == 0);
  if (status == TL_OK)
    status = tl_device_synchronize(device, -1, &yes, e);
  if (status == TL_OK)
    status = tl_device_trim(device, e);
  return status;
}

/* Runs the scenario up to its first failure and releases all it made. */
static tl_status scenario(tl_device *device, tl_error *e) {
  made m = {0};
  tl_status status = scenario_make(device, &m, e);
  if (status == TL_OK)
    status = scenario_launch(&m, e);
  if (status == TL_OK)
    status = scenario_wait(device, &m, e);
  tl_gate_release(m.gate);
  tl_buffer_release(m.view);
  tl_buffer_release(m.copy);
  tl_buffer_release(m.c);
  tl_buffer_release(m.b);
  tl_buffer_release(m.a);
  tl_event_release(m.end);
  tl_event_release(m.begin);
  tl_stream_release(m.second);
  tl_stream_release(m.first);
  return status;
}

static void nothing_left(tl_device *device, const char *site, int64_t nth) {
  tl_memory_info info;
  bool reached;
  must(tl_device_synchronize(device, -1, &reached, &error), &error);
  must(tl_device_memory(device, &info, &error), &error);
  if (!expect(info.objects == 0 && info.live == 0 && info.pending == 0))
    tap_note("  after use %lld of %s", (long long)nth, site);
}

/* Opens, runs the scenario with one failure, then once more without. */
static void fail_one(tl_faults *faults, const char *site, int64_t nth,
                     tl_status code) {
  const tl_device_options options = {.size = sizeof options, .faults = faults};
  tl_device *device = (tl_device *)&error;
  tl_error cause, e = {0};
  tl_faults_reset(faults);
  tl_faults_arm(faults, site, nth, (int32_t)code);
  tl_status status = tl_device_open("host", &options, &device, &e);
  if (status != TL_OK) {
    expect(device == NULL && status == code && e.text[0] != '\0');
    return;
  }
  status = scenario(device, &e);
  tl_faults_reset(faults); /* it may not have come to that use this time */
  if (status != TL_OK &&
      !expect(e.code == (int32_t)status && e.text[0] != '\0'))
    tap_note("  use %lld of %s", (long long)nth, site);
  if (tl_device_is_lost(device, &cause)) {
    tl_error again;
    expect(code == TL_DEVICE_LOST);
    expect_fails(scenario(device, &again), TL_DEVICE_LOST, "", &again);
    expect(strcmp(again.text, cause.text) == 0);
  } else {
    nothing_left(device, site, nth);
    expect_ok(scenario(device, &e), &e);
    nothing_left(device, site, nth);
  }
  tl_device_close(device);
  tl_device_release(device);
}

enum { SITES = 96 };

/* With TL_OK the site is left out. */
static void fail_each(tl_status (*code)(const char *site)) {
  char sites[SITES][64]; /* a reset may forget the names */
  int64_t uses[SITES];
  const char *site;
  int32_t count = 0;
  tl_faults *faults;
  must(tl_faults_create(&faults, &error), &error);
  tl_device *device = host_open(faults);
  expect_ok(scenario(device, &error), &error);
  while (count < SITES &&
         (site = tl_faults_site(faults, count, &uses[count])) != NULL)
    snprintf(sites[count++], sizeof sites[0], "%s", site);
  nothing_left(device, "nothing", 0);
  tl_device_release(device);
  expect(count > 20);
  for (int32_t i = 0; i < count; i++)
    for (int64_t nth = 1; nth <= uses[i] && code(sites[i]) != TL_OK; nth++)
      fail_one(faults, sites[i], nth, code(sites[i]));
  tl_faults_release(faults);
}

static tl_status code_fitting(const char *site) {
  if (strcmp(site, "execute") == 0)
    return TL_DEVICE_LOST;
  return strncmp(site, "allocate", 8) == 0 ? TL_OUT_OF_MEMORY : TL_DRIVER;
}

/* Host memory is not the device's. */
static tl_status code_lost(const char *site) {
  return strncmp(site, "allocate", 8) == 0 && site[8] == ':' ? TL_OK
                                                             : TL_DEVICE_LOST;
}

static void test_each_failure(void) {
  fail_each(code_fitting);
}

static void test_each_loss(void) {
  fail_each(code_lost);
}

static void test_two_armed(void) {
  tl_faults *faults;
  tl_stream *stream;
  tl_event *event;
  must(tl_faults_create(&faults, &error), &error);
  tl_faults_arm(faults, "stream_create", 1, TL_DRIVER);
  tl_faults_arm(faults, "event_create", 1, TL_DRIVER);
  tl_device *device = host_open(faults);
  expect_fails(tl_stream_create(device, &stream, &error), TL_DRIVER, "injected",
               &error);
  expect_fails(tl_event_create(device, true, &event, &error), TL_DRIVER,
               "injected", &error);
  expect(stream == NULL && event == NULL);
  tl_stream_release(stream);
  tl_event_release(event);
  tl_device_release(device);
  tl_faults_release(faults);
}

/* ---- a lost device ------------------------------------------------------- */

static void test_lost(void) {
  const int64_t shape[] = {8};
  bool reached;
  double sum;
  int wrong;
  tl_matmul_options options;
  tl_faults *faults;
  tl_error cause;
  made m = {0};
  must(tl_faults_create(&faults, &error), &error);
  tl_device *device = host_open(faults);
  must(scenario_make(device, &m, &error), &error);
  must(tl_gate_create(m.first, 30, &m.gate, &error), &error);
  tl_faults_arm(faults, "execute", 2, TL_DEVICE_LOST);
  tl_stream_locate(m.first, "innocent.lua", 1, NULL);
  expect_ok(tl_stream_spin(m.first, 0, &error), &error);
  tl_stream_locate(m.first, "guilty.lua", 42, NULL);
  expect_ok(tl_matmul(m.a, m.b, m.c, tiled_on(m.first, &options), &error),
            &error);
  expect(!tl_device_is_lost(device, &cause)); /* it has not run yet */
  expect_ok(tl_gate_open(m.gate, &reached, &error), &error);
  expect_fails(tl_stream_synchronize(m.first, -1, &reached, &error),
               TL_DEVICE_LOST, "host is lost: ", &error);
  expect(!reached);
  expect(strstr(error.text, "guilty.lua:42") != NULL);
  expect(tl_device_is_lost(device, &cause));

  tl_buffer *buffer = m.a;
  tl_stream *stream = m.first;
  expect_fails(tl_buffer_create(device, TL_FLOAT32, 1, shape, &buffer, &error),
               TL_DEVICE_LOST, "", &error);
  expect(buffer == NULL && strcmp(error.text, cause.text) == 0);
  expect_fails(tl_stream_create(device, &stream, &error), TL_DEVICE_LOST, "",
               &error);
  expect(stream == NULL && strcmp(error.text, cause.text) == 0);
  expect_fails(tl_matmul(m.a, m.b, m.c, NULL, &error), TL_DEVICE_LOST, "",
               &error);
  expect_fails(product_read(m.c, &sum, &wrong, &error), TL_DEVICE_LOST, "",
               &error);
  expect_fails(tl_device_synchronize(device, -1, &reached, &error),
               TL_DEVICE_LOST, "", &error);
  expect(!reached && strcmp(error.text, cause.text) == 0);
  tl_device_close(device);
  expect_fails(tl_device_trim(device, &error), TL_DEVICE_LOST, "", &error);

  tl_gate_release(m.gate);
  tl_buffer_release(m.view);
  tl_buffer_release(m.copy);
  tl_buffer_release(m.c);
  tl_buffer_release(m.b);
  tl_buffer_release(m.a);
  tl_event_release(m.end);
  tl_event_release(m.begin);
  tl_stream_release(m.second);
  tl_stream_release(m.first);
  tl_device_release(device);
  tl_faults_release(faults);

  device = host_open(NULL); /* another device is not concerned */
  expect_ok(scenario(device, &error), &error);
  tl_device_release(device);
}

int main(void) {
  test("what the work needs may be dropped first, in any order",
       test_release_before_run);
  test("everything may be dropped in any order with work in flight",
       test_release_any_order);
  test("memory that queued work needs is not used again",
       test_memory_not_reused);
  test("a dropped stream does its work", test_dropped_stream);
  test("each failure is told, leaves nothing, and can be tried again",
       test_each_failure);
  test("a device lost at any call repeats why and ends quietly",
       test_each_loss);
  test("two sites can be armed at a time", test_two_armed);
  test("a launch that fails on the device loses it, and is named", test_lost);
  return tap_end();
}
