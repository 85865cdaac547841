"""From process start to a first checked product, 1000 x 1000 float32: see start.c."""
from lines import Steps, say

N, CHECKED = 1000, 100
PERIOD_A, PERIOD_B = 7, 11  # so that every sum is exact

steps = Steps("torch", N)
import torch  # noqa: E402

steps.step("import")
places = torch.arange(N * N).reshape(N, N)
a, b = (places % PERIOD_A).float(), (places % PERIOD_B).float()
steps.step("inputs")
torch.cuda.init()
torch.cuda.synchronize()
steps.step("context")
device_a, device_b = a.to("cuda"), b.to("cuda")
torch.cuda.synchronize()
steps.step("upload")
device_c = torch.mm(device_a, device_b)
torch.cuda.synchronize()
steps.step("product")
c = device_c.cpu()
for place in range(CHECKED):
    i = place * (N - 1) // (CHECKED - 1)
    j = N - 1 - i
    assert c[i, j] == a[i].dot(b[:, j]), "the product is wrong"
steps.step("check")
say("torch", "checked", [CHECKED], "elements", N, "float32")
