"""CuPy's side of the comparisons that alternate between programs: see server.c."""
import cupy as cp
from cupy._core import _routines_linalg as linalg  # where the compute type is set

from lines import HOLD_NS, rate, serve, time_calls

SOURCE = r"""
extern "C" __global__ void spin(unsigned long long nanoseconds) {
  unsigned long long began, t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  while (t - began < nanoseconds);
}
extern "C" __global__ void naive(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float sum = 0;
  for (int k = 0; k < n; k++)
    sum += a[i * n + k] * b[k * n + j];
  c[i * n + j] = sum;
}
"""
BLOCK = 16
spin, naive = cp.RawKernel(SOURCE, "spin"), cp.RawKernel(SOURCE, "naive")
stream = cp.cuda.Stream(non_blocking=True)
stream.use()
first, last = cp.cuda.Event(), cp.cuda.Event()
kept = {}


def dtype_of(name):
    if name == "bfloat16":
        import ml_dtypes
        return ml_dtypes.bfloat16
    return cp.dtype("float32" if name == "tf32" else name)


def matrices(dtype, n):
    """The matrices of the last question, kept for the next of the same shape."""
    if kept.get("of") != (dtype, n):
        kept.clear()
        cp.get_default_memory_pool().free_all_blocks()
        stored = dtype_of(dtype)
        drawn = cp.float64 if dtype == "float64" else cp.float32
        kept["abc"] = [cp.random.random_sample((n, n), dtype=drawn).astype(stored, copy=False)
                       for _ in "abc"]
        kept["of"] = (dtype, n)
        stream.synchronize()
    linalg.set_compute_type(
        cp.float32, linalg.COMPUTE_TYPE_TF32 if dtype == "tf32" else linalg.COMPUTE_TYPE_DEFAULT)
    return kept["abc"]


def throughput(dtype, n, products):
    a, b, c = matrices(dtype, n)
    spin((1,), (1,), (cp.uint64(products * HOLD_NS),))
    first.record()
    for _ in range(products):
        cp.matmul(a, b, out=c)
    last.record()
    last.synchronize()
    return rate(n, products, cp.cuda.get_elapsed_time(first, last))


def launch(what, n):
    a, b, c = matrices("float32", n)
    if what == "spin":
        nothing = cp.uint64(0)
        return time_calls(lambda: spin((1,), (1,), (nothing,)), stream.synchronize)
    if what == "naive":
        grid, size = ((n + BLOCK - 1) // BLOCK,) * 2, cp.int32(n)
        return time_calls(lambda: naive(grid, (BLOCK, BLOCK), (a, b, c, size)),
                          stream.synchronize)
    return time_calls(lambda: cp.matmul(a, b, out=c), stream.synchronize)


serve("cupy", f"CuPy {cp.__version__}", launch, throughput)
