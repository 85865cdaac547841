// matmul: c = alpha * op(a) * op(b) + beta * c, row-major, in batches.
//
// 2 m n k flops for each of the batch; at best m k + k n elements are read and
// m n written. Element (i, j) of op(a) is a[i * a_row + j * a_column]: so op()
// is in the strides, and one of the two is 1. c's columns are neighbours.
// beta = 0 means that c is not read; k = 0 gives beta * c whatever alpha is.
// Nothing is skipped because it is zero: NaN and infinities go through.
//
// Where a tile reaches past the end of k, a is minus zero there and b is zero:
// their product is minus zero, which changes no sum, not even one that has
// underflowed to minus zero. (register takes zero for both: its sum is zero
// then.)
//
// A ladder. All add the k products of an element in ascending order into one
// sum, with fused multiplications: so they agree bit for bit, but for what is
// said of register above.
//
// naive: one thread for each element of c, the row index from x: the kernel of
// question 1. The threads of a warp read and write down a column, so each
// touches a cache line of its own.
// Grid (m / 16, n / 16, batch), block 16 x 16.
//
// coalesced: the column index from x. A warp shares one element of a and reads
// a line of b: 32 times fewer lines.
// Grid (tiles of 8 x 32, 1, batch), block 32 x 8.
//
// tiled: 32 x 32 tiles of a and b go through shared memory, so each element is
// read once for 32 uses; a thread makes 4 elements of a column.
// Grid (tiles of 32 x 32, 1, batch), block 32 x 8.
//
// register: 128 x 128 of c for a block (float64: 64 x 64) and 8 x 8 for a
// thread (4 x 4), in registers: one read of shared memory for 4 multiplications
// and more. Loads of 16 bytes, the next tile's under way while this one is
// used.
// Grid (tiles of 128 x 128 or 64 x 64, 1, batch), block 256.
//
// Grids may be smaller: every kernel loops. On an H200, TFLOP/s at n = 4096 and
// the share of cuBLAS (examples/peers, uniform data):
//
//               float32          float64
//   naive        0.97   1.9 %     0.49   0.8 %
//   coalesced    2.9    5.6 %     1.5    2.5 %
//   tiled       11.0   21 %       8.7   14 %
//   register    43.7   85 %      16.7   27 %
//   cuBLAS      51.5             61.7           (float64 by tensor cores)

typedef long long i64;

// ---- types ------------------------------------------------------------------

// What a, b and c hold, what the sums are made in, and the ways between.
template <typename number> struct plain {
  typedef number input, sum, output;
  __device__ static sum load(input x) { return x; }
  __device__ static sum fetch(output x) { return x; }
  __device__ static output keep(sum x) { return x; }
};

