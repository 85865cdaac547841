/* matmul: every check, the BLAS's special cases, and the choice of a kernel. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/dtype.h"
#include "core/launch.h"

/* ---- shapes -------------------------------------------------------------- */

/* A matrix operand as op() presents it. */
typedef struct matrix {
  int64_t rows, columns, batch;
  int64_t ld, batch_stride; /* of what is stored */
} matrix;

static tl_status matrix_read(const tl_layout *l, bool transpose,
                             const char *name, matrix *out, tl_error *error) {
  if (l->dimensions < 2)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: %s has 1 dimension, wanted 2, or 3 for a batch",
                   name);
  int32_t row = l->dimensions - 2;
  *out = (matrix){.rows = l->shape[row],
                  .columns = l->shape[row + 1],
                  .batch = row > 0 ? l->shape[0] : 1,
                  .ld = l->stride[row],
                  .batch_stride = row > 0 ? l->stride[0] : 0};
  if (out->ld < 1)
    out->ld = 1;
  if (transpose) {
    int64_t rows = out->rows;
    out->rows = out->columns;
    out->columns = rows;
  }
  return TL_OK;
}

static void shape_write(const tl_layout *l, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < l->dimensions && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%" PRId64,
                             i > 0 ? "x" : "", l->shape[i]);
}

/* Says what does not fit. */
static tl_status inputs_refuse(const tl_buffer *a, const tl_buffer *b,
                               bool transpose_a, bool transpose_b,
                               const matrix *x, const matrix *y,
                               tl_error *error) {
  char of_a[72], of_b[72];
  shape_write(&a->layout, of_a, sizeof of_a);
  shape_write(&b->layout, of_b, sizeof of_b);
  if (a->layout.dimensions != b->layout.dimensions)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: a is %s and b is %s: %d against %d dimensions",
                   of_a, of_b, (int)a->layout.dimensions,
                   (int)b->layout.dimensions);
  if (x->batch != y->batch)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: a is %s and b is %s: batches of %" PRId64
                   " against %" PRId64,
                   of_a, of_b, x->batch, y->batch);
  return tl_fail(error, TL_INVALID_ARGUMENT,
                 "matmul: a is %s%s and b is %s%s: %" PRId64
                 " columns against %" PRId64 " rows",
                 of_a, transpose_a ? " transposed" : "", of_b,
                 transpose_b ? " transposed" : "", x->columns, y->rows);
}

static tl_status inputs_check(const tl_buffer *a, const tl_buffer *b,
                              bool transpose_a, bool transpose_b, matrix *x,
                              matrix *y, tl_error *error) {
  tl_status status = matrix_read(&a->layout, transpose_a, "a", x, error);
  if (status == TL_OK)
    status = matrix_read(&b->layout, transpose_b, "b", y, error);
  if (status != TL_OK)
    return status;
  if (a->layout.dimensions == b->layout.dimensions && x->batch == y->batch &&
      x->columns == y->rows)
    return TL_OK;
  return inputs_refuse(a, b, transpose_a, transpose_b, x, y, error);
}

static void result_layout(const tl_buffer *a, const matrix *x, const matrix *y,
                          int32_t dtype, tl_layout *result) {
  *result = (tl_layout){.dtype = dtype, .dimensions = a->layout.dimensions};
  int32_t row = result->dimensions - 2;
  result->shape[0] = x->batch;
  result->shape[row] = x->rows;
  result->shape[row + 1] = y->columns;
  if (row == 0)
    result->shape[2] = 1;
}

static tl_status output_check(const tl_buffer *c, const tl_layout *wanted,
                              tl_error *error) {
  if (c->layout.dimensions == wanted->dimensions &&
      memcmp(c->layout.shape, wanted->shape, sizeof wanted->shape) == 0)
    return TL_OK;
  char got[72], want[72];
  shape_write(&c->layout, got, sizeof got);
  shape_write(wanted, want, sizeof want);
  return tl_fail(error, TL_INVALID_ARGUMENT,
                 "matmul: c is %s, the product is %s", got, want);
}

/* ---- options ------------------------------------------------------------- */

static tl_status options_read(const tl_matmul_options *given,
                              tl_matmul_options *options, tl_error *error) {
  *options = (tl_matmul_options){0};
  if (given != NULL && given->size < sizeof given->size)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: the size of the options is %zu: set it to "
                   "sizeof(tl_matmul_options)",
                   given->size);
  if (given != NULL)
    memcpy(options, given,
           given->size < sizeof *options ? given->size : sizeof *options);
  return TL_OK;
}

