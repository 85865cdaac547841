/* Kernels of the stand-in driver, one element after the other. */
#include <stdint.h>
#include <string.h>

#include "cuda_stub.h"
#include "kernels/philox.h"
#include "tidelock.h"

static int32_t type_of(const char *kernel) {
  for (int32_t dtype = 0; dtype < TL_DTYPE_COUNT; dtype++) {
    size_t length = strlen(tl_dtype_name(dtype)), all = strlen(kernel);
    if (all > length && kernel[all - length - 1] == '_' &&
        strcmp(kernel + all - length, tl_dtype_name(dtype)) == 0)
      return dtype;
  }
  return TL_FLOAT32;
}

size_t stub_element_size(const char *kernel) {
  return (size_t)tl_dtype_size(type_of(kernel));
}

void stub_random(const char *kind, unsigned long long seed,
                 unsigned long long index, void *element) {
  int32_t dtype = type_of(kind);
  int normal = strncmp(kind, "normal", 6) == 0;
  if (dtype == TL_FLOAT64) {
    double of[PHILOX_LANES64];
    (normal ? philox_normal64 : philox_uniform64)(seed, index / PHILOX_LANES64,
                                                  of);
    memcpy(element, &of[index % PHILOX_LANES64], sizeof *of);
    return;
  }
  float of[PHILOX_LANES32];
  int bits = dtype == TL_FLOAT32   ? PHILOX_BITS_FLOAT32
             : dtype == TL_FLOAT16 ? PHILOX_BITS_FLOAT16
                                   : PHILOX_BITS_BFLOAT16;
  if (normal)
    philox_normal32(seed, index / PHILOX_LANES32, of);
  else
    philox_uniform32(seed, index / PHILOX_LANES32, bits, of);
  tl_dtype_pack(dtype, (double)of[index % PHILOX_LANES32], element);
}

/* ---- matmul -------------------------------------------------------------- */

/* The operands of one element. */
typedef struct run {
  const char *a, *b;
  long long steps, a_step, b_step;
  int32_t input;
} run;

static double sum_double(const run *r) {
  double sum = 0;
  for (long long k = 0; k < r->steps; k++) {
    double x = tl_dtype_unpack(r->input, r->a + k * r->a_step);
    double y = tl_dtype_unpack(r->input, r->b + k * r->b_step);
    sum += x * y;
  }
  return sum;
}

/* To the 10 bits of tf32, ties away from zero. */
static float to_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float sum_float(const run *r, bool tf32) {
  float sum = 0;
  for (long long k = 0; k < r->steps; k++) {
    float x = (float)tl_dtype_unpack(r->input, r->a + k * r->a_step);
    float y = (float)tl_dtype_unpack(r->input, r->b + k * r->b_step);
    sum += tf32 ? to_tf32(x) * to_tf32(y) : x * y;
  }
  return sum;
}

static uint32_t sum_integer(const run *r) {
  uint32_t sum = 0;
  for (long long k = 0; k < r->steps; k++) {
    int32_t x = (int32_t)tl_dtype_unpack(r->input, r->a + k * r->a_step);
    int32_t y = (int32_t)tl_dtype_unpack(r->input, r->b + k * r->b_step);
    sum += (uint32_t)x * (uint32_t)y;
  }
  return sum;
}

static void element_double(const run *r, double alpha, double beta, char *c) {
  double value = r->steps == 0 ? 0 : alpha * sum_double(r);
  if (beta != 0)
    value += beta * tl_dtype_unpack(TL_FLOAT64, c);
  tl_dtype_pack(TL_FLOAT64, value, c);
}

static void element_float(const run *r, float alpha, float beta, int32_t output,
                          bool tf32, char *c) {
  float value = r->steps == 0 ? 0 : alpha * sum_float(r, tf32);
  if (beta != 0)
    value += beta * (float)tl_dtype_unpack(output, c);
  tl_dtype_pack(output, (double)value, c);
}

static void element_integer(const run *r, uint32_t alpha, uint32_t beta,
                            char *c) {
  uint32_t value = r->steps == 0 ? 0 : alpha * sum_integer(r), before;
  memcpy(&before, c, sizeof before);
  if (beta != 0)
    value += beta * before;
  memcpy(c, &value, sizeof value);
}

/* "matmul_tiled_float16_float32" takes float16, others what they end in. */
static int32_t input_of(const char *kernel) {
  static const int32_t dtypes[] = {TL_BFLOAT16, TL_FLOAT16, TL_INT8};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    char infix[16] = "_";
    strcat(infix, tl_dtype_name(dtypes[i]));
    if (strstr(kernel, infix) != NULL)
      return dtypes[i];
  }
  return type_of(kernel);
}

void stub_matmul(const char *kernel, const unsigned long long *argument) {
  long long of[15]; /* sizes and strides are signed */
  memcpy(of, argument, sizeof of);
  int32_t input = input_of(kernel), output = type_of(kernel);
  long long in = tl_dtype_size(input), out = tl_dtype_size(output);
  double alpha64, beta64;
  float alpha32, beta32;
  memcpy(&alpha64, &argument[15], sizeof alpha64);
  memcpy(&beta64, &argument[16], sizeof beta64);
  memcpy(&alpha32, &argument[15], sizeof alpha32);
  memcpy(&beta32, &argument[16], sizeof beta32);
  for (long long z = 0; z < of[3]; z++)
    for (long long i = 0; i < of[0]; i++)
      for (long long j = 0; j < of[1]; j++) {
        run r = {
            (const char *)(size_t)argument[4] + (z * of[7] + i * of[5]) * in,
            (const char *)(size_t)argument[8] + (z * of[11] + j * of[10]) * in,
            of[2],
            of[6] * in,
            of[9] * in,
            input};
        char *c =
            (char *)(size_t)argument[12] + (z * of[14] + i * of[13] + j) * out;
        if (output == TL_FLOAT64)
          element_double(&r, alpha64, beta64, c);
        else if (tl_dtype_is_integer(output))
          element_integer(&r, (uint32_t)argument[15], (uint32_t)argument[16],
                          c);
        else
          element_float(&r, alpha32, beta32, output,
                        strstr(kernel, "_tf32_") != NULL, c);
      }
}
