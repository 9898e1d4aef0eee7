"""The metrics of a finding in groups: plain ones, and statistics with their p-values and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

BESIDE = ("null_mean", "permuted_mean", "null_sd", "permuted_sd", "pvalue", "pvalue_two_sided")
"""Suffixes of metrics that belong to another one: ``hamming.variance.pvalue`` belongs to ``hamming.variance``."""


class NamedNumber(Protocol):
    """A metric of a finding, as recorded."""

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
    """A metric with those that belong to it.

    Attributes:
        number: the statistic.
        beside: metrics that belong to it, by suffix; None if missing.
        reason: why it, or one that belongs to it, is undefined; '' if all have values.
        is_discrete: whether the null distribution takes so few values that p-values move in steps.
    """

    number: NamedNumber
    beside: Mapping[str, float | None]
    reason: str
    is_discrete: bool


@dataclass(frozen=True, kw_only=True)
class GroupedNumbers:
    """The headline metrics of a finding.

    Attributes:
        plain: metrics to which no others belong.
        statistics: the others.
        suffixes: of `BESIDE`, those that any statistic has.
    """

    plain: Sequence[NamedNumber]
    statistics: Sequence[Statistic]
    suffixes: tuple[str, ...]


def group_metrics(numbers: Sequence[NamedNumber]) -> GroupedNumbers:
    """Group the headline metrics in their order, each statistic with the metrics that belong to it."""
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
