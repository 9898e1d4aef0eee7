"""Types that every analysis returns, and the decorator that declares one.

An analysis is a function of arrays, marked with `analysis`. Its positional parameters are inputs that load themselves
(`PerformanceMatrix`, `TaskMatrix`). Its keyword-only parameters are the options of its command and the parameters of
its record. It returns a `Report` with one `Finding`: scalar fields are the metrics, array fields are the artifacts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tracker.plugins.parameters import CPU as CPU
from tracker.plugins.parameters import Device as Device
from tracker.queries.findings.summary import Summary as Summary
from tracker.queries.selection import MIN_COVERAGE, POLICIES, Policy

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Undefined:
    """An undefined metric, with the reason.

    Attributes:
        reason: as text, such as ``"invariant under this null"``.
    """

    reason: str


Metric = float | Undefined


def finite_or_undefined(value: float, reason: str) -> Metric:
    """Return the number, or why it is undefined if it is NaN or infinite."""
    return value if np.isfinite(value) else Undefined(reason)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The numerical result of an analysis.

    Subclasses are frozen dataclasses. A subclass whose metrics have dotted names overrides `metrics`.
    """

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Return the scalar fields by name; an `Undefined` value carries the reason."""
        return {
            name: value if isinstance(value, Undefined) else float(value)
            for name, value in self._fields().items()
            if isinstance(value, (bool, int, float, np.number, Undefined))
        }

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the array fields by name."""
        return {name: value for name, value in self._fields().items() if isinstance(value, np.ndarray)}

    @property
    def main_metrics(self) -> Sequence[str]:
        """Return names of at most fifty metrics worth comparing across findings; all by default."""
        return tuple(self.metrics)

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


@dataclass(frozen=True, kw_only=True)
class PromptValues:
    """One number per prompt: weights, slopes, difficulties.

    Attributes:
        prompt_ids: ``(n,)`` int64, primary keys of ``prompt``.
        values: ``(n,)`` float64; NaN is stored as missing.
    """

    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RankedModels:
    """Models ranked by one scheme.

    Attributes:
        models: names, in any order.
        score: ``(n_models,)`` score that decides the rank.
        rank: ``(n_models,)`` 1 is best; ties share the mean rank.
        low, high: ``(n_models,)`` interval of the score, if there is one.
        rank_low, rank_high: ``(n_models,)`` interval of the rank, if there is one.
    """

    models: tuple[str, ...]
    score: NDArray[np.float64]
    rank: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    rank_low: NDArray[np.float64] | None = None
    rank_high: NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True)
class FlaggedPrompts:
    """The prompts that a filter flags for one reason.

    Attributes:
        prompt_ids: ``(n,)`` int64, primary keys of ``prompt``.
        retained: ``(n,)`` bool, whether the prompt stays in spite of the reason.
        groups: ``(n,)`` number of its group of similar prompts, -1 = none; None without groups.
    """

    prompt_ids: NDArray[np.int64]
    retained: NDArray[np.bool_]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class FilterDecisions:
    """The prompts that a filter keeps, and the reasons for the others.

    A prompt is kept if it is retained in spite of each of its reasons, or has none.

    Attributes:
        prompt_ids: ``(n,)`` int64, every evaluated prompt.
        kept: ``(n,)`` bool.
        reasons: by step, such as ``easy``.

    Raises:
        ValueError: decisions and reasons contradict each other, or a reason flags a prompt that was not evaluated.
    """

    prompt_ids: NDArray[np.int64]
    kept: NDArray[np.bool_]
    reasons: Mapping[str, FlaggedPrompts]

    def __post_init__(self) -> None:
        removed = np.zeros(len(self.prompt_ids), dtype=np.bool_)
        for step, out in self.reasons.items():
            if not np.isin(out.prompt_ids, self.prompt_ids).all():
                raise ValueError(f"the step {step} flags prompts that the filter did not evaluate")
            removed |= np.isin(self.prompt_ids, out.prompt_ids[~out.retained])
        if (removed == self.kept).any():
            raise ValueError("a prompt is kept if, and only if, no reason removes it")


LeaderChange = Literal["yes", "maybe", "no", "unknown"]
"""Whether a choice changes the first place, see `VerdictLine`."""


def compare_leaders(leaders: Collection[str], expected: Collection[str]) -> LeaderChange:
    """Return whether leaders differ from those of the leaderboard: ``maybe`` if only some of them do.

    Args:
        leaders: names of models.
        expected: those that the leaderboard ranks first.
    """
    if not set(leaders) & set(expected):
        return "yes"
    return "no" if set(leaders) == set(expected) else "maybe"


