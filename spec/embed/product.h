/* The product that the tests make: a[i][k] = (i K + k) % 7, 17 x 23, times
 * b[k][j] = (k N + j) % 5, 23 x 19. Every element is a small integer, exact in
 * each type and in any order of summation; together they are 44316. */
#ifndef TIDELOCK_SPEC_PRODUCT_H
#define TIDELOCK_SPEC_PRODUCT_H

#include "tidelock.h"

enum { PRODUCT_M = 17, PRODUCT_N = 19, PRODUCT_K = 23, PRODUCT_SUM = 44316 };

static inline double product_a(int64_t i, int64_t k) {
  return (double)((i * PRODUCT_K + k) % 7);
}

static inline double product_b(int64_t k, int64_t j) {
  return (double)((k * PRODUCT_N + j) % 5);
}

static inline double product_c(int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < PRODUCT_K; k++)
    sum += product_a(i, k) * product_b(k, j);
  return sum;
}

/* A buffer whose element (i, j) is of(i, j), stored transposed if asked. */
static inline tl_status product_matrix(tl_device *device, int32_t dtype,
                                       int64_t rows, int64_t columns,
                                       double (*of)(int64_t, int64_t),
                                       bool transposed, tl_buffer **buffer,
                                       tl_error *error) {
  unsigned char data[PRODUCT_K * PRODUCT_N * sizeof(double)];
  size_t element = (size_t)tl_dtype_size(dtype);
  int64_t shape[] = {transposed ? columns : rows, transposed ? rows : columns};
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t place = transposed ? j * rows + i : i * columns + j;
      tl_dtype_pack(dtype, of(i, j), data + (size_t)place * element);
    }
  tl_status status = tl_buffer_create(device, dtype, 2, shape, buffer, error);
  if (status == TL_OK)
    status = tl_buffer_upload(*buffer, data, (size_t)(rows * columns) * element,
                              error);
  if (status != TL_OK) {
    tl_buffer_release(*buffer);
    *buffer = NULL;
  }
  return status;
}

/* Both factors; after a failure neither. */
static inline tl_status product_factors(tl_device *device, int32_t dtype,
                                        tl_buffer **a, tl_buffer **b,
                                        tl_error *error) {
  *b = NULL;
  tl_status status = product_matrix(device, dtype, PRODUCT_M, PRODUCT_K,
                                    product_a, false, a, error);
  if (status == TL_OK)
    status = product_matrix(device, dtype, PRODUCT_K, PRODUCT_N, product_b,
                            false, b, error);
  if (status != TL_OK) {
    tl_buffer_release(*a);
    *a = NULL;
  }
  return status;
}

/* An empty buffer for the product. */
static inline tl_status product_result(tl_device *device, int32_t dtype,
                                       tl_buffer **c, tl_error *error) {
  const int64_t shape[] = {PRODUCT_M, PRODUCT_N};
  return tl_buffer_create(device, dtype, 2, shape, c, error);
}

/* Waits for the product and adds it up. *wrong counts the elements that are
 * not what they should be. */
static inline tl_status product_read(tl_buffer *c, double *sum, int *wrong,
                                     tl_error *error) {
  unsigned char data[PRODUCT_M * PRODUCT_N * sizeof(double)];
  tl_layout layout;
  tl_buffer_layout(c, &layout);
  size_t element = (size_t)tl_dtype_size(layout.dtype);
  *sum = 0;
  *wrong = 0;
  tl_status status =
      tl_buffer_download(c, data, PRODUCT_M * PRODUCT_N * element, error);
  for (int64_t i = 0; i < PRODUCT_M && status == TL_OK; i++)
    for (int64_t j = 0; j < PRODUCT_N; j++) {
      size_t place = (size_t)(i * PRODUCT_N + j);
      double value = tl_dtype_unpack(layout.dtype, data + place * element);
      *sum += value;
      *wrong += value != product_c(i, j);
    }
  return status;
}

#endif
