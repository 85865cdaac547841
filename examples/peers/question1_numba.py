"""Question 1 with numba: many launches of the naive product, each timed.

question1_numba.py [n] [launches]
"""
import sys

import numpy as np

np.row_stack = getattr(np, "row_stack", np.vstack)  # numba asks for what NumPy 2.5 has dropped
from numba import cuda  # noqa: E402

from lines import clock, say  # noqa: E402

BLOCK, PROBES = 16, 5


@cuda.jit
def naive(a, b, c):
    i, j = cuda.grid(2)  # the row index from x, as in the question
    if i < c.shape[0] and j < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
launches = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
a, b = cuda.to_device(np.full((n, n), 2.0)), cuda.to_device(np.full((n, n), 3.0))
c = cuda.to_device(np.zeros((n, n)))
grid = ((n + BLOCK - 1) // BLOCK,) * 2

kernel = []
for _ in range(PROBES + 1):  # the first compiles the kernel
    start = clock()
    naive[grid, (BLOCK, BLOCK)](a, b, c)
    cuda.synchronize()
    kernel.append(clock() - start)

costs = []
start = before = clock()
for _ in range(launches):
    naive[grid, (BLOCK, BLOCK)](a, b, c)
    after = clock()
    costs.append(after - before)
    before = after
launching = clock() - start
cuda.synchronize()
total = clock() - start

assert c.copy_to_host()[-1, -1] == 6 * n, "the product is wrong"
say("numba", "kernel", kernel[1:], "s", n, "float64")
say("numba", "launch", costs, "s", n, "float64")
say("numba", "launching", [launching], "s", n, "float64")
say("numba", "total", [total], "s", n, "float64")
