/* The generator of kernels/philox.h: its words against Random123's published
 * known answers, its log, sin, cos and pairs against the C library's long
 * double, and its fills of every layout against its definition by element. */
#include <float.h>
#include <math.h>

#include "kernels/philox.h"
#include "tap.h"

static tl_error error;
static tl_device *device;

/* ---- words --------------------------------------------------------------- */

/* Random123 1.14, tests/kat_vectors, "philox4x32 10". */
static const struct {
  philox_block counter;
  philox_u32 key[2];
  philox_block words;
} known[] = {
    {{{0, 0, 0, 0}},
     {0, 0},
     {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {0xffffffff, 0xffffffff},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {0xa4093822, 0x299f31d0},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

static void test_known(void) {
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    philox_block words =
        philox4x32_10(known[i].counter, known[i].key[0], known[i].key[1]);
    expect(memcmp(&words, &known[i].words, sizeof words) == 0);
  }
}

static void test_counter(void) {
  const philox_block counter = {{0x89abcdef, 0x01234567, PHILOX_NORMAL64, 0}};
  philox_block wanted = philox4x32_10(counter, 0x76543210, 0xfedcba98);
  philox_block words =
      philox_words(0xfedcba9876543210, 0x0123456789abcdef, PHILOX_NORMAL64);
  expect(memcmp(&words, &wanted, sizeof words) == 0);
}

/* ---- accuracy ------------------------------------------------------------ */

/* The bounds that kernels/philox.h states, in units of the last place. Where
 * long double is no longer than double, what is compared with is off as well.
 */
static const long double slack = LDBL_MANT_DIG > DBL_MANT_DIG ? 0 : 2;
static const long double log_bound = 1.25L, sin_bound = 2, cos_bound = 1.5L,
                         normal_bound = 4.5L;

/* Errors in units of the last place of the true value, which is normal. */
static long double error32(float got, long double wanted) {
  long double unit = ldexpl(1, ilogbl(wanted) - (FLT_MANT_DIG - 1));
  return fabsl((long double)got - wanted) / unit;
}

static long double error64(double got, long double wanted) {
  long double unit = ldexpl(1, ilogbl(wanted) - (DBL_MANT_DIG - 1));
  return fabsl((long double)got - wanted) / unit;
}

static void keep_most(long double *most, long double value) {
  if (!(value <= *most))
    *most = value;
}

static void say(const char *what, long double single, long double wide) {
  tap_note("%s: at most %.3Lf ulp off (float32), %.3Lf (float64)", what, single,
           wide);
}

enum { SAMPLES = 1000000 };

/* Words in which small and large values of either half are frequent. */
static philox_block sample(int i) {
  philox_block x = philox_words(1, (philox_u64)i, PHILOX_UNIFORM32);
  if (i % 2 == 0) {
    int shift = i / 2 % 32;
    x.word[0] >>= shift;
    x.word[1] >>= shift;
    if (i % 4 == 0) {
      x.word[0] = ~x.word[0];
      x.word[1] = ~x.word[1];
    }
  }
  return x;
}

static void test_log(void) {
  long double most32 = 0, most64 = 0;
  for (int i = 0; i < SAMPLES; i++) {
    philox_block x = sample(i);
    float u = (float)x.word[0] * 0x1p-32f + 0x1p-33f;
    double v = (double)philox_join(x.word[1], x.word[0]) * 0x1p-64 + 0x1p-65;
    if (u < 1)
      keep_most(&most32, error32(philox_minus_log32(u), -logl(u)));
    if (v < 1)
      keep_most(&most64, error64(philox_minus_log64(v), -logl(v)));
  }
  for (int e = 0; e <= 65; e++) {
    double v = ldexp(1, -e);
    if (e > 0)
      keep_most(&most64, error64(philox_minus_log64(v), -logl(v)));
    if (e > 0 && e <= 33)
      keep_most(&most32, error32(philox_minus_log32((float)v), -logl(v)));
  }
  say("log", most32, most64);
  expect(most32 < log_bound);
  expect(most64 < log_bound + slack);
  expect(philox_minus_log32(1) == 0 && philox_minus_log64(1) == 0);
}

/* Half of pi, to more digits than any long double has. */
static const long double quarter_turn =
    1.57079632679489661923132169163975144209858469968755L;

static void test_circle(void) {
  long double sin32 = 0, sin64 = 0, cos32 = 0, cos64 = 0;
  for (int i = 0; i < SAMPLES; i++) {
    philox_block x = sample(i);
    double v = (double)philox_join(x.word[1], x.word[0]) * 0x1p-65;
    float u = (float)v;
    if (i % 3 == 0) {
      u = -u;
      v = -v;
    }
    if (u == 0)
      continue;
    keep_most(&sin32, error32(philox_sin32(u), sinl(quarter_turn * u)));
    keep_most(&cos32, error32(philox_cos32(u), cosl(quarter_turn * u)));
    keep_most(&sin64, error64(philox_sin64(v), sinl(quarter_turn * v)));
    keep_most(&cos64, error64(philox_cos64(v), cosl(quarter_turn * v)));
  }
  say("sin", sin32, sin64);
  say("cos", cos32, cos64);
  expect(sin32 < sin_bound);
  expect(sin64 < sin_bound + slack);
  expect(cos32 < cos_bound);
  expect(cos64 < cos_bound + slack);
}

/* Of the pair that u and x, the angle within its quarter, stand for. */
static void pair_true(long double u, long double x, philox_u32 quarter,
                      long double pair[2]) {
  long double r = sqrtl(-2 * logl(u));
  long double c = r * cosl(quarter_turn * x), s = r * sinl(quarter_turn * x);
  const long double turned[4][2] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}};
  pair[0] = turned[quarter][0];
  pair[1] = turned[quarter][1];
}

