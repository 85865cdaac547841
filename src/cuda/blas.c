/* Products by cuBLAS. */
#include "cuda/blas.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library.h"
#include "cuda/cuda.h"

/* Values of cublas_api.h and library_types.h. */
/* Not initialized: what a cuBLAS newer than the driver says when created. */
enum { STATUS_NOT_INITIALIZED = 1 };
enum { STATUS_ALLOC_FAILED = 3, STATUS_NOT_SUPPORTED = 15 };
enum { DISALLOW_REDUCED_PRECISION_REDUCTION = 16 }; /* a math mode */
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32I = 72 };
enum { COMPUTE_32F_FAST_TF32 = 77 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };
enum { DEFAULT_ALGORITHM = -1 };

/* What the cuBLAS manual recommends, by capability. */
static size_t workspace_size(const tl_device_impl *device) {
  return (size_t)(device->capability >= 90 ? 32 : 4) << 20;
}

/* ---- opening ------------------------------------------------------------- */

static tl_status functions_read(cuda_blas_functions *f, tl_error *error) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12",
                                      "libcublas.so.11", "libcublas.so", NULL};
  const tl_symbol symbols[] = {
      {"cublasCreate_v2", &f->create},
      {"cublasDestroy_v2", &f->destroy},
      {"cublasSetStream_v2", &f->set_stream},
      {"cublasSetWorkspace_v2", &f->set_workspace},
      {"cublasSetMathMode", &f->set_math_mode},
      {"cublasGetStatusName", &f->status_name},
      {"cublasGemmEx", &f->gemm},
      {"cublasGemmStridedBatchedEx", &f->gemm_batched}};
  void *library;
  tl_status status =
      tl_library_open("cuda: no cuBLAS library", names, &library, error);
  if (status != TL_OK)
    return status;
  return tl_library_read(library, symbols, sizeof symbols / sizeof *symbols,
                         "cuda: the cuBLAS library",
                         "CUDA 11.4's or later is needed", error);
}

/* A failure may be the device's own: then that is the cause. */
static tl_status blas_status(tl_device_impl *device, const char *call,
                             int result, tl_error *error) {
  if (result == 0)
    return TL_OK;
  tl_status status =
      CUDA_CALL(&device->driver, error, cuStreamQuery, device->memory_stream);
  if (status == TL_DEVICE_LOST)
    return status;
  return tl_fail(
      error,
      result == STATUS_ALLOC_FAILED ? TL_OUT_OF_MEMORY
      : result == STATUS_NOT_SUPPORTED || result == STATUS_NOT_INITIALIZED
          ? TL_UNSUPPORTED
          : TL_DRIVER,
      "cuda: %s: %s", call, device->code->blas.functions.status_name(result));
}

static tl_status handle_create(tl_device_impl *device, cuda_blas_handle **out,
                               tl_error *error) {
  const cuda_blas_functions *f = &device->code->blas.functions;
  *out = NULL;
  cuda_blas_handle *made = tl_allocate(
      device->options.faults, "allocate: cuda blas", sizeof *made, error);
  if (made == NULL)
    return TL_OUT_OF_MEMORY;
  tl_status status =
      blas_status(device, "cublasCreate", f->create(&made->handle), error);
  if (status == TL_OK)
    status = blas_status(
        device, "cublasSetMathMode",
        f->set_math_mode(made->handle, DISALLOW_REDUCED_PRECISION_REDUCTION),
        error);
  if (status != TL_OK) {
    if (made->handle != NULL)
      f->destroy(made->handle);
    free(made);
    return status;
  }
  *out = made;
  return TL_OK;
}

static void idle_put(cuda_blas *blas, cuda_blas_handle *handle) {
  pthread_mutex_lock(&blas->lock);
  handle->next = blas->idle;
  blas->idle = handle;
  pthread_mutex_unlock(&blas->lock);
}

