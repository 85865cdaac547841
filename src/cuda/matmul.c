/* The CUDA device's matmul kernels: which there are, and how they are launched.
 * The kernels themselves: kernels/matmul.cu. */
#include "cuda/cuda.h"

#define FLOATS (1u << TL_MATMUL_FLOAT32 | 1u << TL_MATMUL_FLOAT64)
#define ALL ((1u << TL_MATMUL_TYPE_COUNT) - 1)
#define WITHOUT(type) (ALL & ~(1u << (type)))

const tl_kernel cuda_kernels[CUDA_KERNELS] = {
    [CUDA_NAIVE] = {"naive", "any, batches, transposes, row strides",
                    "one thread for each element, row index from x",
                    WITHOUT(TL_MATMUL_TF32)},
    [CUDA_COALESCED] = {"coalesced", "any, batches, transposes, row strides",
                        "one thread for each element, a warp along a row",
                        FLOATS},
    [CUDA_TILED] = {"tiled", "any, batches, transposes, row strides",
                    "tiles of a and b in shared memory",
                    WITHOUT(TL_MATMUL_TF32)},
    [CUDA_REGISTER] = {"register", "any, batches, transposes, row strides",
                       "tiles in shared memory, blocks of c in registers",
                       FLOATS},
    [CUDA_BLAS] = {"blas", "each size below 2^31; int8 in multiples of 4",
                   "cublasGemmEx, or its strided batched form",
                   WITHOUT(TL_MATMUL_INT32)},
};

/* Which entry point of a kernel is a type's: its place in kernel_list.h. */
static const uint8_t places[TL_MATMUL_TYPE_COUNT] = {
    [TL_MATMUL_FLOAT32] = 0,  [TL_MATMUL_FLOAT64] = 1,
    [TL_MATMUL_FLOAT16] = 2,  [TL_MATMUL_FLOAT16_FLOAT32] = 3,
    [TL_MATMUL_BFLOAT16] = 4, [TL_MATMUL_BFLOAT16_FLOAT32] = 5,
    [TL_MATMUL_INT32] = 6,    [TL_MATMUL_INT8_INT32] = 7,
};

/* How a kernel is launched: the block of threads, and the tile of c that a
 * block of them makes, by row and column. kernels/matmul.cu says the same. */
static const struct geometry {
  cuda_function first; /* the entry point for float32 */
  cuda_block block;
  int64_t tile_rows, tile_columns;
  int64_t wide_rows, wide_columns; /* the tile for float64, where it differs */
  bool linear;                     /* tiles are numbered along x */
} geometries[CUDA_BLAS] = {
    [CUDA_NAIVE] = {CUDA_MATMUL_NAIVE_FLOAT32, {16, 16}, 16, 16, 16, 16, false},
    [CUDA_COALESCED] =
        {CUDA_MATMUL_COALESCED_FLOAT32, {32, 8}, 8, 32, 8, 32, true},
    [CUDA_TILED] = {CUDA_MATMUL_TILED_FLOAT32, {32, 8}, 32, 32, 32, 32, true},
    [CUDA_REGISTER] =
        {CUDA_MATMUL_REGISTER_FLOAT32, {256, 1}, 128, 128, 64, 64, true},
};

enum { MOST_X = 0x7fffffff, MOST_YZ = 65535 }; /* blocks of a grid */

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The kernels loop where a grid can't be as large as the product. */
static cuda_grid grid_make(const struct geometry *g,
                           const tl_matmul_problem *p) {
  bool wide = p->type == TL_MATMUL_FLOAT64;
  int64_t rows = wide ? g->wide_rows : g->tile_rows;
  int64_t columns = wide ? g->wide_columns : g->tile_columns;
  int64_t down = (p->m + rows - 1) / rows;
  int64_t across = (p->n + columns - 1) / columns;
  cuda_grid grid = {.z = (unsigned int)smaller(p->batch, MOST_YZ)};
  if (g->linear) {
    int64_t tiles;
    if (__builtin_mul_overflow(down, across, &tiles))
      tiles = MOST_X;
    grid.x = (unsigned int)smaller(tiles, MOST_X);
    grid.y = 1;
  } else {
    grid.x = (unsigned int)smaller(down, MOST_X);
    grid.y = (unsigned int)smaller(across, MOST_YZ);
  }
  return grid;
}

cuda_factor cuda_factor_make(tl_matmul_type type, double value) {
  if (type == TL_MATMUL_FLOAT64)
    return (cuda_factor){.twice = value};
  if (type == TL_MATMUL_INT32 || type == TL_MATMUL_INT8_INT32)
    return (cuda_factor){.integer = (int32_t)value};
  return (cuda_factor){.single = (float)value};
}

/* An operand as the kernels take it: where its first element is, and how far
 * apart the rows and the columns of op(operand) are. */
typedef struct strided {
  CUdeviceptr first;
  long long row, column, batch;
} strided;

CUdeviceptr cuda_operand_first(const tl_operand *o, size_t element_size) {
  if (o->memory == NULL) /* no elements, and nothing is read */
    return 0;
  return o->memory->address + (CUdeviceptr)o->offset * element_size;
}

static strided strided_make(const tl_operand *o, size_t element_size) {
  return (strided){.first = cuda_operand_first(o, element_size),
                   .row = o->transpose ? 1 : o->ld,
                   .column = o->transpose ? o->ld : 1,
                   .batch = o->batch_stride};
}

static tl_status kernel_launch(tl_stream_impl *stream, int32_t kernel,
                               const tl_matmul_problem *p, tl_error *error) {
  const struct geometry *g = &geometries[kernel];
  long long m = p->m, n = p->n, k = p->k, batch = p->batch;
  strided a = strided_make(&p->a, tl_matmul_input_size(p->type));
  strided b = strided_make(&p->b, tl_matmul_input_size(p->type));
  strided c = strided_make(&p->c, tl_matmul_output_size(p->type));
  cuda_factor alpha = cuda_factor_make(p->type, p->alpha);
  cuda_factor beta = cuda_factor_make(p->type, p->beta);
  void *arguments[] = {&m,        &n,        &k,       &batch,   &a.first,
                       &a.row,    &a.column, &a.batch, &b.first, &b.row,
                       &b.column, &b.batch,  &c.first, &c.row,   &c.batch,
                       &alpha,    &beta};
  return cuda_launch(stream, CUDA_LAUNCHES,
                     (cuda_function)(g->first + places[p->type]),
                     grid_make(g, p), g->block, arguments, error);
}

tl_status cuda_matmul(tl_stream_impl *stream, int32_t kernel,
                      const tl_matmul_problem *problem, tl_error *error) {
  if (kernel == CUDA_BLAS && problem->k > 0)
    return cuda_matmul_blas(stream, problem, error);
  if (kernel == CUDA_BLAS) /* c = beta * c needs no library */
    kernel = CUDA_TILED;
  return kernel_launch(stream, kernel, problem, error);
}

/* float32's entry point stands for all: they are of one file. */
tl_status cuda_prepare(tl_device_impl *device, int32_t kernel,
                       tl_error *error) {
  if (kernel == CUDA_BLAS)
    return cuda_blas_open(device, error);
  CUfunction function;
  cuda_function first = geometries[kernel].first;
  if (cuda_function_ready(device, first))
    return TL_OK;
  CUcontext before = cuda_enter(device);
  tl_status status = cuda_function_get(device, first, &function, error);
  cuda_leave(device, before);
  return status;
}
