/* What the way through the library costs a product: tl_matmul with the kernel
 * "blas" and the wait for it, against cblas_sgemm or cblas_dgemm called
 * directly. Both run the same function on the same bytes, in turns, and both
 * products are checked to be the same.
 *
 * A product alone includes waking the worker and being woken by it; products
 * queued together show what is left of that in a loop. */
#include "tidelock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "host/host.h"
#include "measure.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

typedef struct product {
  const char *direct, *library, *ratio; /* the names of the three */
  tl_dtype dtype;
  int n;
  int calls;   /* products enqueued or called before the clock is read */
  int samples; /* per round: small products are quick */
} product;

static const product products[] = {
    {"float32 n=256: direct", "float32 n=256: tidelock",
     "float32 n=256: direct / tidelock", TL_FLOAT32, 256, 1, 10},
    {"float32 n=256, 16 queued: direct", "float32 n=256, 16 queued: tidelock",
     "float32 n=256, 16 queued: direct / tidelock", TL_FLOAT32, 256, 16, 2},
    {"float32 n=1024: direct", "float32 n=1024: tidelock",
     "float32 n=1024: direct / tidelock", TL_FLOAT32, 1024, 1, 2},
    {"float32 n=2048: direct", "float32 n=2048: tidelock",
     "float32 n=2048: direct / tidelock", TL_FLOAT32, 2048, 1, 1},
    {"float64 n=1024: direct", "float64 n=1024: tidelock",
     "float64 n=1024: direct / tidelock", TL_FLOAT64, 1024, 1, 1},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

typedef struct bench {
  bench_report report;
  tl_device *device;
  tl_stream *stream;
  tl_buffer *a, *b, *c;
} bench;

static void check(bench *run, tl_status status, const tl_error *error) {
  if (status != TL_OK)
    bench_fail(&run->report, "%s", error->text);
}

/* ---- operands ------------------------------------------------------------ */

/* Values in [-0.5, 0.5), the same in every run. */
static void values_upload(bench *run, tl_buffer *buffer, int64_t size,
                          tl_dtype dtype, uint32_t seed) {
  size_t element = (size_t)tl_dtype_size((int32_t)dtype);
  size_t nbytes = (size_t)size * element;
  unsigned char *bytes = malloc(nbytes);
  tl_error error;
  if (bytes == NULL)
    bench_fail(&run->report, "out of memory: asked %zu bytes", nbytes);
  for (int64_t i = 0; i < size; i++) {
    seed = seed * 1664525u + 1013904223u;
    tl_dtype_pack((int32_t)dtype, (seed >> 8) / 16777216.0 - 0.5,
                  bytes + (size_t)i * element);
  }
  check(run, tl_buffer_upload(buffer, bytes, nbytes, &error), &error);
  free(bytes);
}

static tl_buffer *matrix_new(bench *run, const product *p, uint32_t seed) {
  tl_buffer *buffer;
  tl_error error;
  int64_t shape[] = {p->n, p->n};
  check(run,
        tl_buffer_create(run->device, (int32_t)p->dtype, 2, shape, &buffer,
                         &error),
        &error);
  values_upload(run, buffer, (int64_t)p->n * p->n, p->dtype, seed);
  return buffer;
}

static void *bytes_of(const tl_buffer *buffer) {
  return buffer->memory->impl->bytes;
}

/* ---- the two ways -------------------------------------------------------- */

/* The functions that the device itself has found. */
static void direct_once(bench *run, const product *p) {
  const host_blas *blas = &run->c->memory->impl->device->blas;
  const void *a = bytes_of(run->a), *b = bytes_of(run->b);
  int n = p->n;
  if (p->dtype == TL_FLOAT32)
    blas->sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, a, n, b, n,
                0, bytes_of(run->c), n);
  else
    blas->dgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, a, n, b, n,
                0, bytes_of(run->c), n);
}

static double direct_measure(bench *run, const product *p) {
  int64_t start = bench_now();
  for (int i = 0; i < p->calls; i++)
    direct_once(run, p);
  return (double)(bench_now() - start) * 1e-3 / p->calls;
}

static double library_measure(bench *run, const product *p) {
  tl_error error;
  bool reached;
  tl_matmul_options options = {
      .size = sizeof options, .stream = run->stream, .kernel = "blas"};
  int64_t start = bench_now();
  for (int i = 0; i < p->calls; i++)
    check(run, tl_matmul(run->a, run->b, run->c, &options, &error), &error);
  check(run, tl_stream_synchronize(run->stream, -1, &reached, &error), &error);
  return (double)(bench_now() - start) * 1e-3 / p->calls;
}

/* Panels may be summed in another order, so equal up to rounding. */
static void products_compare(bench *run, const product *p) {
  size_t nbytes =
      (size_t)p->n * (size_t)p->n * (size_t)tl_dtype_size((int32_t)p->dtype);
  size_t element = (size_t)tl_dtype_size((int32_t)p->dtype);
  unsigned char *direct = malloc(nbytes);
  if (direct == NULL)
    bench_fail(&run->report, "out of memory: asked %zu bytes", nbytes);
  direct_measure(run, p);
  memcpy(direct, bytes_of(run->c), nbytes);
  memset(bytes_of(run->c), 0xff, nbytes); /* not a number anywhere */
  library_measure(run, p);
  double tolerance = p->n * (p->dtype == TL_FLOAT32 ? 1.2e-7 : 2.3e-16);
  for (size_t i = 0; i < nbytes; i += element) {
    double x = tl_dtype_unpack((int32_t)p->dtype, direct + i);
    double y = tl_dtype_unpack((int32_t)p->dtype,
                               (unsigned char *)bytes_of(run->c) + i);
    if (!(y - x <= tolerance && x - y <= tolerance))
      bench_fail(&run->report, "%s: %g, directly %g", p->library, y, x);
  }
  free(direct);
}

static void product_measure(bench *run, const product *p) {
  run->a = matrix_new(run, p, 1);
  run->b = matrix_new(run, p, 2);
  run->c = matrix_new(run, p, 3);
  products_compare(run, p);
  bench_series *direct = bench_add(&run->report, p->direct);
  bench_series *library = bench_add(&run->report, p->library);
  for (int i = 0; i < run->report.rounds * p->samples; i++)
    for (int turn = 0; turn < 2; turn++)
      if ((i + turn) % 2 == 0)
        bench_sample(direct, direct_measure(run, p));
      else
        bench_sample(library, library_measure(run, p));
  bench_want(&run->report, p->ratio, bench_ratio(direct, library), false, 0.97);
  tl_buffer_release(run->a);
  tl_buffer_release(run->b);
  tl_buffer_release(run->c);
}

int main(int count, char **arguments) {
  static bench run = {
      .report = {.program = "blas", .unit = "us", .rounds = 21}};
  tl_error error;
  bench_arguments(&run.report, count, arguments);
  check(&run, tl_device_open("host", NULL, &run.device, &error), &error);
  check(&run, tl_matmul_prepare(run.device, "blas", &error), &error);
  check(&run, tl_stream_create(run.device, &run.stream, &error), &error);
  for (size_t i = 0; i < PRODUCTS; i++)
    product_measure(&run, &products[i]);
  tl_stream_release(run.stream);
  tl_device_release(run.device);
  bench_finish(&run.report);
  return EXIT_SUCCESS;
}
