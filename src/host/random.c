/* Random fills: kernels/philox.h, one block of its elements after the other. */
#include <string.h>

#include "host/host.h"
#include "kernels/philox.h"

enum { MOST_LANES = PHILOX_LANES32, MOST_BYTES = 16 };

/* Writes the elements of one block of the generator, packed. */
typedef void block_make(uint64_t seed, uint64_t block, unsigned char *packed);

static void pack(int32_t dtype, const float *element, unsigned char *packed) {
  size_t size = (size_t)tl_dtype_size(dtype);
  for (size_t i = 0; i < PHILOX_LANES32; i++)
    tl_dtype_pack(dtype, (double)element[i], packed + i * size);
}

static void uniform_float32(uint64_t seed, uint64_t block,
                            unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_uniform32(seed, block, PHILOX_BITS_FLOAT32, element);
  memcpy(packed, element, sizeof element);
}

static void uniform_float64(uint64_t seed, uint64_t block,
                            unsigned char *packed) {
  double element[PHILOX_LANES64];
  philox_uniform64(seed, block, element);
  memcpy(packed, element, sizeof element);
}

static void uniform_float16(uint64_t seed, uint64_t block,
                            unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_uniform32(seed, block, PHILOX_BITS_FLOAT16, element);
  pack(TL_FLOAT16, element, packed);
}

static void uniform_bfloat16(uint64_t seed, uint64_t block,
                             unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_uniform32(seed, block, PHILOX_BITS_BFLOAT16, element);
  pack(TL_BFLOAT16, element, packed);
}

static void normal_float32(uint64_t seed, uint64_t block,
                           unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_normal32(seed, block, element);
  memcpy(packed, element, sizeof element);
}

static void normal_float64(uint64_t seed, uint64_t block,
                           unsigned char *packed) {
  double element[PHILOX_LANES64];
  philox_normal64(seed, block, element);
  memcpy(packed, element, sizeof element);
}

static void normal_float16(uint64_t seed, uint64_t block,
                           unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_normal32(seed, block, element);
  pack(TL_FLOAT16, element, packed);
}

static void normal_bfloat16(uint64_t seed, uint64_t block,
                            unsigned char *packed) {
  float element[PHILOX_LANES32];
  philox_normal32(seed, block, element);
  pack(TL_BFLOAT16, element, packed);
}

static const struct {
  block_make *make[TL_NORMAL + 1]; /* by distribution */
  uint64_t lanes;                  /* elements of a block */
} makers[TL_DTYPE_COUNT] = {
    [TL_FLOAT32] = {{uniform_float32, normal_float32}, PHILOX_LANES32},
    [TL_FLOAT64] = {{uniform_float64, normal_float64}, PHILOX_LANES64},
    [TL_FLOAT16] = {{uniform_float16, normal_float16}, PHILOX_LANES32},
    [TL_BFLOAT16] = {{uniform_bfloat16, normal_bfloat16}, PHILOX_LANES32},
};

/* Fills a row, whose first element has that number: whole blocks straight into
 * it, the ends from blocks of which it holds a part. */
static void row_make(block_make *make, uint64_t lanes, uint64_t seed,
                     uint64_t first, unsigned char *row, size_t width,
                     size_t element_size) {
  unsigned char packed[MOST_BYTES];
  uint64_t block = first / lanes;
  size_t skipped = (size_t)(first % lanes) * element_size;
  size_t whole = (size_t)lanes * element_size;
  for (size_t filled = 0; filled < width; block++, skipped = 0) {
    size_t part = whole - skipped;
    if (part > width - filled)
      part = width - filled;
    if (part == whole) {
      make(seed, block, row + filled);
    } else {
      make(seed, block, packed);
      memcpy(row + filled, packed + skipped, part);
    }
    filled += part;
  }
}

void host_block_random(void *memory, const tl_block *block, tl_dtype dtype,
                       tl_distribution distribution, uint64_t seed) {
  unsigned char *bytes = memory;
  size_t element_size = (size_t)tl_dtype_size((int32_t)dtype);
  uint64_t first = 0;
  for (size_t plane = 0; plane < block->planes; plane++)
    for (size_t row = 0; row < block->rows; row++) {
      row_make(makers[dtype].make[distribution], makers[dtype].lanes, seed,
               first,
               bytes + block->offset + plane * block->plane_pitch +
                   row * block->pitch,
               block->width, element_size);
      first += block->width / element_size;
    }
}

static void random_run(const host_operation *operation) {
  const tl_block *block = &operation->with.random.block;
  host_block_random(block->memory->bytes, block, operation->with.random.dtype,
                    operation->with.random.distribution,
                    operation->with.random.seed);
}

tl_status host_random(tl_stream_impl *stream, const tl_block *block,
                      tl_dtype dtype, tl_distribution distribution,
                      uint64_t seed, tl_error *error) {
  tl_status status = host_stream_prepare(stream, true, error);
  if (status != TL_OK)
    return status;
  host_operation operation = {.run = random_run,
                              .launch = true,
                              .slot = true,
                              .keep = {block->memory},
                              .with.random = {.block = *block,
                                              .seed = seed,
                                              .dtype = dtype,
                                              .distribution = distribution}};
  host_stream_push(stream, &operation);
  return TL_OK;
}
