"""numba's side of the launch costs: see server.c."""
import numpy as np

np.row_stack = getattr(np, "row_stack", np.vstack)  # numba asks for what NumPy 2.5 has dropped
import numba  # noqa: E402
from numba import cuda  # noqa: E402

from lines import serve, time_calls  # noqa: E402

BLOCK = 16


@cuda.jit
def nothing(nanoseconds):
    pass


@cuda.jit
def naive(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


def launch(what, n):
    if what == "spin":  # an empty kernel is as short
        configured = nothing[1, 1]
        return time_calls(lambda: configured(0), cuda.synchronize)
    if what == "naive":
        a, b, c = (cuda.to_device(np.random.rand(n, n).astype(np.float32)) for _ in "abc")
        configured = naive[((n + BLOCK - 1) // BLOCK,) * 2, (BLOCK, BLOCK)]
        return time_calls(lambda: configured(a, b, c), cuda.synchronize)
    raise NotImplementedError("numba has no BLAS")


serve("numba", f"numba {numba.__version__}", launch)
