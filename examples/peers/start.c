/* From process start to a first checked product, 1000 x 1000 float32: each
 * library is opened when it is needed. The last line it prints is the moment
 * that counts; those before it say what each step took. */
#include <stdlib.h>

#include "plain.h"

enum { N = 1000, CHECKED = 100 };
enum { PERIOD_A = 7, PERIOD_B = 11 }; /* so that every sum is exact */

static float *matrix_make(int period) {
  float *matrix = malloc(sizeof *matrix * N * N);
  if (matrix == NULL)
    plain_fail("out of memory");
  for (int i = 0; i < N * N; i++)
    matrix[i] = (float)(i % period);
  return matrix;
}

static CUdeviceptr matrix_upload(plain *p, const float *matrix) {
  CUdeviceptr on_device = plain_allocate(p, sizeof *matrix * N * N);
  PLAIN_CHECK(p->cu.cuMemcpyHtoD(on_device, matrix, sizeof *matrix * N * N));
  return on_device;
}

static void product_check(const float *a, const float *b, const float *c) {
  for (int place = 0; place < CHECKED; place++) {
    int i = place * (N - 1) / (CHECKED - 1), j = N - 1 - i;
    float sum = 0;
    for (int k = 0; k < N; k++)
      sum += a[i * N + k] * b[k * N + j];
    if (c[i * N + j] != sum)
      plain_fail("the product is wrong: %g, wanted %g", (double)c[i * N + j],
                 (double)sum);
  }
}

int main(void) {
  plain p;
  plain_step(NULL, N);
  float *a = matrix_make(PERIOD_A), *b = matrix_make(PERIOD_B);
  float *c = malloc(sizeof *c * N * N);
  plain_step("inputs", N);
  plain_open_driver(&p);
  plain_step("import", N);
  plain_open_context(&p);
  plain_step("context", N);
  CUdeviceptr device_a = matrix_upload(&p, a), device_b = matrix_upload(&p, b);
  CUdeviceptr device_c = plain_allocate(&p, sizeof *c * N * N);
  plain_step("upload", N);
  plain_open_blas(&p);
  plain_create_handle(&p);
  plain_gemm(&p, &plain_float32, N, device_a, device_b, device_c);
  plain_synchronize(&p);
  plain_step("product", N);
  PLAIN_CHECK(p.cu.cuMemcpyDtoH(c, device_c, sizeof *c * N * N));
  product_check(a, b, c);
  plain_step("check", N);
  double checked = CHECKED;
  plain_say("c", "checked", N, "float32", "elements", &checked, 1);
  return EXIT_SUCCESS;
}
