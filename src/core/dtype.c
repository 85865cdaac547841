/* The element types: one row each, and one row for each legal matmul. */
#include "core/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int64_t size; /* bytes */
  bool integer;
} dtypes[TL_DTYPE_COUNT] = {
    [TL_FLOAT32] = {"float32", 4, false},
    [TL_FLOAT64] = {"float64", 8, false},
    [TL_FLOAT16] = {"float16", 2, false},
    [TL_BFLOAT16] = {"bfloat16", 2, false},
    [TL_INT32] = {"int32", 4, true},
    [TL_INT8] = {"int8", 1, true},
};

/* The first row for a pair of inputs is what they give by default. */
static const struct {
  tl_dtype a, b, c;
  const char *compute;
} matmuls[TL_MATMUL_TYPE_COUNT] = {
    [TL_MATMUL_FLOAT32] = {TL_FLOAT32, TL_FLOAT32, TL_FLOAT32, "float32"},
    [TL_MATMUL_TF32] = {TL_FLOAT32, TL_FLOAT32, TL_FLOAT32, "tf32"},
    [TL_MATMUL_FLOAT64] = {TL_FLOAT64, TL_FLOAT64, TL_FLOAT64, "float64"},
    [TL_MATMUL_FLOAT16] = {TL_FLOAT16, TL_FLOAT16, TL_FLOAT16, "float32"},
    [TL_MATMUL_FLOAT16_FLOAT32] = {TL_FLOAT16, TL_FLOAT16, TL_FLOAT32,
                                   "float32"},
    [TL_MATMUL_BFLOAT16] = {TL_BFLOAT16, TL_BFLOAT16, TL_BFLOAT16, "float32"},
    [TL_MATMUL_BFLOAT16_FLOAT32] = {TL_BFLOAT16, TL_BFLOAT16, TL_FLOAT32,
                                    "float32"},
    [TL_MATMUL_INT32] = {TL_INT32, TL_INT32, TL_INT32, "int32"},
    [TL_MATMUL_INT8_INT32] = {TL_INT8, TL_INT8, TL_INT32, "int32"},
};

const char *tl_dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < TL_DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

int64_t tl_dtype_size(int32_t dtype) {
  return dtype >= 0 && dtype < TL_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool tl_dtype_is_integer(int32_t dtype) {
  return dtype >= 0 && dtype < TL_DTYPE_COUNT && dtypes[dtype].integer;
}

int32_t tl_dtype_find(const char *name) {
  for (int32_t i = 0; i < TL_DTYPE_COUNT; i++)
    if (strcmp(dtypes[i].name, name) == 0)
      return i;
  return -1;
}

/* ---- the narrow floats ----------------------------------------------------
 */

typedef struct format {
  int exponent, mantissa; /* bits */
} format;

static const format binary16 = {5, 10}, bfloat16 = {8, 7};

/* Rounds to nearest even in one step, subnormals included. */
static uint16_t narrow(double value, format f) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint64_t sign = bits >> 63 << (f.exponent + f.mantissa);
  uint64_t infinity = ((UINT64_C(1) << f.exponent) - 1) << f.mantissa;
  if (isnan(value))
    return (uint16_t)(sign | infinity | UINT64_C(1) << (f.mantissa - 1));
  uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + (1 << (f.exponent - 1)) - 1;
  if (exponent >= (1 << f.exponent) - 1)
    return (uint16_t)(sign | infinity);
  int shift = 52 - f.mantissa;
  uint64_t magnitude = (uint64_t)exponent << 52 | fraction;
  if (exponent <= 0) { /* subnormal: the leading one becomes a digit */
    shift += 1 - exponent;
    if (shift > 62)
      return (uint16_t)sign;
    magnitude = UINT64_C(1) << 52 | fraction;
  }
  /* Half a unit less one, and one more when the last digit kept is odd: a
   * carry runs into the exponent, where it belongs. */
  uint64_t odd = magnitude >> shift & 1;
  magnitude = (magnitude + (UINT64_C(1) << (shift - 1)) - 1 + odd) >> shift;
  return (uint16_t)(sign | (magnitude < infinity ? magnitude : infinity));
}

