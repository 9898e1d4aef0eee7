"""Planned studies have the planned power: by simulation from a pilot study to many studies of the planned size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tracker.queries.comparing.study_plan import list_pairs
from tracker.queries.comparing.trial_scores import TrialScores
from tracker.queries.performance import PerformanceMatrix
from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.mcnemar import mcnemar_pvalues
from tracker.statistics.paired_differences import estimate_clustered_mean
from tracker.statistics.planning.sample_size import PairVariance, plan_study
from tracker.statistics.student_t import t_pvalues

EFFECT = 0.05
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def independent_trials(rng: np.random.Generator, n: int, n_trials: int) -> np.ndarray:
    """Passed trials of two models, ``(n, 2, K)``: their chances differ by `EFFECT` on average."""
    chance = np.clip(rng.beta(2, 2, (n, 1)) * 0.6 + rng.normal(0, 0.1, (n, 2)), 0, 0.9)
    chance[:, 0] += EFFECT
    return (rng.random((n, 2, n_trials)) < chance[:, :, None]).astype(float)


def pilot(trials: np.ndarray, groups: Grouping) -> PairVariance:
    """The variance of the pair in a table of trials."""
    n, _, n_trials = trials.shape
    Q = trials.mean(axis=2)
    scores = PerformanceMatrix(
        Q=Q,
        prompt_ids=np.arange(n),
        tasks=np.full(n, ""),
        models=("a", "b"),
        run_ids=np.arange(2),
    )
    stored = TrialScores(
        scores=scores,
        count=np.full((n, 2), n_trials),
        squares=((trials - Q[:, :, None]) ** 2).sum(axis=2),
        passed=trials.sum(axis=2).astype(np.int64),
        is_unit=True,
    )
    return list_pairs(stored, groups)[0]


def power_of_trials(n_pilot: int, stored: int, planned: int | None, n_studies: int) -> tuple[float, float]:
    """Shares of studies of the planned size in which Student's t, and McNemar's test, are significant."""
    rng, hits = np.random.default_rng(11), []
    for _ in range(n_studies):
        pair = pilot(independent_trials(rng, n_pilot, stored), group_rows(np.full(n_pilot, "")))
        n = int(plan_study(pair, effect=EFFECT, power=0.8, alpha=0.05, n_trials=planned).n_prompts)
        study = independent_trials(rng, n, planned or stored)
        d = study[:, 0].mean(axis=1) - study[:, 1].mean(axis=1)
        student = t_pvalues(d.mean(), d.std(ddof=1) / np.sqrt(n), n, 1.0)
        hits.append((student <= 0.05, mcnemar_pvalues((d > 0).sum(), (d < 0).sum()) <= 0.05))
    student, exact = np.mean(hits, axis=0).tolist()
    return student, exact


def clustered_table(rng: np.random.Generator, n_clusters: int) -> tuple[np.ndarray, Grouping]:
    """Differences of −1, 0 and 1 in clusters of 30 that favour different models."""
    codes = np.repeat(np.arange(n_clusters), 30)
    effect = EFFECT + rng.normal(0, 0.1, n_clusters)[codes]
    u = rng.random(len(codes))
    d = (u < 0.15 + effect / 2).astype(float) - (u > 0.85 + effect / 2)
    return d, Grouping(codes=codes, sizes=np.full(n_clusters, 30), n_alone=0)


def power_of_clusters(n_pilot: int, n_studies: int) -> float:
    rng, hits = np.random.default_rng(12), []
    for _ in range(n_studies):
        d, groups = clustered_table(rng, n_pilot)
        table = np.stack([np.maximum(d, 0), np.maximum(-d, 0)], axis=1)[:, :, None]
        planned = plan_study(pilot(table, groups), effect=EFFECT, power=0.8, alpha=0.05)
        assert planned.n_prompts == planned.n_units * 30
        d, groups = clustered_table(rng, int(planned.n_units))
        hits.append(estimate_clustered_mean(d, groups, scale=1.0).pvalue <= 0.05)
    return float(np.mean(hits))


class TestLaws:
    PAIR = PairVariance(models=("a", "b"), stderr=0.02, degrees=499, n=500, n_units=500, within=0.1, from_trials=0.0001)

    def test_detecting_the_detectable_difference_needs_the_prompts_at_hand(self):
        for n_trials in (None, 1, 4):
            detectable = plan_study(self.PAIR, effect=1, power=0.9, alpha=0.01, n_trials=n_trials).detectable
            again = plan_study(self.PAIR, effect=detectable * 1.0001, power=0.9, alpha=0.01, n_trials=n_trials)
            assert again.n_prompts == 500

    def test_the_stored_number_of_trials_keeps_the_error_if_trials_explain_more_than_all_of_it(self):
        noise = replace(self.PAIR, from_trials=0.0005, within=1.0)  # four trials of each prompt
        assert noise.stderr_with(4) == pytest.approx(noise.stderr)
        assert noise.stderr_with(16) == pytest.approx(noise.stderr / 2)

    def test_trials_lower_the_error_to_that_of_prompts(self):
        assert self.PAIR.stderr_with(2) == pytest.approx(self.PAIR.stderr)
        assert self.PAIR.stderr_with(10**9) == pytest.approx(np.sqrt(0.0003))
        needed = [plan_study(self.PAIR, effect=0.05, power=0.8, alpha=0.05, n_trials=k).n_prompts for k in (1, 2, 8)]
        assert needed == sorted(needed, reverse=True)

    def test_clusters_are_needed_whole(self):
        pair = PairVariance(
            models=("a", "b"), stderr=0.03, degrees=13, n=12_000, n_units=14, within=np.nan, from_trials=np.nan
        )
        size = plan_study(pair, effect=0.05, power=0.8, alpha=0.05)
        assert size.n_prompts == np.ceil(size.n_units * 12_000 / 14)
        assert np.isinf(plan_study(pair, effect=1e-12, power=0.8, alpha=0.05).n_prompts)


class TestPower:
    def test_planned_studies_detect_the_effect_about_as_often_as_planned(self):
        student, exact = power_of_trials(400, 3, 1, 250)
        assert student == pytest.approx(0.8, abs=0.1)
        assert exact == pytest.approx(student, abs=0.06)


@pytest.mark.soak
class TestManyStudies:
    @pytest.mark.parametrize(("stored", "planned"), [(1, None), (3, 1), (3, None), (3, 8)])
    def test_prompts_and_trials_reach_the_planned_power(self, stored, planned):
        student, exact = power_of_trials(1000, stored, planned, 4000)
        trials = f"{stored} stored trials, {planned or stored} planned"
        print(f"\npower 80 % planned, {trials}: t-test {student:.2%}")
        if (planned or stored) == 1:
            print(f"McNemar's exact test: {exact:.2%}")
        assert 0.78 <= student <= 0.82
        assert (planned or stored) > 1 or exact >= 0.77

    def test_clusters_reach_the_planned_power(self):
        power = power_of_clusters(100, 4000)
        print(f"\npower 80 % planned, clusters: {power:.2%}")
        assert 0.77 <= power <= 0.83
