"""Exponential random variables from words of random bits, eight or sixteen at a time.

The logarithm is a polynomial on ``[√½, √2)`` after the exponent has been taken off, which compilers turn into vector
instructions; it is right to 1e-6. NumPy's generator, which has to branch for each, takes about three times as long.

Source: the polynomial of Cephes' ``logf`` (Moshier 1989).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.statistics.jit import jit

WIDTH = 1024
"""Variables whose intermediate values are held at a time."""
_UNIT, _HALF, _LOG2 = np.float32(1), np.float32(0.5), np.float32(np.log(2))
_ROOT, _MANTISSA, _EXPONENT, _BITS = np.int32(0x3F3504F3), np.int32(0x7FFFFF), np.int32(23), np.int32(32)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = (
    np.float32(c)
    for c in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
)


@jit
def fill_exponentials(words: Any, drawn: Any) -> None:
    """``-log((word + 1/2) / 2**32)``, in [0, 23).

    Args:
        words: ``(m,)`` uint32.
        drawn: ``(m,)`` float32 that receives them.
    """
    x, exponent = np.empty(WIDTH, np.float32), np.empty(WIDTH, np.float32)
    bits = x.view(np.int32)
    for start in range(0, drawn.size, WIDTH):
        n = min(WIDTH, drawn.size - start)
        source, target = words[start : start + n], drawn[start : start + n]
        for i in range(n):
            x[i] = np.float32(source[i]) + _HALF
        for i in range(n):
            above = bits[i] - _ROOT
            exponent[i] = np.float32((above >> _EXPONENT) - _BITS)
            bits[i] = (above & _MANTISSA) + _ROOT
        for i in range(n):
            z = x[i] - _UNIT
            p = (((_C0 * z + _C1) * z + _C2) * z + _C3) * z + _C4
            p = (((p * z + _C5) * z + _C6) * z + _C7) * z + _C8
            target[i] = -(exponent[i] * _LOG2 + (p * z * z * z - _HALF * z * z + z))
