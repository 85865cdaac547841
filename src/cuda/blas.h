/* cuBLAS: opened, and a handle made, at the first product that wants it.
 *
 * A handle serves one call at a time, so each call takes one that is idle, best
 * the one that served the stream last; another one is made only when a thread
 * is inside a call, which may be waiting for room in its stream's queue. Every
 * stream has a workspace of its own, always of the same size: so a product has
 * the same bits on every stream, and two streams never share one. */
#ifndef TIDELOCK_CUDA_BLAS_H
#define TIDELOCK_CUDA_BLAS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/driver.h"

typedef struct cublas_context *cublas_handle;

/* cublas_api.h, as far as it is used. 0 is success. */
typedef struct cuda_blas_functions {
  int (*create)(cublas_handle *handle);
  int (*destroy)(cublas_handle handle);
  int (*set_stream)(cublas_handle handle, CUstream stream);
  int (*set_workspace)(cublas_handle handle, void *bytes, size_t nbytes);
  int (*set_math_mode)(cublas_handle handle, int mode);
  const char *(*status_name)(int status);
  int (*gemm)(cublas_handle handle, int transpose_a, int transpose_b, int m,
              int n, int k, const void *alpha, const void *a, int type_a,
              int lda, const void *b, int type_b, int ldb, const void *beta,
              void *c, int type_c, int ldc, int compute, int algorithm);
  int (*gemm_batched)(cublas_handle handle, int transpose_a, int transpose_b,
                      int m, int n, int k, const void *alpha, const void *a,
                      int type_a, int lda, long long stride_a, const void *b,
                      int type_b, int ldb, long long stride_b, const void *beta,
                      void *c, int type_c, int ldc, long long stride_c,
                      int batch, int compute, int algorithm);
} cuda_blas_functions;

typedef struct cuda_blas_handle {
  struct cuda_blas_handle *next;
  cublas_handle handle;
  CUstream stream; /* set, with its workspace; NULL: none */
} cuda_blas_handle;

typedef struct cuda_blas {
  atomic_bool open; /* the functions are there, and a first handle */
  cuda_blas_functions functions;
  _Atomic(cuda_blas_handle *) last; /* idle, the one that served last */
  pthread_mutex_t opening;          /* held while the library is opened: long */
  pthread_mutex_t lock;             /* guards what follows */
  cuda_blas_handle *idle;           /* further ones */
} cuda_blas;

/* Opens the library and makes the first handle, once. */
tl_status cuda_blas_open(tl_device_impl *device, tl_error *error);
/* The stream is going: another one may get its address. */
void cuda_blas_forget(cuda_blas *blas, CUstream stream);
/* Environment variables that change what cuBLAS computes with, as they are set:
 * "NVIDIA_TF32_OVERRIDE=1"; empty: none. */
void cuda_blas_overrides(char *text, size_t room);

#endif
