/* One device shared by threads, each with streams, events and buffers of its
 * own; and what the device does when it is closed or lost meanwhile. Without
 * the BLAS, so that a race detector has nothing to see but this library. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "product.h"
#include "tap.h"

enum { THREADS = 4, ROUNDS = 25 };

static tl_error error;

/* What the threads share, and what each of them found. */
typedef struct crew {
  tl_device *device;
  pthread_barrier_t barrier;
  tl_event *handed[THREADS]; /* passed on at the barrier */
  tl_buffer *products[THREADS];
  atomic_bool stop;
  atomic_int running;
} crew;

typedef struct worker {
  crew *crew;
  int index;
  int done;         /* rounds that came out right */
  int wrong;        /* wrong results, or failures of the wrong kind */
  tl_error failure; /* the last one; code 0: none */
} worker;

static bool succeeded(worker *w, tl_status status, const tl_error *e) {
  if (status != TL_OK)
    w->failure = *e;
  return status == TL_OK;
}

/* Runs the function in every thread, watched by `watch` (may be NULL) from a
 * further one, and adds up what they found. */
static worker crew_run(crew *c, void *(*body)(void *), void *(*watch)(void *)) {
  pthread_t threads[THREADS], watcher;
  worker workers[THREADS] = {{0}};
  worker all = {0};
  atomic_store(&c->running, THREADS);
  atomic_store(&c->stop, false);
  pthread_barrier_init(&c->barrier, NULL, THREADS);
  worker watching = {.crew = c};
  if (watch != NULL && pthread_create(&watcher, NULL, watch, &watching) != 0)
    tap_bail("no thread");
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.crew = c, .index = i};
    if (pthread_create(&threads[i], NULL, body, &workers[i]) != 0)
      tap_bail("no thread");
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    all.done += workers[i].done;
    all.wrong += workers[i].wrong;
    if (workers[i].failure.code != TL_OK)
      all.failure = workers[i].failure;
  }
  atomic_store(&c->stop, true);
  if (watch != NULL) {
    pthread_join(watcher, NULL);
    all.wrong += watching.wrong;
    if (watching.failure.code != TL_OK)
      all.failure = watching.failure;
  }
  pthread_barrier_destroy(&c->barrier);
  return all;
}

/* ---- create, use, drop --------------------------------------------------- */

/* One round: a product on one stream, copied on another that waits for it,
 * with everything dropped as early as it can be. */
static void round_make(worker *w, const char *kernel) {
  tl_device *device = w->crew->device;
  tl_stream *first = NULL, *second = NULL;
  tl_event *event = NULL;
  tl_buffer *a = NULL, *b = NULL, *c = NULL, *copy = NULL;
  tl_error e;
  double sum = 0;
  int wrong = 0;
  bool ok =
      succeeded(w, tl_stream_create(device, &first, &e), &e) &&
      succeeded(w, tl_stream_create(device, &second, &e), &e) &&
      succeeded(w, tl_event_create(device, w->done % 2 == 0, &event, &e), &e) &&
      succeeded(w, product_factors(device, TL_FLOAT32, &a, &b, &e), &e) &&
      succeeded(w, product_result(device, TL_FLOAT32, &c, &e), &e) &&
      succeeded(w, product_result(device, TL_FLOAT32, &copy, &e), &e);
  const tl_matmul_options options = {
      .size = sizeof options, .stream = first, .kernel = kernel};
  ok = ok && succeeded(w, tl_stream_spin(first, 0.0002, &e), &e) &&
       succeeded(w, tl_matmul(a, b, c, &options, &e), &e) &&
       succeeded(w, tl_stream_record(first, event, &e), &e) &&
       succeeded(w, tl_stream_wait_event(second, event, &e), &e) &&
       succeeded(w, tl_buffer_copy(copy, c, second, &e), &e);
  tl_buffer_release(a);
  tl_buffer_release(b);
  tl_buffer_release(c);
  tl_event_release(event);
  tl_stream_release(first);
  ok = ok && succeeded(w, product_read(copy, &sum, &wrong, &e), &e);
  if (ok && (sum != PRODUCT_SUM || wrong != 0))
    w->wrong++;
  w->done += ok;
  tl_stream_release(second);
  tl_buffer_release(copy);
}

static void *rounds_main(void *argument) {
  worker *w = argument;
  for (int i = 0; i < ROUNDS; i++)
    round_make(w, i % 2 == 0 ? "tiled" : "naive");
  return NULL;
}

