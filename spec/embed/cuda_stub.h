/* What the stand-ins for the driver and for cuBLAS compute, and share. */
#ifndef TIDELOCK_SPEC_CUDA_STUB_H
#define TIDELOCK_SPEC_CUDA_STUB_H

#include <stddef.h>

#include "cuda/driver_types.h"

/* cuda_stub_kernels.c */
/* Bytes of an element of the type that ends the kernel's name. */
size_t stub_element_size(const char *kernel);
/* Element `index` of random numbers, "uniform_float32" and so on. */
void stub_random(const char *kind, unsigned long long seed,
                 unsigned long long index, void *element);
/* A product, by the 17 arguments of kernels/matmul.cu, each in 8 bytes. */
void stub_matmul(const char *kernel, const unsigned long long *argument);

/* cuda_stub.c: enqueues one. */
__attribute__((visibility("default"))) void
cuda_stub_matmul(CUstream stream, const char *kernel,
                 const unsigned long long argument[17]);

#endif
