/* A plain C program's way to the GPU: see plain.h. */
#define _POSIX_C_SOURCE 200809L
#include "plain.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKSPACE = 32 << 20 }; /* what cuBLAS's manual recommends for Hopper */
enum { NAIVE_BLOCK = 16 };

int64_t plain_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void plain_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(EXIT_FAILURE);
}

void plain_check(int status, const char *call) {
  if (status != 0)
    plain_fail("%s: status %d", call, status);
}

/* ---- opening ------------------------------------------------------------- */

static void *library_open(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    plain_fail("%s", dlerror());
  return library;
}

/* dlsym gives an object pointer; memcpy makes a function of it. */
static void symbol_read(void *library, const char *name, void *field) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL)
    plain_fail("no %s in the library", name);
  memcpy(field, &symbol, sizeof symbol);
}

#define TEXT(name) #name
#define READ_CUDA(name) symbol_read(library, TEXT(name), &p->cu.name);
#define READ_BLAS(name) symbol_read(library, TEXT(name), &p->blas.name);

void plain_open_driver(plain *p) {
  void *library = library_open("libcuda.so.1");
  PLAIN_CUDA(READ_CUDA)
}

void plain_open_blas(plain *p) {
  void *library = library_open("libcublas.so.13");
  PLAIN_BLAS(READ_BLAS)
}

void plain_open_context(plain *p) {
  PLAIN_CHECK(p->cu.cuInit(0));
  PLAIN_CHECK(p->cu.cuDevicePrimaryCtxRetain(&p->context, 0));
  PLAIN_CHECK(p->cu.cuCtxSetCurrent(p->context));
  PLAIN_CHECK(p->cu.cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
}

void plain_create_handle(plain *p) {
  void *workspace = (void *)(uintptr_t)plain_allocate(p, WORKSPACE);
  PLAIN_CHECK(p->blas.cublasCreate(&p->handle));
  PLAIN_CHECK(p->blas.cublasSetMathMode(
      p->handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  PLAIN_CHECK(p->blas.cublasSetStream(p->handle, p->stream));
  PLAIN_CHECK(p->blas.cublasSetWorkspace(p->handle, workspace, WORKSPACE));
}

void plain_load_kernels(plain *p, const char *fatbin) {
  PLAIN_CHECK(p->cu.cuModuleLoad(&p->kernels, fatbin));
}

CUfunction plain_kernel(plain *p, const char *name) {
  CUfunction kernel;
  PLAIN_CHECK(p->cu.cuModuleGetFunction(&kernel, p->kernels, name));
  return kernel;
}

/* ---- matrices ------------------------------------------------------------ */

const plain_type plain_float32 = {"float32", "fill_float32", 4, CUDA_R_32F,
                                  CUBLAS_COMPUTE_32F};

const plain_type *plain_type_find(const char *name) {
  static const plain_type others[] = {
      {"tf32", "fill_float32", 4, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
      {"float64", "fill_float64", 8, CUDA_R_64F, CUBLAS_COMPUTE_64F},
      {"float16", "fill_float16", 2, CUDA_R_16F, CUBLAS_COMPUTE_32F},
      {"bfloat16", "fill_bfloat16", 2, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
  };
  if (strcmp(name, plain_float32.name) == 0)
    return &plain_float32;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(name, others[i].name) == 0)
      return &others[i];
  return NULL;
}

CUdeviceptr plain_allocate(plain *p, size_t nbytes) {
  CUdeviceptr bytes;
  PLAIN_CHECK(p->cu.cuMemAlloc(&bytes, nbytes));
  return bytes;
}

CUdeviceptr plain_uniform(plain *p, const plain_type *type, int n,
                          unsigned int seed) {
  enum { BLOCKS = 1024, THREADS = 256 };
  long long size = (long long)n * n;
  CUdeviceptr matrix = plain_allocate(p, (size_t)size * type->size);
  void *arguments[] = {&matrix, &size, &seed};
  PLAIN_CHECK(p->cu.cuLaunchKernel(plain_kernel(p, type->fill), BLOCKS, 1, 1,
                                   THREADS, 1, 1, 0, p->stream, arguments,
                                   NULL));
  return matrix;
}

void plain_synchronize(plain *p) {
  PLAIN_CHECK(p->cu.cuStreamSynchronize(p->stream));
}

/* ---- products ------------------------------------------------------------ */

/* As many arguments as tidelock's kernel has, of the same types. */
void plain_naive(plain *p, CUfunction naive, int n, CUdeviceptr a,
                 CUdeviceptr b, CUdeviceptr c) {
  long long size = n, batch = 1, row = n, column = 1, apart = 0;
  float alpha = 1, beta = 0;
  unsigned int blocks = ((unsigned int)n + NAIVE_BLOCK - 1) / NAIVE_BLOCK;
  void *arguments[] = {&size,   &size,  &size,  &batch, &a,      &row,
                       &column, &apart, &b,     &row,   &column, &apart,
                       &c,      &row,   &apart, &alpha, &beta};
  PLAIN_CHECK(p->cu.cuLaunchKernel(naive, blocks, blocks, 1, NAIVE_BLOCK,
                                   NAIVE_BLOCK, 1, 0, p->stream, arguments,
                                   NULL));
}

/* Row-major c = a b is column-major c' = b' a'. */
void plain_gemm(plain *p, const plain_type *type, int n, CUdeviceptr a,
                CUdeviceptr b, CUdeviceptr c) {
  const float single[] = {1, 0};
  const double twice[] = {1, 0};
  bool wide = type->compute == CUBLAS_COMPUTE_64F;
  const void *alpha = wide ? (const void *)&twice[0] : &single[0];
  const void *beta = wide ? (const void *)&twice[1] : &single[1];
  PLAIN_CHECK(p->blas.cublasGemmEx(
      p->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, alpha,
      (const void *)(uintptr_t)b, type->data, n, (const void *)(uintptr_t)a,
      type->data, n, beta, (void *)(uintptr_t)c, type->data, n, type->compute,
      CUBLAS_GEMM_DEFAULT));
}

/* ---- output -------------------------------------------------------------- */

static int number_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *samples, int count) {
  double *sorted = malloc((size_t)count * sizeof *sorted);
  if (sorted == NULL)
    plain_fail("out of memory");
  memcpy(sorted, samples, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, number_compare);
  double middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
  free(sorted);
  return middle;
}

void plain_say(const char *program, const char *measure, int n,
               const char *dtype, const char *unit, const double *samples,
               int count) {
  printf("{\"program\": \"%s\", \"measure\": \"%s\", ", program, measure);
  if (n > 0)
    printf("\"n\": %d, ", n);
  if (dtype != NULL)
    printf("\"dtype\": \"%s\", ", dtype);
  printf("\"value\": %.9g, \"unit\": \"%s\", \"samples\": [",
         median(samples, count), unit);
  for (int i = 0; i < count; i++)
    printf("%s%.9g", i > 0 ? ", " : "", samples[i]);
  puts("]}");
  fflush(stdout);
}

void plain_step(const char *name, int n) {
  static int64_t last;
  double seconds = (double)(plain_now() - last) * 1e-9;
  if (name != NULL)
    plain_say("c", name, n, "float32", "s", &seconds, 1);
  last = plain_now();
}
