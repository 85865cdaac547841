/* The host's matmul kernels: a ladder from the definition to the BLAS. */
#include "host/host.h"

#include <limits.h>

enum { TILE_ROWS = 32, TILE_COLUMNS = 128, TILE_DEPTH = 64 };

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

#define REAL float
#define NAME(name) name##_float32
#define VIEW NAME(view)
#define VIEW_OF NAME(view_of)
#define OUTPUT_OF NAME(output_of)
#define STORE NAME(store)
#define SCALE NAME(scale)
#define PACK NAME(pack)
#define TILE NAME(tile)
#define NAIVE_ONE NAME(naive_one)
#define TILED_ONE NAME(tiled_one)
#define NAIVE_RUN NAME(naive_run)
#define TILED_RUN NAME(tiled_run)
#include "host/matmul_real.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(name) name##_float64
#include "host/matmul_real.h"

enum { FLOATS = 1u << TL_FLOAT32 | 1u << TL_FLOAT64 };

const tl_kernel host_kernels[HOST_KERNELS] = {
    [HOST_NAIVE] = {"naive", "any, batches, transposes, row strides",
                    "one element after the other, row index first", FLOATS},
    [HOST_TILED] = {"tiled", "any, batches, transposes, row strides",
                    "tiles of 32 x 128 x 64 that stay in cache", FLOATS},
    [HOST_BLAS] = {"blas", "each dimension below 2^31; batches one by one",
                   "cblas_sgemm and cblas_dgemm of the system's CBLAS", FLOATS},
};

tl_status host_prepare(tl_device_impl *device, int32_t kernel,
                       tl_error *error) {
  return kernel == HOST_BLAS ? host_blas_open(device, error) : TL_OK;
}

/* A CBLAS counts in int. */
static tl_status blas_check(const tl_matmul_problem *p, tl_error *error) {
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"m", p->m},
               {"n", p->n},
               {"k", p->k},
               {"a's stride", p->a.ld},
               {"b's stride", p->b.ld},
               {"c's stride", p->c.ld}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i].value > INT_MAX)
      return tl_fail(error, TL_UNSUPPORTED,
                     "matmul: %s is %lld, kernel 'blas' takes at most %d",
                     sizes[i].name, (long long)sizes[i].value, INT_MAX);
  return TL_OK;
}

static void (*const runs[HOST_KERNELS][TL_DTYPE_COUNT])(
    const host_operation *) = {
    [HOST_NAIVE] = {naive_run_float32, naive_run_float64},
    [HOST_TILED] = {tiled_run_float32, tiled_run_float64},
    [HOST_BLAS] = {host_matmul_blas, host_matmul_blas},
};

tl_status host_matmul(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error) {
  tl_status status = TL_OK;
  if (kernel == HOST_BLAS)
    status = blas_check(problem, error);
  if (status == TL_OK)
    status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  if (problem->k == 0)
    kernel = HOST_TILED; /* c = beta * c needs no library */
  host_operation operation = {
      .run = runs[kernel][problem->dtype],
      .launch = true,
      .slot = true,
      .keep = {problem->a.memory, problem->b.memory, problem->c.memory},
      .with.matmul = *problem,
      .blas = &stream->device->blas};
  host_stream_push(stream, &operation);
  return TL_OK;
}
