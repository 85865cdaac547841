/* What a plain C program does with a GPU: the driver and cuBLAS, opened when
 * they are needed, as tidelock opens them; one context, one stream. The
 * programs here share it. A failure ends the program: its reason is the last
 * line on stderr. */
#ifndef TIDELOCK_PEERS_PLAIN_H
#define TIDELOCK_PEERS_PLAIN_H

#include <cublas_v2.h>
#include <cuda.h>
#include <stdint.h>

/* The functions by their plain names; cuda.h and cublas_v2.h turn these into
 * the names with the version, for the symbol and for the field alike. */
#define PLAIN_CUDA(F)                                                          \
  F(cuInit)                                                                    \
  F(cuDevicePrimaryCtxRetain)                                                  \
  F(cuCtxSetCurrent)                                                           \
  F(cuStreamCreate)                                                            \
  F(cuStreamSynchronize)                                                       \
  F(cuModuleLoad)                                                              \
  F(cuModuleGetFunction)                                                       \
  F(cuLaunchKernel)                                                            \
  F(cuMemAlloc)                                                                \
  F(cuMemFree)                                                                 \
  F(cuMemcpyHtoD)                                                              \
  F(cuMemcpyDtoH)                                                              \
  F(cuEventCreate)                                                             \
  F(cuEventRecord)                                                             \
  F(cuEventSynchronize)                                                        \
  F(cuEventElapsedTime)
#define PLAIN_BLAS(F)                                                          \
  F(cublasCreate)                                                              \
  F(cublasGetVersion)                                                          \
  F(cublasSetStream)                                                           \
  F(cublasSetWorkspace)                                                        \
  F(cublasSetMathMode)                                                         \
  F(cublasGemmEx)

#define PLAIN_FIELD(name) __typeof__(&name) name;
typedef struct plain {
  struct {
    PLAIN_CUDA(PLAIN_FIELD)
  } cu;
  struct {
    PLAIN_BLAS(PLAIN_FIELD)
  } blas;
  CUcontext context; /* the primary one, as tidelock's */
  CUstream stream;   /* a non-blocking one */
  CUmodule kernels;  /* of kernels.cu */
  cublasHandle_t handle;
} plain;

/* An element type and what cuBLAS is told of it. */
typedef struct plain_type {
  const char *name;
  const char *fill; /* in kernels.cu */
  size_t size;
  cudaDataType_t data;
  cublasComputeType_t compute;
} plain_type;
extern const plain_type plain_float32;
/* NULL: there is none of that name. */
const plain_type *plain_type_find(const char *name);

int64_t plain_now(void); /* nanoseconds of the monotonic clock */
_Noreturn void plain_fail(const char *format, ...);
/* Any status of the driver's or cuBLAS's: 0 is success for both. */
#define PLAIN_CHECK(call) plain_check((int)(call), #call)
void plain_check(int status, const char *call);

/* In this order, each once. */
void plain_open_driver(plain *p);
void plain_open_context(plain *p); /* current to the thread; with the stream */
void plain_open_blas(plain *p);
void plain_create_handle(plain *p); /* set to the stream, with a workspace */
void plain_load_kernels(plain *p, const char *fatbin);

CUfunction plain_kernel(plain *p, const char *name);
CUdeviceptr plain_allocate(plain *p, size_t nbytes);
/* An n x n matrix of uniform numbers on [0, 1). Needs the kernels. */
CUdeviceptr plain_uniform(plain *p, const plain_type *type, int n,
                          unsigned int seed);
void plain_synchronize(plain *p);

/* These enqueue. Row-major c = a b. */
static inline void plain_spin(plain *p, CUfunction spin,
                              unsigned long long nanoseconds) {
  void *arguments[] = {&nanoseconds};
  PLAIN_CHECK(p->cu.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, p->stream,
                                   arguments, NULL));
}
void plain_naive(plain *p, CUfunction naive, int n, CUdeviceptr a,
                 CUdeviceptr b, CUdeviceptr c);
void plain_gemm(plain *p, const plain_type *type, int n, CUdeviceptr a,
                CUdeviceptr b, CUdeviceptr c);

/* One line of JSON: value is the samples' median. dtype may be NULL, and n 0:
 * then they say nothing. */
void plain_say(const char *program, const char *measure, int n,
               const char *dtype, const char *unit, const double *samples,
               int count);
/* Says how many seconds it is since the last step; NULL starts the clock. */
void plain_step(const char *name, int n);

#endif
