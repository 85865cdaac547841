/* Random numbers that are the same, bit for bit, on every device: Philox4x32-10
 * (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * SC11) and what uniform and normal fills make of it. C99, and CUDA C where
 * __CUDACC__ is defined; includes nothing of src/.
 *
 * A fill with a 64-bit seed is defined by element, whatever the work is split
 * into. Elements count from 0, packed in row order, also where rows lie apart.
 *
 *   key      seed, low word first
 *   counter  block, low word first; then the fill (a philox_fill); then 0
 *
 *   float32  a block is 4 elements, 4 * block + 0..3; uniform: one word each
 *   float64  a block is 2 elements, 2 * block + 0..1; uniform: two words each,
 *            the low one first
 *
 * Uniform numbers are the topmost bits of the word over a power of two, exact:
 * 24 bits for float32, 53 for float64. All are at least 0 and below 1. float16
 * and bfloat16 keep 11 and 8 bits of the word that float32 has 24 of: as many
 * as they hold exactly, so that none is rounded, and none up to 1.
 *
 * Normal numbers are Box and Muller's pairs (Ann. Math. Stat. 29, 1958): r cos
 * and r sin, r = sqrt(-2 log u), from half a block (float32) or a whole one
 * (float64): u from the first half of the words, the angle from the second. u
 * is never 0, which bounds r: 6.77 for float32 and 9.5 for float64. float16 and
 * bfloat16 are the float32 number, rounded once to nearest even.
 *
 * The same bits: all that is computed is + - * / and sqrt of IEEE 754, each
 * rounded on its own, and conversions of integers. The compiler must not
 * contract a * b + c (-ffp-contract=off; under CUDA the intrinsics see to it),
 * nor compute in a wider type than is written (FLT_EVAL_METHOD 0). There are no
 * subnormal numbers on the way.
 *
 * log, sin and cos are polynomials made for this file by Remez exchange in 50
 * digits, the argument reduced in integers. Largest errors measured against
 * long double at a million arguments, in units of the last place, and the
 * bounds that spec/embed/philox_test.c asserts:
 *
 *            float32  float64  bound
 *   log        1.07     1.07   1.25
 *   sin        1.69     1.50   2
 *   cos        1.23     1.26   1.5
 *   normal     3.71     3.15   4.5    of the pair that u and the angle give */
#ifndef TIDELOCK_PHILOX_H
#define TIDELOCK_PHILOX_H

#ifdef __FAST_MATH__
#error "philox.h: -ffast-math changes the numbers"
#endif

#ifdef __CUDACC__
#define PHILOX_FUNCTION __device__ static inline
#else
#include <math.h>
#include <string.h>
#define PHILOX_FUNCTION static inline
#endif

typedef unsigned int philox_u32;
typedef unsigned long long philox_u64;

/* A counter, or the words that come of it. */
typedef struct philox_block {
  philox_u32 word[4];
} philox_block;

/* The third word of the counter: so no two fills of a seed share words, but for
 * float16 and bfloat16, which are made of float32's. */
typedef enum philox_fill {
  PHILOX_UNIFORM32 = 0,
  PHILOX_NORMAL32 = 1,
  PHILOX_UNIFORM64 = 2,
  PHILOX_NORMAL64 = 3
} philox_fill;

/* Elements of a block, and bits of a uniform number. */
enum { PHILOX_LANES32 = 4, PHILOX_LANES64 = 2 };
enum {
  PHILOX_BITS_FLOAT32 = 24,
  PHILOX_BITS_FLOAT16 = 11,
  PHILOX_BITS_BFLOAT16 = 8
};

/* ---- words --------------------------------------------------------------- */

/* Constants of the paper's table 2: the multipliers, and the Weyl increments of
 * the key, from the golden ratio and the root of 3. */