static bool is_auto(const char *kernel) {
  return kernel == NULL || (kernel[0] == 'a' && strcmp(kernel, "auto") == 0);
}

static bool kernel_takes(const tl_device *device, int32_t kernel,
                         tl_matmul_type type) {
  return (device->backend->kernels[kernel].types >> type & 1u) != 0;
}

/* The table of kernels is a ladder: "auto" is the last one that is to be had
 * for the type, asked for once. */
static tl_status kernel_choose(tl_device *device, tl_matmul_type type,
                               int32_t *kernel, tl_error *error) {
  *kernel = atomic_load(&device->auto_kernel[type]);
  if (*kernel >= 0)
    return TL_OK;
  for (int32_t i = device->backend->kernel_count - 1; i >= 0; i--) {
    if (!kernel_takes(device, i, type))
      continue;
    tl_status status = tl_call_prepare(device, i, error);
    if (status == TL_UNSUPPORTED && i > 0)
      continue;
    if (status != TL_OK)
      return status;
    atomic_store(&device->auto_kernel[type], i);
    *kernel = i;
    return TL_OK;
  }
  return tl_fail(error, TL_UNSUPPORTED,
                 "matmul: %s has no kernel for %s with sums in %s", device->id,
                 tl_dtype_name((int32_t)tl_matmul_type_input(type)),
                 tl_matmul_type_compute(type));
}

static tl_status kernel_find(tl_device *device, const char *name,
                             int32_t *kernel, tl_error *error) {
  const tl_backend *backend = device->backend;
  for (int32_t i = 0; i < backend->kernel_count; i++)
    if (backend->kernels[i].name[0] == name[0] &&
        strcmp(backend->kernels[i].name, name) == 0) {
      *kernel = i;
      return TL_OK;
    }
  char names[128] = "auto";
  for (int32_t i = 0; i < backend->kernel_count; i++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, ", %s",
             backend->kernels[i].name);
  }
  return tl_fail(error, TL_INVALID_ARGUMENT,
                 "matmul: %s has no kernel '%.32s' (it has: %s)", device->id,
                 name, names);
}

static tl_status kernel_select(tl_device *device, const char *name,
                               tl_matmul_type type, int32_t *kernel,
                               tl_error *error) {
  if (is_auto(name))
    return kernel_choose(device, type, kernel, error);
  tl_status status = kernel_find(device, name, kernel, error);
  if (status != TL_OK)
    return status;
  if (!kernel_takes(device, *kernel, type))
    return tl_fail(error, TL_UNSUPPORTED,
                   "matmul: kernel '%s' of %s does not take %s with sums in %s",
                   name, device->id,
                   tl_dtype_name((int32_t)tl_matmul_type_input(type)),
                   tl_matmul_type_compute(type));
  return tl_call_prepare(device, *kernel, error);
}

tl_status tl_matmul_prepare(tl_device *device, const char *kernel,
                            tl_error *error) {
  int32_t index;
  tl_status status = tl_device_check(device, error);
  if (status != TL_OK || is_auto(kernel))
    return status == TL_OK
               ? kernel_choose(device, TL_MATMUL_FLOAT32, &index, error)
               : status;
  status = kernel_find(device, kernel, &index, error);
  return status == TL_OK ? tl_call_prepare(device, index, error) : status;
}

static bool kernel_takes_dtype(const tl_device *device, int32_t kernel,
                               int32_t dtype) {
  bool takes = false;
  for (int32_t type = 0; type < TL_MATMUL_TYPE_COUNT; type++)
    takes =
        takes || (kernel_takes(device, kernel, (tl_matmul_type)type) &&
                  (int32_t)tl_matmul_type_input((tl_matmul_type)type) == dtype);
  return takes;
}

