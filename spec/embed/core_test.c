/* The C API without Lua: opening, buffers, views, events, gates, stamps; what
 * is refused and what comes out then. Products are in kernels_test.c, failures
 * and ends of life in life_test.c. */
#include <math.h>
#include <stddef.h>

#include "product.h"
#include "tap.h"

static tl_error error;

static tl_device *host_open(const tl_device_options *options) {
  tl_device *device;
  must(tl_device_open("host", options, &device, &error), &error);
  return device;
}

static tl_stream *stream_create(tl_device *device) {
  tl_stream *stream;
  must(tl_stream_create(device, &stream, &error), &error);
  return stream;
}

static tl_event *event_create(tl_device *device, bool timing) {
  tl_event *event;
  must(tl_event_create(device, timing, &event, &error), &error);
  return event;
}

static tl_gate *gate_create(tl_stream *stream, double timeout) {
  tl_gate *gate;
  must(tl_gate_create(stream, timeout, &gate, &error), &error);
  return gate;
}

static tl_buffer *buffer_create(tl_device *device, int32_t dimensions,
                                const int64_t *shape) {
  tl_buffer *buffer;
  must(tl_buffer_create(device, TL_FLOAT32, dimensions, shape, &buffer, &error),
       &error);
  return buffer;
}

/* A vector with the numbers 0, 1, 2, ... */
static tl_buffer *buffer_count(tl_device *device, int32_t dimensions,
                               const int64_t *shape) {
  tl_buffer *buffer = buffer_create(device, dimensions, shape);
  tl_layout layout;
  float numbers[256];
  tl_buffer_layout(buffer, &layout);
  for (int i = 0; i < (int)layout.size; i++)
    numbers[i] = (float)i;
  must(tl_buffer_upload(buffer, numbers, (size_t)layout.size * sizeof(float),
                        &error),
       &error);
  return buffer;
}

static tl_memory_info memory_of(tl_device *device) {
  tl_memory_info info;
  must(tl_device_memory(device, &info, &error), &error);
  return info;
}

/* Closes a device on which nothing may be left. */
static void host_close(tl_device *device) {
  bool reached;
  expect_ok(tl_device_synchronize(device, -1, &reached, &error), &error);
  tl_memory_info info = memory_of(device);
  expect(info.objects == 0);
  expect(info.live == 0);
  expect(info.pending == 0);
  tl_device_close(device);
  tl_device_release(device);
}

/* ---- devices ------------------------------------------------------------- */

static void test_ids(void) {
  tl_device_info list[16];
  int32_t count, again;
  char id[32];
  bool found = false;
  expect_ok(tl_device_list(list, 16, &count, &error), &error);
  for (int32_t i = 0; i < count && i < 16; i++)
    found = found || strcmp(list[i].id, "host") == 0;
  expect(found);
  expect_ok(tl_device_list(list, 0, &again, &error), &error);
  expect(again == count);
  expect_ok(tl_device_canonical("host:0", id, sizeof id, &error), &error);
  expect(strcmp(id, "host") == 0);
  expect_ok(tl_device_canonical("host:3", id, sizeof id, &error), &error);
  expect(strcmp(id, "host:3") == 0);
  expect(tl_device_available("host", &error));
  expect(!tl_device_available("nonesuch", &error));
  expect(strstr(error.text, "'nonesuch'") != NULL);
  expect(strcmp(tl_version(), TL_VERSION) == 0);
}

static void test_open(void) {
  tl_properties p;
  tl_device *device = host_open(NULL), *other = host_open(NULL);
  expect(device != other);
  expect(strcmp(tl_device_id(device), "host") == 0);
  expect(strcmp(tl_device_backend(device), "host") == 0);
  expect_ok(tl_device_properties(device, &p, &error), &error);
  expect(p.name[0] != '\0');
  expect(p.queue_depth == 1024);
  expect(p.multiprocessor_count >= 1);
  expect(p.compute_capability_major == -1);
  host_close(other);
  host_close(device);
}

