"""Prompts drawn for the test: a fraction, the same ones whatever the order in which they are read.

Source: Ailem et al. 2024, section 4.4: 10% of each benchmark for the test, the rest for worked examples.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from fractions import Fraction

from tracker.errors import SelectionError


def count_drawn(n_prompts: int, fraction: float) -> int:
    """The smallest whole number larger than ``fraction * n_prompts``, the fraction taken as it is written in decimals.

    So 10% of HellaSwag's 10,042 are 1,005, and of CNN/Daily Mail's 11,490 are 1,150, as in the paper; rounding up would
    give 1,149.

    Raises:
        SelectionError: the fraction is not between 0 and 1, or none would be left for worked examples.
    """
    if not 0 < fraction < 1:
        raise SelectionError(f"--test-fraction is {fraction:g}; it must lie between 0 and 1.")
    n = math.floor(Fraction(str(fraction)) * n_prompts) + 1
    if n >= n_prompts:
        raise SelectionError(f"{fraction:g} of {n_prompts} prompts leaves none for worked examples.")
    return n


def hash_prompt(seed: int, name: str, content: bytes, occurrence: int) -> bytes:
    """A prompt's lot: a hash, so that neither the order of files nor other prompts change it.

    Args:
        seed: another seed, other lots.
        name: what the data set calls the prompt; '' where it has no names.
        content: what tells the prompt from others, its split aside.
        occurrence: number among those of the same content.
    """
    return hashlib.sha256(json.dumps([seed, name, content.hex(), occurrence]).encode()).digest()


def find_last_hash(lots: Iterable[bytes], fraction: float) -> bytes:
    """The largest lot that is drawn: prompts with this lot or a smaller one are the test.

    Raises:
        SelectionError: see `count_drawn`.
    """
    ordered = sorted(lots)
    return ordered[count_drawn(len(ordered), fraction) - 1]