bool tl_device_matmul_kernel(tl_device *device, int32_t index,
                             tl_kernel_info *info) {
  *info = (tl_kernel_info){0};
  if (index < 0 || index >= device->backend->kernel_count)
    return false;
  const tl_kernel *kernel = &device->backend->kernels[index];
  snprintf(info->name, sizeof info->name, "%s", kernel->name);
  snprintf(info->shapes, sizeof info->shapes, "%s", kernel->shapes);
  for (int32_t dtype = 0; dtype < TL_DTYPE_COUNT; dtype++) {
    size_t used = strlen(info->dtypes);
    if (kernel_takes_dtype(device, index, dtype))
      snprintf(info->dtypes + used, sizeof info->dtypes - used, "%s%s",
               used > 0 ? " " : "", tl_dtype_name(dtype));
  }
  tl_error reason;
  info->available = tl_device_check(device, &reason) == TL_OK &&
                    tl_call_prepare(device, index, &reason) == TL_OK;
  snprintf(info->note, sizeof info->note, "%.*s", (int)sizeof info->note - 1,
           info->available ? kernel->note : reason.text);
  return true;
}

tl_status tl_matmul_check_blas(const tl_matmul_problem *p, tl_error *error) {
  const struct {
    const char *name;
    int64_t value;
  } sizes[] = {{"m", p->m},
               {"n", p->n},
               {"k", p->k},
               {"a's stride", p->a.ld},
               {"b's stride", p->b.ld},
               {"c's stride", p->c.ld},
               {"the batch", p->batch}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i].value > INT_MAX)
      return tl_fail(error, TL_UNSUPPORTED,
                     "matmul: %s is %lld, kernel 'blas' takes at most %d",
                     sizes[i].name, (long long)sizes[i].value, INT_MAX);
  return TL_OK;
}

/* ---- the operation ------------------------------------------------------- */

/* c may be NULL: not made yet. */
static tl_status devices_check(const tl_buffer *a, const tl_buffer *b,
                               const tl_buffer *c, tl_error *error) {
  tl_device *on_a = tl_buffer_device(a), *on_b = tl_buffer_device(b);
  tl_device *on_c = c != NULL ? tl_buffer_device(c) : on_a;
  if (on_a == on_c && on_b == on_c)
    return tl_device_check(on_c, error);
  return tl_fail(error, TL_INVALID_ARGUMENT,
                 "matmul: a is on %s, b is on %s%s%s", on_a->id, on_b->id,
                 c != NULL ? ", c is on " : "", c != NULL ? on_c->id : "");
}

static tl_operand operand_of(const tl_buffer *buffer, const matrix *m,
                             bool transpose) {
  return (tl_operand){.memory = buffer->memory->impl,
                      .offset = buffer->layout.offset,
                      .ld = m->ld,
                      .batch_stride = m->batch_stride,
                      .transpose = transpose};
}

/* Integer sums have integer factors. */
static tl_status factor_check(const char *name, double value, tl_error *error) {
  int32_t ignored;
  if (tl_dtype_pack(TL_INT32, value, &ignored))
    return TL_OK;
  return tl_fail(error, TL_INVALID_ARGUMENT,
                 "matmul: %s must be an int32 where the sums are, got %g", name,
                 value);
}

/* Everything that can be wrong with the operands; fills the problem in. */
static tl_status problem_read(tl_buffer *a, tl_buffer *b, tl_buffer *c,
                              const tl_matmul_options *options,
                              tl_matmul_problem *problem, tl_error *error) {
  bool transpose_a = options->transpose_a != 0;
  bool transpose_b = options->transpose_b != 0;
  matrix x, y, z = {0};
  tl_matmul_type type = TL_MATMUL_FLOAT32;
  tl_layout wanted;
  tl_status status = devices_check(a, b, c, error);
  if (status == TL_OK)
    status =
        tl_dtype_check_matmul(a->layout.dtype, b->layout.dtype, c->layout.dtype,
                              options->compute, &type, error);
  if (status == TL_OK)
    status = inputs_check(a, b, transpose_a, transpose_b, &x, &y, error);
  if (status != TL_OK)
    return status;
  result_layout(a, &x, &y, c->layout.dtype, &wanted);
  status = output_check(c, &wanted, error);
  if (status == TL_OK)
    status = matrix_read(&c->layout, false, "c", &z, error);
  if (status != TL_OK)
    return status;
  if (tl_buffer_overlaps(c, a) || tl_buffer_overlaps(c, b))
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: output c overlaps input %s",
                   tl_buffer_overlaps(c, a) ? "a" : "b");
  *problem =
      (tl_matmul_problem){.a = operand_of(a, &x, transpose_a),
                          .b = operand_of(b, &y, transpose_b),
                          .c = operand_of(c, &z, false),
                          .m = z.rows,
                          .n = z.columns,
                          .k = x.columns,
                          .batch = z.batch,
                          .alpha = options->alpha != NULL ? *options->alpha : 1,
                          .beta = options->beta != NULL ? *options->beta : 0,
                          .type = type};
  if (tl_matmul_type_is_integer(type)) {
    status = factor_check("alpha", problem->alpha, error);
    if (status == TL_OK)
      status = factor_check("beta", problem->beta, error);
    if (status != TL_OK)
      return status;
  }
  if (problem->alpha == 0)
    problem->k = 0; /* the BLAS's rule: a and b are not read */
  return TL_OK;
}

