/* Random bytes as .npy files: the parser and the conversions read and write
 * nothing they should not, and what is accepted has the promised properties.
 * Built with -DTIDELOCK_FUZZ=ON, by clang:
 *   build/spec/npy_fuzz -max_total_time=600 corpus build/spec/npy_corpus */
#include "core/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void require(bool holds) {
  if (!holds)
    abort();
}

/* What is accepted is a legal layout, and what is refused says why. */
static void check_header(const tl_npy_header *header, size_t n) {
  const tl_layout *l = &header->layout;
  int64_t size = 1;
  require(header->data <= n);
  require(header->data <= TL_NPY_PREAMBLE + TL_NPY_HEADER);
  require(tl_dtype_name(l->dtype) != NULL && l->dtype != TL_BFLOAT16);
  require(l->dimensions >= 1 && l->dimensions <= TL_MAX_DIMENSIONS);
  require(!header->column_order || l->dimensions > 1);
  require(!header->swapped || tl_dtype_size(l->dtype) > 1);
  for (int32_t i = 0; i < TL_MAX_DIMENSIONS; i++) {
    require(l->shape[i] >= 0 && (i < l->dimensions || l->shape[i] == 1));
    if (l->size > 0)
      require(!__builtin_mul_overflow(size, l->shape[i], &size));
  }
  require(l->size == 0 || l->size == size);
  require(l->size <= INT64_MAX / tl_dtype_size(l->dtype));
}

/* The layout comes back from the header that is written for it. */
static void check_format(const tl_layout *layout) {
  char header[TL_NPY_HEADER_ROOM];
  tl_npy_header again;
  tl_error error;
  require(tl_npy_format(layout, header, &error) == TL_OK);
  require(tl_npy_parse(header, sizeof header, &again, &error) == TL_OK);
  require(again.data == sizeof header && !again.column_order);
  require(again.swapped ==
          (tl_npy_machine_swaps() && tl_dtype_size(layout->dtype) > 1));
  require(memcmp(&again.layout, layout, sizeof *layout) == 0);
}

/* There and back gives the same bytes; `i` x `j` x `k` of them fit. */
static void check_conversions(const uint8_t *bytes, size_t n, size_t element) {
  if (n < 4)
    return;
  size_t i = bytes[0] % 9, j = bytes[1] % 9, k = bytes[2] % 9;
  size_t count = i * j * k, nbytes = count * element;
  if (nbytes > n)
    return;
  uint8_t *there = malloc(nbytes + 1), *back = malloc(nbytes + 1);
  require(there != NULL && back != NULL);
  tl_npy_reorder(there, bytes, i, j, k, element);
  for (size_t x = 0; x < count; x++) {
    size_t place = (x % k * j + x / k % j) * i + x / k / j;
    require(memcmp(there + x * element, bytes + place * element, element) == 0);
  }
  tl_npy_swap(there, count, element);
  tl_npy_swap(there, count, element);
  tl_npy_reorder(back, there, k, j, i, element);
  require(memcmp(back, bytes, nbytes) == 0);
  tl_npy_swap(back, count, element);
  for (size_t x = 0; x < nbytes; x++)
    require(back[x] ==
            bytes[x / element * element + element - 1 - x % element]);
  free(there);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  tl_npy_header header;
  tl_error error = {.code = TL_OK};
  tl_status status = tl_npy_parse(bytes, n, &header, &error);
  size_t data;
  if (status == TL_OK) {
    require(tl_npy_measure(bytes, n < TL_NPY_PREAMBLE ? n : TL_NPY_PREAMBLE,
                           &data, &error) == TL_OK);
    require(data == header.data);
    check_header(&header, n);
    check_format(&header.layout);
    check_conversions(bytes + header.data, n - header.data,
                      (size_t)tl_dtype_size(header.layout.dtype));
  } else {
    require(status == TL_IO || status == TL_UNSUPPORTED);
    require(error.code == (int32_t)status && error.text[0] != '\0');
    for (const char *c = error.text; *c != '\0'; c++)
      require(*c >= ' ' && *c <= '~');
    for (size_t element = 1; element <= 8; element *= 2)
      check_conversions(bytes, n, element);
  }
  return 0;
}