struct float16 {
  typedef unsigned short input, output;
  typedef float sum;
  __device__ static sum load(input bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
  __device__ static sum fetch(output bits) { return load(bits); }
  __device__ static output keep(sum x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
  }
};

struct bfloat16 {
  typedef unsigned short input, output;
  typedef float sum;
  __device__ static sum load(input bits) {
    return __uint_as_float((unsigned int)bits << 16);
  }
  __device__ static sum fetch(output bits) { return load(bits); }
  __device__ static output keep(sum x) {
    unsigned int bits = __float_as_uint(x);
    if ((bits & 0x7fffffff) > 0x7f800000) // NaN: a carry could make it infinite
      return (unsigned short)(bits >> 16 | 0x40);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// The same inputs, c in float32.
template <typename narrow> struct into_float32 {
  typedef typename narrow::input input;
  typedef float sum, output;
  __device__ static sum load(input x) { return narrow::load(x); }
  __device__ static sum fetch(output x) { return x; }
  __device__ static output keep(sum x) { return x; }
};

// Sums of integers wrap: unsigned, where that is defined.
template <typename narrow> struct integer {
  typedef narrow input;
  typedef int output;
  typedef unsigned int sum;
  __device__ static sum load(input x) { return (unsigned int)(int)x; }
  __device__ static sum fetch(output x) { return (unsigned int)x; }
  __device__ static output keep(sum x) { return (int)x; }
};

// ---- operands ---------------------------------------------------------------

template <typename type> struct problem {
  typedef typename type::input input;
  typedef typename type::output output;
  typedef typename type::sum sum;
  i64 m, n, k;
  const input *a;
  i64 a_row, a_column;
  const input *b;
  i64 b_row, b_column;
  output *c;
  i64 c_row;
  sum alpha, beta;

  __device__ sum a_at(i64 row, i64 column) const {
    return type::load(a[row * a_row + column * a_column]);
  }
  __device__ sum b_at(i64 row, i64 column) const {
    return type::load(b[row * b_row + column * b_column]);
  }
  // What element (row, column) of c becomes.
  __device__ output finish(sum total, i64 row, i64 column) const {
    sum value = k == 0 ? sum(0) : alpha * total;
    if (beta != sum(0))
      value += beta * type::fetch(c[row * c_row + column]);
    return type::keep(value);
  }
};

// One of the tiles of rows x columns that c is made of. A group of 8 rows of
// them is gone through by columns: what is at work at a time shares its inputs.
struct tile {
  enum { GROUP = 8 };
  i64 row, column; // of the first element

  __device__ static i64 count(i64 m, i64 n, i64 rows, i64 columns) {
    return (m + rows - 1) / rows * ((n + columns - 1) / columns);
  }
  __device__ static tile at(i64 index, i64 m, i64 n, i64 rows, i64 columns) {
    i64 down = (m + rows - 1) / rows, across = (n + columns - 1) / columns;
    i64 first = index / (GROUP * across) * GROUP;
    i64 place = index % (GROUP * across);
    i64 high = down - first < GROUP ? down - first : (i64)GROUP;
    tile t = {(first + place % high) * rows, place / high * columns};
    return t;
  }
};

// ---- naive ------------------------------------------------------------------

template <typename type> __device__ static void naive(const problem<type> &p) {
  i64 down = gridDim.x * (i64)blockDim.x, across = gridDim.y * (i64)blockDim.y;
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  i64 column = blockIdx.y * (i64)blockDim.y + threadIdx.y;
  for (i64 i = row; i < p.m; i += down)
    for (i64 j = column; j < p.n; j += across) {
      typename type::sum total = 0;
      for (i64 k = 0; k < p.k; k++)
        total += p.a_at(i, k) * p.b_at(k, j);
      p.c[i * p.c_row + j] = p.finish(total, i, j);
    }
}

// ---- coalesced --------------------------------------------------------------

template <typename type>
__device__ static void coalesced(const problem<type> &p) {
  const int rows = 8, columns = 32;
  i64 tiles = tile::count(p.m, p.n, rows, columns);
  for (i64 index = blockIdx.x; index < tiles; index += gridDim.x) {
    tile t = tile::at(index, p.m, p.n, rows, columns);
    i64 i = t.row + threadIdx.y, j = t.column + threadIdx.x;
    if (i >= p.m || j >= p.n)
      continue;
    typename type::sum total = 0;
    for (i64 k = 0; k < p.k; k++)
      total += p.a_at(i, k) * p.b_at(k, j);
    p.c[i * p.c_row + j] = p.finish(total, i, j);
  }
}

// ---- tiled ------------------------------------------------------------------

template <typename type> __device__ static void tiled(const problem<type> &p) {
  typedef typename type::sum sum;
  const int side = 32, high = 8, each = side / high;
  __shared__ sum x[side][side + 1], y[side][side + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  i64 tiles = tile::count(p.m, p.n, side, side);
  for (i64 index = blockIdx.x; index < tiles; index += gridDim.x) {
    tile t = tile::at(index, p.m, p.n, side, side);
    sum total[each] = {};
    for (i64 first = 0; first < p.k; first += side) {
      for (int r = 0; r < each; r++) { // threads along what is contiguous
        int far = ty + r * high;
        int ar = p.a_column == 1 ? far : tx, ac = p.a_column == 1 ? tx : far;
        int br = p.b_column == 1 ? far : tx, bc = p.b_column == 1 ? tx : far;
        bool a_in = t.row + ar < p.m && first + ac < p.k;
        bool b_in = first + br < p.k && t.column + bc < p.n;
        x[ar][ac] = a_in ? p.a_at(t.row + ar, first + ac) : -sum(0);
        y[br][bc] = b_in ? p.b_at(first + br, t.column + bc) : sum(0);
      }
      __syncthreads();
      for (int k = 0; k < side; k++)
        for (int r = 0; r < each; r++)
          total[r] += x[ty + r * high][k] * y[k][tx];
      __syncthreads();
    }
    for (int r = 0; r < each; r++) {
      i64 i = t.row + ty + r * high, j = t.column + tx;
      if (i < p.m && j < p.n)
        p.c[i * p.c_row + j] = p.finish(total[r], i, j);
    }
  }
}

// ---- register ---------------------------------------------------------------

// 16 bytes of numbers.
template <typename number> struct vector;
template <> struct vector<float> { typedef float4 type; };
template <> struct vector<double> { typedef double2 type; };

// SIDE x SIDE of c for 256 threads, SIDE / 16 squared for each: in two groups
// of rows and two of columns, so that the reads of a warp from shared memory
// are neighbours. DEPTH of k at a time.
template <typename number, int SIDE, int DEPTH> struct blocked {
  enum {
    THREADS = 256,
    WIDE = 16 / sizeof(number),              // numbers of a vector
    LOADS = SIDE * DEPTH / (THREADS * WIDE), // vectors of a thread and tile
    MICRO = SIDE / 16,                       // rows and columns of a thread
    GROUPS = MICRO / WIDE,
    PITCH = SIDE + WIDE
  };
  typedef typename vector<number>::type wide;
  typedef number slab[DEPTH][PITCH];

  // One operand: `outer` is the row of a, the column of b.
  struct side {
    const number *first;
    i64 outer_step, depth_step, outers, depth;
    bool aligned; // 16-byte loads are possible
  };

  __device__ static side side_of(const number *first, i64 outer_step,
                                 i64 depth_step, i64 outers, i64 depth) {
    i64 other = outer_step == 1 ? depth_step : outer_step;
    side s = {
        first,      outer_step,
        depth_step, outers,
        depth,      (unsigned long long)first % 16 == 0 && other % WIDE == 0};
    return s;
  }

  // Where in a tile a thread's load begins.
  template <bool ALONG>
  __device__ static void place(int load, int &outer, int &deep) {
    int vectors = (ALONG ? DEPTH : SIDE) / WIDE; // in a run
    int run = (threadIdx.x + load * THREADS) / vectors;
    int in = threadIdx.x % vectors * WIDE;
    outer = ALONG ? run : in;
    deep = ALONG ? in : run;
  }

  // ALONG: the numbers of one load are neighbours in k, else in the outer
  // index.
  template <bool ALONG>
  __device__ static void fetch(const side &s, i64 outer, i64 deep,
                               wide (&held)[LOADS]) {
    bool inside =
        s.aligned && outer + SIDE <= s.outers && deep + DEPTH <= s.depth;
#pragma unroll
    for (int load = 0; load < LOADS; load++) {
      int o, d;
      place<ALONG>(load, o, d);
      const number *from =
          s.first + (outer + o) * s.outer_step + (deep + d) * s.depth_step;
      if (inside) {
        held[load] = *(const wide *)from;
        continue;
      }
      number *parts = (number *)&held[load];
#pragma unroll
      for (int i = 0; i < WIDE; i++) {
        bool in = outer + o + (ALONG ? 0 : i) < s.outers &&
                  deep + d + (ALONG ? i : 0) < s.depth;
        parts[i] =
            in ? from[i * (ALONG ? s.depth_step : s.outer_step)] : number(0);
      }
    }
  }

  template <bool ALONG>
  __device__ static void store(slab &to, const wide (&held)[LOADS]) {
#pragma unroll
    for (int load = 0; load < LOADS; load++) {
      int o, d;
      place<ALONG>(load, o, d);
      if (ALONG) {
        const number *parts = (const number *)&held[load];
#pragma unroll
        for (int i = 0; i < WIDE; i++)
          to[d + i][o] = parts[i];
      } else {
        *(wide *)&to[d][o] = held[load];
      }
    }
  }

  __device__ static void multiply(const slab &x, const slab &y, int ty, int tx,
                                  number (&total)[MICRO][MICRO]) {
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
      wide u[GROUPS], v[GROUPS];
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        u[g] = *(const wide *)&x[k][(g * 16 + ty) * WIDE];
        v[g] = *(const wide *)&y[k][(g * 16 + tx) * WIDE];
      }
      const number *a = (const number *)u, *b = (const number *)v;
#pragma unroll
      for (int i = 0; i < MICRO; i++)
#pragma unroll
        for (int j = 0; j < MICRO; j++)
          total[i][j] += a[i] * b[j];
    }
  }

  __device__ static void write(const problem<plain<number>> &p, tile t, int ty,
                               int tx, const number (&total)[MICRO][MICRO]) {
    bool aligned = (unsigned long long)p.c % 16 == 0 && p.c_row % WIDE == 0;
#pragma unroll
    for (int i = 0; i < MICRO; i++) {
      i64 row = t.row + (i / WIDE * 16 + ty) * WIDE + i % WIDE;
      if (row >= p.m)
        continue;
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        i64 column = t.column + (g * 16 + tx) * WIDE;
        number *to = p.c + row * p.c_row + column;
        number value[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; j++)
          if (column + j < p.n)
            value[j] = p.finish(total[i][g * WIDE + j], row, column + j);
        if (aligned && column + WIDE <= p.n) {
          *(wide *)to = *(const wide *)value;
          continue;
        }
#pragma unroll
        for (int j = 0; j < WIDE; j++)
          if (column + j < p.n)
            to[j] = value[j];
      }
    }
  }

