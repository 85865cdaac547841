/* A stand-in for cuBLAS on the stand-in for the driver (cuda_stub.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_stub.h"

typedef struct handle {
  CUstream stream;
} handle;

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int cublasCreate_v2(handle **out);
PUBLIC int cublasDestroy_v2(handle *h);
PUBLIC int cublasSetStream_v2(handle *h, CUstream stream);
PUBLIC int cublasSetWorkspace_v2(handle *h, void *bytes, size_t nbytes);
PUBLIC int cublasSetMathMode(handle *h, int mode);
PUBLIC const char *cublasGetStatusName(int status);
PUBLIC int cublasGemmEx(handle *h, int transpose_a, int transpose_b, int m,
                        int n, int k, const void *alpha, const void *a,
                        int type_a, int lda, const void *b, int type_b, int ldb,
                        const void *beta, void *c, int type_c, int ldc,
                        int compute, int algorithm);
PUBLIC int cublasGemmStridedBatchedEx(
    handle *h, int transpose_a, int transpose_b, int m, int n, int k,
    const void *alpha, const void *a, int type_a, int lda, long long stride_a,
    const void *b, int type_b, int ldb, long long stride_b, const void *beta,
    void *c, int type_c, int ldc, long long stride_c, int batch, int compute,
    int algorithm);

int cublasCreate_v2(handle **out) {
  *out = calloc(1, sizeof **out);
  return 0;
}

int cublasDestroy_v2(handle *h) {
  free(h);
  return 0;
}

int cublasSetStream_v2(handle *h, CUstream stream) {
  h->stream = stream;
  return 0;
}

int cublasSetWorkspace_v2(handle *h, void *bytes, size_t nbytes) {
  (void)h;
  return bytes != NULL && nbytes > 0 ? 0 : 7;
}

int cublasSetMathMode(handle *h, int mode) {
  (void)h;
  return mode == 16 ? 0 : 7;
}

const char *cublasGetStatusName(int status) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_OF_THE_STUB";
}

/* By the types of the inputs and of the output, in library_types.h's numbers.
 */
static const char *kernel_of(int input, int output) {
  static const struct {
    int input, output;
    const char *kernel;
  } kernels[] = {
      {0, 0, "matmul_blas_float32"},    {1, 1, "matmul_blas_float64"},
      {2, 2, "matmul_blas_float16"},    {2, 0, "matmul_blas_float16_float32"},
      {14, 14, "matmul_blas_bfloat16"}, {14, 0, "matmul_blas_bfloat16_float32"},
      {3, 10, "matmul_blas_int8_int32"}};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (kernels[i].input == input && kernels[i].output == output)
      return kernels[i].kernel;
  return NULL;
}

/* Column-major c = a b, seen as row-major c' = b' a'. */
int cublasGemmStridedBatchedEx(handle *h, int transpose_a, int transpose_b,
                               int m, int n, int k, const void *alpha,
                               const void *a, int type_a, int lda,
                               long long stride_a, const void *b, int type_b,
                               int ldb, long long stride_b, const void *beta,
                               void *c, int type_c, int ldc, long long stride_c,
                               int batch, int compute, int algorithm) {
  (void)algorithm;
  void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuda_stub_matmul");
  void (*enqueue)(CUstream, const char *, const unsigned long long *);
  memcpy(&enqueue, &symbol, sizeof symbol);
  const char *kernel = compute == 77
                           ? "matmul_blas_tf32_float32" /* its FAST_TF32 */
                           : kernel_of(type_a, type_c);
  if (kernel == NULL || enqueue == NULL || type_a != type_b)
    return 15;
  unsigned long long argument[17] = {
      (unsigned long long)n,
      (unsigned long long)m,
      (unsigned long long)k,
      (unsigned long long)batch,
      (unsigned long long)(size_t)b,
      (unsigned long long)(transpose_b ? 1 : ldb),
      (unsigned long long)(transpose_b ? ldb : 1),
      (unsigned long long)stride_b,
      (unsigned long long)(size_t)a,
      (unsigned long long)(transpose_a ? 1 : lda),
      (unsigned long long)(transpose_a ? lda : 1),
      (unsigned long long)stride_a,
      (unsigned long long)(size_t)c,
      (unsigned long long)ldc,
      (unsigned long long)stride_c};
  size_t factor = compute == 70 ? 8 : 4; /* CUBLAS_COMPUTE_64F */
  memcpy(&argument[15], alpha, factor);
  memcpy(&argument[16], beta, factor);
  enqueue(h->stream, kernel, argument);
  return 0;
}

int cublasGemmEx(handle *h, int transpose_a, int transpose_b, int m, int n,
                 int k, const void *alpha, const void *a, int type_a, int lda,
                 const void *b, int type_b, int ldb, const void *beta, void *c,
                 int type_c, int ldc, int compute, int algorithm) {
  return cublasGemmStridedBatchedEx(h, transpose_a, transpose_b, m, n, k, alpha,
                                    a, type_a, lda, 0, b, type_b, ldb, 0, beta,
                                    c, type_c, ldc, 0, 1, compute, algorithm);
}