static void test_pairs(void) {
  long double most32 = 0, most64 = 0, wanted[2];
  for (int i = 0; i < SAMPLES; i++) {
    philox_block w = sample(i);
    float first, second;
    philox_pair32(w.word[0], w.word[1], &first, &second);
    float u = (float)w.word[0] * 0x1p-32f + 0x1p-33f;
    float x = (float)((int64_t)(w.word[1] & 0x3fffffff) * 2 + 1 - 0x40000000);
    if (u < 1) {
      pair_true(u, ldexpl(x, -31), w.word[1] >> 30, wanted);
      keep_most(&most32, error32(first, wanted[0]));
      keep_most(&most32, error32(second, wanted[1]));
    }
    double one, other;
    philox_u64 low = philox_join(w.word[2], w.word[0]);
    philox_u64 high = philox_join(w.word[3], w.word[1]);
    philox_pair64(low, high, &one, &other);
    double v = (double)low * 0x1p-64 + 0x1p-65;
    double y = (double)((int64_t)(high & 0x3fffffffffffffff) * 2 + 1 -
                        0x4000000000000000);
    if (v < 1) {
      pair_true(v, ldexpl(y, -63), (philox_u32)(high >> 62), wanted);
      keep_most(&most64, error64(one, wanted[0]));
      keep_most(&most64, error64(other, wanted[1]));
    }
  }
  say("normal", most32, most64);
  expect(most32 < normal_bound);
  expect(most64 < normal_bound + slack);
}

/* The largest and the smallest that the words can give. */
static void test_ends(void) {
  float a, b;
  double c, d;
  philox_pair32(0, 0x20000000, &a, &b);
  philox_pair64(0, 0x2000000000000000, &c, &d);
  tap_note("farthest: %.4f (float32), %.4f (float64)", (double)a, c);
  expect(a > 6.7f && a < 6.77f && b > 0 && b < 1e-8f);
  expect(c > 9.49 && c < 9.5 && d > 0 && d < 1e-17);
  philox_pair32(0xffffffff, 0xffffffff, &a, &b);
  philox_pair64(0xffffffffffffffff, 0xffffffffffffffff, &c, &d);
  expect(a == 0 && b == 0 && c == 0 && d == 0);
}

/* ---- fills --------------------------------------------------------------- */

/* The element of that number, packed, from the definition. */
static void element_make(int32_t dtype, int32_t distribution, uint64_t seed,
                         uint64_t number, void *packed) {
  float single[PHILOX_LANES32];
  double wide[PHILOX_LANES64];
  int bits = dtype == TL_FLOAT16    ? PHILOX_BITS_FLOAT16
             : dtype == TL_BFLOAT16 ? PHILOX_BITS_BFLOAT16
                                    : PHILOX_BITS_FLOAT32;
  if (dtype == TL_FLOAT64) {
    if (distribution == TL_UNIFORM)
      philox_uniform64(seed, number / PHILOX_LANES64, wide);
    else
      philox_normal64(seed, number / PHILOX_LANES64, wide);
    tl_dtype_pack(dtype, wide[number % PHILOX_LANES64], packed);
    return;
  }
  if (distribution == TL_UNIFORM)
    philox_uniform32(seed, number / PHILOX_LANES32, bits, single);
  else
    philox_normal32(seed, number / PHILOX_LANES32, single);
  tl_dtype_pack(dtype, (double)single[number % PHILOX_LANES32], packed);
}

static const int32_t dtypes[] = {TL_FLOAT32, TL_FLOAT64, TL_FLOAT16,
                                 TL_BFLOAT16};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0], FRAME = 400 };

/* Fills the view and looks at all of the frame: elements by the definition, and
 * between them what was there. */
