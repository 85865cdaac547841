/* Matmul of the device of virtual time. The kernels are the host's, but that
 * "blas" takes the narrow floats as a GPU's does: where the CPU's BLAS has no
 * such product, the tiled kernel computes it. */
#include "sim/sim.h"

#include <string.h>

#define FLOATS (1u << TL_MATMUL_FLOAT32 | 1u << TL_MATMUL_FLOAT64)
#define NARROW                                                                 \
  (1u << TL_MATMUL_FLOAT16 | 1u << TL_MATMUL_FLOAT16_FLOAT32 |                 \
   1u << TL_MATMUL_BFLOAT16 | 1u << TL_MATMUL_BFLOAT16_FLOAT32)
/* The host has no kernel that rounds its inputs to tf32. */
#define ALL ((1u << TL_MATMUL_TYPE_COUNT) - 1 - (1u << TL_MATMUL_TF32))

const tl_kernel sim_kernels[SIM_KERNELS] = {
    [HOST_NAIVE] = {"naive", "any, batches, transposes, row strides",
                    "values by the host's kernel, time by naive_rate", ALL},
    [HOST_TILED] = {"tiled", "any, batches, transposes, row strides",
                    "values by the host's kernel, time by tiled_rate", ALL},
    [HOST_BLAS] = {"blas", "each dimension below 2^31; batches one by one",
                   "values by the system's CBLAS, time by the dtype's settings",
                   FLOATS | NARROW},
};

tl_status sim_prepare(tl_device_impl *device, int32_t kernel, tl_error *error) {
  return kernel == HOST_BLAS
             ? host_blas_open(&device->blas, device->options.faults, error)
             : TL_OK;
}

static host_product_run *product_kernel(const sim_work *work) {
  host_product_run *run = host_product_kernel(work->kernel, &work->matmul);
  return run != NULL ? run : host_product_kernel(HOST_TILED, &work->matmul);
}

/* NULL: an operand without elements, which is not read. */
static void *bytes_of(const tl_operand *operand) {
  return operand->memory != NULL ? operand->memory->bytes : NULL;
}

void sim_matmul_compute(tl_device_impl *device, const sim_work *work) {
  const tl_matmul_problem *p = &work->matmul;
  host_product product = {.problem = p,
                          .a = bytes_of(&p->a),
                          .b = bytes_of(&p->b),
                          .c = bytes_of(&p->c),
                          .blas = &device->blas};
  product_kernel(work)(&product);
}

/* The elements of an operand that is stored in so many rows and columns. */
static tl_block operand_block(const tl_operand *o, int64_t rows,
                              int64_t columns, int64_t batch, size_t element) {
  tl_block block = {.memory = o->memory,
                    .offset = (size_t)o->offset * element,
                    .width = (size_t)columns * element,
                    .rows = (size_t)rows,
                    .pitch = (size_t)o->ld * element,
                    .planes = (size_t)batch,
                    .plane_pitch = (size_t)o->batch_stride * element};
  return block;
}

tl_status sim_matmul(tl_stream_impl *stream, int32_t kernel,
                     const tl_matmul_problem *problem, tl_error *error) {
  const tl_matmul_problem *p = problem;
  if (kernel == HOST_BLAS && tl_matmul_check_blas(p, error) != TL_OK)
    return (tl_status)error->code;
  sim_work work;
  memset(&work, 0, sizeof work);
  work.kind = SIM_MATMUL;
  work.kernel = kernel;
  work.name = sim_kernels[kernel].name;
  memcpy(&work.matmul, p, sizeof *p);
  size_t input = tl_matmul_input_size(p->type);
  size_t output = tl_matmul_output_size(p->type);
  bool ta = p->a.transpose, tb = p->b.transpose;
  sim_use uses[3] = {
      {operand_block(&p->c, p->m, p->n, p->batch, output), true}};
  size_t count = 1;
  if (p->k > 0) { /* else neither a nor b is read */
    uses[count++].block = operand_block(&p->a, ta ? p->k : p->m,
                                        ta ? p->m : p->k, p->batch, input);
    uses[count++].block = operand_block(&p->b, tb ? p->n : p->k,
                                        tb ? p->k : p->n, p->batch, input);
  }
  return sim_launch(stream, &work, uses, count, 0, error);
}
