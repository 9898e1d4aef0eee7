"""Sample tokens so that the draws for a text depend only on seed, text and trial.

The largest of (logit + Gumbel noise) is an exact draw from the softmax of the logits. The noise of a token comes from a
counter-based generator. A row is therefore sampled identically in any batch, on any device, and after any interruption.

Source: Gumbel 1954, for the draw; Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", for the
generator (SplitMix64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLY = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_BITS = 52
"""Bits of a uniform number. With a half added it is exact in float64, and neither 0 nor 1."""


def stream_key(seed: int, text: str, trial: int) -> int:
    """Return the signed 64-bit key of the random stream of a text.

    Args:
        seed: any integer.
        text: the model's input.
        trial: 0 for the first response.
    """
    digest = hashlib.sha256(f"{seed}\n{trial}\n".encode() + text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


def gumbel_noise(keys: Any, step: int, n: int) -> Any:
    """Return standard Gumbel noise, ``(n_rows, n)`` float64.

    Args:
        keys: ``(n_rows,)`` int64 tensor of stream keys.
        step: number of tokens generated so far.
        n: numbers per row.
    """
    import torch

    starts = _mixed(keys + _signed(_GOLDEN * (step + 1)))
    places = torch.arange(1, n + 1, device=keys.device) * _signed(_GOLDEN)
    bits = _shifted(_mixed(starts[:, None] + places[None, :]), 64 - _BITS)
    uniform = (bits.double() + 0.5) * 2.0**-_BITS
    return -torch.log(-torch.log(uniform))


class GumbelSampler:
    """A logits processor that turns greedy decoding into sampling: the largest output is a draw from the softmax.

    Args:
        keys: stream keys of the rows.
        n_read: number of input tokens of the rows.
        temperature: above 0; logits are divided by it.
        top_p: draw from the smallest set of likeliest tokens whose probabilities sum to at least this.
    """

    def __init__(self, keys: Sequence[int], n_read: int, temperature: float, top_p: float) -> None:
        self.keys, self.n_read, self.temperature, self.top_p = list(keys), n_read, temperature, top_p
        self._on_device: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return logits with noise, ``(n_rows, n_tokens)`` float64."""
        import torch

        device = "cpu" if scores.device.type == "mps" else scores.device  # MPS has no float64
        logits = scores.to(device).double() / self.temperature
        if self.top_p < 1:
            logits = _nucleus(logits, self.top_p)
        if self._on_device is None:
            self._on_device = torch.tensor(self.keys, dtype=torch.int64, device=device)
        drawn = logits + gumbel_noise(self._on_device, input_ids.shape[1] - self.n_read, logits.shape[1])
        return drawn if device == scores.device else drawn.float().to(scores.device)


def _nucleus(logits: Any, top_p: float) -> Any:
    """Set the logits to -inf except for the smallest set of likeliest tokens with probabilities summing to ``top_p`` or
    more.
    """
    import torch

    ordered, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    before = ordered.softmax(dim=-1).cumsum(dim=-1).roll(1, dims=-1)
    before[:, 0] = 0
    masked = (before >= top_p).scatter(1, order, before >= top_p)
    masked.scatter_(1, order[:, :1], False)
    return logits.masked_fill(masked, -torch.inf)


def _mixed(state: Any) -> Any:
    state = (state ^ _shifted(state, 30)) * _signed(_MULTIPLY[0])
    state = (state ^ _shifted(state, 27)) * _signed(_MULTIPLY[1])
    return state ^ _shifted(state, 31)


def _shifted(state: Any, n: int) -> Any:
    """Shift right as if unsigned."""
    return (state >> n) & ((1 << (64 - n)) - 1)


def _signed(number: int) -> int:
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number
