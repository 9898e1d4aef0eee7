"""Random assignment of prompts to the test split, independent of their order.

Source: Ailem et al. 2024, section 4.4: 10% of each benchmark for the test, the rest for few-shot examples.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from fractions import Fraction

from tracker.errors import SelectionError


def count_drawn(n_prompts: int, fraction: float) -> int:
    """Return the smallest integer larger than ``fraction * n_prompts``, with the fraction as written in decimals.

    10% of HellaSwag's 10,042 prompts are 1,005, and 10% of CNN/Daily Mail's 11,490 are 1,150, as in the paper. Rounding
    up would give 1,149.

    Raises:
        SelectionError: the fraction is not between 0 and 1, or no prompt is left for few-shot examples.
    """
    if not 0 < fraction < 1:
        raise SelectionError(f"--test-fraction is {fraction:g}; it must lie between 0 and 1.")
    n = math.floor(Fraction(str(fraction)) * n_prompts) + 1
    if n >= n_prompts:
        raise SelectionError(f"{fraction:g} of {n_prompts} prompts leaves none for few-shot examples.")
    return n


def hash_prompt(seed: int, name: str, content: bytes, occurrence: int) -> bytes:
    """Return the random number of a prompt: a hash that does not depend on the order of files or on other prompts.

    Args:
        seed: random seed.
        name: name in the data set; '' if it has no names.
        content: content without the split.
        occurrence: index among prompts of the same content.
    """
    return hashlib.sha256(json.dumps([seed, name, content.hex(), occurrence]).encode()).digest()


def find_last_hash(lots: Iterable[bytes], fraction: float) -> bytes:
    """Return the largest drawn number; prompts with this number or a smaller one form the test split.

    Raises:
        SelectionError: see `count_drawn`.
    """
    ordered = sorted(lots)
    return ordered[count_drawn(len(ordered), fraction) - 1]
