/* The kernels of the CPU, for every back end that computes on it: they know
 * addresses and shapes, no devices and no queues. So the host and the device of
 * virtual time compute the same bits. */
#ifndef TIDELOCK_HOST_KERNELS_H
#define TIDELOCK_HOST_KERNELS_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/backend.h"

/* The signature of cblas_sgemm and of cblas_dgemm, but for the numbers. */
typedef void host_sgemm(int order, int trans_a, int trans_b, int m, int n,
                        int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc);
typedef void host_dgemm(int order, int trans_a, int trans_b, int m, int n,
                        int k, double alpha, const double *a, int lda,
                        const double *b, int ldb, double beta, double *c,
                        int ldc);

/* The system's CBLAS, as one device uses it: zeroed, then begun. */
typedef struct host_blas {
  pthread_mutex_t lock; /* for opening */
  atomic_bool open;     /* the functions are there */
  host_sgemm *sgemm;
  host_dgemm *dgemm;
} host_blas;

/* A matmul and where it is: the first byte of the memory of each operand. */
typedef struct host_product {
  const tl_matmul_problem *problem;
  const void *a, *b;
  void *c;
  const host_blas *blas; /* open where the kernel is HOST_BLAS */
} host_product;

typedef void host_product_run(const host_product *product);

enum { HOST_NAIVE, HOST_TILED, HOST_BLAS, HOST_KERNELS };

/* ---- memory.c: blocks at the address of the memory that they are in ------ */

void host_block_write(void *memory, const tl_block *to, const void *from);
void host_block_read(const void *memory, const tl_block *from, void *to);
/* Blocks of the same shape. */
void host_block_copy(void *to_memory, const tl_block *to,
                     const void *from_memory, const tl_block *from);
void host_block_fill(void *memory, const tl_block *block, const void *element,
                     size_t element_size);

/* ---- random.c ------------------------------------------------------------ */

void host_block_random(void *memory, const tl_block *block, tl_dtype dtype,
                       tl_distribution distribution, uint64_t seed);

/* ---- matmul.c, blas.c ---------------------------------------------------- */

/* What computes the product; NULL: the kernel does not take the type. */
host_product_run *host_product_kernel(int32_t kernel,
                                      const tl_matmul_problem *problem);
host_product_run host_product_blas;
void host_blas_begin(host_blas *blas);
/* Finds the library at the first use; a failure says where it was looked for.
 * faults may be NULL. */
tl_status host_blas_open(host_blas *blas, tl_faults *faults, tl_error *error);
void host_blas_end(host_blas *blas);

#endif