static void test_open_refused(void) {
  static const struct {
    const char *id;
    tl_status status;
  } cases[] = {{"nonesuch", TL_UNSUPPORTED},
               {"", TL_UNSUPPORTED},
               {"host:99", TL_UNSUPPORTED},
               {"host:x", TL_INVALID_ARGUMENT},
               {"host:", TL_INVALID_ARGUMENT},
               {"host:-1", TL_INVALID_ARGUMENT},
               {"host:99999999999999999999", TL_INVALID_ARGUMENT}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_device *device = (tl_device *)&error;
    expect_fails(tl_device_open(cases[i].id, NULL, &device, &error),
                 cases[i].status, "device '", &error);
    expect(device == NULL);
  }
  const tl_device_options depth = {.size = sizeof depth, .queue_depth = -1};
  const tl_device_options deep = {.size = sizeof deep,
                                  .queue_depth = (1 << 20) + 1};
  const tl_device_options limit = {.size = sizeof limit, .memory_limit = -5};
  tl_device *device;
  expect_fails(tl_device_open("host", &depth, &device, &error),
               TL_INVALID_ARGUMENT, "queue_depth", &error);
  expect_fails(tl_device_open("host", &deep, &device, &error),
               TL_INVALID_ARGUMENT, "queue_depth", &error);
  expect_fails(tl_device_open("host", &limit, &device, &error),
               TL_INVALID_ARGUMENT, "memory_limit", &error);
  expect(device == NULL);
}

/* A caller that was built against a smaller struct, and one against a larger:
 * what lies behind `size` is not looked at. */
static void test_options_size(void) {
  struct {
    tl_device_options known;
    int64_t unknown[4];
  } options;
  tl_properties p;
  tl_memory_info info;
  memset(&options, 0x7f, sizeof options);
  options.known.size = offsetof(tl_device_options, queue_depth);
  options.known.memory_limit = 4096;
  tl_device *device = host_open(&options.known);
  must(tl_device_properties(device, &p, &error), &error);
  expect(p.queue_depth == 1024);
  info = memory_of(device);
  expect(info.limit == 4096);
  host_close(device);

  options.known.size = 0; /* forgotten: not taken for all defaults */
  expect_fails(tl_device_open("host", &options.known, &device, &error),
               TL_INVALID_ARGUMENT, "sizeof(tl_device_options)", &error);
  expect(device == NULL);

  options.known = (tl_device_options){.queue_depth = 7};
  options.known.size = sizeof options;
  device = host_open(&options.known);
  must(tl_device_properties(device, &p, &error), &error);
  expect(p.queue_depth == 7);
  tl_device_options has;
  tl_device_opened_with(device, &has);
  expect(has.queue_depth == 7 && has.memory_limit == 0);
  host_close(device);
}

/* Every call on a closed device says so, and empties what it would have given.
 */
static void test_closed(void) {
  const int64_t four[] = {4}, first[] = {0};
  float numbers[4] = {0};
  tl_device *device = host_open(NULL);
  tl_stream *stream = stream_create(device);
  tl_buffer *buffer = buffer_create(device, 1, four);
  tl_buffer *other = buffer_create(device, 1, four);
  tl_event *event = event_create(device, true);
  must(tl_stream_record(stream, event, &error), &error);
  tl_gate *gate = gate_create(stream, 30);
  tl_device_close(device);
  tl_device_close(device);

  void *const garbage = &error;
  tl_buffer *b = garbage;
  tl_stream *s = garbage;
  tl_event *e = garbage;
  tl_gate *g = garbage;
  bool yes = true;
  double seconds = 1;
  int64_t least = 1, most = 1;
  tl_memory_info info;
  memset(&info, 1, sizeof info);
#define REFUSED(call)                                                          \
  do {                                                                         \
    expect_fails(call, TL_INVALID_ARGUMENT, "device host is closed", &error);  \
  } while (0)
  REFUSED(tl_buffer_create(device, TL_FLOAT32, 1, four, &b, &error));
  REFUSED(tl_stream_create(device, &s, &error));
  REFUSED(tl_event_create(device, true, &e, &error));
  REFUSED(tl_gate_create(stream, 1, &g, &error));
  expect(b == NULL && s == NULL && e == NULL && g == NULL);
  b = garbage;
  s = garbage;
  REFUSED(tl_buffer_view(buffer, 0, 1, four, NULL, &b, &error));
  REFUSED(tl_device_default_stream(device, &s, &error));
  expect(b == NULL && s == NULL);
  REFUSED(tl_device_memory(device, &info, &error));
  expect(info.total == 0 && info.objects == 0);
  REFUSED(tl_device_trim(device, &error));
  REFUSED(tl_device_synchronize(device, -1, &yes, &error));
  expect(!yes);
  yes = true;
  REFUSED(tl_stream_synchronize(stream, -1, &yes, &error));
  expect(!yes);
  yes = true;
  REFUSED(tl_stream_done(stream, &yes, &error));
  expect(!yes);
  REFUSED(tl_stream_inflight(stream, &least, &most, &error));
  expect(least == 0 && most == 0);
  REFUSED(tl_stream_spin(stream, 0, &error));
  REFUSED(tl_stream_record(stream, event, &error));
  REFUSED(tl_stream_wait_event(stream, event, &error));
  yes = true;
  REFUSED(tl_event_done(event, &yes, &error));
  expect(!yes);
  yes = true;
  REFUSED(tl_event_synchronize(event, -1, &yes, &error));
  expect(!yes);
  REFUSED(tl_event_elapsed(event, event, &seconds, &error));
  expect(seconds == 0);
  yes = true;
  REFUSED(tl_gate_open(gate, &yes, &error));
  expect(!yes);
  REFUSED(tl_buffer_upload(buffer, numbers, sizeof numbers, &error));
  REFUSED(tl_buffer_download(buffer, numbers, sizeof numbers, &error));
  REFUSED(tl_buffer_get(buffer, first, numbers, &error));
  REFUSED(tl_buffer_set(buffer, first, numbers, &error));
  REFUSED(fill_with(buffer, 1, stream, &error));
  REFUSED(tl_buffer_copy(buffer, other, stream, &error));
  yes = true;
  REFUSED(tl_buffer_wait(buffer, -1, &yes, &error));
  expect(!yes);
#undef REFUSED
  tl_gate_release(gate);
  tl_event_release(event);
  tl_buffer_release(other);
  tl_buffer_release(buffer);
  tl_stream_release(stream);
  tl_device_release(device);
}