/* Asks the device everything that may be asked from any thread. */
static void *watch_main(void *argument) {
  worker *w = argument;
  tl_device *device = w->crew->device;
  tl_mark marks[64];
  tl_memory_info info;
  tl_error e;
  int64_t now, before = 0;
  int32_t count;
  bool reached;
  while (!atomic_load(&w->crew->stop)) {
    if (succeeded(w, tl_device_stamp(device, &now, marks, 64, &count, &e), &e))
      for (int32_t i = 0; i < count && i < 64; i++)
        w->wrong += marks[i].completed_least > marks[i].completed_most ||
                    marks[i].completed_most > marks[i].launched;
    w->wrong += now < before;
    before = now;
    if (succeeded(w, tl_device_memory(device, &info, &e), &e))
      w->wrong += info.live < 0 || info.live > info.peak || info.pending < 0;
    succeeded(w, tl_device_synchronize(device, 0.001, &reached, &e), &e);
    succeeded(w, tl_device_synchronize(device, -1, &reached, &e), &e);
    succeeded(w, tl_device_trim(device, &e), &e);
  }
  return NULL;
}

static void test_rounds(void) {
  crew c = {0};
  bool reached;
  tl_memory_info info;
  must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
  worker all = crew_run(&c, rounds_main, watch_main);
  expect(all.done == THREADS * ROUNDS);
  expect(all.wrong == 0);
  if (!expect(all.failure.code == TL_OK))
    tap_note("  %s", all.failure.text);
  expect_ok(tl_device_synchronize(c.device, -1, &reached, &error), &error);
  expect_ok(tl_device_memory(c.device, &info, &error), &error);
  expect(info.objects == 0 && info.live == 0 && info.pending == 0);
  tl_device_release(c.device);
}

/* ---- events and buffers from hand to hand -------------------------------- */

/* Each thread makes a product and records it; at the barrier it passes both on
 * to the next, whose stream waits for the event and copies the product. */
static void *ring_main(void *argument) {
  worker *w = argument;
  crew *c = w->crew;
  int next = (w->index + 1) % THREADS;
  tl_stream *stream = NULL;
  tl_error e;
  bool ok = succeeded(w, tl_stream_create(c->device, &stream, &e), &e);
  for (int i = 0; i < ROUNDS; i++) {
    tl_buffer *a = NULL, *b = NULL, *product = NULL, *copy = NULL;
    tl_event *event = NULL;
    const tl_matmul_options options = {
        .size = sizeof options, .stream = stream, .kernel = "tiled"};
    ok =
        ok && succeeded(w, tl_event_create(c->device, false, &event, &e), &e) &&
        succeeded(w, product_factors(c->device, TL_FLOAT64, &a, &b, &e), &e) &&
        succeeded(w, product_result(c->device, TL_FLOAT64, &product, &e), &e) &&
        succeeded(w, product_result(c->device, TL_FLOAT64, &copy, &e), &e) &&
        succeeded(w, tl_stream_spin(stream, 0.0002 * w->index, &e), &e) &&
        succeeded(w, tl_matmul(a, b, product, &options, &e), &e) &&
        succeeded(w, tl_stream_record(stream, event, &e), &e);
    tl_buffer_release(a);
    tl_buffer_release(b);
    c->handed[w->index] = event;
    c->products[w->index] = product;
    pthread_barrier_wait(&c->barrier);
    event = c->handed[next];
    product = c->products[next];
    double sum = 0;
    int wrong = 0;
    ok = ok && event != NULL && product != NULL &&
         succeeded(w, tl_stream_wait_event(stream, event, &e), &e) &&
         succeeded(w, tl_buffer_copy(copy, product, stream, &e), &e);
    tl_event_release(event);
    tl_buffer_release(product);
    ok = ok && succeeded(w, product_read(copy, &sum, &wrong, &e), &e);
    w->wrong += ok && (sum != PRODUCT_SUM || wrong != 0);
    w->done += ok;
    tl_buffer_release(copy);
    pthread_barrier_wait(&c->barrier);
  }
  tl_stream_release(stream);
  return NULL;
}

static void test_ring(void) {
  crew c = {0};
  must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
  worker all = crew_run(&c, ring_main, watch_main);
  expect(all.done == THREADS * ROUNDS);
  expect(all.wrong == 0);
  if (!expect(all.failure.code == TL_OK))
    tap_note("  %s", all.failure.text);
  tl_device_release(c.device);
}

