"""ROUGE, the share of a summary's word sequences that it has in common with a reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

from tracker.errors import MissingExtraError

KINDS = ("rouge1", "rouge2", "rougeL")
"""Single words, pairs of words, longest common sequence of words."""
TEXTS_KEPT = 64
"""Texts whose words are remembered: each kind asks for those of the same answer and references."""


def make_scorer(kind: str) -> Callable[[str, Sequence[str], Collection[str]], float]:
    """Scores by one kind: F1 in [0, 1] with the reference that is nearest.

    Words are runs of a-z and 0-9 in small letters, stemmed as ROUGE-1.5.5 does with ``-m``; so a text in another script
    has no words, and scores 0. What is to be ignored changes nothing.
    """

    def score(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
        scorer = _load_scorer(kind)
        return max(float(scorer.score(reference, answer)[kind].fmeasure) for reference in references)

    return score


def check_installed() -> None:
    """Raises MissingExtraError: the package that counts is not installed."""
    _load_scorer(KINDS[0])


class _CachedTokenizer:
    """The package's own words, each text's found once."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenize = lru_cache(maxsize=TEXTS_KEPT)(tokenizer.tokenize)


@lru_cache(maxsize=1)
def _load_tokenizer() -> _CachedTokenizer:
    from rouge_score.tokenizers import DefaultTokenizer

    return _CachedTokenizer(DefaultTokenizer(use_stemmer=True))


@lru_cache(maxsize=len(KINDS))
def _load_scorer(kind: str) -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError("A score by ROUGE", "models") from error
    return RougeScorer([kind], tokenizer=_load_tokenizer())
