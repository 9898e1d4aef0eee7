"""A filter and its effects on the benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.filter_effects import EffectDraws, FilterEffects, measure_effects
from analyses.numerics.filtering.step_flags import StepFlags, find_kept
from analyses.presentation.validation import validate
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.filter_step import StepResult, flag_nothing
from analyses.smart_filtering.step_registry import STEPS, FilterOptions, apply_steps, needs_answer_only
from analyses.smart_filtering.validation import check_ranked_models
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.filtering.evidence import answers_or_outcomes
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined

INTERVALS = (".n_removed", ".random_low", ".random_high", ".raw.mean", "random.tau.mean", "n_maxima")
"""Ends of the names of metrics that are no main metrics."""
REPORTED_ONLY = frozenset(step.name for step in STEPS if not step.removes)
"""Steps that remove nothing."""


@dataclass(frozen=True, kw_only=True)
class SmartFiltering(Finding):
    """A filter and its effects on the benchmark.

    Attributes:
        results: of all steps, by name.
        skipped: why a step was skipped, by its name.
        kept: ``(n_prompts,)`` whether the prompt is kept.
        filter_models: names, the best first.
        models: those with a score for every prompt, which are ranked.
        agreement_of: ``answers``, or ``right or wrong`` where not every model's answers are stored.
        against: the other benchmark and its metric; '' without one.
        effects: on these models.
    """

    results: Mapping[str, StepResult]
    skipped: Mapping[str, str]
    kept: NDArray[np.bool_]
    filter_models: tuple[str, ...]
    models: tuple[str, ...]
    agreement_of: str
    against: str
    effects: FilterEffects

    @property
    def steps(self) -> Mapping[str, StepFlags]:
        """The flags of all steps, by name."""
        return {name: result.flags for name, result in self.results.items()}

    @property
    def removing_steps(self) -> Mapping[str, StepFlags]:
        """The flags of the steps that can remove prompts, by name."""
        return {name: flags for name, flags in self.steps.items() if name not in REPORTED_ONLY}

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, shares by step, then the effects."""
        metrics: dict[str, Metric] = {
            "n_prompts": float(len(self.kept)),
            "n_kept": float(self.kept.sum()),
            "share_removed": float((~self.kept).mean()),
            "n_models": float(len(self.models)),
            "n_filter_models": float(len(self.filter_models)),
        }
        for name, flags in self.steps.items():
            counts = self._count(name, flags)
            metrics |= {f"{name.replace('-', '_')}.{number}": value for number, value in counts.items()}
        for result in self.results.values():
            metrics |= result.metrics
        return metrics | {name: finite_or_undefined(*number) for name, number in self.effects.numbers.items()}

    def _count(self, name: str, flags: StepFlags) -> dict[str, Metric]:
        masks = {"flagged": flags.flagged} | ({} if name in REPORTED_ONLY else {"removed": flags.removed})
        counts: dict[str, Metric] = {}
        for part, mask in masks.items():
            counts |= {f"n_{part}": float(mask.sum()), f"share_{part}": float(mask.mean())}
        if name not in self.skipped:
            return counts
        undefined: dict[str, Metric] = dict.fromkeys(counts, Undefined("the step was skipped"))
        return undefined | {"n_flagged": Undefined(self.skipped[name])}  # the reason stands once

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Random subsets, splits of the models, and the arrays of the steps."""
        arrays: dict[str, NDArray[Any]] = {**self.effects.arrays}
        for result in self.results.values():
            arrays |= result.arrays
        return arrays

    @property
    def main_metrics(self) -> Sequence[str]:
        """Counts, shares, effects; not the ends of every interval."""
        main = [name for name in self.metrics if not name.endswith(INTERVALS)]
        return [name for name in main if not (name.startswith("subset_error") and name.endswith((".low", ".high")))]


def filter_prompts(
    data: FilterData, options: FilterOptions, draws: EffectDraws, against: BenchmarkScores | None
) -> SmartFiltering:
    """Decide on every prompt by every step, and measure the effects of the filter.

    Raises:
        SelectionError: no model can be ranked, or too few have scores on the other benchmark.
    """
    scores, complete = data.scores, data.complete_columns
    results, skipped = apply_steps(data, options)
    stays = find_kept([result.flags for result in results.values()], scores.n_prompts)
    models = tuple(scores.models[column] for column in complete)
    external_scores = None if against is None else against.align(models)
    validate(check_ranked_models(models, external_scores, against))

    def choose(some: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return the prompts kept if only the best of these models filter."""
        best = data.choose_best(complete[some], options, with_answer_only=needs_answer_only(results))
        if not len(best):
            return flag_nothing(scores.n_prompts).flagged  # nothing is kept: the split has no error
        by_models = [
            result.flag_by_models(best) if result.flag_by_models else result.flags for result in results.values()
        ]
        return find_kept(by_models, scores.n_prompts)

    codes, agreement_of = answers_or_outcomes(data.answers, scores, complete)
    assert codes is not None  # scores are 0 and 1
    effects = measure_effects(
        np.ascontiguousarray(scores.Q[:, complete]),
        stays,
        np.isin(complete, data.columns),
        codes,
        external_scores,
        choose,
        draws,
    )
    return SmartFiltering(
        results=results,
        skipped=skipped,
        kept=stays,
        filter_models=data.filter_models,
        models=models,
        agreement_of=agreement_of,
        against="" if against is None else against.label,
        effects=effects,
    )
