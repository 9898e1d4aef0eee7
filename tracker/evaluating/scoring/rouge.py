"""ROUGE: overlap of word sequences between a text and a reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

from tracker.errors import MissingExtraError

KINDS = ("rouge1", "rouge2", "rougeL")
"""Unigrams, bigrams, longest common subsequence."""
TEXTS_KEPT = 64
"""Number of texts whose tokens are cached, since each variant tokenizes the same answer and references."""


def make_scorer(kind: str) -> Callable[[str, Sequence[str], Collection[str]], float]:
    """Scores by one ROUGE variant: F1 in [0, 1] with the best reference.

    Words are runs of a-z and 0-9 in lower case, stemmed as in ROUGE-1.5.5 with ``-m``. A text in another script has no
    words and scores 0. Options to ignore differences have no effect.
    """

    def score(answer: str, references: Sequence[str], ignore: Collection[str] = ()) -> float:
        scorer = _load_scorer(kind)
        return max(float(scorer.score(reference, answer)[kind].fmeasure) for reference in references)

    return score


def check_installed() -> None:
    """Raise MissingExtraError if the package rouge-score is not installed."""
    _load_scorer(KINDS[0])


class _CachedTokenizer:
    """The package's tokenizer with a cache."""

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
