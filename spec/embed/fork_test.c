/* A device that was opened before fork: in the child it says so and does
 * nothing, and the parent's work goes on. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "product.h"
#include "tap.h"

static tl_error error;

/* What is open across the fork, with work behind a closed gate. Static, so
 * that a leak checker in the child knows that it is not forgotten. */
static struct {
  tl_device *device;
  tl_stream *stream;
  tl_event *event;
  tl_gate *gate;
  tl_buffer *a, *b, *c, *view;
  pid_t parent;
} open_before;

static void parent_open(void) {
  const int64_t part[] = {2, 2}, apart[] = {PRODUCT_N};
  must(tl_device_open("host", NULL, &open_before.device, &error), &error);
  tl_device *device = open_before.device;
  must(tl_stream_create(device, &open_before.stream, &error), &error);
  must(tl_event_create(device, true, &open_before.event, &error), &error);
  must(product_factors(device, TL_FLOAT32, &open_before.a, &open_before.b,
                       &error),
       &error);
  must(product_result(device, TL_FLOAT32, &open_before.c, &error), &error);
  must(tl_buffer_view(open_before.c, 0, 2, part, apart, &open_before.view,
                      &error),
       &error);
  must(tl_gate_create(open_before.stream, 60, &open_before.gate, &error),
       &error);
  const tl_matmul_options options = {
      .size = sizeof options, .stream = open_before.stream, .kernel = "naive"};
  must(tl_matmul(open_before.a, open_before.b, open_before.c, &options, &error),
       &error);
  must(tl_stream_record(open_before.stream, open_before.event, &error), &error);
  open_before.parent = getpid();
}

static void parent_close(void) {
  double sum;
  int wrong;
  bool opened;
  expect_ok(tl_gate_open(open_before.gate, &opened, &error), &error);
  expect(opened); /* the child did not open it */
  expect_ok(product_read(open_before.c, &sum, &wrong, &error), &error);
  expect(sum == PRODUCT_SUM);
  tl_gate_release(open_before.gate);
  tl_event_release(open_before.event);
  tl_buffer_release(open_before.view);
  tl_buffer_release(open_before.c);
  tl_buffer_release(open_before.b);
  tl_buffer_release(open_before.a);
  tl_stream_release(open_before.stream);
  tl_device_release(open_before.device);
}

/* Runs the body in a child, which ends with its result, and waits for it. The
 * result is -1 where the child had to be killed after that time, or was. */
static int in_child_for(double seconds, int (*body)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0)
    tap_bail("no fork");
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  const struct timespec pause = {.tv_nsec = 5000000};
  for (double left = seconds; left > 0; left -= 0.005) {
    nanosleep(&pause, NULL);
    int status;
    if (waitpid(child, &status, WNOHANG) != child)
      continue;
    if (WIFEXITED(status))
      return WEXITSTATUS(status);
    tap_note("the child died of signal %d", WTERMSIG(status));
    return -1;
  }
  tap_note("the child hangs");
  fflush(stdout);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return -1;
}

static int in_child(int (*body)(void)) {
  return in_child_for(20, body);
}

/* ---- every call ---------------------------------------------------------- */

