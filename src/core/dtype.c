/* The element types: one row each, and one row for each legal matmul. */
#include "core/dtype.h"

#include <stdio.h>
#include <string.h>

#include "core/backend.h"

static const struct {
  const char *name;
  int64_t size; /* bytes */
} dtypes[TL_DTYPE_COUNT] = {
    [TL_FLOAT32] = {"float32", 4},
    [TL_FLOAT64] = {"float64", 8},
};

/* The first row for a pair of inputs is what they give by default. */
static const struct {
  tl_dtype a, b, c;
  const char *compute;
} matmuls[] = {
    {TL_FLOAT32, TL_FLOAT32, TL_FLOAT32, "float32"},
    {TL_FLOAT64, TL_FLOAT64, TL_FLOAT64, "float64"},
};

enum { MATMULS = sizeof matmuls / sizeof matmuls[0] };

const char *tl_dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < TL_DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

int64_t tl_dtype_size(int32_t dtype) {
  return dtype >= 0 && dtype < TL_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

int32_t tl_dtype_find(const char *name) {
  for (int32_t i = 0; i < TL_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0)
      return i;
  return -1;
}

void tl_dtype_pack(int32_t dtype, double value, void *element) {
  if (dtype == TL_FLOAT32) {
    float rounded = (float)value;
    memcpy(element, &rounded, sizeof rounded);
  } else {
    memcpy(element, &value, sizeof value);
  }
}

/* The nearest double towards zero, its last digit set when something was cut:
 * rounding that again to fewer digits gives what one rounding would. */
static double integer_to_odd(int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  if (magnitude >> 53 != 0) {
    uint64_t cut = magnitude & 0x7ff;
    magnitude = (magnitude & ~UINT64_C(0x7ff)) | (cut != 0 ? 0x800 : 0);
  }
  return value < 0 ? -(double)magnitude : (double)magnitude;
}

void tl_dtype_pack_integer(int32_t dtype, int64_t value, void *element) {
  if (dtype == TL_FLOAT32)
    tl_dtype_pack(dtype, integer_to_odd(value), element);
  else
    tl_dtype_pack(dtype, (double)value, element);
}

double tl_dtype_unpack(int32_t dtype, const void *element) {
  if (dtype == TL_FLOAT32) {
    float value;
    memcpy(&value, element, sizeof value);
    return (double)value;
  }
  double value;
  memcpy(&value, element, sizeof value);
  return value;
}

int32_t tl_dtype_matmul_result(int32_t a, int32_t b) {
  for (size_t i = 0; i < MATMULS; i++)
    if ((int32_t)matmuls[i].a == a && (int32_t)matmuls[i].b == b)
      return (int32_t)matmuls[i].c;
  return -1;
}

tl_status tl_dtype_check_matmul(int32_t a, int32_t b, int32_t c,
                                const char *compute, tl_error *error) {
  char offered[128] = "";
  bool legal = false;
  for (size_t i = 0; i < MATMULS; i++) {
    if ((int32_t)matmuls[i].a != a || (int32_t)matmuls[i].b != b ||
        (int32_t)matmuls[i].c != c)
      continue;
    legal = true;
    if (compute == NULL || strcmp(compute, matmuls[i].compute) == 0)
      return TL_OK;
    size_t used = strlen(offered);
    snprintf(offered + used, sizeof offered - used, " %s", matmuls[i].compute);
  }
  if (!legal)
    return tl_fail(error, TL_INVALID_ARGUMENT,
                   "matmul: dtype mismatch: a is %s, b is %s, c is %s",
                   tl_dtype_name(a), tl_dtype_name(b), tl_dtype_name(c));
  return tl_fail(error, TL_UNSUPPORTED,
                 "matmul: compute '%.32s' is not offered for %s x %s into %s "
                 "(offered:%s)",
                 compute, tl_dtype_name(a), tl_dtype_name(b), tl_dtype_name(c),
                 offered);
}
