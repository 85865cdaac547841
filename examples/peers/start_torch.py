"""From process start to a first checked product, 1000 x 1000 float32: see start.c."""
import torch

from lines import say

N, CHECKED = 1000, 16
PERIOD_A, PERIOD_B = 7, 5  # so that every sum is exact

places = torch.arange(N * N).reshape(N, N)
a, b = (places % PERIOD_A).float(), (places % PERIOD_B).float()
c = torch.mm(a.to("cuda"), b.to("cuda")).cpu()
for place in range(CHECKED):
    i = place * (N - 1) // (CHECKED - 1)
    j = N - 1 - i
    assert c[i, j] == a[i].dot(b[:, j]), "the product is wrong"
say("torch", "checked", [CHECKED], "elements", N, "float32")
