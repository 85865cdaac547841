"""Question 2 with PyTorch: question2_torch.py [n]"""
import sys

from lines import Steps

n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
steps = Steps("torch", n)
import torch  # noqa: E402

steps.step("import")
torch.cuda.init()
torch.cuda.synchronize()
steps.step("context")
a, b = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
torch.cuda.synchronize()
steps.step("data")
c = torch.matmul(a, b)
steps.step("first enqueue")
torch.cuda.synchronize()
steps.step("first wait")
c = torch.matmul(a, b)
steps.step("second enqueue")
torch.cuda.synchronize()
steps.step("second wait")