PHILOX_FUNCTION philox_block philox4x32_10(philox_block counter,
                                           philox_u32 key0, philox_u32 key1) {
  philox_block x = counter;
  for (int round = 0; round < 10; round++) {
    philox_u64 a = (philox_u64)0xd2511f53u * x.word[0];
    philox_u64 b = (philox_u64)0xcd9e8d57u * x.word[2];
    philox_block next;
    next.word[0] = (philox_u32)(b >> 32) ^ x.word[1] ^ key0;
    next.word[1] = (philox_u32)b;
    next.word[2] = (philox_u32)(a >> 32) ^ x.word[3] ^ key1;
    next.word[3] = (philox_u32)a;
    x = next;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return x;
}

PHILOX_FUNCTION philox_block philox_words(philox_u64 seed, philox_u64 block,
                                          philox_fill fill) {
  philox_block counter;
  counter.word[0] = (philox_u32)block;
  counter.word[1] = (philox_u32)(block >> 32);
  counter.word[2] = (philox_u32)fill;
  counter.word[3] = 0;
  return philox4x32_10(counter, (philox_u32)seed, (philox_u32)(seed >> 32));
}

/* ---- arithmetic: one rounding each --------------------------------------- */

#ifdef __CUDACC__
#define PHILOX_ARITHMETIC(name, type, c_operator, cuda_function)               \
  PHILOX_FUNCTION type name(type a, type b) {                                  \
    return cuda_function(a, b);                                                \
  }
#else
#define PHILOX_ARITHMETIC(name, type, c_operator, cuda_function)               \
  PHILOX_FUNCTION type name(type a, type b) {                                  \
    return a c_operator b;                                                     \
  }
#endif

PHILOX_ARITHMETIC(philox_add32, float, +, __fadd_rn)
PHILOX_ARITHMETIC(philox_subtract32, float, -, __fsub_rn)
PHILOX_ARITHMETIC(philox_multiply32, float, *, __fmul_rn)
PHILOX_ARITHMETIC(philox_divide32, float, /, __fdiv_rn)
PHILOX_ARITHMETIC(philox_add64, double, +, __dadd_rn)
PHILOX_ARITHMETIC(philox_subtract64, double, -, __dsub_rn)
PHILOX_ARITHMETIC(philox_multiply64, double, *, __dmul_rn)
PHILOX_ARITHMETIC(philox_divide64, double, /, __ddiv_rn)
#undef PHILOX_ARITHMETIC

#ifdef __CUDACC__
PHILOX_FUNCTION float philox_root32(float x) {
  return __fsqrt_rn(x);
}
PHILOX_FUNCTION double philox_root64(double x) {
  return __dsqrt_rn(x);
}
PHILOX_FUNCTION philox_u32 philox_bits32(float x) {
  return __float_as_uint(x);
}
PHILOX_FUNCTION float philox_from_bits32(philox_u32 bits) {
  return __uint_as_float(bits);
}
PHILOX_FUNCTION philox_u64 philox_bits64(double x) {
  return (philox_u64)__double_as_longlong(x);
}
PHILOX_FUNCTION double philox_from_bits64(philox_u64 bits) {
  return __longlong_as_double((long long)bits);
}
#else
PHILOX_FUNCTION float philox_root32(float x) {
  return sqrtf(x);
}
PHILOX_FUNCTION double philox_root64(double x) {
  return sqrt(x);
}
PHILOX_FUNCTION philox_u32 philox_bits32(float x) {
  philox_u32 bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
PHILOX_FUNCTION float philox_from_bits32(philox_u32 bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
PHILOX_FUNCTION philox_u64 philox_bits64(double x) {
  philox_u64 bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
PHILOX_FUNCTION double philox_from_bits64(philox_u64 bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

/* c + x * y, rounded twice. */
PHILOX_FUNCTION float philox_step32(float c, float x, float y) {
  float product = philox_multiply32(x, y);
  return philox_add32(c, product);
}

PHILOX_FUNCTION double philox_step64(double c, double x, double y) {
  double product = philox_multiply64(x, y);
  return philox_add64(c, product);
}

/* ---- log ------------------------------------------------------------------
 * u = m / 2^e with m from sqrt(1/2) to sqrt(2), by the bits. With f = m - 1,
 * s = f / (2 + f) and z = s^2, log m = 2 atanh s = f - s (f - R(z)), where
 * R(z) = 2/3 z + 2/5 z^2 + ..., here the polynomial nearest to it; f is exact.
 * log 2 is in two parts, the first short enough for exact products with e. */

/* -log u for 2^-33 <= u <= 1. The polynomial is off by 2^-30 of the result. */
PHILOX_FUNCTION float philox_minus_log32(float u) {
  philox_u32 bits = philox_bits32(u);
  philox_u32 e = (0x3fb504f2u - bits) >> 23; /* minuend: just below sqrt 2 */
  float n = (float)e;
  float f = philox_subtract32(philox_from_bits32(bits + (e << 23)), 1.0f);
  float s = philox_divide32(f, philox_add32(2.0f, f));
  float z = philox_multiply32(s, s);
  float p = 0x1.31e2f6p-2f;
  p = philox_step32(0x1.995ebap-2f, p, z);
  p = philox_step32(0x1.55557ap-1f, p, z);
  float r = philox_multiply32(p, z);
  float small = philox_multiply32(s, philox_subtract32(f, r));
  small = philox_step32(small, n, 0x1.7f7d1cp-20f);
  float large = philox_subtract32(philox_multiply32(n, 0x1.62e4p-1f), f);
  return philox_add32(large, small);
}

/* -log u for 2^-65 <= u <= 1. The polynomial is off by 2^-59 of the result. */
PHILOX_FUNCTION double philox_minus_log64(double u) {
  philox_u64 bits = philox_bits64(u);
  philox_u64 e = (0x3ff6a09e667f3bccull - bits) >> 52;
  double n = (double)e;
  double f = philox_subtract64(philox_from_bits64(bits + (e << 52)), 1.0);
  double s = philox_divide64(f, philox_add64(2.0, f));
  double z = philox_multiply64(s, s);
  double p = 0x1.2f056abfabc1dp-3;
  p = philox_step64(0x1.39a1b9feb2d54p-3, p, z);
  p = philox_step64(0x1.74663eefd2a96p-3, p, z);
  p = philox_step64(0x1.c71c520936499p-3, p, z);
  p = philox_step64(0x1.24924941f15b9p-2, p, z);
  p = philox_step64(0x1.999999997fdb3p-2, p, z);
  p = philox_step64(0x1.5555555555592p-1, p, z);
  double r = philox_multiply64(p, z);
  double small = philox_multiply64(s, philox_subtract64(f, r));
  small = philox_step64(small, n, -0x1.8432a1b0e2634p-43);
  double large = philox_subtract64(philox_multiply64(n, 0x1.62e42fefa4p-1), f);
  return philox_add64(large, small);
}

/* ---- sin and cos -----------------------------------------------------------
 * Of x quarter turns, |x| <= 1/2: sin(pi/2 x) = x S(x^2), where S has the least
 * relative error, and cos(pi/2 x) = 1 + x^2 C(x^2), the least absolute one. */

/* The polynomial is off by 2^-28 of the result. */
PHILOX_FUNCTION float philox_sin32(float x) {
  float w = philox_multiply32(x, x);
  float p = -0x1.2d9302p-8f;
  p = philox_step32(0x1.465e92p-4f, p, w);
  p = philox_step32(-0x1.4abbbap-1f, p, w);
  p = philox_step32(0x1.921fb6p+0f, p, w);
  return philox_multiply32(p, x);
}

/* The polynomial is off by 2^-34. */
PHILOX_FUNCTION float philox_cos32(float x) {
  float w = philox_multiply32(x, x);
  float p = 0x1.d9f7b6p-11f;
  p = philox_step32(-0x1.55c664p-6f, p, w);
  p = philox_step32(0x1.03c1dep-2f, p, w);
  p = philox_step32(-0x1.3bd3ccp+0f, p, w);
  return philox_step32(1.0f, p, w);
}

/* The polynomial is off by 2^-58 of the result. */
PHILOX_FUNCTION double philox_sin64(double x) {
  double w = philox_multiply64(x, x);
  double p = 0x1.e3eed62bb4ebcp-25;
  p = philox_step64(-0x1.e30063a1b8bfbp-19, p, w);
  p = philox_step64(0x1.50782fca3af0ap-13, p, w);
  p = philox_step64(-0x1.32d2cce2d538ap-8, p, w);
  p = philox_step64(0x1.466bc67758700p-4, p, w);
  p = philox_step64(-0x1.4abbce625be41p-1, p, w);
  p = philox_step64(0x1.921fb54442d18p+0, p, w);
  return philox_multiply64(p, x);
}

/* The polynomial is off by 2^-64. */
PHILOX_FUNCTION double philox_cos64(double x) {
  double w = philox_multiply64(x, x);
  double p = -0x1.b26fe96e18833p-28;
  p = philox_step64(0x1.f9cc6ad359d10p-22, p, w);
  p = philox_step64(-0x1.a6d1ecb744913p-16, p, w);
  p = philox_step64(0x1.e1f50683b431cp-11, p, w);
  p = philox_step64(-0x1.55d3c7e3c95bcp-6, p, w);
  p = philox_step64(0x1.03c1f081b5ab0p-2, p, w);
  p = philox_step64(-0x1.3bd3cc9be45dep+0, p, w);
  return philox_step64(1.0, p, w);
}

/* ---- pairs -----------------------------------------------------------------
 * The angle's two topmost bits count quarter turns; the others say how far in a
 * quarter, from -1/2 to 1/2 and never 0: so no sine is 0. All of that is in
 * integers, up to the one rounding to a float. */

PHILOX_FUNCTION void philox_pair32(philox_u32 radius, philox_u32 angle,
                                   float *first, float *second) {
  float u = philox_step32(0x1p-33f, (float)radius, 0x1p-32f);
  float r = philox_root32(philox_multiply32(2.0f, philox_minus_log32(u)));
  philox_u32 quarter = angle >> 30;
  int place = (int)((angle << 1 & 0x7fffffffu) | 1u) - 0x40000000;
  float x = philox_multiply32((float)place, 0x1p-31f);
  float c = philox_multiply32(r, philox_cos32(x));
  float s = philox_multiply32(r, philox_sin32(x));
  float across = (quarter & 1u) != 0 ? s : c;
  float up = (quarter & 1u) != 0 ? c : s;
  *first = quarter == 1u || quarter == 2u ? -across : across;
  *second = quarter >= 2u ? -up : up;
}

PHILOX_FUNCTION void philox_pair64(philox_u64 radius, philox_u64 angle,
                                   double *first, double *second) {
  double u = philox_step64(0x1p-65, (double)radius, 0x1p-64);
  double r = philox_root64(philox_multiply64(2.0, philox_minus_log64(u)));
  philox_u32 quarter = (philox_u32)(angle >> 62);
  long long place = (long long)((angle << 1 & 0x7fffffffffffffffull) | 1u) -
                    0x4000000000000000ll;
  double x = philox_multiply64((double)place, 0x1p-63);
  double c = philox_multiply64(r, philox_cos64(x));
  double s = philox_multiply64(r, philox_sin64(x));
  double across = (quarter & 1u) != 0 ? s : c;
  double up = (quarter & 1u) != 0 ? c : s;
  *first = quarter == 1u || quarter == 2u ? -across : across;
  *second = quarter >= 2u ? -up : up;
}

/* ---- a block's elements: what a device calls ----------------------------- */

/* `bits` is one of PHILOX_BITS_...: of float32, or of a narrower type. */
PHILOX_FUNCTION void philox_uniform32(philox_u64 seed, philox_u64 block,
                                      int bits, float element[PHILOX_LANES32]) {
  philox_block x = philox_words(seed, block, PHILOX_UNIFORM32);
  float unit = 1.0f / (float)(1u << bits); /* a power of two: exact */
  for (int i = 0; i < PHILOX_LANES32; i++)
    element[i] = philox_multiply32((float)(x.word[i] >> (32 - bits)), unit);
}

PHILOX_FUNCTION void philox_normal32(philox_u64 seed, philox_u64 block,
                                     float element[PHILOX_LANES32]) {
  philox_block x = philox_words(seed, block, PHILOX_NORMAL32);
  philox_pair32(x.word[0], x.word[1], &element[0], &element[1]);
  philox_pair32(x.word[2], x.word[3], &element[2], &element[3]);
}

PHILOX_FUNCTION philox_u64 philox_join(philox_u32 low, philox_u32 high) {
  return (philox_u64)high << 32 | low;
}

PHILOX_FUNCTION void philox_uniform64(philox_u64 seed, philox_u64 block,
                                      double element[PHILOX_LANES64]) {
  philox_block x = philox_words(seed, block, PHILOX_UNIFORM64);
  for (int i = 0; i < PHILOX_LANES64; i++) {
    philox_u64 word = philox_join(x.word[2 * i], x.word[2 * i + 1]);
    element[i] = philox_multiply64((double)(word >> 11), 0x1p-53);
  }
}

PHILOX_FUNCTION void philox_normal64(philox_u64 seed, philox_u64 block,
                                     double element[PHILOX_LANES64]) {
  philox_block x = philox_words(seed, block, PHILOX_NORMAL64);
  philox_pair64(philox_join(x.word[0], x.word[1]),
                philox_join(x.word[2], x.word[3]), &element[0], &element[1]);
}

#endif