/* ---- the default stream -------------------------------------------------- */

/* All threads come upon a device whose default stream nobody has used yet; one
 * of them uses it, the others use their own and ask for its handle. */
static void *default_main(void *argument) {
  worker *w = argument;
  tl_device *device = w->crew->device;
  tl_stream *own = NULL, *mine = NULL;
  tl_error e;
  bool reached;
  pthread_barrier_wait(&w->crew->barrier);
  if (w->index == 0)
    succeeded(w, tl_device_default_stream(device, &own, &e), &e);
  succeeded(w, tl_stream_create(device, &mine, &e), &e);
  tl_stream_retain(mine);
  if (w->index != 0)
    succeeded(w, tl_device_default_stream(device, &own, &e), &e);
  succeeded(w, tl_stream_spin(mine, 0, &e), &e);
  if (w->index == 0)
    succeeded(w, tl_stream_spin(own, 0, &e), &e);
  succeeded(w, tl_stream_synchronize(mine, -1, &reached, &e), &e);
  w->wrong += own == NULL || tl_stream_device(own) != device;
  tl_stream_release(mine);
  tl_stream_release(mine);
  tl_stream_release(own);
  return NULL;
}

static void test_default_stream(void) {
  for (int i = 0; i < ROUNDS; i++) {
    crew c = {0};
    must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
    worker all = crew_run(&c, default_main, NULL);
    expect(all.wrong == 0);
    if (!expect(all.failure.code == TL_OK))
      tap_note("  %s", all.failure.text);
    tl_device_release(c.device);
  }
}

/* ---- ends ---------------------------------------------------------------- */

/* Goes on until the device refuses. */
static void *until_refused_main(void *argument) {
  worker *w = argument;
  while (w->failure.code == TL_OK && w->done < 100000) {
    round_make(w, "naive");
    if (w->done == 2)
      atomic_fetch_sub(&w->crew->running, 1);
  }
  return NULL;
}

/* Closes the device once every thread has work in flight on it. */
static void *close_main(void *argument) {
  worker *w = argument;
  while (atomic_load(&w->crew->running) > 0 && !atomic_load(&w->crew->stop))
    sched_yield();
  tl_device_close(w->crew->device);
  return NULL;
}

static void test_close_meanwhile(void) {
  crew c = {0};
  must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
  worker all = crew_run(&c, until_refused_main, close_main);
  expect(all.wrong == 0);
  expect(all.failure.code == TL_INVALID_ARGUMENT);
  if (!expect(strstr(all.failure.text, " is closed") != NULL))
    tap_note("  %s", all.failure.text);
  tl_device_release(c.device);
}

/* The 100th launch of all fails on the device; every thread is told the same.
 */
static void test_lost_meanwhile(void) {
  crew c = {0};
  tl_faults *faults;
  tl_error cause;
  must(tl_faults_create(&faults, &error), &error);
  const tl_device_options options = {.size = sizeof options, .faults = faults};
  must(tl_device_open(test_device(), &options, &c.device, &error), &error);
  tl_faults_arm(faults, "execute", 100, TL_DEVICE_LOST);
  worker all = crew_run(&c, until_refused_main, NULL);
  expect(all.wrong == 0);
  expect(tl_device_is_lost(c.device, &cause));
  expect(all.failure.code == TL_DEVICE_LOST);
  if (!expect(strcmp(all.failure.text, cause.text) == 0))
    tap_note("  %s", all.failure.text);
  tl_device_release(c.device);
  tl_faults_release(faults);
}

/* Launches on one stream of its own without a pause, until the device is lost.
 */
static void *hammer_main(void *argument) {
  worker *w = argument;
  tl_stream *stream = NULL;
  tl_error e;
  bool ok = succeeded(w, tl_stream_create(w->crew->device, &stream, &e), &e);
  for (; ok && w->done < 1000000; w->done++) {
    tl_stream_locate(stream, "hammer.lua", w->done, NULL);
    ok = succeeded(w, tl_stream_spin(stream, 0, &e), &e);
  }
  tl_stream_release(stream);
  return NULL;
}

static void *ask_main(void *argument) {
  worker *w = argument;
  tl_error cause;
  while (!atomic_load(&w->crew->stop))
    if (tl_device_is_lost(w->crew->device, &cause))
      w->wrong += strstr(cause.text, " is lost: ") == NULL;
  return NULL;
}