  template <bool A_ALONG, bool B_ALONG>
  __device__ static void make(const problem<plain<number>> &p, tile t,
                              slab (&x)[2], slab (&y)[2]) {
    // A warp covers 4 x 8 threads of the 16 x 16.
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int ty = warp / 2 * 4 + lane / 8, tx = warp % 2 * 8 + lane % 8;
    side a = side_of(p.a, p.a_row, p.a_column, p.m, p.k);
    side b = side_of(p.b, p.b_column, p.b_row, p.n, p.k);
    number total[MICRO][MICRO] = {};
    wide held_a[LOADS], held_b[LOADS];
    fetch<A_ALONG>(a, t.row, 0, held_a);
    fetch<B_ALONG>(b, t.column, 0, held_b);
    int at = 0;
    for (i64 deep = 0; deep < p.k; deep += DEPTH, at ^= 1) {
      store<A_ALONG>(x[at], held_a);
      store<B_ALONG>(y[at], held_b);
      __syncthreads();
      if (deep + DEPTH < p.k) {
        fetch<A_ALONG>(a, t.row, deep + DEPTH, held_a);
        fetch<B_ALONG>(b, t.column, deep + DEPTH, held_b);
      }
      multiply(x[at], y[at], ty, tx, total);
    }
    __syncthreads(); // the next tile of c writes the slabs
    write(p, t, ty, tx, total);
  }

