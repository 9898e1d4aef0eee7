"""The numbers of a finding in groups for reading: plain ones, and statistics with what belongs beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

BESIDE = ("null_mean", "permuted_mean", "null_sd", "permuted_sd", "pvalue")
"""Suffixes that stand beside the number they belong to: ``hamming.variance.pvalue`` beside ``hamming.variance``."""


class NamedNumber(Protocol):
    """A number of a finding, as recorded."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def reason(self) -> str | None: ...  # noqa: D102
    @property
    def is_main(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number with what stands beside it.

    Attributes:
        number: the statistic.
        beside: by suffix; None where there is no such number.
        reason: why it, or one beside it, is not given; '' where all are.
        is_discrete: whether the null takes so few values that p-values move in jumps.
    """

    number: NamedNumber
    beside: Mapping[str, float | None]
    reason: str
    is_discrete: bool


@dataclass(frozen=True, kw_only=True)
class GroupedNumbers:
    """The main numbers of a finding.

    Attributes:
        plain: those with nothing beside them.
        statistics: the others.
        suffixes: of `BESIDE`, those that any statistic has.
    """

    plain: Sequence[NamedNumber]
    statistics: Sequence[Statistic]
    suffixes: tuple[str, ...]


def group_metrics(numbers: Sequence[NamedNumber]) -> GroupedNumbers:
    """The main numbers in their order, those that belong to a statistic beside it."""
    known = {number.name: number for number in numbers}
    with_others = {n.name for n in numbers if any(f"{n.name}.{suffix}" in known for suffix in BESIDE)}
    stems = [n for n in numbers if n.is_main and n.name.rpartition(".")[0] not in with_others]
    tested = [n for n in stems if n.name in with_others]
    suffixes = tuple(s for s in BESIDE if any(f"{n.name}.{s}" in known for n in tested))
    statistics = []
    for number in tested:
        parts = {suffix: known.get(f"{number.name}.{suffix}") for suffix in suffixes}
        flag = known.get(f"{number.name}.discrete")
        statistics.append(
            Statistic(
                number=number,
                beside={suffix: part.value if part else None for suffix, part in parts.items()},
                reason=number.reason or next((part.reason for part in parts.values() if part and part.reason), ""),
                is_discrete=flag is not None and bool(flag.value),
            )
        )
    return GroupedNumbers(
        plain=[n for n in stems if n.name not in with_others], statistics=statistics, suffixes=suffixes
    )
