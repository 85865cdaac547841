"""Question 2 with CuPy: question2_cupy.py [n]"""
import sys

from lines import Steps

n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
steps = Steps("cupy", n)
import cupy as cp  # noqa: E402

steps.step("import")
synchronize = cp.cuda.Device().synchronize
synchronize()
steps.step("context")
a = cp.random.random_sample((n, n), dtype=cp.float32)
b = cp.random.random_sample((n, n), dtype=cp.float32)
synchronize()
steps.step("data")
c = cp.matmul(a, b)
steps.step("first enqueue")
synchronize()
steps.step("first wait")
c = cp.matmul(a, b)
steps.step("second enqueue")
synchronize()
steps.step("second wait")