tl_status tl_matmul_result(tl_buffer *a, tl_buffer *b,
                           const tl_matmul_options *given, tl_layout *result,
                           tl_error *error) {
  *result = (tl_layout){0};
  tl_matmul_options options;
  tl_device *device = tl_buffer_device(a);
  tl_stream *stream;
  matrix x, y;
  tl_matmul_type type = TL_MATMUL_FLOAT32;
  int32_t kernel;
  int32_t dtype = tl_dtype_matmul_result(a->layout.dtype, b->layout.dtype);
  tl_status status = options_read(given, &options, error);
  if (status == TL_OK)
    status = devices_check(a, b, NULL, error);
  if (status == TL_OK && dtype < 0)
    status = tl_fail(
        error, TL_INVALID_ARGUMENT, "matmul: dtype mismatch: a is %s, b is %s",
        tl_dtype_name(a->layout.dtype), tl_dtype_name(b->layout.dtype));
  if (status == TL_OK)
    status = tl_dtype_check_matmul(a->layout.dtype, b->layout.dtype, dtype,
                                   options.compute, &type, error);
  if (status == TL_OK)
    status = inputs_check(a, b, options.transpose_a != 0,
                          options.transpose_b != 0, &x, &y, error);
  if (status == TL_OK)
    status = tl_stream_choose(device, options.stream, &stream, error);
  if (status == TL_OK)
    status = kernel_select(device, options.kernel, type, &kernel, error);
  if (status != TL_OK)
    return status;
  result_layout(a, &x, &y, dtype, result);
  if (__builtin_mul_overflow(result->shape[0], result->shape[1],
                             &result->size) ||
      __builtin_mul_overflow(result->size, result->shape[2], &result->size))
    return tl_fail(error, TL_INVALID_ARGUMENT, "matmul: size overflows");
  return TL_OK;
}

/* A kernel may turn out not to take these sizes: "auto" then steps down. */
static tl_status matmul_enqueue(tl_launch *launch,
                                const tl_matmul_problem *problem,
                                int32_t kernel, bool step_down,
                                tl_error *error) {
  const tl_kernel *kernels = launch->stream->object.device->backend->kernels;
  tl_status status;
  do {
    launch->kernel = kernels[kernel].name;
    status = tl_call_matmul(launch->stream, kernel, problem, error);
    do
      kernel--;
    while (kernel >= 0 && (kernels[kernel].types >> problem->type & 1u) == 0);
  } while (status == TL_UNSUPPORTED && step_down && kernel >= 0);
  return status;
}

tl_status tl_matmul(tl_buffer *a, tl_buffer *b, tl_buffer *c,
                    const tl_matmul_options *given, tl_error *error) {
  tl_matmul_options options;
  tl_device *device = tl_buffer_device(c);
  tl_matmul_problem problem;
  tl_launch launch = {.operation = "matmul",
                      .reads = {a->memory, b->memory},
                      .writes = c->memory};
  int32_t kernel = 0;
  tl_status status = options_read(given, &options, error);
  if (status == TL_OK)
    status = problem_read(a, b, c, &options, &problem, error);
  if (status == TL_OK)
    status = tl_stream_choose(device, options.stream, &launch.stream, error);
  if (status == TL_OK)
    status =
        kernel_select(device, options.kernel, problem.type, &kernel, error);
  if (status != TL_OK || c->layout.size == 0)
    return status;
  status = tl_launch_begin(&launch, error);
  if (status != TL_OK)
    return status;
  status =
      matmul_enqueue(&launch, &problem, kernel, is_auto(options.kernel), error);
  return tl_launch_end(&launch, status, error);
}
