// fill: every element of a block of memory becomes one value.
//
// The block is `planes` x `rows` rows of `width` elements; pitch and
// plane_pitch are the bytes from row to row and from plane to plane. Writes
// width * rows * planes elements, reads nothing; no flops. Any grid, blocks of
// 256 threads.
//
// A contiguous block is written 16 bytes at a time, but for its ends.

typedef unsigned long long u64;

__device__ static u64 first_index() {
  return blockIdx.x * (u64)blockDim.x + threadIdx.x;
}

__device__ static u64 index_step() {
  return gridDim.x * (u64)blockDim.x;
}

template <typename T>
__device__ static void fill_row(T *first, u64 width, T value) {
  const u64 lanes = sizeof(uint4) / sizeof(T);
  u64 skew = (u64)first % sizeof(uint4) / sizeof(T);
  u64 head = skew == 0 ? 0 : lanes - skew;
  if (head > width)
    head = width;
  u64 wide = (width - head) / lanes, tail = head + wide * lanes;
  union {
    T element[lanes];
    uint4 word;
  } all;
  for (u64 i = 0; i < lanes; i++)
    all.element[i] = value;
  uint4 *middle = (uint4 *)(first + head);
  for (u64 i = first_index(); i < wide; i += index_step())
    middle[i] = all.word;
  u64 i = first_index(); // the ends are shorter than a block of threads
  if (i < head)
    first[i] = value;
  if (i < width - tail)
    first[tail + i] = value;
}

template <typename T>
__device__ static void fill(u64 width, u64 rows, u64 planes,
                            unsigned char *first, u64 pitch, u64 plane_pitch,
                            T value) {
  if (rows == 1 && planes == 1) {
    fill_row((T *)first, width, value);
    return;
  }
  u64 count = width * rows * planes;
  for (u64 i = first_index(); i < count; i += index_step()) {
    u64 row = i / width;
    unsigned char *start =
        first + row / rows * plane_pitch + row % rows * pitch;
    ((T *)start)[i % width] = value;
  }
}

#define FILL(bytes, type)                                                      \
  extern "C" __global__ void __launch_bounds__(256)                            \
      fill_##bytes(u64 width, u64 rows, u64 planes, unsigned char *first,      \
                   u64 pitch, u64 plane_pitch, u64 value) {                    \
    fill<type>(width, rows, planes, first, pitch, plane_pitch, (type)value);   \
  }

FILL(1, unsigned char)
FILL(2, unsigned short)
FILL(4, unsigned int)
FILL(8, unsigned long long)