static void view_check(int32_t dtype, int32_t distribution, int64_t offset,
                       int32_t dimensions, const int64_t *shape,
                       const int64_t *strides) {
  const int64_t size[] = {FRAME};
  const uint64_t seed = 0x123456789abcdef0;
  size_t element = (size_t)tl_dtype_size(dtype);
  unsigned char wanted[FRAME * 8], got[FRAME * 8];
  tl_buffer *frame, *view;
  tl_layout layout;
  must(tl_buffer_create(device, dtype, 1, size, &frame, &error), &error);
  must(fill_with(frame, -9, NULL, &error), &error);
  must(tl_buffer_download(frame, wanted, FRAME * element, &error), &error);
  must(tl_buffer_view(frame, offset, dimensions, shape, strides, &view, &error),
       &error);
  tl_buffer_layout(view, &layout);
  int64_t stride[3] = {0, 0, 1}, sizes[3] = {1, 1, 1};
  for (int32_t i = 0; i < dimensions; i++) {
    stride[3 - dimensions + i] = layout.stride[i];
    sizes[3 - dimensions + i] = layout.shape[i];
  }
  uint64_t number = 0;
  for (int64_t i = 0; i < sizes[0]; i++)
    for (int64_t j = 0; j < sizes[1]; j++)
      for (int64_t k = 0; k < sizes[2]; k++) {
        int64_t place = offset + i * stride[0] + j * stride[1] + k;
        element_make(dtype, distribution, seed, number++,
                     wanted + (size_t)place * element);
      }
  expect_ok(tl_buffer_random(view, distribution, seed, NULL, &error), &error);
  must(tl_buffer_download(frame, got, FRAME * element, &error), &error);
  if (!expect(memcmp(wanted, got, FRAME * element) == 0))
    tap_note("  %s, distribution %d, %d dimensions", tl_dtype_name(dtype),
             (int)distribution, (int)dimensions);
  tl_buffer_release(view);
  tl_buffer_release(frame);
}

static void test_views(void) {
  static const int64_t line[] = {37}, whole[] = {FRAME};
  static const int64_t matrix[] = {5, 7}, cube[] = {3, 4, 5};
  static const int64_t column[] = {9, 1}, nothing[] = {0, 4};
  static const int64_t rows[] = {11}, planes[] = {101, 13}, merged[] = {36, 9};
  static const int64_t stacked[] = {50, 5};
  for (int d = 0; d < DTYPES; d++)
    for (int32_t distribution = TL_UNIFORM; distribution <= TL_NORMAL;
         distribution++) {
      view_check(dtypes[d], distribution, 0, 1, whole, NULL);
      view_check(dtypes[d], distribution, 3, 1, line, NULL);
      view_check(dtypes[d], distribution, 2, 2, matrix, NULL);
      view_check(dtypes[d], distribution, 5, 2, matrix, rows);
      view_check(dtypes[d], distribution, 1, 2, column, rows);
      view_check(dtypes[d], distribution, 0, 2, nothing, NULL);
      view_check(dtypes[d], distribution, 7, 3, cube, NULL);
      view_check(dtypes[d], distribution, 7, 3, cube, planes);
      view_check(dtypes[d], distribution, 1, 3, cube, merged);
      view_check(dtypes[d], distribution, 1, 3, cube, stacked);
    }
}

static void test_refused(void) {
  const int64_t size[] = {4};
  static const int32_t integers[] = {TL_INT32, TL_INT8};
  tl_buffer *buffer;
  for (int i = 0; i < 2; i++) {
    must(tl_buffer_create(device, integers[i], 1, size, &buffer, &error),
         &error);
    expect_fails(tl_buffer_random(buffer, TL_UNIFORM, 0, NULL, &error),
                 TL_UNSUPPORTED, "does not hold numbers of [0, 1)", &error);
    expect_fails(tl_buffer_random(buffer, TL_NORMAL, 0, NULL, &error),
                 TL_UNSUPPORTED, tl_dtype_name(integers[i]), &error);
    tl_buffer_release(buffer);
  }
  must(tl_buffer_create(device, TL_FLOAT32, 1, size, &buffer, &error), &error);
  expect_fails(tl_buffer_random(buffer, 2, 0, NULL, &error),
               TL_INVALID_ARGUMENT, "there is no distribution 2", &error);
  expect_fails(tl_random_check(TL_DTYPE_COUNT, TL_NORMAL, &error),
               TL_INVALID_ARGUMENT, "there is no dtype", &error);
  tl_buffer_release(buffer);
}

static void test_nothing_left(void) {
  tl_memory_info info;
  expect_ok(tl_device_memory(device, &info, &error), &error);
  expect(info.objects == 0 && info.live == 0 && info.pending == 0);
}

int main(void) {
  must(tl_device_open("host", NULL, &device, &error), &error);
  test("words are Random123's known answers", test_known);
  test("seed, block and fill are where they should be", test_counter);
  test("log is accurate", test_log);
  test("sin and cos are accurate", test_circle);
  test("normal pairs are accurate", test_pairs);
  test("the ends of the normal distribution are as documented", test_ends);
  test("fills are as defined by element, in every type and view", test_views);
  test("what has no such numbers is refused by name", test_refused);
  test("nothing is left alive", test_nothing_left);
  tl_device_release(device);
  return tap_end();
}
