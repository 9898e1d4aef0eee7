"""How far can weights of tasks move the ranking, as the least weight grows?

Where scores are averaged over tasks, random labels in a task make it count less. The least that a task may still count,
epsilon, is a choice; this follows the largest tau and, on its own, the largest MRC from epsilon near 0 to 1, and says
from which epsilon on no two models can be reversed at all.

Source: Zhang & Hardt 2024, equations 6 to 8 and figure 5; every number is defined in
docs/statistics/sensitivity-sweep.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.cardinal.sensitivity_path import SensitivityPath, sensitivity_path
from analyses.numerics.elections.exact_scores import exact_scores
from analyses.presentation.name_lists import first_ranked
from analyses.presentation.validation import validate
from analyses.sensitivity_sweep import figures, tables
from analyses.sensitivity_sweep import summary as wording
from tracker.queries.performance import TaskMatrix
from tracker.queries.ranking.task_rankings import task_rankings
from tracker.recording.finding import Finding, Metric, RankedModels, Report, Undefined, analysis

EPSILONS = ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "0.9", "1")
MOST_SHOWN = 20
"""Epsilons whose two values are among the headline."""


@dataclass(frozen=True, kw_only=True)
class SensitivitySweep(Finding):
    """Cardinal sensitivity along epsilon.

    Attributes:
        models: name of each column.
        tasks: name of each row: those with a score from every model.
        labels: each epsilon as a decimal number, smallest first.
        is_raw: whether scores are weighed as they are, not standardised.
        path: what was found at each.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    is_raw: bool
    path: SensitivityPath

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, limits of epsilon, then both distances with their bounds at each epsilon."""
        at = self.path.at
        n_exact = sum(one.is_exact for one in at)
        found: dict[str, Metric] = {
            "n_tasks": float(len(self.tasks)),
            "n_models": float(len(self.models)),
            "n_epsilons": float(len(at)),
            "n_exact": float(n_exact),
            "exact": float(n_exact == len(at)),
        }
        limits = self.path.limits
        found["epsilon.first_safe"] = self._limit(limits.max_limit())
        found["epsilon.first_safe_leader"] = self._limit(limits.max_limit(limits.involves_leader))
        named = zip(self.labels, at, strict=True)
        return found | {
            f"{name}.at_{label}": value
            for label, one in named
            for name, value in (
                ("tau", one.tau.value),
                ("tau_upper", one.tau.upper_bound),
                ("mrc", one.mrc.value),
                ("mrc_upper", one.mrc.upper_bound),
            )
        }

    def _limit(self, limit: Fraction) -> Metric:
        if not len(self.path.limits.limit):
            return Undefined("the mean ties all models")
        return float(limit) if limit <= 1 else Undefined("equal weights of standardised tasks already reverse a pair")

    @property
    def headline(self) -> Sequence[str]:
        """Without bounds, and at no more than so many epsilons."""
        shown = np.unique(np.linspace(0, len(self.labels) - 1, min(MOST_SHOWN, len(self.labels))).round().astype(int))
        values = [f"{name}.at_{self.labels[place]}" for name in ("tau", "mrc") for place in shown.tolist()]
        return (*(name for name in self.metrics if ".at_" not in name), *values)

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Both distances, weights and ranks of both witnesses; a row for each epsilon, smallest first."""
        at = self.path.at
        found: dict[str, NDArray[Any]] = {
            "epsilon": np.array([float(one.epsilon) for one in at]),
            "rank_before": at[0].before,
            "scale": at[0].scale,
        }
        for name, changes in (("tau", [one.tau for one in at]), ("mrc", [one.mrc for one in at])):
            found |= {
                name: np.array([change.value for change in changes]),
                f"{name}_upper": np.array([change.upper_bound for change in changes]),
                f"{name}_weights": np.array([change.witness for change in changes]),
                f"{name}_ranks": np.array([change.after for change in changes]),
            }
        return found

    def summary(self) -> str:
        """What was found, in plain words."""
        leading = first_ranked(self.path.at[0].before, self.models)
        return " ".join(
            [
                wording.moves(self.path.at, self.labels, is_raw=self.is_raw),
                *wording.safety(self.path.limits, leading, is_raw=self.is_raw),
                wording.LAST,
            ]
        )


@analysis
def analyze(
    scores: TaskMatrix,
    *,
    epsilons: Annotated[tuple[str, ...], "least weights of a task, decimal numbers from 1e-9 to 1"] = EPSILONS,
    columns: Annotated[
        Literal["raw", "standardised"], "what is weighed: scores as they are, or tasks of standard deviation 1"
    ] = "raw",
    time_limit: Annotated[float, "seconds for the whole path; 0: no exact search"] = 30.0,
) -> Report:
    """Follow cardinal sensitivity along the least weight.

    Args:
        scores: at least 3 models; tasks that lack the score of some model are left out, with a note.
        epsilons: in any order; the same number twice is one.
        columns: what is weighed; the ranking before is that by the mean of the scores as they are, in both cases.
        time_limit: what is not proven by then is given as an interval; how narrow depends on the machine.

    Raises:
        SelectionError: too few models, infinite scores, no task with a score from every model, or an option out of
            range.
    """
    field = task_rankings(scores)
    validate(wording.problems(columns=columns, time_limit=time_limit))
    chosen = wording.least_weights(epsilons)
    is_raw = columns == "raw"
    complete = np.asarray(~np.isnan(field.scores.T).any(axis=1))
    if not complete.any():
        validate(wording.no_complete_task(field.scores.n_tasks))
    table = field.scores.rows(complete)
    exact = exact_scores(table.T, table.n_prompts, higher_is_better=table.higher_is_better)
    path = sensitivity_path(
        exact, epsilons=[epsilon for _, epsilon in chosen], standardised=not is_raw, time_limit=time_limit
    )
    found = SensitivitySweep(
        models=table.models,
        tasks=table.tasks,
        labels=tuple(label for label, _ in chosen),
        is_raw=is_raw,
        path=path,
    )
    sums = path.limits.sums
    warnings = wording.warnings(
        path.at,
        int((~complete).sum()),
        [task for task, group in zip(table.tasks, sums.group.tolist(), strict=True) if group < 0],
        sums.n_weights,
        is_raw=is_raw,
        time_limit=time_limit,
    )
    return Report(
        found,
        rankings={"mean": RankedModels(models=table.models, score=table.T.mean(axis=0), rank=sums.before)},
        tables={
            "sweep": tables.by_epsilon(path.at, path.limits),
            "weights": tables.weights(path.at, table.tasks),
            "pairs": tables.pairs(path.limits, table.models),
        },
        figures={"sweep": lambda: figures.sweep(path.at, path.limits, found.labels, is_raw=is_raw)},
        warnings=[*field.warnings, *warnings],
    )