static void test_lost_under_load(void) {
  crew c = {0};
  tl_faults *faults;
  tl_error cause;
  must(tl_faults_create(&faults, &error), &error);
  const tl_device_options options = {.size = sizeof options, .faults = faults};
  must(tl_device_open(test_device(), &options, &c.device, &error), &error);
  tl_faults_arm(faults, "execute", 3000, TL_DEVICE_LOST);
  worker all = crew_run(&c, hammer_main, ask_main);
  expect(all.wrong == 0);
  expect(tl_device_is_lost(c.device, &cause));
  if (!expect(strstr(cause.text, "spin (hammer.lua:") != NULL))
    tap_note("  %s", cause.text);
  expect(strcmp(all.failure.text, cause.text) == 0);
  tl_device_release(c.device);
  tl_faults_release(faults);
}

/* Leaves work in flight on streams whose handles are gone. */
static void *leave_main(void *argument) {
  worker *w = argument;
  tl_device *device = w->crew->device;
  tl_error e;
  for (int i = 0; i < 5; i++) {
    tl_stream *stream = NULL;
    tl_buffer *a = NULL, *b = NULL, *c = NULL;
    bool ok =
        succeeded(w, tl_stream_create(device, &stream, &e), &e) &&
        succeeded(w, product_factors(device, TL_FLOAT32, &a, &b, &e), &e) &&
        succeeded(w, product_result(device, TL_FLOAT32, &c, &e), &e);
    const tl_matmul_options options = {
        .size = sizeof options, .stream = stream, .kernel = "tiled"};
    ok = ok && succeeded(w, tl_stream_spin(stream, 0.05, &e), &e) &&
         succeeded(w, tl_matmul(a, b, c, &options, &e), &e);
    w->done += ok;
    tl_buffer_release(c);
    tl_buffer_release(b);
    tl_buffer_release(a);
    tl_stream_release(stream);
  }
  return NULL;
}

static void test_leave(void) {
  crew c = {0};
  must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
  worker all = crew_run(&c, leave_main, NULL);
  expect(all.done == THREADS * 5 && all.failure.code == TL_OK);
  tl_device_close(c.device);
  tl_device_release(c.device);
}

/* ---- waiting while others launch ------------------------------------------
 */

/* Keeps its stream busy: ten spins are in flight at any time. */
static void *busy_main(void *argument) {
  worker *w = argument;
  tl_stream *stream = NULL;
  tl_error e;
  int64_t least, most;
  bool ok = succeeded(w, tl_stream_create(w->crew->device, &stream, &e), &e);
  while (ok && !atomic_load(&w->crew->stop)) {
    ok = succeeded(w, tl_stream_inflight(stream, &least, &most, &e), &e);
    if (ok && least < 10)
      ok = succeeded(w, tl_stream_spin(stream, 0.003, &e), &e);
    atomic_store(&w->crew->running, 1);
  }
  tl_stream_release(stream);
  return NULL;
}

static void test_wait_among_launches(void) {
  crew c = {0};
  must(tl_device_open(test_device(), NULL, &c.device, &error), &error);
  worker launching = {.crew = &c};
  pthread_t thread;
  if (pthread_create(&thread, NULL, busy_main, &launching) != 0)
    tap_bail("no thread");
  while (atomic_load(&c.running) == 0)
    sched_yield();
  bool reached = true;
  for (int i = 0; i < 20 && reached; i++)
    must(tl_device_synchronize(c.device, 5, &reached, &error), &error);
  atomic_store(&c.stop, true);
  pthread_join(thread, NULL);
  expect(reached);
  expect(launching.failure.code == TL_OK);
  must(tl_device_synchronize(c.device, -1, &reached, &error), &error);
  tl_device_release(c.device);
}

int main(void) {
  test("threads create, use and drop on one device, and are right",
       test_rounds);
  test("events and buffers go from thread to thread", test_ring);
  test("the default stream is made once, by whoever comes first",
       test_default_stream);
  test("a device closed meanwhile refuses further calls", test_close_meanwhile);
  test("a device waits while another thread launches",
       test_wait_among_launches);
  test("a device lost meanwhile tells every thread why", test_lost_meanwhile);
  test("a device lost under load names the launches", test_lost_under_load);
  test("a device is closed with the work of all in flight", test_leave);
  return tap_end();
}
