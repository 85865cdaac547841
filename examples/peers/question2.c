/* Question 2 in plain C: what the first large product pays for, and what a
 * clock shows that is stopped before the work has run.
 *   question2 kernels.fatbin [n] */
#include <stdlib.h>

#include "plain.h"

int main(int count, char **arguments) {
  if (count < 2)
    plain_fail("usage: question2 kernels.fatbin [n]");
  int n = count > 2 ? atoi(arguments[2]) : 10000;
  plain p;
  plain_step(NULL, n);
  plain_open_driver(&p);
  plain_step("import", n);
  plain_open_context(&p);
  plain_step("context", n);
  plain_load_kernels(&p, arguments[1]);
  CUdeviceptr a = plain_uniform(&p, &plain_float32, n, 1);
  CUdeviceptr b = plain_uniform(&p, &plain_float32, n, 2);
  CUdeviceptr c = plain_allocate(&p, sizeof(float) * (size_t)n * (size_t)n);
  plain_synchronize(&p);
  plain_step("data", n);
  plain_open_blas(&p);
  plain_create_handle(&p);
  plain_step("blas library", n);
  plain_gemm(&p, &plain_float32, n, a, b, c);
  plain_step("first enqueue", n);
  plain_synchronize(&p);
  plain_step("first wait", n);
  plain_gemm(&p, &plain_float32, n, a, b, c);
  plain_step("second enqueue", n);
  plain_synchronize(&p);
  plain_step("second wait", n);
  return EXIT_SUCCESS;
}