static void test_null(void) {
  tl_device_release(NULL);
  tl_buffer_release(NULL);
  tl_stream_release(NULL);
  tl_event_release(NULL);
  tl_gate_release(NULL);
  tl_faults_release(NULL);
}

/* ---- dtypes -------------------------------------------------------------- */

static void test_dtypes(void) {
  float f;
  double d;
  expect(tl_dtype_find("float32") == TL_FLOAT32);
  expect(tl_dtype_find("float64") == TL_FLOAT64);
  expect(tl_dtype_find("float31") == -1);
  expect(tl_dtype_name(-1) == NULL && tl_dtype_name(TL_DTYPE_COUNT) == NULL);
  tl_dtype_pack(TL_FLOAT32, 16777217.0, &f);
  expect(f == 16777216.0f); /* a tie goes to the even one */
  tl_dtype_pack(TL_FLOAT32, 1e300, &f);
  expect(isinf(f));
  tl_dtype_pack(TL_FLOAT32, NAN, &f);
  expect(isnan(tl_dtype_unpack(TL_FLOAT32, &f)));
  tl_dtype_pack(TL_FLOAT64, 0.1, &d);
  expect(tl_dtype_unpack(TL_FLOAT64, &d) == 0.1);
}

/* ---- buffers and views --------------------------------------------------- */

static void test_buffers(void) {
  const int64_t shape[] = {2, 3, 4}, index[] = {1, 2, 3}, beyond[] = {1, 3, 0};
  float numbers[24], value = 100;
  tl_layout layout;
  tl_device *device = host_open(NULL);
  tl_buffer *buffer = buffer_count(device, 3, shape);
  tl_buffer *copy = buffer_create(device, 3, shape);
  tl_buffer_layout(buffer, &layout);
  expect(layout.dimensions == 3 && layout.size == 24 && layout.offset == 0);
  expect(layout.stride[0] == 12 && layout.stride[1] == 4);
  expect(tl_buffer_owned(buffer) == 96);
  expect(tl_buffer_device(buffer) == device);
  expect_ok(tl_buffer_set(buffer, index, &value, &error), &error);
  expect_ok(tl_buffer_copy(copy, buffer, NULL, &error), &error);
  expect_ok(fill_with(buffer, -2, NULL, &error), &error);
  expect_ok(tl_buffer_download(copy, numbers, sizeof numbers, &error), &error);
  for (int i = 0; i < 24; i++)
    expect(numbers[i] == (i == 23 ? 100 : (float)i));
  expect_ok(tl_buffer_get(buffer, index, &value, &error), &error);
  expect(value == -2);
  expect_fails(tl_buffer_get(buffer, beyond, &value, &error),
               TL_INVALID_ARGUMENT, "index 2 must be 0 to 2, got 3", &error);
  expect_fails(tl_buffer_upload(buffer, numbers, 95, &error),
               TL_INVALID_ARGUMENT, "95 bytes were given, the buffer holds 96",
               &error);
  expect_fails(tl_buffer_download(buffer, numbers, 97, &error),
               TL_INVALID_ARGUMENT, "97 bytes", &error);
  expect_fails(tl_buffer_copy(buffer, buffer, NULL, &error),
               TL_INVALID_ARGUMENT, "overlaps", &error);
  tl_buffer_release(copy);
  tl_buffer_release(buffer);
  host_close(device);
}