static int child_calls(void) {
  const int64_t four[] = {4}, first[] = {0, 0};
  char words[128];
  float numbers[PRODUCT_M * PRODUCT_N];
  bool yes;
  double seconds;
  int64_t least, most;
  int32_t count;
  tl_mark marks[4];
  tl_memory_info info;
  tl_properties properties;
  tl_device *d = open_before.device;
  tl_stream *s = open_before.stream, *stream;
  tl_event *e = open_before.event, *event;
  tl_gate *gate;
  tl_buffer *buffer;
  snprintf(words, sizeof words,
           "host was opened in process %ld, this is process %ld: open it after "
           "fork",
           (long)open_before.parent, (long)getpid());
  tap.unmet = 0;
#define REFUSED(call) expect_fails(call, TL_INVALID_ARGUMENT, words, &error)
  REFUSED(tl_device_trim(d, &error));
  REFUSED(tl_device_properties(d, &properties, &error));
  REFUSED(tl_device_memory(d, &info, &error));
  REFUSED(tl_device_synchronize(d, -1, &yes, &error));
  REFUSED(tl_device_stamp(d, &least, marks, 4, &count, &error));
  REFUSED(tl_device_default_stream(d, &stream, &error));
  REFUSED(tl_matmul_prepare(d, "naive", &error));
  REFUSED(tl_stream_create(d, &stream, &error));
  REFUSED(tl_event_create(d, true, &event, &error));
  REFUSED(tl_gate_create(s, 1, &gate, &error));
  REFUSED(tl_buffer_create(d, TL_FLOAT32, 1, four, &buffer, &error));
  REFUSED(tl_buffer_view(open_before.a, 0, 1, four, NULL, &buffer, &error));
  REFUSED(tl_buffer_download(open_before.c, numbers, sizeof numbers, &error));
  REFUSED(tl_buffer_upload(open_before.c, numbers, sizeof numbers, &error));
  REFUSED(tl_buffer_get(open_before.c, first, numbers, &error));
  REFUSED(tl_buffer_set(open_before.c, first, numbers, &error));
  REFUSED(tl_buffer_wait(open_before.c, -1, &yes, &error));
  REFUSED(fill_with(open_before.c, 0, s, &error));
  REFUSED(tl_buffer_copy(open_before.c, open_before.c, s, &error));
  REFUSED(tl_matmul(open_before.a, open_before.b, open_before.c, NULL, &error));
  REFUSED(tl_stream_synchronize(s, -1, &yes, &error));
  REFUSED(tl_stream_done(s, &yes, &error));
  REFUSED(tl_stream_inflight(s, &least, &most, &error));
  REFUSED(tl_stream_reserve(s, true, -1, &yes, &error));
  REFUSED(tl_stream_spin(s, 0, &error));
  REFUSED(tl_stream_record(s, e, &error));
  REFUSED(tl_stream_wait_event(s, e, &error));
  REFUSED(tl_event_done(e, &yes, &error));
  REFUSED(tl_event_synchronize(e, -1, &yes, &error));
  REFUSED(tl_event_elapsed(e, e, &seconds, &error));
  REFUSED(tl_gate_open(open_before.gate, &yes, &error));
#undef REFUSED
  fflush(stdout);
  return tap.unmet == 0 ? 0 : 1;
}

static void test_calls(void) {
  parent_open();
  expect(in_child(child_calls) == 0);
  parent_close();
}

/* ---- release ------------------------------------------------------------- */

static int child_releases(void) {
  tl_device_close(open_before.device);
  tl_buffer_release(open_before.a);
  tl_buffer_release(open_before.c);
  tl_stream_release(open_before.stream);
  tl_device_release(open_before.device);
  tl_gate_release(open_before.gate);
  tl_buffer_release(open_before.b);
  tl_event_release(open_before.event);
  tl_buffer_release(open_before.view);
  return 0;
}

static void test_releases(void) {
  for (int i = 0; i < 10; i++) {
    parent_open();
    expect(in_child(child_releases) == 0);
    parent_close();
  }
}

/* ---- a device of the child's own ----------------------------------------- */

/* Multiplies on a fresh device, with work of the given kernel left in flight
 * when it ends. */
static int own_device(const char *kernel) {
  tl_device *device;
  tl_buffer *a, *b, *c;
  tl_error e;
  double sum = 0;
  int wrong;
  const tl_matmul_options options = {.size = sizeof options, .kernel = kernel};
  if (tl_device_open("host", NULL, &device, &e) != TL_OK)
    return 2;
  tl_status status = product_factors(device, TL_FLOAT32, &a, &b, &e);
  if (status == TL_OK)
    status = product_result(device, TL_FLOAT32, &c, &e);
  if (status == TL_OK)
    status = tl_matmul(a, b, c, &options, &e);
  if (status == TL_OK)
    status = product_read(c, &sum, &wrong, &e);
  if (status != TL_OK) {
    tap_note("%s", e.text);
    fflush(stdout);
    return 3;
  }
  tl_buffer_release(c);
  tl_buffer_release(b);
  tl_buffer_release(a);
  tl_device_release(device);
  return sum == PRODUCT_SUM ? 0 : 4;
}

static int child_own_device(void) {
  child_releases();
  return own_device("tiled");
}

static void test_own_device(void) {
  parent_open();
  expect(in_child(child_own_device) == 0);
  parent_close();
}

/* ---- the BLAS ------------------------------------------------------------ */

