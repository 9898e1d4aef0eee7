"""Tokens drawn at random, so that what is drawn for a text depends on nothing but seed, text and trial.

The largest of (logit + Gumbel noise) is a draw from the softmax of the logits, exactly. The noise of a token comes from
a counter-based generator, so a row draws alike in any batch, on any device, and after any interruption.

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
"""Of a uniform number; with a half added it is exact in float64, and neither 0 nor 1."""


def stream_key(seed: int, text: str, trial: int) -> int:
    """The 64 bits, signed, that name the draws for a text.

    Args:
        seed: any integer.
        text: what the model reads before it writes.
        trial: 0 for the first answer to it.
    """
    digest = hashlib.sha256(f"{seed}\n{trial}\n".encode() + text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest()[:8], "little", signed=True)


def gumbel_noise(keys: Any, step: int, n: int) -> Any:
    """Standard Gumbel noise, ``(n_rows, n)`` float64.

    Args:
        keys: ``(n_rows,)`` int64 tensor of stream keys.
        step: how many tokens each row has written.
        n: numbers for each row.
    """
    import torch

    starts = _mixed(keys + _signed(_GOLDEN * (step + 1)))
    places = torch.arange(1, n + 1, device=keys.device) * _signed(_GOLDEN)
    bits = _shifted(_mixed(starts[:, None] + places[None, :]), 64 - _BITS)
    uniform = (bits.double() + 0.5) * 2.0**-_BITS
    return -torch.log(-torch.log(uniform))


class GumbelSampler:
    """A logits processor after which the likeliest token is one drawn from the softmax of the logits before it.

    Args:
        keys: of the rows' streams.
        n_read: length of what the rows have before they write.
        temperature: above 0; logits are divided by it.
        top_p: the draw is among the fewest likeliest tokens whose probabilities sum to this at least.
    """

    def __init__(self, keys: Sequence[int], n_read: int, temperature: float, top_p: float) -> None:
        self.keys, self.n_read, self.temperature, self.top_p = list(keys), n_read, temperature, top_p
        self._on_device: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Logits with noise, ``(n_rows, n_tokens)`` float64."""
        import torch

        device = "cpu" if scores.device.type == "mps" else scores.device  # it has no float64
        logits = scores.to(device).double() / self.temperature
        if self.top_p < 1:
            logits = _nucleus(logits, self.top_p)
        if self._on_device is None:
            self._on_device = torch.tensor(self.keys, dtype=torch.int64, device=device)
        drawn = logits + gumbel_noise(self._on_device, input_ids.shape[1] - self.n_read, logits.shape[1])
        return drawn if device == scores.device else drawn.float().to(scores.device)


def _nucleus(logits: Any, top_p: float) -> Any:
    """Logits with -inf for all but the fewest likeliest tokens whose probabilities sum to ``top_p`` at least."""
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
    """Shifted to the right as if unsigned."""
    return (state >> n) & ((1 << (64 - n)) - 1)


def _signed(number: int) -> int:
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number