static void test_buffers_refused(void) {
  static const struct {
    int32_t dtype, dimensions;
    int64_t shape[3];
    const char *words;
  } cases[] = {
      {TL_FLOAT32, 0, {1, 1, 1}, "1 to 3 dimensions, got 0"},
      {TL_FLOAT32, 4, {1, 1, 1}, "1 to 3 dimensions, got 4"},
      {TL_FLOAT32, 1, {-1, 1, 1}, "must be >= 0, got -1"},
      {TL_FLOAT32, 2, {INT64_C(1) << 32, INT64_C(1) << 32, 1}, "overflows"},
      {TL_FLOAT64, 3, {INT64_C(1) << 20, 1 << 20, 1 << 20}, "overflows"},
      {TL_FLOAT64, 1, {INT64_MAX, 1, 1}, "overflows"},
      {TL_DTYPE_COUNT, 1, {1, 1, 1}, "no dtype"},
      {-1, 1, {1, 1, 1}, "no dtype -1"},
  };
  tl_device *device = host_open(NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tl_buffer *buffer = (tl_buffer *)&error;
    tl_status status =
        tl_buffer_create(device, cases[i].dtype, cases[i].dimensions,
                         cases[i].shape, &buffer, &error);
    expect(status == TL_INVALID_ARGUMENT);
    if (!expect(strstr(error.text, cases[i].words) != NULL))
      tap_note("  %s: %s", cases[i].words, error.text);
    expect(buffer == NULL);
  }
  host_close(device);
}

static void test_views(void) {
  const int64_t shape[] = {6, 10}, part[] = {2, 3}, apart[] = {10};
  const int64_t close_by[] = {2}, whole[] = {60}, one[] = {1};
  float numbers[6];
  tl_layout layout;
  tl_buffer *view, *inner, *refused;
  tl_device *device = host_open(NULL);
  tl_buffer *buffer = buffer_count(device, 2, shape);
  expect_ok(tl_buffer_view(buffer, 12, 2, part, apart, &view, &error), &error);
  tl_buffer_layout(view, &layout);
  expect(layout.offset == 12 && layout.stride[0] == 10 && layout.size == 6);
  expect(tl_buffer_owned(view) == 0);
  expect_ok(tl_buffer_view(view, 10, 1, one, NULL, &inner, &error), &error);
  tl_memory_info info = memory_of(device);
  expect(info.buffers == 1 && info.objects == 3 && info.live == 240);

  refused = view;
  expect_fails(tl_buffer_view(buffer, 0, 2, part, close_by, &refused, &error),
               TL_INVALID_ARGUMENT, "stride 2 < 3", &error);
  expect(refused == NULL);
  expect_fails(tl_buffer_view(buffer, 1, 1, whole, NULL, &refused, &error),
               TL_INVALID_ARGUMENT, "needs 60 elements after offset 1", &error);
  expect_fails(tl_buffer_view(buffer, 61, 1, one, NULL, &refused, &error),
               TL_INVALID_ARGUMENT, "offset must be 0 to 60", &error);
  expect_fails(tl_buffer_view(buffer, -1, 1, one, NULL, &refused, &error),
               TL_INVALID_ARGUMENT, "got -1", &error);

  tl_buffer_release(buffer); /* the views keep the memory */
  expect_ok(tl_buffer_download(view, numbers, sizeof numbers, &error), &error);
  const float wanted[] = {12, 13, 14, 22, 23, 24};
  expect(memcmp(numbers, wanted, sizeof wanted) == 0);
  expect_ok(fill_with(view, 5, NULL, &error), &error);
  expect_ok(tl_buffer_download(inner, numbers, sizeof(float), &error), &error);
  expect(numbers[0] == 5);
  tl_buffer_release(view);
  info = memory_of(device);
  expect(info.live == 240 && info.objects == 2);
  tl_buffer_release(inner);
  host_close(device);
}

