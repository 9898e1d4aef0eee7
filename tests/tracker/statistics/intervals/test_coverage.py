"""How often intervals hold the truth of simulated tables, and their median width beside those of other methods."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_methods import compare_methods
from scipy import stats
from simulated_tables import (
    BOUNDED,
    BoundedScores,
    bootstrap_t_interval,
    capital_interval,
    chunks,
    cluster_sizes,
    clustered_scores,
    student_interval,
)

from tracker.statistics.grouping import Grouping, group_rows
from tracker.statistics.intervals.binomial import beta_interval, blaker_interval
from tracker.statistics.intervals.bounded import bounded_intervals
from tracker.statistics.intervals.means import estimate_means
from tracker.statistics.pairwise_differences import compare_all_pairs

N_TABLES = 10_000
STRATA = {
    "9 tasks of 12, .967": ([12] * 9, np.full(9, 0.967)),
    "9 tasks of 12, .3 to .99": ([12] * 9, np.linspace(0.3, 0.99, 9)),
    "57 tasks of 4, .3 to .99": ([4] * 57, np.linspace(0.3, 0.99, 57)),
    "20 tasks of 2, .3 to .99": ([2] * 20, np.linspace(0.3, 0.99, 20)),
    "14 tasks of 38 to 135, .4 to .8": (np.linspace(135, 38, 14).astype(int), np.linspace(0.4, 0.8, 14)),
    "5 tasks of 5 to 200, .99": ([5, 20, 50, 100, 200], np.full(5, 0.99)),
    "2 tasks of 50, .97 and 0": ([50] * 2, np.array([0.97, 0.0])),
    "2 tasks of 200, .9925 and 0": ([200] * 2, np.array([0.9925, 0.0])),
    "6 tasks of 50, .97 and 0": ([50] * 6, np.array([0.97, 0.0] * 3)),
}
NESTED = {
    "14 tasks of 2 passages of 20": (14, 2, 20, 1.0), "10 tasks of 2 passages of 50": (10, 2, 50, 1.0),
    "3 tasks of 2 passages of 50": (3, 2, 50, 1.0), "10 tasks of 3 passages of 20": (10, 3, 20, 2.0),
    "6 tasks of 10 passages of 20": (6, 10, 20, 1.0), "5 tasks of 10 passages of 5": (5, 10, 5, 0.5),
}  # fmt: skip
"""Tasks, passages of each, prompts of each, and the standard deviation of passages in logits."""
WEIGHTED = {
    "1,000 prompts, 1 % of weight 25": (1000, 0.01, 25, 0.5, 1.0),
    "500 prompts, 5 % of weight 10": (500, 0.05, 10, 0.4, 0.9),
    "300 prompts, 20 % of weight 4": (300, 0.2, 4, 0.5, 0.9),
    "500 prompts, equally hard": (500, 0.05, 10, 0.7, 0.7),
}
"""Prompts, the share and the weight of heavy ones, and the rates of heavy and light ones."""


def independent(n: int) -> Grouping:
    return group_rows(np.full(n, ""))


def measure(low: np.ndarray, high: np.ndarray, truth: float) -> tuple[float, float]:
    return float(np.mean((low <= truth) & (truth <= high))), float(np.median(high - low))


def cluster_coverage(kind: str, n_clusters: int, mean: float, sd: float, n_tables: int):
    """Coverage and median width, and the sums of the clusters in each table."""
    sizes, rng = cluster_sizes(kind, n_clusters), np.random.default_rng([1, n_clusters, int(1000 * mean)])
    groups = group_rows(np.repeat(np.arange(n_clusters), sizes).astype(str))
    draw, starts = clustered_scores(sizes, mean, sd), np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ends, sums = [], []
    for k in chunks(sizes.sum(), n_tables):
        Q = draw(rng, k)
        result = estimate_means(Q, groups, bounds=(0, 1))
        ends.append(np.array([result.low, result.high]))
        sums.append(np.add.reduceat(Q, starts, axis=0))
    return *measure(*np.hstack(ends), mean), np.hstack(sums)


def bounded_coverage(scores: BoundedScores, n: int, n_tables: int) -> tuple[float, float]:
    rng, ends = np.random.default_rng([2, n]), []
    for k in chunks(n, n_tables):
        result = estimate_means(scores.draw(rng, (n, k)), independent(n), bounds=(0, 1))
        ends.append(np.array([result.low, result.high]))
    return measure(*np.hstack(ends), scores.mean)


def describe_methods(methods: dict[str, tuple[float, float]], bar: float, width: float) -> str:
    """Coverage and width of other methods, which of them are valid by the bar, and how ``width`` compares to the
    narrowest valid one.
    """
    texts = [
        f"{name} {rate:.1%} ({w:.4f}) {'valid' if rate >= bar else 'not valid'}" for name, (rate, w) in methods.items()
    ]
    valid = {name: w for name, (rate, w) in methods.items() if rate >= bar}
    name = min(valid, key=valid.__getitem__, default="")
    narrowest = f"narrowest valid {name}, ratio {width / valid[name]:.2f}" if name else "no other method is valid"
    return f"{', '.join(texts)}; {narrowest}"


def stratum_coverage(sizes, rates: np.ndarray, n_trials: int, n_tables: int, macro: bool = False):
    rng, tasks = np.random.default_rng(3), np.repeat(np.arange(len(sizes)), sizes)
    groups = group_rows(np.full(len(tasks), ""), tasks)
    weights = 1 / np.asarray(sizes)[tasks] if macro else None
    truth = float(np.average(rates[tasks], weights=weights))
    ends = []
    for k in chunks(len(tasks), n_tables):
        rate = rates[tasks][:, None]
        chance = rng.beta(np.maximum(2 * rate, 1e-6), 2 * (1 - rate), (len(tasks), k)) if n_trials > 1 else rate
        result = estimate_means(rng.binomial(n_trials, chance, (len(tasks), k)) / n_trials, groups, weights, (0, 1))
        ends.append(np.array([result.low, result.high]))
    return measure(*np.hstack(ends), truth)


def nested_coverage(n_tasks: int, n_passages: int, size: int, sd: float, n_tables: int) -> tuple[float, float, float]:
    """Coverage and median width with fixed tasks and clusters within, and the level of the test of a pair of models."""
    rng = np.random.default_rng([5, n_tasks, n_passages])
    n = n_tasks * n_passages * size
    tasks, passages = np.arange(n) // (n_passages * size), np.arange(n) // size
    groups, level = group_rows(passages.astype(str), tasks), rng.normal(0.5, 0.5, n_tasks)
    nodes, chances = np.polynomial.hermite_e.hermegauss(60)
    truth = float(np.mean([chances @ (1 / (1 + np.exp(-(mu + sd * nodes)))) / chances.sum() for mu in level]))
    ends, n_rejected = [], 0
    for k in chunks(n, 2 * n_tables):
        effects = rng.normal(0, sd, (n_tasks * n_passages, k))
        Q = (rng.random((n, k)) < 1 / (1 + np.exp(-(level[tasks][:, None] + effects[passages])))).astype(float)
        result = estimate_means(Q, groups, bounds=(0, 1))
        ends.append(np.array([result.low, result.high]))
        for j in range(0, k - 1, 2):
            n_rejected += compare_all_pairs(Q[:, j : j + 2], groups, "CR2").pvalues_clustered[0, 1] <= 0.05
    low, high = np.hstack(ends)
    return *measure(low, high, truth), n_rejected / (len(low) // 2)


def weighted_coverage(
    n: int, share: float, heavy: float, p_heavy: float, p_light: float, n_tables: int
) -> tuple[float, float]:
    """Coverage and median width for prompts that are drawn with their weights."""
    rng, ends = np.random.default_rng([6, n]), []
    truth = (share * heavy * p_heavy + (1 - share) * p_light) / (share * heavy + 1 - share)
    for _ in range(n_tables):
        is_heavy = rng.random(n) < share
        scores = (rng.random(n) < np.where(is_heavy, p_heavy, p_light)).astype(float)
        result = estimate_means(scores[:, None], independent(n), np.where(is_heavy, heavy, 1.0), (0, 1))
        ends.append([result.low[0], result.high[0]])
    return measure(*np.transpose(ends), truth)


class TestFew:
    """A fiftieth of what the soak measures: an interval that is far off is found at once."""

    @pytest.mark.parametrize("kind", ["even", "20-460", "55 %"])
    def test_clusters(self, kind):
        assert cluster_coverage(kind, 9, 0.7, 0.5, 200)[0] >= 0.9

    def test_trials_and_atoms(self):
        for scores in BOUNDED[::3]:
            assert bounded_coverage(scores, 40, 200)[0] >= 0.9

    def test_strata(self):
        for sizes, rates in list(STRATA.values())[::2]:
            assert stratum_coverage(sizes, rates, 1, 200)[0] >= 0.9

    def test_clusters_in_strata(self):
        coverage, _, level = nested_coverage(*NESTED["14 tasks of 2 passages of 20"], 200)
        assert coverage >= 0.9
        assert level <= 0.09

    def test_weights(self):
        assert weighted_coverage(*WEIGHTED["1,000 prompts, 1 % of weight 25"], 200)[0] >= 0.9


@pytest.mark.soak
class TestMany:
    @pytest.mark.parametrize("n", [50, 100, 500])
    def test_scores_of_0_and_1_without_clusters_by_enumeration(self, n):
        counts = np.arange(n + 1)
        ends = {"Blaker": blaker_interval(counts, n), "Clopper-Pearson": beta_interval(counts / n, np.full(n + 1, n))}
        for name, (low, high) in ends.items():
            texts = []
            for p in (0.01, 0.03, 0.5, 0.9, 0.97, 0.99):
                chance = stats.binom.pmf(counts, n, p)
                coverage = float(chance[(low <= p) & (p <= high)].sum())
                texts.append(f"{p:g}: {coverage:.2%} ({(chance * (high - low)).sum():.4f})")
                assert coverage >= 0.95
            print(f"\n{name}, n = {n}, coverage (mean width) by p: {', '.join(texts)}")

    @pytest.mark.parametrize("mean", [0.5, 0.7, 0.9, 0.97])
    @pytest.mark.parametrize("kind", ["even", "20-460", "55 %"])
    @pytest.mark.parametrize("n_clusters", [5, 9, 14, 40])
    def test_clusters(self, n_clusters, kind, mean):
        n_effective = group_rows(
            np.repeat(np.arange(n_clusters), cluster_sizes(kind, n_clusters)).astype(str)
        ).n_effective
        bar, texts, covered = 0.94 if n_effective >= 10 else 0.93, [], []
        for sd in (0.0, 0.5, 1.0):
            coverage, width, sums = cluster_coverage(kind, n_clusters, mean, sd, N_TABLES)
            methods = compare_methods(sums, cluster_sizes(kind, n_clusters), mean)
            covered.append(coverage)
            texts.append(f"  sd {sd:g}: {coverage:.2%} ({width:.4f}); " + describe_methods(methods, bar, width))
        lines = "\n".join(texts)
        print(f"\n{n_clusters} clusters, {kind}, {n_effective:.1f} effective, mean {mean}:\n{lines}")
        assert min(covered) >= bar

    @pytest.mark.parametrize("n", [20, 50, 200])
    @pytest.mark.parametrize("scores", BOUNDED, ids=lambda scores: scores.name)
    def test_trials_and_atoms(self, scores, n):
        coverage, width = bounded_coverage(scores, n, N_TABLES)
        rng = np.random.default_rng([4, n])
        Y = scores.draw(rng, (n, 1000))
        methods = {
            "t": student_interval(Y),
            "bootstrap-t": bootstrap_t_interval(Y, rng),
            "hedged capital": capital_interval(Y[:, :200]),
            "Dirichlet shares": bounded_intervals(Y, np.ones_like(Y)),
        }
        rates = {name: measure(low, high, scores.mean) for name, (low, high) in methods.items()}
        print(f"\n{scores.name}, n = {n}: {coverage:.2%} ({width:.4f}); {describe_methods(rates, 0.94, width)}")
        assert coverage >= 0.94

    @pytest.mark.parametrize("macro", [False, True])
    @pytest.mark.parametrize("n_trials", [1, 5])
    @pytest.mark.parametrize("name", STRATA)
    def test_strata(self, name, n_trials, macro):
        coverage, width = stratum_coverage(*STRATA[name], n_trials, N_TABLES, macro)
        kind = "macro mean" if macro else "mean"
        print(f"\nfixed {name}, {n_trials} trials, {kind}: {coverage:.2%} ({width:.4f})")
        assert coverage >= 0.94

    @pytest.mark.parametrize("name", NESTED)
    def test_clusters_in_strata(self, name):
        coverage, width, level = nested_coverage(*NESTED[name], N_TABLES // 2)
        print(f"\nfixed {name}: {coverage:.2%} ({width:.4f}); level of pairs {level:.2%}")
        assert coverage >= 0.94
        assert level <= 0.07

    @pytest.mark.parametrize("name", WEIGHTED)
    def test_weights(self, name):
        coverage, width = weighted_coverage(*WEIGHTED[name], N_TABLES)
        print(f"\nweighted, {name}: {coverage:.2%} ({width:.4f})")
        assert coverage >= 0.94