tl_status cuda_blas_open(tl_device_impl *device, tl_error *error) {
  cuda_blas *blas = &device->code->blas;
  if (atomic_load_explicit(&blas->open, memory_order_acquire))
    return TL_OK;
  tl_status status = tl_fault(device->options.faults, "cuda blas", error);
  if (status != TL_OK)
    return status;
  CUcontext before = cuda_enter(device);
  cuda_blas_handle *first = NULL;
  pthread_mutex_lock(&blas->opening);
  if (!atomic_load(&blas->open)) {
    status = functions_read(&blas->functions, error);
    if (status == TL_OK)
      status = handle_create(device, &first, error);
    if (status == TL_OK) {
      idle_put(blas, first);
      atomic_store(&blas->open, true);
    }
  }
  pthread_mutex_unlock(&blas->opening);
  cuda_leave(device, before);
  return status;
}

void cuda_blas_forget(cuda_blas *blas, CUstream stream) {
  cuda_blas_handle *last = atomic_exchange(&blas->last, NULL);
  if (last != NULL)
    idle_put(blas, last);
  pthread_mutex_lock(&blas->lock);
  for (cuda_blas_handle *h = blas->idle; h != NULL; h = h->next)
    if (h->stream == stream)
      h->stream = NULL;
  pthread_mutex_unlock(&blas->lock);
}

void cuda_blas_overrides(char *text, size_t room) {
  static const char *const names[] = {
      "NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
      "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"};
  text[0] = '\0';
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    size_t used = strlen(text);
    if (value != NULL && value[0] != '\0')
      snprintf(text + used, room - used, "%s%s=%s", used > 0 ? " " : "",
               names[i], value);
  }
}

/* ---- handles ------------------------------------------------------------- */

/* Where memory has run out, what can be given back is, as for a buffer. */
static tl_status workspace_allocate(tl_device_impl *device, size_t size,
                                    CUdeviceptr *address, tl_error *error) {
  tl_status status = cuda_bytes_allocate(device, size, address, error);
  tl_error ignored;
  if (status == TL_OUT_OF_MEMORY && cuda_trim(device, &ignored) == TL_OK)
    status = cuda_bytes_allocate(device, size, address, error);
  return status;
}

static tl_status stream_set(tl_stream_impl *stream, cuda_blas_handle *handle,
                            tl_error *error) {
  tl_device_impl *device = stream->device;
  const cuda_blas_functions *f = &device->code->blas.functions;
  size_t size = workspace_size(device);
  tl_status status = TL_OK;
  if (stream->workspace == 0)
    status = workspace_allocate(device, size, &stream->workspace, error);
  if (status == TL_OK)
    status = blas_status(device, "cublasSetStream",
                         f->set_stream(handle->handle, stream->stream), error);
  if (status == TL_OK) /* behind set_stream, which resets it */
    status = blas_status(device, "cublasSetWorkspace",
                         f->set_workspace(handle->handle,
                                          (void *)(uintptr_t)stream->workspace,
                                          size),
                         error);
  handle->stream = status == TL_OK ? stream->stream : NULL;
  return status;
}

static cuda_blas_handle *idle_take(cuda_blas *blas, CUstream stream) {
  cuda_blas_handle *last = atomic_exchange(&blas->last, NULL);
  if (last != NULL && last->stream == stream)
    return last;
  if (last != NULL)
    idle_put(blas, last);
  pthread_mutex_lock(&blas->lock);
  cuda_blas_handle **link = &blas->idle;
  while (*link != NULL && (*link)->stream != stream)
    link = &(*link)->next;
  if (*link == NULL)
    link = &blas->idle;
  cuda_blas_handle *handle = *link;
  if (handle != NULL)
    *link = handle->next;
  pthread_mutex_unlock(&blas->lock);
  return handle;
}

static void handle_return(cuda_blas *blas, cuda_blas_handle *handle) {
  cuda_blas_handle *before = atomic_exchange(&blas->last, handle);
  if (before != NULL)
    idle_put(blas, before);
}

static tl_status handle_take(tl_stream_impl *stream, cuda_blas_handle **handle,
                             tl_error *error) {
  *handle = idle_take(&stream->device->code->blas, stream->stream);
  tl_status status = TL_OK;
  if (*handle == NULL)
    status = handle_create(stream->device, handle, error);
  if (status == TL_OK && (*handle)->stream != stream->stream)
    status = stream_set(stream, *handle, error);
  if (status != TL_OK && *handle != NULL)
    handle_return(&stream->device->code->blas, *handle);
  return status;
}

/* ---- gemm ---------------------------------------------------------------- */