static double widen(uint16_t bits, format f) {
  int most = (1 << f.exponent) - 1;
  int exponent = bits >> f.mantissa & most;
  int fraction = bits & ((1 << f.mantissa) - 1);
  int bias = (1 << (f.exponent - 1)) - 1;
  double magnitude;
  if (exponent == most)
    magnitude = fraction == 0 ? (double)INFINITY : (double)NAN;
  else if (exponent == 0)
    magnitude = ldexp(fraction, 1 - bias - f.mantissa);
  else
    magnitude =
        ldexp(fraction + (1 << f.mantissa), exponent - bias - f.mantissa);
  return bits >> (f.exponent + f.mantissa) != 0 ? -magnitude : magnitude;
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

/* ---- one element ----------------------------------------------------------
 */

static bool pack_integer(int32_t dtype, int64_t value, void *element) {
  if (dtype == TL_INT32) {
    int32_t narrowed = (int32_t)value;
    if (narrowed != value)
      return false;
    memcpy(element, &narrowed, sizeof narrowed);
    return true;
  }
  int8_t narrowed = (int8_t)value;
  if (narrowed != value)
    return false;
  memcpy(element, &narrowed, sizeof narrowed);
  return true;
}

bool tl_dtype_pack(int32_t dtype, double value, void *element) {
  float single;
  uint16_t half;
  switch (dtype) {
  case TL_FLOAT32:
    single = (float)value;
    memcpy(element, &single, sizeof single);
    return true;
  case TL_FLOAT64:
    memcpy(element, &value, sizeof value);
    return true;
  case TL_FLOAT16:
  case TL_BFLOAT16:
    half = narrow(value, dtype == TL_FLOAT16 ? binary16 : bfloat16);
    memcpy(element, &half, sizeof half);
    return true;
  default:
    if (!(value >= -2147483648.0 && value <= 2147483647.0) ||
        value != floor(value))
      return false;
    return pack_integer(dtype, (int64_t)value, element);
  }
}

bool tl_dtype_pack_integer(int32_t dtype, int64_t value, void *element) {
  switch (dtype) {
  case TL_FLOAT64:
    return tl_dtype_pack(dtype, (double)value, element);
  case TL_FLOAT32:
  case TL_FLOAT16:
  case TL_BFLOAT16:
    return tl_dtype_pack(dtype, integer_to_odd(value), element);
  default:
    return pack_integer(dtype, value, element);
  }
}

double tl_dtype_unpack(int32_t dtype, const void *element) {
  float single;
  double value;
  uint16_t half;
  int32_t integer;
  switch (dtype) {
  case TL_FLOAT32:
    memcpy(&single, element, sizeof single);
    return (double)single;
  case TL_FLOAT64:
    memcpy(&value, element, sizeof value);
    return value;
  case TL_FLOAT16:
  case TL_BFLOAT16:
    memcpy(&half, element, sizeof half);
    return widen(half, dtype == TL_FLOAT16 ? binary16 : bfloat16);
  case TL_INT32:
    memcpy(&integer, element, sizeof integer);
    return integer;
  default:
    return *(const int8_t *)element;
  }
}

/* ---- matmul ---------------------------------------------------------------
 */

tl_dtype tl_matmul_type_input(tl_matmul_type type) {
  return matmuls[type].a;
}

size_t tl_matmul_input_size(tl_matmul_type type) {
  return (size_t)dtypes[matmuls[type].a].size;
}

size_t tl_matmul_output_size(tl_matmul_type type) {
  return (size_t)dtypes[matmuls[type].c].size;
}

const char *tl_matmul_type_compute(tl_matmul_type type) {
  return matmuls[type].compute;
}

bool tl_matmul_type_is_integer(tl_matmul_type type) {
  return dtypes[matmuls[type].c].integer;
}

int32_t tl_dtype_matmul_result(int32_t a, int32_t b) {
  for (int32_t i = 0; i < TL_MATMUL_TYPE_COUNT; i++)
    if ((int32_t)matmuls[i].a == a && (int32_t)matmuls[i].b == b)
      return (int32_t)matmuls[i].c;
  return -1;
}

tl_status tl_dtype_check_matmul(int32_t a, int32_t b, int32_t c,
                                const char *compute, tl_matmul_type *type,
                                tl_error *error) {
  char offered[128] = "";
  bool legal = false;
  for (int32_t i = 0; i < TL_MATMUL_TYPE_COUNT; i++) {
    if ((int32_t)matmuls[i].a != a || (int32_t)matmuls[i].b != b ||
        (int32_t)matmuls[i].c != c)
      continue;
    legal = true;
    *type = (tl_matmul_type)i;
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
