"""Seconds, memory and the rate of a device, with all of its work done."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks._costs import peak

N_PRODUCTS = 20
MB = 1 << 20


def seconds(device: str, run: Callable[[], object]) -> float:
    """Wall-clock seconds until the device has done it."""
    import torch

    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    started = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - started


def seconds_and_peak(device: str, run: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and the peak memory in MB: that of the device, on a CPU that of the process so far."""
    import torch

    if not device.startswith("cuda"):
        return seconds(device, run), peak()
    torch.cuda.reset_peak_memory_stats(device)
    spent = seconds(device, run)
    return spent, torch.cuda.max_memory_allocated(device) / MB


def matrix_rate(device: str, side: int) -> float:
    """Operations a second of products of bfloat16 matrices, the best of three tries."""
    import torch

    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))

    def products() -> None:
        for _ in range(N_PRODUCTS):
            torch.mm(a, b)

    products()
    return 2 * side**3 * N_PRODUCTS / min(seconds(device, products) for _ in range(3))
