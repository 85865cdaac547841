// random: the numbers of philox.h, with the bits that the host makes.
//
// The block is as in fill.cu. Its elements are numbered from 0 through planes,
// rows and columns; element e is lane e % lanes of Philox block e / lanes,
// where a block has 4 lanes, of float64 2. Each thread makes whole Philox
// blocks and writes what lies in memory. About 100 integer operations for a
// block, 60 more flops for a pair of normal numbers; writes the elements, reads
// nothing. Any grid, blocks of 256 threads.

#include "philox.h"

typedef unsigned long long u64;

// ---- elements: rounded to nearest even from float ---------------------------

__device__ static unsigned short to_float16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// The numbers are finite: a carry into the exponent is right.
__device__ static unsigned short to_bfloat16(float x) {
  unsigned int bits = __float_as_uint(x);
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ static float to_float32(float x) {
  return x;
}

__device__ static double to_float64(double x) {
  return x;
}

// ---- blocks
// ------------------------------------------------------------------

template <int bits> struct uniform32 {
  enum { lanes = PHILOX_LANES32 };
  typedef float number;
  __device__ static void make(u64 seed, u64 block, float *element) {
    philox_uniform32(seed, block, bits, element);
  }
};

struct normal32 {
  enum { lanes = PHILOX_LANES32 };
  typedef float number;
  __device__ static void make(u64 seed, u64 block, float *element) {
    philox_normal32(seed, block, element);
  }
};

struct uniform64 {
  enum { lanes = PHILOX_LANES64 };
  typedef double number;
  __device__ static void make(u64 seed, u64 block, double *element) {
    philox_uniform64(seed, block, element);
  }
};

struct normal64 {
  enum { lanes = PHILOX_LANES64 };
  typedef double number;
  __device__ static void make(u64 seed, u64 block, double *element) {
    philox_normal64(seed, block, element);
  }
};

#define RANDOM(name, type, maker, round)                                       \
  extern "C" __global__ void __launch_bounds__(256)                            \
      random_##name(u64 width, u64 rows, u64 planes, unsigned char *first,     \
                    u64 pitch, u64 plane_pitch, u64 seed) {                    \
    const int lanes = maker::lanes;                                            \
    u64 count = width * rows * planes;                                         \
    u64 blocks = (count + lanes - 1) / lanes;                                  \
    u64 step = gridDim.x * (u64)blockDim.x;                                    \
    for (u64 block = blockIdx.x * (u64)blockDim.x + threadIdx.x;               \
         block < blocks; block += step) {                                      \
      maker::number element[lanes];                                            \
      maker::make(seed, block, element);                                       \
      for (int lane = 0; lane < lanes; lane++) {                               \
        u64 i = block * lanes + lane, row = i / width;                         \
        unsigned char *start =                                                 \
            first + row / rows * plane_pitch + row % rows * pitch;             \
        if (i < count)                                                         \
          ((type *)start)[i - row * width] = round(element[lane]);             \
      }                                                                        \
    }                                                                          \
  }

RANDOM(uniform_float32, float, uniform32<PHILOX_BITS_FLOAT32>, to_float32)
RANDOM(uniform_float64, double, uniform64, to_float64)
RANDOM(uniform_float16, unsigned short, uniform32<PHILOX_BITS_FLOAT16>,
       to_float16)
RANDOM(uniform_bfloat16, unsigned short, uniform32<PHILOX_BITS_BFLOAT16>,
       to_bfloat16)
RANDOM(normal_float32, float, normal32, to_float32)
RANDOM(normal_float64, double, normal64, to_float64)
RANDOM(normal_float16, unsigned short, normal32, to_float16)
RANDOM(normal_bfloat16, unsigned short, normal32, to_bfloat16)
