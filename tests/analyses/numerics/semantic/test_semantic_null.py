from __future__ import annotations

import joblib
import numpy as np
import pytest
from scipy.stats import false_discovery_control, ks_2samp, linregress

from analyses.numerics.null_tables import shuffle_table
from analyses.numerics.semantic.semantic_null import semantic_test
from analyses.numerics.semantic.semantic_partners import bin_similarities, find_nearest_partners
from analyses.numerics.semantic.semantic_regression import performance_rows, unit_rows
from tracker.statistics.rng_streams import ROWS, generator, stream_key

RNG = np.random.default_rng(9)
N, K, D, B = 24, 5, 4, 12
Q = (RNG.random((N, K)) < 0.35).astype(float)
E = RNG.normal(size=(N, D))
ONES = np.ones(N)
WEIGHTS = RNG.uniform(0.3, 2, N)
PLAIN = {"similarity": "cosine", "intercept": True, "n_permutations": B, "seed": 3}


def plainly(table: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slope, t and p of each prompt, by one regression after the other."""
    present = table.any(axis=1)
    u, e = unit_rows(table[present]), unit_rows(vectors[present])
    result = []
    for i in range(len(u)):
        rest = np.arange(len(u)) != i
        line = linregress(e[rest] @ e[i], u[rest] @ u[i])
        result.append((line.slope, line.slope / line.stderr, line.pvalue))
    slope, t, pvalue = np.array(result).T
    return slope, t, pvalue


def drawn(null: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The observed table and the draws, with the vectors they meet."""
    if null == "columns":
        key = stream_key(3)
        return [(Q, E), *((shuffle_table(Q, key, b), E) for b in range(B))]
    present = Q.any(axis=1)
    orders = [generator(3, ROWS, b).permutation(present.sum()) for b in range(B)]
    return [(Q[present], E[present]), *((Q[present][order], E[present]) for order in orders)]


class TestAgainstReference:
    @pytest.mark.parametrize("null", ["rows", "columns"])
    def test_statistics_equal_those_of_one_regression_after_the_other(self, null):
        result = semantic_test(Q, E, ONES, null=null, **PLAIN)
        tables = [plainly(*table) for table in drawn(null)]
        assert result.slope == pytest.approx(tables[0][0], rel=1e-10)
        assert result.pvalue == pytest.approx(tables[0][2], rel=1e-10)
        fdr = [false_discovery_control(pvalue) for _, _, pvalue in tables]
        assert result.fdr == pytest.approx(fdr[0], rel=1e-10)

        def distances(values: list[np.ndarray]) -> list[float]:
            values = [first.astype(np.float32) for first in values]
            return [ks_2samp(first, np.concatenate(values), method="asymp").statistic for first in values]

        expected = {
            "slope.mean": [slope.mean() for slope, _, _ in tables],
            "n_discoveries": [(values <= 0.05).sum() for values in fdr],
            "ks_slope": distances([slope for slope, _, _ in tables]),
            "ks_fdr": distances(fdr),
            "max_t": [np.abs(t).max() for _, t, _ in tables],
        }
        for name, values in expected.items():
            comparison = result.comparisons[name]
            assert np.array([comparison.observed, *comparison.null]) == pytest.approx(values, rel=1e-10), name
            if len(set(values)) > 1:
                assert comparison.pvalue == sum(v >= values[0] - 1e-9 for v in values) / (B + 1), name
        t = np.abs(tables[0][1])
        assert result.familywise == pytest.approx(
            [(1 + sum(v >= first for v in expected["max_t"][1:])) / (B + 1) for first in t]
        )

    def test_partners_are_the_nearest_of_all(self):
        present = Q.any(axis=1)
        rows, U, w = unit_rows(E[present]), performance_rows(Q[present], "cosine"), WEIGHTS[present]
        prompts = np.array([3, 0])
        result = find_nearest_partners(prompts, rows, U, w, 5, intercept=True)
        for place, i in enumerate(prompts):
            rest = [j for j in range(len(rows)) if j != i]
            rest.sort(key=lambda j: -(rows[i] @ rows[j]))
            assert result.places[place].tolist() == rest[:5]
            x, y = rows[rest] @ rows[i], U[rest] @ U[i]
            part = w[rest] * (x - np.average(x, weights=w[rest])) * (y - np.average(y, weights=w[rest]))
            assert result.semantic[place] == pytest.approx(x[:5])
            assert result.performance[place] == pytest.approx(y[:5])
            assert result.contribution[place] == pytest.approx((part / part.sum())[:5])

    def test_partners_of_a_flat_line_contribute_no_share(self):
        """Here the vectors of partners are opposites, so that what they add to the slope cancels."""
        rows = unit_rows(np.array([[1.0, 0], [1, 1], [-1, 1], [0, 1]]))
        performance = unit_rows(np.array([[1.0, 0], [1, 1], [1, 1], [1, 1]]))
        result = find_nearest_partners(np.array([0]), rows, performance, np.ones(4), 2, intercept=False)
        assert result.places.tolist() == [[1, 3]]
        assert np.isnan(result.contribution).all()

    def test_the_curve_holds_every_pair(self):
        rows, U = unit_rows(E), performance_rows(Q, "hamming")
        curve = bin_similarities(rows, U, WEIGHTS)
        pairs = [(i, j) for i in range(N) for j in range(N) if i != j]
        equal = (Q[:, None] == Q).mean(axis=2)
        usual = [np.average(np.delete(equal[i], i), weights=np.delete(WEIGHTS, i)) for i in range(N)]
        weight = np.array([WEIGHTS[i] * WEIGHTS[j] for i, j in pairs])
        where = np.searchsorted(curve.edges, [rows[i] @ rows[j] for i, j in pairs], side="right") - 1
        excess = np.array([equal[i, j] - usual[i] for i, j in pairs])
        for at in np.unique(where):
            assert curve.share[at] == pytest.approx(weight[where == at].sum() / weight.sum())
            assert curve.excess[at] == pytest.approx(np.average(excess[where == at], weights=weight[where == at]))
        assert curve.share.sum() == pytest.approx(1)
        assert np.nansum(curve.share * curve.excess) == pytest.approx(0, abs=1e-12)


class TestLaws:
    @pytest.mark.parametrize(("null", "weights"), [("rows", ONES), ("rows", WEIGHTS), ("columns", WEIGHTS)])
    def test_any_number_of_workers_gives_the_same_bytes(self, null, weights):
        options = PLAIN | {"n_permutations": 300}
        alone = semantic_test(Q, E, weights, null=null, **options)
        with joblib.parallel_config(n_jobs=2, backend="threading"):
            shared = semantic_test(Q, E, weights, null=null, **options)
        for name, comparison in alone.comparisons.items():
            assert comparison.null.tobytes() == shared.comparisons[name].null.tobytes()
            assert comparison.pvalue == shared.comparisons[name].pvalue
        assert alone.familywise.tobytes() == shared.familywise.tobytes()

    @pytest.mark.parametrize("weights_follow_scores", [True, False])
    def test_under_rows_weights_stay_with_the_vectors_or_with_the_scores(self, weights_follow_scores):
        """A weight that is twice as large stands for a prompt that is there twice, but for the prompt's own line."""
        present = Q.any(axis=1)
        result = semantic_test(Q, E, WEIGHTS, null="rows", weights_follow_scores=weights_follow_scores, **PLAIN)
        order = generator(3, ROWS, 0).permutation(present.sum())
        w = WEIGHTS[present][order] if weights_follow_scores else WEIGHTS[present]
        u, e = unit_rows(Q[present][order]), unit_rows(E[present])
        slopes = []
        for i in range(len(u)):
            rest = np.arange(len(u)) != i
            slopes.append(np.polyfit(e[rest] @ e[i], u[rest] @ u[i], 1, w=np.sqrt(w[rest]))[0])
        assert result.comparisons["slope.mean"].null[0] == pytest.approx(np.mean(slopes), rel=1e-9)

    @pytest.mark.parametrize("of_scores", [True, False])
    def test_chance_is_unlikely_rarely_with_weights_of_either_origin(self, of_scores):
        """Where the weights go in the draws must follow from where they come from: the other way, most are low."""
        low = dict.fromkeys(("right", "wrong"), 0)
        for seed in range(40):
            rng = np.random.default_rng(seed)
            table = (rng.random((40, 6)) < 0.5).astype(float)
            vectors = rng.normal(size=(40, 6))
            vectors[:5] = 3 * rng.normal(size=6) + 0.2 * rng.normal(size=(5, 6))
            w = np.where(table.sum(axis=1) <= 1, 30.0, 1.0) if of_scores else np.repeat([1 / 5, 1 / 35], [5, 35])
            for name, weights_follow_scores in (("right", of_scores), ("wrong", not of_scores)):
                options = {"similarity": "hamming", "intercept": True, "n_permutations": 19, "seed": seed}
                result = semantic_test(
                    table, vectors, w, null="rows", weights_follow_scores=weights_follow_scores, **options
                )
                low[name] += result.comparisons["ks_fdr"].pvalue <= 0.05
        assert low["right"] <= 6
        assert low["wrong"] > 2 * low["right"]

    def test_a_test_that_is_none_keeps_its_numbers_and_has_no_p(self):
        result = semantic_test(Q, E, WEIGHTS, null="columns", **PLAIN)
        none = result.without_pvalues("because")
        assert np.isnan(none.familywise).all()
        assert none.fdr is result.fdr
        for name, comparison in none.comparisons.items():
            assert comparison.reason == "because"
            assert comparison.observed == result.comparisons[name].observed

    def test_equal_tables_are_ties_in_every_statistic(self):
        """Four prompts have 24 pairings, so many draws repeat the observed one."""
        few = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]])
        result = semantic_test(few, E[:4], np.ones(4), null="rows", **PLAIN | {"n_permutations": 480})
        same = sum((generator(3, ROWS, b).permutation(4) == np.arange(4)).all() for b in range(480))
        assert same > 5
        for name, comparison in result.comparisons.items():
            assert comparison.n_equal >= same, name

    def test_bars_hold_every_prompt_once(self):
        result = semantic_test(Q, E, ONES, null="columns", **PLAIN)
        for bars in (result.slope_bars, result.fdr_bars):
            assert bars.observed.sum() == pytest.approx(1)
            assert bars.drawn.sum() == pytest.approx(1)
            assert (np.diff(bars.edges) > 0).all()