@dataclass(frozen=True, kw_only=True)
class VerdictLine:
    """The effect of one choice on the first place: a line of `suffrage verdict`.

    Attributes:
        topic: the choice that is varied, such as ``weights of prompts``.
        text: the result as one sentence, with names and numbers.
        leader_changes: ``yes``: another model is first. ``maybe``: several models may be first, because of sampling
            error or missing scores. ``no``: the first place stays. ``unknown``: that is not known, because a search did
            not end or the choice cannot be applied.
    """

    topic: str
    text: str
    leader_changes: LeaderChange

    @property
    def answer(self) -> str:
        """Whether the first place changes: the label of ``leader_changes``."""
        return "not known" if self.leader_changes == "unknown" else self.leader_changes


@dataclass(frozen=True)
class Report:
    """A finding with its summary, tables and figures; all of it is stored, then published.

    Attributes:
        finding: the metrics.
        summary: headline, evidence and caveats.
        prompt_values: by name.
        task_values: by name, each a mapping from task name to a number.
        rankings: by scheme.
        tables: by name; stored as Parquet.
        figures: by name, each a function that draws it; called only when the finding is recorded.
        warnings: further caveats, the most important first: what was dropped, what to do next. They fill the places for
            caveats that the summary leaves free; the others are recorded separately.
        filter: the kept prompts, for an analysis that is a filter; ``--filter ID`` then selects them in every other
            analysis.
        verdict: its lines in the verdict on the benchmark, or a function that returns them for the names of the models
            that the leaderboard ranks first; not stored.
        ranked_by: how its first ranking ranks, such as ``by win rate``, for a reader who knows the leaderboard.
        compared: names of the models that it compares, if not all: its leader is one of them, and is not compared with
            that of the leaderboard.
        leaders: names of the models that it ranks first; by default those of its first ranking, else those with the
            best mean of the scores it uses.
    """

    finding: Finding
    summary: Summary = field(kw_only=True)
    prompt_values: Mapping[str, PromptValues] = field(default_factory=dict)
    task_values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rankings: Mapping[str, RankedModels] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    filter: FilterDecisions | None = None
    verdict: Sequence[VerdictLine] | Callable[[Sequence[str]], Sequence[VerdictLine]] = ()
    ranked_by: str = ""
    compared: tuple[str, ...] = ()
    leaders: tuple[str, ...] = ()


F = TypeVar("F", bound=Callable[..., Report])


@overload
def analysis(function: F) -> F: ...
@overload
def analysis(
    *,
    in_verdict: Mapping[str, Any] | None = None,
    verdict_limit: int | None = None,
    tests: Mapping[str, Sequence[str]] | None = None,
    n_tests: Mapping[str, str] | None = None,
    leader_tests: Sequence[str] = (),
    missing: Policy = "common",
    policies: Sequence[Policy] = POLICIES,
    min_coverage: float = MIN_COVERAGE,
) -> Callable[[F], F]: ...
def analysis(
    function: F | None = None,
    *,
    in_verdict: Mapping[str, Any] | None = None,
    verdict_limit: int | None = None,
    tests: Mapping[str, Sequence[str]] | None = None,
    n_tests: Mapping[str, str] | None = None,
    leader_tests: Sequence[str] = (),
    missing: Policy = "common",
    policies: Sequence[Policy] = POLICIES,
    min_coverage: float = MIN_COVERAGE,
) -> F | Callable[[F], F]:
    """Mark a function as an analysis: its module becomes a command.

    The command is named after the module (``prompt_correlation`` → ``prompt-correlation``), its help is the module's
    docstring, its options are the function's keyword-only parameters.

    Args:
        function: the analysis.
        in_verdict: a literal mapping, if `suffrage verdict` is to run the analysis and show its `Report.verdict`: the
            parameters that differ from the defaults there, such as a shorter time limit. It is read from the source.
        verdict_limit: a literal number of scores; above it the verdict does not run the analysis, but shows the leader
            of its latest recorded finding, if there is one. None runs it always.
        tests: a literal mapping from each test whose result the summary states, such as ``difference``, to metrics of
            which the first that is defined is the p-value. A family of hypotheses is one test; its p-value is that of
            one of them, adjusted for the family. Other statistics of the same hypothesis are no tests. It is read
            from the source.
        n_tests: a literal mapping from each of these tests that is a family to the metric with its number of
            hypotheses.
        leader_tests: a literal tuple of those of these tests that are about the model that is first: where missing
            scores change that model, there is no test.
        missing: default policy for missing scores; see `tracker.queries.ranking.missing`. Scores are complete under any
            other than ``bounds``.
        policies: policies that the analysis treats itself. Under ``bounds`` and ``impute``, it otherwise runs under
            ``missing`` and on completions of the table, see `tracker.queries.ranking.completions`.
        min_coverage: default share of the prompts that a model must have scores for.
    """

    def mark(function: F) -> F:
        function.__suffrage_analysis__ = True  # type: ignore[attr-defined]
        function.__suffrage_missing__ = missing, tuple(policies), min_coverage  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)
