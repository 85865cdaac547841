/* The host's matmul kernels: a ladder from the definition to the BLAS. */
#include "host/host.h"

#include <string.h>

enum { TILE_ROWS = 32, TILE_COLUMNS = 128, TILE_DEPTH = 64 };

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The narrow floats by way of float, which holds every one of them. */
static float float16_load(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t magnitude = (uint32_t)(bits & 0x7fff) << 13;
  float value;
  if ((bits & 0x7c00) == 0x7c00) { /* infinity, NaN */
    uint32_t special = sign | 0x7f800000 | magnitude;
    memcpy(&value, &special, sizeof value);
    return value;
  }
  /* The exponent is 112 too small; a multiplication corrects subnormals too. */
  memcpy(&value, &magnitude, sizeof value);
  value *= 0x1p112f;
  return sign != 0 ? -value : value;
}

static float bfloat16_load(uint16_t bits) {
  uint32_t single = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &single, sizeof value);
  return value;
}

static uint16_t float16_keep(float sum) {
  uint16_t bits;
  tl_dtype_pack(TL_FLOAT16, (double)sum, &bits);
  return bits;
}

static uint16_t bfloat16_keep(float sum) {
  uint16_t bits;
  tl_dtype_pack(TL_BFLOAT16, (double)sum, &bits);
  return bits;
}

#define NAME(x) x##_float32
#define INPUT float
#define LOAD(x) (x)
#define SUM float
#define OUTPUT float
#define FETCH(x) (x)
#define KEEP(x) (x)
#include "host/matmul_type.h"

#define NAME(x) x##_float64
#define INPUT double
#define LOAD(x) (x)
#define SUM double
#define OUTPUT double
#define FETCH(x) (x)
#define KEEP(x) (x)
#include "host/matmul_type.h"

#define NAME(x) x##_float16
#define INPUT uint16_t
#define LOAD(x) float16_load(x)
#define SUM float
#define OUTPUT uint16_t
#define FETCH(x) float16_load(x)
#define KEEP(x) float16_keep(x)
#include "host/matmul_type.h"

#define NAME(x) x##_float16_float32
#define INPUT uint16_t
#define LOAD(x) float16_load(x)
#define SUM float
#define OUTPUT float
#define FETCH(x) (x)
#define KEEP(x) (x)
#include "host/matmul_type.h"

#define NAME(x) x##_bfloat16
#define INPUT uint16_t
#define LOAD(x) bfloat16_load(x)
#define SUM float
#define OUTPUT uint16_t
#define FETCH(x) bfloat16_load(x)
#define KEEP(x) bfloat16_keep(x)
#include "host/matmul_type.h"

#define NAME(x) x##_bfloat16_float32
#define INPUT uint16_t
#define LOAD(x) bfloat16_load(x)
#define SUM float
#define OUTPUT float
#define FETCH(x) (x)
#define KEEP(x) (x)
#include "host/matmul_type.h"

#define NAME(x) x##_int32
#define INPUT int32_t
#define LOAD(x) ((uint32_t)(x))
#define SUM uint32_t
#define OUTPUT int32_t
#define FETCH(x) ((uint32_t)(x))
#define KEEP(x) ((int32_t)(x))
#include "host/matmul_type.h"

#define NAME(x) x##_int8_int32
#define INPUT int8_t
#define LOAD(x) ((uint32_t)(x))
#define SUM uint32_t
#define OUTPUT int32_t
#define FETCH(x) ((uint32_t)(x))
#define KEEP(x) ((int32_t)(x))
#include "host/matmul_type.h"

#define FLOATS (1u << TL_MATMUL_FLOAT32 | 1u << TL_MATMUL_FLOAT64)
/* tf32 is a format of tensor cores: the host does not have it. */
#define ALL ((1u << TL_MATMUL_TYPE_COUNT) - 1 - (1u << TL_MATMUL_TF32))

const tl_kernel host_kernels[HOST_KERNELS] = {
    [HOST_NAIVE] = {"naive", "any, batches, transposes, row strides",
                    "one element after the other, row index first", ALL},
    [HOST_TILED] = {"tiled", "any, batches, transposes, row strides",
                    "tiles of 32 x 128 x 64 that stay in cache", ALL},
    [HOST_BLAS] = {"blas", "each dimension below 2^31; batches one by one",
                   "cblas_sgemm and cblas_dgemm of the system's CBLAS", FLOATS},
};

tl_status host_prepare(tl_device_impl *device, int32_t kernel,
                       tl_error *error) {
  return kernel == HOST_BLAS
             ? host_blas_open(&device->blas, device->options.faults, error)
             : TL_OK;
}

static host_product_run *const runs[TL_MATMUL_TYPE_COUNT][HOST_KERNELS] = {
    [TL_MATMUL_FLOAT32] = {naive_run_float32, tiled_run_float32,
                           host_product_blas},
    [TL_MATMUL_FLOAT64] = {naive_run_float64, tiled_run_float64,
                           host_product_blas},
    [TL_MATMUL_FLOAT16] = {naive_run_float16, tiled_run_float16, NULL},
    [TL_MATMUL_FLOAT16_FLOAT32] = {naive_run_float16_float32,
                                   tiled_run_float16_float32, NULL},
    [TL_MATMUL_BFLOAT16] = {naive_run_bfloat16, tiled_run_bfloat16, NULL},
    [TL_MATMUL_BFLOAT16_FLOAT32] = {naive_run_bfloat16_float32,
                                    tiled_run_bfloat16_float32, NULL},
    [TL_MATMUL_INT32] = {naive_run_int32, tiled_run_int32, NULL},
    [TL_MATMUL_INT8_INT32] = {naive_run_int8_int32, tiled_run_int8_int32, NULL},
};

host_product_run *host_product_kernel(int32_t kernel,
                                      const tl_matmul_problem *problem) {
  if (problem->k == 0)
    kernel = HOST_TILED; /* c = beta * c needs no library */
  return runs[problem->type][kernel];
}

/* NULL: an operand without elements, which is not read. */
static void *bytes_of(const tl_operand *operand) {
  return operand->memory != NULL ? operand->memory->bytes : NULL;
}

static void matmul_run(const host_operation *operation) {
  const tl_matmul_problem *p = &operation->with.matmul.problem;
  host_product product = {.problem = p,
                          .a = bytes_of(&p->a),
                          .b = bytes_of(&p->b),
                          .c = bytes_of(&p->c),
                          .blas = operation->with.matmul.blas};
  operation->with.matmul.run(&product);
}

tl_status host_matmul(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error) {
  tl_status status = TL_OK;
  if (kernel == HOST_BLAS)
    status = tl_matmul_check_blas(problem, error);
  if (status == TL_OK)
    status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  host_operation operation = {
      .run = matmul_run,
      .launch = true,
      .slot = true,
      .keep = {problem->a.memory, problem->b.memory, problem->c.memory},
      .with.matmul = {.problem = *problem,
                      .run = host_product_kernel(kernel, problem),
                      .blas = &stream->device->blas}};
  host_stream_push(stream, &operation);
  return TL_OK;
}