enum { LARGE = 700 };

/* A product of some milliseconds, running when this returns. */
static bool blas_begin(tl_device **device, tl_buffer **c) {
  const int64_t shape[] = {LARGE, LARGE};
  const tl_matmul_options options = {.size = sizeof options, .kernel = "blas"};
  tl_buffer *a, *b;
  must(tl_device_open("host", NULL, device, &error), &error);
  if (tl_matmul_prepare(*device, "blas", &error) != TL_OK) {
    tl_device_release(*device);
    return false;
  }
  must(tl_buffer_create(*device, TL_FLOAT32, 2, shape, &a, &error), &error);
  must(tl_buffer_create(*device, TL_FLOAT32, 2, shape, &b, &error), &error);
  must(tl_buffer_create(*device, TL_FLOAT32, 2, shape, c, &error), &error);
  must(fill_with(a, 1, NULL, &error), &error);
  must(fill_with(b, 1, NULL, &error), &error);
  must(tl_matmul(a, b, *c, &options, &error), &error);
  tl_buffer_release(a);
  tl_buffer_release(b);
  return true;
}

static float last_element(tl_buffer *c) {
  const int64_t last[] = {LARGE - 1, LARGE - 1};
  float value = 0;
  must(tl_buffer_get(c, last, &value, &error), &error);
  return value;
}

static int child_blas(void) {
  tl_device *device;
  tl_buffer *c;
  if (!blas_begin(&device, &c) || last_element(c) != LARGE)
    return 1;
  tl_buffer_release(c);
  tl_device_release(device);
  return 0;
}

/* The child ends through exit while a product of its own is running. */
static int child_blas_exit(void) {
  tl_device *device;
  tl_buffer *c;
  if (!blas_begin(&device, &c))
    return 1;
  tl_buffer_release(c);
  tl_device_release(device);
  exit(0);
}

static void with_blas(int (*body)(void), int count) {
  tl_device *device;
  tl_buffer *c;
  for (int i = 0; i < count; i++) {
    if (!blas_begin(&device, &c)) {
      tap_skip("no CBLAS");
      return;
    }
    expect(last_element(c) == LARGE);
    if (!expect(in_child(body) == 0))
      i = count; /* once is enough to know */
    tl_buffer_release(c);
    tl_device_release(device);
  }
}

static void test_blas(void) {
  with_blas(child_blas, 5);
}

/* A parent whose own product is running at the moment of the fork. */
static int parent_blas_running(void) {
  tl_device *device;
  tl_buffer *c;
  for (int i = 0; i < 10; i++) {
    if (!blas_begin(&device, &c))
      return 1;
    if (in_child_for(20, child_blas) != 0 || last_element(c) != LARGE)
      return 2;
    tl_buffer_release(c);
    tl_device_release(device);
  }
  return 0;
}

/* Played in a child too: a parent that hangs could not be ended otherwise. */
static void test_blas_running(void) {
  tl_device *device;
  tl_buffer *c;
  if (!blas_begin(&device, &c)) {
    tap_skip("no CBLAS");
    return;
  }
  expect(last_element(c) == LARGE);
  tl_buffer_release(c);
  tl_device_release(device);
  expect(in_child_for(60, parent_blas_running) == 0);
}

static void test_blas_exit(void) {
  with_blas(child_blas_exit, 20);
}

/* ---- before the first device --------------------------------------------- */

static int child_fresh(void) {
  tl_device_info list[4];
  int32_t count;
  if (tl_device_list(list, 4, &count, &error) != TL_OK || count < 1)
    return 1;
  return own_device("naive");
}

static void test_fresh(void) {
  tl_device_info list[4];
  int32_t count;
  expect_ok(tl_device_list(list, 4, &count, &error), &error);
  expect(in_child(child_fresh) == 0);
}

int main(void) {
  test("a child of a process without a device may open one", test_fresh);
  test("in the child every call says where the device was opened", test_calls);
  test("in the child every release is quiet and none waits", test_releases);
  test("the child multiplies on a device of its own", test_own_device);
  test("the child multiplies with the BLAS that the parent has used",
       test_blas);
  test("a fork in the middle of a BLAS product harms neither side",
       test_blas_running);
  test("the child may exit with a BLAS product of its own running",
       test_blas_exit);
  return tap_end();
}
