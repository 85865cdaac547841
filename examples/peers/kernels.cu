// The kernels of the plain C programs, for cuModuleLoad.

typedef long long i64;

__device__ static unsigned long long now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

extern "C" __global__ void spin(unsigned long long nanoseconds) {
  unsigned long long began = now();
  while (now() - began < nanoseconds)
    continue;
}

// Question 1's way to multiply, in the general form that tidelock's kernel has:
// what is compared is the cost of a launch with as many arguments.
extern "C" __global__ void naive(i64 m, i64 n, i64 k, i64 batch, const float *a,
                                 i64 a_row, i64 a_column, i64 a_batch,
                                 const float *b, i64 b_row, i64 b_column,
                                 i64 b_batch, float *c, i64 c_row, i64 c_batch,
                                 float alpha, float beta) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 j = (i64)blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n)
    return;
  for (i64 z = 0; z < batch; z++) {
    float sum = 0;
    for (i64 l = 0; l < k; l++)
      sum += a[z * a_batch + i * a_row + l * a_column] *
             b[z * b_batch + l * b_row + j * b_column];
    float *element = &c[z * c_batch + i * c_row + j];
    *element = alpha * sum + (beta != 0 ? beta * *element : 0);
  }
}

// ---- uniform numbers on [0, 1) ----
//
// Of as many random bits as tidelock's, PyTorch's and CuPy's have: operands
// decide the power that a product takes, and power the clock.

__device__ static unsigned int hash(i64 i, unsigned int seed) {
  unsigned int x = (unsigned int)i * 2654435761u ^ seed * 0x9e3779b9u;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

// Multiples of 2^-53.
__device__ static void keep(double *to, i64 i, unsigned int seed) {
  unsigned long long high = hash(i, seed), low = hash(i, ~seed);
  *to = (double)(high << 21 | low >> 11) * (1.0 / 9007199254740992.0);
}

// Multiples of 2^-24.
__device__ static void keep(float *to, i64 i, unsigned int seed) {
  *to = (float)(hash(i, seed) >> 8) * (1.0f / 16777216.0f);
}

struct float16 {
  unsigned short bits;
};
struct bfloat16 {
  unsigned short bits;
};

// Multiples of 2^-11.
__device__ static void keep(float16 *to, i64 i, unsigned int seed) {
  float x = (float)(hash(i, seed) >> 21) * (1.0f / 2048.0f);
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
}

// Multiples of 2^-8.
__device__ static void keep(bfloat16 *to, i64 i, unsigned int seed) {
  float x = (float)(hash(i, seed) >> 24) * (1.0f / 256.0f);
  to->bits = (unsigned short)(__float_as_uint(x) >> 16);
}

#define FILL(name, type)                                                       \
  extern "C" __global__ void fill_##name(type *to, i64 size,                   \
                                         unsigned int seed) {                  \
    i64 step = (i64)gridDim.x * blockDim.x;                                    \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size;         \
         i += step)                                                            \
      keep(&to[i], i, seed);                                                   \
  }

FILL(float32, float)
FILL(float64, double)
FILL(float16, float16)
FILL(bfloat16, bfloat16)