static const struct {
  int input, output, compute;
} types[TL_MATMUL_TYPE_COUNT] = {
    [TL_MATMUL_FLOAT32] = {R_32F, R_32F, COMPUTE_32F},
    [TL_MATMUL_TF32] = {R_32F, R_32F, COMPUTE_32F_FAST_TF32},
    [TL_MATMUL_FLOAT64] = {R_64F, R_64F, COMPUTE_64F},
    [TL_MATMUL_FLOAT16] = {R_16F, R_16F, COMPUTE_32F},
    [TL_MATMUL_FLOAT16_FLOAT32] = {R_16F, R_32F, COMPUTE_32F},
    [TL_MATMUL_BFLOAT16] = {R_16BF, R_16BF, COMPUTE_32F},
    [TL_MATMUL_BFLOAT16_FLOAT32] = {R_16BF, R_32F, COMPUTE_32F},
    [TL_MATMUL_INT8_INT32] = {R_8I, R_32I, COMPUTE_32I},
};

static void *operand_bytes(const tl_operand *o, size_t element_size) {
  return (void *)(uintptr_t)cuda_operand_first(o, element_size);
}

/* The library multiplies int8 four by four. */
static tl_status alignment_check(const tl_matmul_problem *p, const void *a,
                                 const void *b, tl_error *error) {
  if (p->type != TL_MATMUL_INT8_INT32 ||
      (((uintptr_t)a | (uintptr_t)b | (uint64_t)p->a.ld | (uint64_t)p->b.ld |
        (uint64_t)p->a.batch_stride | (uint64_t)p->b.batch_stride) %
           4 ==
       0))
    return TL_OK;
  return tl_fail(error, TL_UNSUPPORTED,
                 "matmul: kernel 'blas' takes int8 where rows, matrices and "
                 "offsets of a and b are multiples of 4 elements; \"tiled\" "
                 "takes any");
}

/* Row-major c = a b is column-major c' = b' a', and nothing has to be moved. */
static int gemm_call(const cuda_blas_functions *f, cublas_handle handle,
                     const tl_matmul_problem *p, const void *a, const void *b,
                     void *c) {
  int compute = types[p->type].compute, input = types[p->type].input;
  int output = types[p->type].output;
  cuda_factor alpha = cuda_factor_make(p->type, p->alpha);
  cuda_factor beta = cuda_factor_make(p->type, p->beta);
  if (p->batch == 1)
    return f->gemm(handle, p->b.transpose, p->a.transpose, (int)p->n, (int)p->m,
                   (int)p->k, &alpha, b, input, (int)p->b.ld, a, input,
                   (int)p->a.ld, &beta, c, output, (int)p->c.ld, compute,
                   DEFAULT_ALGORITHM);
  return f->gemm_batched(
      handle, p->b.transpose, p->a.transpose, (int)p->n, (int)p->m, (int)p->k,
      &alpha, b, input, (int)p->b.ld, p->b.batch_stride, a, input, (int)p->a.ld,
      p->a.batch_stride, &beta, c, output, (int)p->c.ld, p->c.batch_stride,
      (int)p->batch, compute, DEFAULT_ALGORITHM);
}

tl_status cuda_matmul_blas(tl_stream_impl *stream,
                           const tl_matmul_problem *problem, tl_error *error) {
  tl_device_impl *device = stream->device;
  const void *a =
      operand_bytes(&problem->a, tl_matmul_input_size(problem->type));
  const void *b =
      operand_bytes(&problem->b, tl_matmul_input_size(problem->type));
  void *c = operand_bytes(&problem->c, tl_matmul_output_size(problem->type));
  cuda_blas_handle *handle = NULL;
  CUcontext before;
  tl_status status = tl_matmul_check_blas(problem, error);
  if (status == TL_OK)
    status = alignment_check(problem, a, b, error);
  if (status == TL_OK)
    status = cuda_stream_begin(stream, CUDA_LAUNCHES, &before, error);
  if (status != TL_OK)
    return status;
  status = handle_take(stream, &handle, error);
  if (status == TL_OK) {
    status = blas_status(device, "cublasGemmEx",
                         gemm_call(&device->code->blas.functions,
                                   handle->handle, problem, a, b, c),
                         error);
    handle_return(&device->code->blas, handle);
  }
  return cuda_stream_end(stream, CUDA_LAUNCHES, before, status);
}
