"""Compare runs with their baselines, and find those that are significantly worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa

from tracker.database import transaction
from tracker.queries.comparing.named_pair import select_named_pair
from tracker.queries.performance import load_performance_matrix
from tracker.queries.selection import Policy, Selection
from tracker.recording.pipeline import compute_report
from tracker.recording.record import make_metric_rows

ANALYSIS = "comparison"
IDENTICAL = "identical"
REGRESSION = "regression"
BETTER = "better"
NO_REGRESSION = "no significant regression"
UNTESTED = "not tested"


@dataclass(frozen=True, kw_only=True)
class RunPair:
    """A run and its baseline, on one benchmark.

    Attributes:
        benchmark, metric: names.
        model, baseline: names of the models.
        run_id, baseline_id: keys of the runs.
    """

    benchmark: str
    metric: str
    model: str
    baseline: str
    run_id: int
    baseline_id: int


@dataclass(frozen=True, kw_only=True)
class BaselineComparison:
    """The comparison of a run with its baseline.

    Attributes:
        pair: the runs.
        n_prompts: prompts that both have scores for.
        n_compared: prompts behind the means and the difference: those, and the ones that the policy adds.
        n_changed: of these, prompts on which the two differ.
        n_unshared: prompts that only one of the two has a score for.
        missing: policy for them.
        mean, baseline_mean: on the shared prompts, with those that the policy adds; None if undefined.
        difference: positive if the run is better than the baseline, whatever the metric's direction.
        low, high, pvalue: of the difference; None if undefined.
        detectable: smallest true difference that is detected with a power of 80 %; None if undefined.
        level: confidence level of the interval.
        margin: largest loss that does not matter.
        evidence: sentences about means, prompts and tests.
    """

    pair: RunPair
    n_prompts: int
    n_compared: int = 0
    n_changed: int = 0
    n_unshared: int = 0
    missing: Policy = "common"
    mean: float | None = None
    baseline_mean: float | None = None
    difference: float = 0.0
    low: float | None = None
    high: float | None = None
    pvalue: float | None = None
    detectable: float | None = None
    level: float
    margin: float
    evidence: tuple[str, ...] = ()

    @property
    def coverage(self) -> float:
        """Share of the prompts of either that both have scores for, in [0, 1]."""
        return self.n_prompts / max(1, self.n_prompts + self.n_unshared)

    @property
    def status(self) -> str:
        """The result: a regression, better, neither, identical or not tested.

        A regression is a significant difference whose interval lies below minus the margin.
        """
        if self.n_changed == 0 and (self.missing == "common" or not self.n_unshared):
            return IDENTICAL
        if self.pvalue is None:
            return UNTESTED
        if self.pvalue > 1 - self.level:
            return NO_REGRESSION
        if self.difference > 0:
            return BETTER
        most = self.difference if self.high is None else self.high  # without bounds, if all prompts agree
        is_beyond = not self.margin or most < -self.margin
        return REGRESSION if is_beyond else NO_REGRESSION


def compare_with_baselines(
    engine: sa.Engine,
    pairs: Sequence[RunPair],
    *,
    alpha: float,
    margin: float,
    missing: Policy = "common",
    n_resamples: int = 9999,
    seed: int = 0,
) -> tuple[BaselineComparison, ...]:
    """Compare each run with its baseline.

    Args:
        engine: the store.
        pairs: the runs.
        alpha: probability of at least one false regression, over all pairs (Bonferroni's correction).
        margin: largest loss that does not matter, in the unit of the scores.
        missing: policy for prompts that only one of the two has a score for.
        n_resamples: of the bootstrap, and of sign flips if not all are enumerated.
        seed: of the resamples.

    Raises:
        SuffrageError: two runs share no prompt, or the policy does not suit their scores.
    """
    level = 1 - alpha / max(1, len(pairs))
    parameters = {"level": level, "n_resamples": n_resamples, "seed": seed}
    return tuple(_compare(engine, pair, parameters, level, margin, missing) for pair in pairs)


def _compare(
    engine: sa.Engine,
    pair: RunPair,
    parameters: dict[str, float | int],
    level: float,
    margin: float,
    missing: Policy,
) -> BaselineComparison:
    selection = Selection(benchmark=pair.benchmark, metric=pair.metric, missing=missing, min_coverage=0.0)
    with transaction(engine, write=False) as session:
        names = (f"run:{pair.run_id}", f"run:{pair.baseline_id}")
        selection, (run, baseline) = select_named_pair(session, selection, names)
        measured = ~np.isnan(load_performance_matrix(session, replace(selection, missing=None)).Q)
    report = compute_report(engine, ANALYSIS, selection, {**parameters, "model_a": run, "model_b": baseline})
    values = {row.name: row.value for row in make_metric_rows(report.finding)}
    sentences = report.summary.evidence if report.summary else ()
    return BaselineComparison(
        pair=pair,
        n_prompts=int((measured.sum(axis=1) == 2).sum()),
        n_compared=int(values["n_prompts"] or 0),
        n_changed=int(values["n_a_better"] or 0) + int(values["n_b_better"] or 0),
        n_unshared=int((measured.sum(axis=1) == 1).sum()),
        missing=missing,
        mean=values["mean_a"],
        baseline_mean=values["mean_b"],
        difference=values["difference"] or 0.0,
        low=values["low"],
        high=values["high"],
        pvalue=values["pvalue"],
        detectable=values["detectable"],
        level=level,
        margin=margin,
        evidence=tuple(_rename(sentence, pair, run, baseline) for sentence in sentences),
    )


def _rename(sentence: str, pair: RunPair, run: str, baseline: str) -> str:
    """Return a sentence about two runs of one model with `the baseline` for the earlier one."""
    if pair.model != pair.baseline:
        return sentence
    return sentence.replace(baseline, "the baseline").replace(run, pair.model)