  __device__ static void run(const problem<plain<number>> &p) {
    __shared__ __align__(16) slab x[2], y[2];
    i64 tiles = tile::count(p.m, p.n, SIDE, SIDE);
    for (i64 index = blockIdx.x; index < tiles; index += gridDim.x) {
      tile t = tile::at(index, p.m, p.n, SIDE, SIDE);
      bool a_along = p.a_column == 1, b_along = p.b_row == 1 && p.b_column != 1;
      if (a_along && !b_along)
        make<true, false>(p, t, x, y);
      else if (a_along)
        make<true, true>(p, t, x, y);
      else if (!b_along)
        make<false, false>(p, t, x, y);
      else
        make<false, true>(p, t, x, y);
    }
  }
};

__device__ static void by_registers(const problem<plain<float>> &p) {
  blocked<float, 128, 16>::run(p);
}

__device__ static void by_registers(const problem<plain<double>> &p) {
  blocked<double, 64, 16>::run(p);
}

// ---- entries ----------------------------------------------------------------

#define MATMUL(name, type, factor, run, bounds)                                \
  extern "C" __global__ void __launch_bounds__ bounds matmul_##name(           \
      i64 m, i64 n, i64 k, i64 batch, const type::input *a, i64 a_row,         \
      i64 a_column, i64 a_batch, const type::input *b, i64 b_row,              \
      i64 b_column, i64 b_batch, type::output *c, i64 c_row, i64 c_batch,      \
      factor alpha, factor beta) {                                             \
    for (i64 z = blockIdx.z; z < batch; z += gridDim.z) {                      \
      problem<type> p = {m,                                                    \
                         n,                                                    \
                         k,                                                    \
                         a + z * a_batch,                                      \
                         a_row,                                                \
                         a_column,                                             \
                         b + z * b_batch,                                      \
                         b_row,                                                \
                         b_column,                                             \
                         c + z * c_batch,                                      \
                         c_row,                                                \
                         (type::sum)alpha,                                     \
                         (type::sum)beta};                                     \
      run(p);                                                                  \
    }                                                                          \
  }

#define MATMUL_ALL(name, run)                                                  \
  MATMUL(name##_float32, plain<float>, float, run, (256))                      \
  MATMUL(name##_float64, plain<double>, double, run, (256))                    \
  MATMUL(name##_float16, float16, float, run, (256))                           \
  MATMUL(name##_float16_float32, into_float32<float16>, float, run, (256))     \
  MATMUL(name##_bfloat16, bfloat16, float, run, (256))                         \
  MATMUL(name##_bfloat16_float32, into_float32<bfloat16>, float, run, (256))   \
  MATMUL(name##_int32, integer<int>, int, run, (256))                          \
  MATMUL(name##_int8_int32, integer<signed char>, int, run, (256))

MATMUL_ALL(naive, naive)
MATMUL(coalesced_float32, plain<float>, float, coalesced, (256))
MATMUL(coalesced_float64, plain<double>, double, coalesced, (256))
MATMUL_ALL(tiled, tiled)
MATMUL(register_float32, plain<float>, float, by_registers, (256, 2))
MATMUL(register_float64, plain<double>, double, by_registers, (256, 2))
