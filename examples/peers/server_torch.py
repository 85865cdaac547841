"""PyTorch's side of the comparisons that alternate between programs: see server.c."""
import torch

from lines import HOLD_NS, rate, serve, time_calls

# More cycles a nanosecond than the GPU has: a hold is never too short.
CYCLES_PER_NS = 2

DTYPES = {"tf32": torch.float32}  # the others have torch's own names
kept = {}
first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def matrices(dtype, n):
    """The matrices of the last question, kept for the next of the same shape."""
    if kept.get("of") != (dtype, n):
        kept.clear()
        torch.cuda.empty_cache()
        stored = DTYPES.get(dtype) or getattr(torch, dtype)
        kept["abc"] = [torch.rand(n, n, device="cuda", dtype=stored) for _ in "abc"]
        kept["of"] = (dtype, n)
        torch.cuda.synchronize()
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    return kept["abc"]


def throughput(dtype, n, products):
    a, b, c = matrices(dtype, n)
    torch.cuda._sleep(products * HOLD_NS * CYCLES_PER_NS)
    first.record()
    for _ in range(products):
        torch.mm(a, b, out=c)
    last.record()
    last.synchronize()
    return rate(n, products, first.elapsed_time(last))


def launch(what, n):
    if what != "blas":
        raise NotImplementedError(f"PyTorch has no {what} kernel")
    a, b, c = matrices("float32", n)
    return time_calls(lambda: torch.mm(a, b, out=c), torch.cuda.synchronize)


serve("torch", f"PyTorch {torch.__version__}", launch, throughput)
