"""Packed tables to and from a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Tensor = Any
"""A `torch.Tensor`."""


def unpack_on_device(words: NDArray[np.uint64], device: str) -> Tensor:
    """Copy the bits of ``(n, n_words)`` uint64 to a device, as ``(n, n_words * 64)`` uint8 of 0 and 1."""
    octets = torch.from_numpy(words.astype("<u8").view(np.uint8)).to(device)
    places = torch.arange(8, dtype=torch.uint8, device=device)
    return (octets.unsqueeze(2) >> places).bitwise_and_(1).reshape(len(words), -1)


def pack_on_device(bits: Tensor) -> NDArray[np.uint64]:
    """Return the inverse of `unpack_on_device`."""
    places = torch.arange(8, dtype=torch.uint8, device=bits.device)
    octets = (bits.view(len(bits), -1, 8) << places).sum(dim=2, dtype=torch.uint8)
    packed: NDArray[np.uint8] = octets.cpu().numpy()
    return packed.view("<u8").astype(np.uint64)