/* Copies between a view with gaps and a packed buffer, both ways. */
static void test_view_copies(void) {
  const int64_t shape[] = {4, 5}, part[] = {3, 2}, apart[] = {5};
  float numbers[20];
  tl_buffer *view;
  tl_device *device = host_open(NULL);
  tl_buffer *buffer = buffer_count(device, 2, shape);
  tl_buffer *packed = buffer_create(device, 2, part);
  must(tl_buffer_view(buffer, 6, 2, part, apart, &view, &error), &error);
  expect_ok(tl_buffer_copy(packed, view, NULL, &error), &error);
  expect_ok(tl_buffer_download(packed, numbers, 24, &error), &error);
  const float taken[] = {6, 7, 11, 12, 16, 17};
  expect(memcmp(numbers, taken, sizeof taken) == 0);
  expect_ok(fill_with(packed, 0, NULL, &error), &error);
  expect_ok(tl_buffer_copy(view, packed, NULL, &error), &error);
  expect_ok(tl_buffer_download(buffer, numbers, sizeof numbers, &error),
            &error);
  for (int i = 0; i < 20; i++) {
    bool inside = i / 5 >= 1 && i % 5 >= 1 && i % 5 <= 2;
    expect(numbers[i] == (inside ? 0 : (float)i));
  }
  tl_buffer_release(packed);
  tl_buffer_release(view);
  tl_buffer_release(buffer);
  host_close(device);
}

static void test_zero_sizes(void) {
  const int64_t none[] = {0}, flat[] = {0, 5}, high[] = {3, 0, INT64_MAX};
  const int64_t first[] = {0, 0};
  float value;
  int64_t least, most;
  tl_layout layout;
  tl_buffer *view;
  tl_device *device = host_open(NULL);
  tl_stream *stream = stream_create(device);
  tl_buffer *a = buffer_create(device, 1, none);
  tl_buffer *b = buffer_create(device, 2, flat);
  tl_buffer *twin = buffer_create(device, 2, flat);
  tl_buffer *c = buffer_create(device, 3, high);
  tl_buffer_layout(c, &layout);
  expect(layout.size == 0);
  expect(memory_of(device).live == 0 && memory_of(device).buffers == 4);
  expect_ok(tl_buffer_upload(a, "", 0, &error), &error);
  expect_ok(tl_buffer_download(b, NULL, 0, &error), &error);
  expect_ok(fill_with(b, 1, stream, &error), &error);
  expect_ok(tl_buffer_copy(b, twin, stream, &error), &error);
  expect_ok(tl_stream_inflight(stream, &least, &most, &error), &error);
  expect(least == 0 && most == 0);
  expect_ok(tl_buffer_view(a, 0, 2, flat, NULL, &view, &error), &error);
  expect_fails(tl_buffer_get(b, first, &value, &error), TL_INVALID_ARGUMENT,
               "index 1", &error);
  tl_buffer_release(view);
  tl_buffer_release(c);
  tl_buffer_release(twin);
  tl_buffer_release(b);
  tl_buffer_release(a);
  tl_stream_release(stream);
  host_close(device);
}

static void test_memory_limit(void) {
  const tl_device_options options = {.size = sizeof options,
                                     .memory_limit = 1000};
  const int64_t large[] = {150}, small[] = {100};
  tl_device *device = host_open(&options);
  tl_stream *stream = stream_create(device);
  tl_buffer *first = buffer_create(device, 1, large), *second;
  expect_ok(tl_buffer_create(device, TL_FLOAT32, 1, small, &second, &error),
            &error);
  tl_buffer *third = first;
  expect_fails(tl_buffer_create(device, TL_FLOAT32, 1, large, &third, &error),
               TL_OUT_OF_MEMORY, "asked 600 bytes", &error);
  expect(third == NULL);
  expect(error.asked == 600 && error.live == 1000 && error.free == 0);
  expect(error.limit == 1000 && error.buffers == 2);
  expect(memory_of(device).peak == 1000);
  tl_buffer_release(second);

  /* A closed buffer that queued work still uses is waited for. */
  tl_gate *gate = gate_create(stream, 0.05);
  expect_ok(fill_with(first, 1, stream, &error), &error);
  tl_buffer_release(first);
  tl_memory_info info = memory_of(device);
  expect(info.live == 0 && info.pending == 600 && info.free == 400);
  expect_ok(tl_buffer_create(device, TL_FLOAT32, 1, large, &third, &error),
            &error);
  tl_gate_release(gate);
  tl_buffer_release(third);
  tl_stream_release(stream);
  host_close(device);
}

