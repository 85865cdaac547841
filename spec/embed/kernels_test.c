/* Products: every kernel of the host device in both types, transposed, in
 * batches and views, and the BLAS's rules for alpha, beta and k = 0. */
#include <math.h>
#include <stddef.h>

#include "product.h"
#include "tap.h"

static tl_error error;
static tl_device *device;

static const int32_t dtypes[] = {TL_FLOAT32, TL_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Calls body(kernel, dtype) for each kernel that is to be had. */
static void each_kernel(void (*body)(const char *kernel, int32_t dtype)) {
  tl_kernel_info info;
  int tried = 0;
  for (int32_t i = 0; tl_device_matmul_kernel(device, i, &info); i++) {
    if (!info.available) {
      tap_note("kernel %s: %s", info.name, info.note);
      continue;
    }
    for (int d = 0; d < DTYPES; d++)
      body(info.name, dtypes[d]);
    tried++;
  }
  expect(tried >= 2);
}

static void product_check(tl_buffer *c, const char *kernel, int32_t dtype,
                          double offset) {
  double sum;
  int wrong;
  expect_ok(product_read(c, &sum, &wrong, &error), &error);
  if (!expect(sum == PRODUCT_SUM + offset * PRODUCT_M * PRODUCT_N) ||
      !expect(offset != 0 || wrong == 0))
    tap_note("  kernel %s, %s: sum %g, %d wrong", kernel, tl_dtype_name(dtype),
             sum, wrong);
}

static void plain(const char *kernel, int32_t dtype) {
  const tl_matmul_options options = {.size = sizeof options, .kernel = kernel};
  tl_buffer *a, *b, *c;
  must(product_factors(device, dtype, &a, &b, &error), &error);
  must(product_result(device, dtype, &c, &error), &error);
  must(fill_with(c, NAN, NULL, &error), &error); /* is not read */
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  product_check(c, kernel, dtype, 0);
  tl_buffer_release(c);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_plain(void) {
  each_kernel(plain);
  plain("auto", TL_FLOAT32);
  plain(NULL, TL_FLOAT64);
}

static void transposed(const char *kernel, int32_t dtype) {
  for (int way = 0; way < 4; way++) {
    bool of_a = (way & 1) != 0, of_b = (way & 2) != 0;
    const tl_matmul_options options = {.size = sizeof options,
                                       .kernel = kernel,
                                       .transpose_a = of_a,
                                       .transpose_b = of_b};
    tl_buffer *a, *b, *c;
    tl_layout result;
    must(product_matrix(device, dtype, PRODUCT_M, PRODUCT_K, product_a, of_a,
                        &a, &error),
         &error);
    must(product_matrix(device, dtype, PRODUCT_K, PRODUCT_N, product_b, of_b,
                        &b, &error),
         &error);
    must(product_result(device, dtype, &c, &error), &error);
    expect_ok(tl_matmul_result(a, b, &options, &result, &error), &error);
    expect(result.shape[0] == PRODUCT_M && result.shape[1] == PRODUCT_N);
    expect_ok(tl_matmul(a, b, c, &options, &error), &error);
    product_check(c, kernel, dtype, 0);
    tl_buffer_release(c);
    tl_buffer_release(b);
    tl_buffer_release(a);
  }
}

static void test_transposed(void) {
  each_kernel(transposed);
}

/* c = -1 * a * b + 2 * c with c = a * b + 3 before: a * b + 6 comes out. */
static void scaled(const char *kernel, int32_t dtype) {
  const double one = 1, minus = -1, two = 2;
  tl_matmul_options options = {
      .size = sizeof options, .kernel = kernel, .alpha = &one, .beta = &one};
  tl_buffer *a, *b, *c;
  must(product_factors(device, dtype, &a, &b, &error), &error);
  must(product_result(device, dtype, &c, &error), &error);
  must(fill_with(c, 3, NULL, &error), &error);
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  product_check(c, kernel, dtype, 3);
  options.alpha = &minus;
  options.beta = &two;
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  product_check(c, kernel, dtype, 6);
  tl_buffer_release(c);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_scaled(void) {
  each_kernel(scaled);
}

/* a, b and c as parts of larger buffers, whose other elements are NaN and stay
 * as they are. */
static void in_views(const char *kernel, int32_t dtype) {
  enum { WIDE = 40, HIGH = 30 };
  const int64_t frame[] = {HIGH, WIDE}, strides[] = {WIDE};
  const int64_t shapes[3][2] = {
      {PRODUCT_M, PRODUCT_K}, {PRODUCT_K, PRODUCT_N}, {PRODUCT_M, PRODUCT_N}};
  const tl_matmul_options options = {.size = sizeof options, .kernel = kernel};
  tl_buffer *frames[3], *views[3], *a, *b;
  must(product_factors(device, dtype, &a, &b, &error), &error);
  for (int i = 0; i < 3; i++) {
    must(tl_buffer_create(device, dtype, 2, frame, &frames[i], &error), &error);
    must(fill_with(frames[i], NAN, NULL, &error), &error);
    must(tl_buffer_view(frames[i], 3 * WIDE + 5 + i, 2, shapes[i], strides,
                        &views[i], &error),
         &error);
  }
  expect_ok(tl_buffer_copy(views[0], a, NULL, &error), &error);
  expect_ok(tl_buffer_copy(views[1], b, NULL, &error), &error);
  expect_ok(tl_matmul(views[0], views[1], views[2], &options, &error), &error);
  product_check(views[2], kernel, dtype, 0);
  unsigned char data[HIGH * WIDE * sizeof(double)];
  size_t element = (size_t)tl_dtype_size(dtype);
  expect_ok(tl_buffer_download(frames[2], data, HIGH * WIDE * element, &error),
            &error);
  int numbers = 0;
  for (size_t i = 0; i < HIGH * WIDE; i++)
    numbers += !isnan(tl_dtype_unpack(dtype, data + i * element));
  expect(numbers == PRODUCT_M * PRODUCT_N);
  for (int i = 0; i < 3; i++) {
    tl_buffer_release(views[i]);
    tl_buffer_release(frames[i]);
  }
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_views(void) {
  each_kernel(in_views);
}

/* Three products in one call; each has the factors of the plain one. */
static void batched(const char *kernel, int32_t dtype) {
  enum { BATCH = 3 };
  const int64_t shapes[3][3] = {{BATCH, PRODUCT_M, PRODUCT_K},
                                {BATCH, PRODUCT_K, PRODUCT_N},
                                {BATCH, PRODUCT_M, PRODUCT_N}};
  const tl_matmul_options options = {.size = sizeof options, .kernel = kernel};
  tl_buffer *all[3], *factors[2];
  must(product_factors(device, dtype, &factors[0], &factors[1], &error),
       &error);
  for (int i = 0; i < 3; i++) {
    must(tl_buffer_create(device, dtype, 3, shapes[i], &all[i], &error),
         &error);
    for (int64_t n = 0; n < BATCH && i < 2; n++) {
      tl_buffer *one;
      must(tl_buffer_view(all[i], n * shapes[i][1] * shapes[i][2], 2,
                          shapes[i] + 1, NULL, &one, &error),
           &error);
      must(tl_buffer_copy(one, factors[i], NULL, &error), &error);
      tl_buffer_release(one);
    }
  }
  expect_ok(tl_matmul(all[0], all[1], all[2], &options, &error), &error);
  for (int64_t n = 0; n < BATCH; n++) {
    tl_buffer *one;
    must(tl_buffer_view(all[2], n * PRODUCT_M * PRODUCT_N, 2, shapes[2] + 1,
                        NULL, &one, &error),
         &error);
    product_check(one, kernel, dtype, 0);
    tl_buffer_release(one);
  }
  for (int i = 0; i < 3; i++)
    tl_buffer_release(all[i]);
  tl_buffer_release(factors[0]);
  tl_buffer_release(factors[1]);
}

static void test_batched(void) {
  each_kernel(batched);
}

/* k = 0 and alpha = 0 leave beta * c, whatever a and b hold; NaN elsewhere is
 * not lost. */
static void special(const char *kernel, int32_t dtype) {
  const double zero = 0, one = 1, two = 2;
  const int64_t high[] = {PRODUCT_M, 0}, wide[] = {0, PRODUCT_N};
  tl_matmul_options options = {
      .size = sizeof options, .kernel = kernel, .beta = &two};
  tl_buffer *a, *b, *c, *tall, *flat;
  double sum;
  int wrong;
  must(product_factors(device, dtype, &a, &b, &error), &error);
  must(product_result(device, dtype, &c, &error), &error);
  must(tl_buffer_create(device, dtype, 2, high, &tall, &error), &error);
  must(tl_buffer_create(device, dtype, 2, wide, &flat, &error), &error);
  must(fill_with(c, 4, NULL, &error), &error);
  expect_ok(tl_matmul(tall, flat, c, &options, &error), &error);
  expect_ok(product_read(c, &sum, &wrong, &error), &error);
  expect(sum == 8 * PRODUCT_M * PRODUCT_N);

  must(fill_with(a, NAN, NULL, &error), &error);
  options.alpha = &zero;
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  expect_ok(product_read(c, &sum, &wrong, &error), &error);
  expect(sum == 16 * PRODUCT_M * PRODUCT_N);
  options.alpha = &one;
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  expect_ok(product_read(c, &sum, &wrong, &error), &error);
  expect(isnan(sum));
  options.beta = &zero; /* forgets the NaN in c, if not those in a */
  options.alpha = &zero;
  expect_ok(tl_matmul(a, b, c, &options, &error), &error);
  expect_ok(product_read(c, &sum, &wrong, &error), &error);
  expect(sum == 0);
  tl_buffer_release(flat);
  tl_buffer_release(tall);
  tl_buffer_release(c);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_special(void) {
  each_kernel(special);
}

/* With m = 0 or n = 0 there is nothing to do. */
static void empty(const char *kernel, int32_t dtype) {
  const int64_t none[] = {0, PRODUCT_K}, result[] = {0, PRODUCT_N};
  const tl_matmul_options options = {.size = sizeof options, .kernel = kernel};
  tl_buffer *a, *b, *nothing, *c;
  must(product_factors(device, dtype, &a, &b, &error), &error);
  must(tl_buffer_create(device, dtype, 2, none, &nothing, &error), &error);
  must(tl_buffer_create(device, dtype, 2, result, &c, &error), &error);
  expect_ok(tl_matmul(nothing, b, c, &options, &error), &error);
  tl_buffer_release(c);
  tl_buffer_release(nothing);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_empty(void) {
  each_kernel(empty);
}

/* A caller that was built against fewer options: what lies behind `size` is
 * garbage that must not be followed. */
static void test_options_size(void) {
  struct {
    tl_matmul_options known;
    int64_t unknown[4];
  } options;
  tl_buffer *a, *b, *c;
  must(product_factors(device, TL_FLOAT32, &a, &b, &error), &error);
  must(product_result(device, TL_FLOAT32, &c, &error), &error);
  const size_t sizes[] = {offsetof(tl_matmul_options, stream),
                          offsetof(tl_matmul_options, kernel),
                          offsetof(tl_matmul_options, transpose_a),
                          offsetof(tl_matmul_options, alpha)};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    memset(&options, 0x7f, sizeof options);
    tl_matmul_options none = {.size = sizes[i]};
    memcpy(&options.known, &none, sizes[i]);
    options.known.size = sizes[i];
    must(fill_with(c, 0, NULL, &error), &error);
    expect_ok(tl_matmul(a, b, c, &options.known, &error), &error);
    product_check(c, "auto", TL_FLOAT32, 0);
  }
  options.known.size = 0; /* forgotten: not taken for all defaults */
  expect_fails(tl_matmul(a, b, c, &options.known, &error), TL_INVALID_ARGUMENT,
               "sizeof(tl_matmul_options)", &error);
  memset(&options, 0x7f, sizeof options);
  options.known = (tl_matmul_options){.size = sizeof options};
  expect_ok(tl_matmul(a, b, c, &options.known, &error), &error);
  expect_ok(tl_matmul(a, b, c, NULL, &error), &error);
  product_check(c, "auto", TL_FLOAT32, 0);
  tl_buffer_release(c);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_refused(void) {
  const tl_matmul_options unknown = {.size = sizeof unknown, .kernel = "fast"};
  const tl_matmul_options tf32 = {.size = sizeof tf32, .compute = "tf32"};
  const int64_t vector[] = {PRODUCT_K};
  tl_buffer *a, *b, *c, *a64, *b64, *line;
  tl_layout result;
  must(product_factors(device, TL_FLOAT32, &a, &b, &error), &error);
  must(product_factors(device, TL_FLOAT64, &a64, &b64, &error), &error);
  must(product_result(device, TL_FLOAT32, &c, &error), &error);
  must(tl_buffer_create(device, TL_FLOAT32, 1, vector, &line, &error), &error);
  expect_fails(tl_matmul(b, a, c, NULL, &error), TL_INVALID_ARGUMENT,
               "19 columns against 17 rows", &error);
  expect_fails(tl_matmul(a, b, a, NULL, &error), TL_INVALID_ARGUMENT,
               "c is 17x23, the product is 17x19", &error);
  expect_fails(tl_matmul(a, line, c, NULL, &error), TL_INVALID_ARGUMENT,
               "b has 1 dimension", &error);
  expect_fails(tl_matmul(a, b64, c, NULL, &error), TL_INVALID_ARGUMENT,
               "dtype mismatch", &error);
  expect_fails(tl_matmul(a64, b64, c, NULL, &error), TL_INVALID_ARGUMENT,
               "dtype mismatch", &error);
  expect_fails(tl_matmul(a, b, c, &unknown, &error), TL_INVALID_ARGUMENT,
               "no kernel 'fast'", &error);
  expect_fails(tl_matmul(a, b, c, &tf32, &error), TL_UNSUPPORTED, "tf32",
               &error);
  memset(&result, 0x5a, sizeof result);
  expect_fails(tl_matmul_result(b, a, NULL, &result, &error),
               TL_INVALID_ARGUMENT, "columns against", &error);
  expect(result.size == 0 && result.dimensions == 0);
  const int64_t square[] = {PRODUCT_M, PRODUCT_M};
  tl_buffer *s, *t, *part;
  must(tl_buffer_create(device, TL_FLOAT32, 2, square, &s, &error), &error);
  must(tl_buffer_view(s, 0, 2, square, NULL, &t, &error), &error);
  must(tl_buffer_create(device, TL_FLOAT32, 2, square, &part, &error), &error);
  expect_fails(tl_matmul(s, part, t, NULL, &error), TL_INVALID_ARGUMENT,
               "output c overlaps input a", &error);
  expect_fails(tl_matmul(part, s, t, NULL, &error), TL_INVALID_ARGUMENT,
               "output c overlaps input b", &error);
  tl_buffer_release(part);
  tl_buffer_release(t);
  tl_buffer_release(s);
  tl_buffer_release(line);
  tl_buffer_release(c);
  tl_buffer_release(b64);
  tl_buffer_release(a64);
  tl_buffer_release(b);
  tl_buffer_release(a);
}

static void test_nothing_left(void) {
  tl_memory_info info;
  expect_ok(tl_device_memory(device, &info, &error), &error);
  expect(info.objects == 0 && info.live == 0 && info.pending == 0);
}

int main(void) {
  must(tl_device_open("host", NULL, &device, &error), &error);
  test("every kernel multiplies 17x19x23 right in both types", test_plain);
  test("transposed factors give the same product", test_transposed);
  test("alpha and beta scale the product and what was there", test_scaled);
  test("views are read and written inside their bounds only", test_views);
  test("a batch is as many products", test_batched);
  test("k = 0, alpha = 0 and beta = 0 follow the BLAS's rules", test_special);
  test("m = 0 is nothing to do", test_empty);
  test("option structs of another size are read as far as they go",
       test_options_size);
  test("what does not fit is refused by name", test_refused);
  test("nothing is left alive", test_nothing_left);
  tl_device_release(device);
  return tap_end();
}
