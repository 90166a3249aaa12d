"""Which kernels multiply float32 matrices on the CPU."""

from functools import cache
from pathlib import Path

import torch


@cache
def fast_products():
    """Switch float32 products of the process to oneDNN's AVX-512 kernels, where MKL leaves these.

    Returns whether it did. The caller of a training calls it, once and before it begins, as a claim
    does when its page opens it on the CPU: no loop of the library does so by itself.
    MKL runs AVX2 kernels on AMD processors, at under half the speed of oneDNN's AVX-512 ones. The
    setting that reaches these allows rounding to bfloat16, which processors with AMX tiles really
    do: so it is kept only where there are none and where a product agrees with float64 to float32
    accuracy. Nothing is timed, so equal machines decide alike.
    """
    if not _avx512_on_amd():
        return False
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(512, 512, generator=generator) for _ in range(2))
    exact = a.double() @ b.double()
    error = (a @ b).double() - exact
    if error.norm() / exact.norm() < 2e-6:
        return True
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    return False


def _avx512_on_amd():
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.exists() else ""
    return "AuthenticAMD" in text and "avx512f" in text and "amx_tile" not in text