/* ---- streams, events, gates ---------------------------------------------- */

static void test_streams(void) {
  int64_t least, most;
  bool yes;
  tl_device *device = host_open(NULL);
  tl_stream *first = stream_create(device), *second = stream_create(device);
  tl_stream *own, *again;
  expect(tl_stream_number(second) > tl_stream_number(first));
  expect(tl_stream_device(first) == device);
  must(tl_device_default_stream(device, &own, &error), &error);
  must(tl_device_default_stream(device, &again, &error), &error);
  expect(own == again && own != first);
  tl_gate *gate = gate_create(first, 30);
  expect_ok(tl_stream_spin(first, 0, &error), &error);
  expect_ok(tl_stream_spin(first, 0, &error), &error);
  expect_ok(tl_stream_inflight(first, &least, &most, &error), &error);
  expect(least <= 2 && most == 2);
  expect_ok(tl_stream_done(first, &yes, &error), &error);
  expect(!yes);
  expect_ok(tl_stream_synchronize(first, 0.01, &yes, &error), &error);
  expect(!yes);
  expect_ok(tl_device_synchronize(device, 0.01, &yes, &error), &error);
  expect(!yes);
  expect_ok(tl_stream_spin(second, 0, &error), &error); /* is not held up */
  expect_ok(tl_stream_synchronize(second, -1, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_gate_open(gate, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_stream_synchronize(first, -1, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_stream_inflight(first, &least, &most, &error), &error);
  expect(least == 0 && most == 0);
  expect_fails(tl_stream_spin(first, -1, &error), TL_INVALID_ARGUMENT, "got -1",
               &error);
  expect_fails(tl_stream_spin(first, NAN, &error), TL_INVALID_ARGUMENT, "nan",
               &error);
  tl_gate_release(gate);
  tl_stream_release(again);
  tl_stream_release(own);
  tl_stream_release(second);
  tl_stream_release(first);
  host_close(device);
}

static void test_events(void) {
  bool yes = true;
  double seconds = 1;
  tl_device *device = host_open(NULL);
  tl_stream *stream = stream_create(device);
  tl_event *begin = event_create(device, true),
           *end = event_create(device, true);
  tl_event *plain = event_create(device, false);
  expect(tl_event_timing(begin) && !tl_event_timing(plain));
  expect(!tl_event_recorded(begin));
  expect_fails(tl_event_done(begin, &yes, &error), TL_INVALID_ARGUMENT,
               "never recorded", &error);
  expect(!yes);
  expect_fails(tl_event_synchronize(begin, -1, &yes, &error),
               TL_INVALID_ARGUMENT, "never recorded", &error);
  expect_fails(tl_stream_wait_event(stream, begin, &error), TL_INVALID_ARGUMENT,
               "never recorded", &error);
  expect_fails(tl_event_elapsed(begin, end, &seconds, &error),
               TL_INVALID_ARGUMENT, "the earlier event was never recorded",
               &error);
  expect(seconds == 0);

  tl_gate *gate = gate_create(stream, 30);
  expect_ok(tl_stream_record(stream, begin, &error), &error);
  expect_ok(tl_stream_spin(stream, 0.02, &error), &error);
  expect_ok(tl_stream_record(stream, end, &error), &error);
  expect_ok(tl_stream_record(stream, plain, &error), &error);
  expect(tl_event_recorded(begin));
  expect_ok(tl_event_done(end, &yes, &error), &error);
  expect(!yes);
  expect_ok(tl_event_synchronize(end, 0.01, &yes, &error), &error);
  expect(!yes);
  expect_fails(tl_event_elapsed(begin, end, &seconds, &error),
               TL_INVALID_ARGUMENT, "not finished", &error);
  tl_gate_release(gate);
  expect_ok(tl_event_synchronize(plain, -1, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_event_done(end, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_event_elapsed(begin, end, &seconds, &error), &error);
  expect(seconds >= 0.02);
  double back;
  expect_ok(tl_event_elapsed(end, begin, &back, &error), &error);
  expect(back == -seconds);
  expect_fails(tl_event_elapsed(plain, end, &seconds, &error),
               TL_INVALID_ARGUMENT, "created without timing", &error);
  tl_event_release(plain);
  tl_event_release(end);
  tl_event_release(begin);
  tl_stream_release(stream);
  host_close(device);
}

/* A wait keeps to the record that it was made for. */
static void test_event_again(void) {
  bool yes;
  tl_device *device = host_open(NULL);
  tl_stream *held = stream_create(device), *free_one = stream_create(device);
  tl_stream *waiting = stream_create(device);
  tl_event *event = event_create(device, false);
  tl_gate *gate = gate_create(held, 30);
  must(tl_stream_record(free_one, event, &error), &error);
  expect_ok(tl_stream_wait_event(waiting, event, &error), &error);
  expect_ok(tl_stream_record(held, event, &error), &error);
  expect_ok(tl_stream_spin(waiting, 0, &error), &error);
  expect_ok(tl_stream_synchronize(waiting, -1, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_stream_wait_event(waiting, event, &error), &error);
  expect_ok(tl_stream_spin(waiting, 0, &error), &error);
  expect_ok(tl_stream_record(free_one, event, &error), &error);
  expect_ok(tl_stream_synchronize(waiting, 0.01, &yes, &error), &error);
  expect(!yes); /* it still waits for the record on the held stream */
  tl_gate_release(gate);
  tl_event_release(event); /* while it is waited for */
  expect_ok(tl_stream_synchronize(waiting, -1, &yes, &error), &error);
  expect(yes);
  tl_stream_release(waiting);
  tl_stream_release(free_one);
  tl_stream_release(held);
  host_close(device);
}

static void test_gates(void) {
  bool yes;
  tl_gate *refused;
  tl_device *device = host_open(NULL);
  tl_stream *stream = stream_create(device);
  tl_gate *gate = gate_create(stream, 0.01);
  expect_ok(tl_stream_synchronize(stream, -1, &yes, &error), &error);
  expect_ok(tl_gate_open(gate, &yes, &error), &error);
  expect(!yes); /* its time had run out */
  tl_gate_release(gate);
  gate = gate_create(stream, 30);
  expect_ok(tl_gate_open(gate, &yes, &error), &error);
  expect(yes);
  expect_ok(tl_gate_open(gate, &yes, &error), &error);
  expect(yes);
  tl_gate_release(gate);
  refused = gate_create(stream, 30);
  tl_gate_release(refused); /* dropping one opens it */
  expect_ok(tl_stream_synchronize(stream, -1, &yes, &error), &error);
  expect(yes);
  expect_fails(tl_gate_create(stream, -1, &refused, &error),
               TL_INVALID_ARGUMENT, "timeout", &error);
  expect_fails(tl_gate_create(stream, NAN, &refused, &error),
               TL_INVALID_ARGUMENT, "timeout", &error);
  expect(refused == NULL);
  tl_stream_release(stream);
  host_close(device);
}

/* The mark of that number; its stream is wrong if there is none. */
static tl_mark mark_of(const tl_mark *marks, int32_t count, uint64_t stream) {
  for (int32_t i = 0; i < count; i++)
    if (marks[i].stream == stream)
      return marks[i];
  return (tl_mark){.stream = UINT64_MAX};
}

static void test_stamps(void) {
  int64_t before, after;
  int32_t count;
  tl_mark marks[8], mark;
  bool yes;
  tl_device *device = host_open(NULL);
  expect_ok(tl_device_stamp(device, &before, marks, 8, &count, &error), &error);
  expect(before > 0);
  int32_t none = count; /* a mark for what is gone, perhaps */
  tl_stream *first = stream_create(device), *second = stream_create(device);
  tl_gate *gate = gate_create(first, 30);
  for (int i = 0; i < 3; i++)
    must(tl_stream_spin(first, 0, &error), &error);
  must(tl_stream_spin(second, 0, &error), &error);
  must(tl_stream_synchronize(second, -1, &yes, &error), &error);
  expect_ok(tl_device_stamp(device, &after, marks, 8, &count, &error), &error);
  expect(count == none + 2 && after >= before);
  mark = mark_of(marks, count, tl_stream_number(first));
  expect(mark.launched == 3 && mark.completed_least == 0);
  expect(mark.completed_most >= mark.completed_least);
  mark = mark_of(marks, count, tl_stream_number(second));
  expect(mark.launched == 1 && mark.completed_least == 1);
  memset(marks, 0x5a, sizeof marks);
  tl_mark untouched = marks[1];
  expect_ok(tl_device_stamp(device, &after, marks, 1, &count, &error), &error);
  expect(count == none + 2);
  expect(memcmp(&marks[1], &untouched, sizeof untouched) == 0);
  tl_gate_release(gate);
  must(tl_stream_synchronize(first, -1, &yes, &error), &error);
  tl_stream_release(second);
  tl_stream_release(first);
  must(tl_device_trim(device, &error), &error);
  expect_ok(tl_device_stamp(device, &after, marks, 8, &count, &error), &error);
  mark = mark_of(marks, count, 0); /* all streams that are gone */
  expect(mark.launched == 4 && mark.completed_least == 4);
  host_close(device);
}

/* Objects of two devices do not go together, whatever their names. */
static void test_two_devices(void) {
  const int64_t four[] = {4};
  double seconds;
  tl_device *one = host_open(NULL), *two = host_open(NULL);
  tl_stream *stream = stream_create(one), *other = stream_create(two);
  tl_event *event = event_create(two, true), *mine = event_create(one, true);
  tl_buffer *a = buffer_create(one, 1, four), *b = buffer_create(two, 1, four);
  must(tl_stream_record(other, event, &error), &error);
  expect_fails(tl_stream_record(stream, event, &error), TL_INVALID_ARGUMENT,
               "the event belongs to host", &error);
  expect_fails(tl_stream_wait_event(stream, event, &error), TL_INVALID_ARGUMENT,
               "the event belongs to host", &error);
  expect_fails(tl_event_elapsed(mine, event, &seconds, &error),
               TL_INVALID_ARGUMENT, "belongs to", &error);
  expect_fails(fill_with(a, 1, other, &error), TL_INVALID_ARGUMENT,
               "the stream belongs to", &error);
  expect_fails(tl_buffer_copy(a, b, other, &error), TL_INVALID_ARGUMENT,
               "the stream belongs to", &error);
  must(fill_with(b, 7, other, &error), &error);
  expect_ok(tl_buffer_copy(a, b, NULL, &error), &error);
  float last = 0;
  must(tl_buffer_get(a, (int64_t[]){3}, &last, &error), &error);
  expect(last == 7);
  tl_buffer_release(b);
  tl_buffer_release(a);
  tl_event_release(mine);
  tl_event_release(event);
  tl_stream_release(other);
  tl_stream_release(stream);
  host_close(two);
  host_close(one);
}

/* With blocking launches nothing is ever in flight after a call. */
static void test_blocking(void) {
  const tl_device_options options = {
      .size = sizeof options, .blocking_launches = 1, .wait = TL_WAIT_SPIN};
  int64_t least, most;
  tl_device *device = host_open(&options);
  tl_stream *stream = stream_create(device);
  for (int i = 0; i < 20; i++) {
    expect_ok(tl_stream_spin(stream, 0.0005, &error), &error);
    expect_ok(tl_stream_inflight(stream, &least, &most, &error), &error);
    expect(most == 0);
  }
  tl_stream_release(stream);
  host_close(device);
}

int main(void) {
  test("devices are known by their ids", test_ids);
  test("each open gives a device of its own", test_open);
  test("what cannot be opened is refused and gives NULL", test_open_refused);
  test("option structs of another size are read as far as they go",
       test_options_size);
  test("a closed device refuses every call and empties the outputs",
       test_closed);
  test("releasing NULL does nothing", test_null);
  test("numbers are rounded once, to nearest even", test_dtypes);
  test("buffers hold what was put in", test_buffers);
  test("impossible shapes and dtypes are refused", test_buffers_refused);
  test("views share and keep the memory", test_views);
  test("copies honour the strides of views", test_view_copies);
  test("sizes of zero are fine and launch nothing", test_zero_sizes);
  test("the memory limit holds, and says what is in the way",
       test_memory_limit);
  test("streams run apart and in order", test_streams);
  test("events tell what is done and how long it took", test_events);
  test("a recorded wait does not follow a later record", test_event_again);
  test("gates open by hand, by time and when dropped", test_gates);
  test("a stamp says where every stream stands", test_stamps);
  test("objects of two devices are kept apart", test_two_devices);
  test("blocking launches leave nothing in flight", test_blocking);
  return tap_end();
}
