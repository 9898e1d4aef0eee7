"""The spellings of a label, over which its probability is summed, whichever program computes the probabilities.

A label such as ``A`` has several tokens in most vocabularies: with and without white space around it. The probability
of a label is the sum over all of them; a server lists them among the likeliest tokens, and a local model computes them.
A label of several tokens is spelled by these tokens alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

WORD_STARTS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
"""Characters by which vocabularies mark the space before a word, and the end of a line."""
Ids = tuple[int, ...]


def strip_token(token: str) -> str:
    """Return the text of a token without white space around it."""
    return token.translate(WORD_STARTS).strip()


def group_tokens(vocabulary: Mapping[str, int], labels: Sequence[str]) -> dict[str, Ids]:
    """Return the tokens that spell each label, in ascending order.

    Args:
        vocabulary: number of each token.
        labels: the labels.
    """
    numbers_of: dict[str, list[int]] = {label.strip(): [] for label in labels}
    for token, number in vocabulary.items():
        numbers = numbers_of.get(strip_token(token))
        if numbers is not None:
            numbers.append(number)
    return {label: tuple(sorted(numbers)) for label, numbers in numbers_of.items()}


def list_spellings(after_prompt: Ids, tokens: Ids) -> tuple[Ids, ...]:
    """Return the spellings of a label, each as its tokens.

    Args:
        after_prompt: the label's tokens after the prompt.
        tokens: single tokens that spell it.
    """
    singles = tuple((token,) for token in tokens)
    return singles if after_prompt[:1] in singles else (after_prompt, *singles)


def sum_spellings(logprobs: NDArray[np.float64], labels: Sequence[int], n_labels: int) -> NDArray[np.float64]:
    """Return the log-probability of each label, ``(n_labels,)``, at most 0.

    Args:
        logprobs: ``(n_spellings,)`` log-probability of each spelling.
        labels: index of the label that each of them spells.
        n_labels: number of labels.
    """
    sums = np.full(n_labels, -np.inf)
    with np.errstate(invalid="ignore"):  # NaN, of a model without numbers, stays NaN
        np.logaddexp.at(sums, np.asarray(labels, dtype=np.intp), logprobs)
    return np.asarray(np.minimum(sums, 0.0), dtype=np.float64)
