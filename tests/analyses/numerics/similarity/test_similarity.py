from __future__ import annotations

from itertools import combinations, permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from null_draws import draw_tables
from plain_reference import ks_distances, similarities, statistics
from scipy.spatial.distance import pdist
from strategies import binary_tables, binary_tables_with_gaps, continuous_tables, continuous_tables_with_gaps

from analyses.numerics.similarity.binary import compare_binary
from analyses.numerics.similarity.continuous import compare_continuous
from analyses.numerics.similarity.cosines.cosine_layout import min_cosine
from analyses.numerics.similarity.distributions import compare_distances, compare_exactly
from analyses.numerics.similarity.lattices import cosine_lattice, hamming_lattice, jaccard_lattice
from analyses.numerics.similarity.pairs import pair_counter
from analyses.numerics.similarity.pairs.pair_counter import PairCounter
from analyses.numerics.similarity.score_table import ScoreTable
from analyses.numerics.similarity.similarities import BY_NAME, SIMILARITIES

RNG = np.random.default_rng(20)
OVERLAPS = np.arange(1, 2)


def check_against_loops(table: np.ndarray, tests, drawn: list[np.ndarray]) -> None:
    """Every statistic of every table, and every count of draws that are greater or equal."""
    for test in tests:
        observed = similarities(table, test.name)
        rest = [similarities(t, test.name) for t in drawn]
        assert test.observed.sum() == observed.size
        assert test.pooled.sum() == sum(o.size for o in rest)
        if not observed.size or not all(o.size for o in rest):
            continue
        actual, expected = statistics(observed), [statistics(o) for o in rest]
        distances = ks_distances([observed, *rest])
        actual["ks_d"] = distances[0]
        for second, distance in zip(expected, distances[1:], strict=True):
            second["ks_d"] = distance
        for name, comparison in test.comparisons.items():
            if name == "ks_d" and test.width:
                continue
            null = np.array([second[name] for second in expected])
            assert comparison.observed == pytest.approx(actual[name], abs=1e-11)
            assert comparison.null == pytest.approx(null, abs=1e-11)
            assert comparison.n_equal == (np.abs(null - actual[name]) < 1e-9).sum()
            assert comparison.n_greater == (null > actual[name] + 1e-9).sum()


class TestAgainstReference:
    @pytest.mark.parametrize("null", ["columns", "margins"])
    @settings(max_examples=40)
    @given(table=st.one_of(binary_tables(), binary_tables_with_gaps()), seed=st.integers(0, 99))
    def test_binary_statistics_and_tie_counts_are_those_of_the_loops(self, null, table, seed):
        result = compare_binary(ScoreTable(table), n_permutations=12, null=null, seed=seed)
        check_against_loops(table, result.tests, draw_tables(table, null, 12, seed))

    @settings(max_examples=40)
    @given(table=st.one_of(continuous_tables(), continuous_tables_with_gaps()))
    def test_continuous_statistics_are_those_of_the_loops(self, table):
        result = compare_continuous(ScoreTable(table), n_permutations=1, seed=0)
        for test in result.tests:
            values = similarities(table, test.name)
            assert test.observed.sum() == values.size
            if values.size:
                for name, value in statistics(values).items():
                    assert test.comparisons[name].observed == pytest.approx(value, abs=1e-9)

    @pytest.mark.parametrize(("n", "k"), [(40, 3), (150, 14), (70, 70), (60, 130)])
    def test_complete_tables_agree_with_pdist(self, n, k):
        table = (RNG.random((n, k)) < RNG.random((n, 1))).astype(float)
        table[0, :] = 1
        result = {t.name: t for t in compare_binary(ScoreTable(table), n_permutations=1, seed=0).tests}
        for name, values in (("hamming", 1 - pdist(table, "hamming")), ("jaccard", 1 - pdist(table == 1, "jaccard"))):
            for statistic, value in statistics(values).items():
                assert result[name].comparisons[statistic].observed == pytest.approx(value, abs=1e-12)

    @settings(max_examples=40)
    @given(st.one_of(binary_tables_with_gaps(max_prompts=20), binary_tables(max_prompts=20)))
    def test_both_counting_kernels_give_the_same_integers(self, table):
        counter = PairCounter.create(ScoreTable(table), SIMILARITIES)
        by_pattern = counter.count(counter.packed.bits)
        pair_by_pair = counter.count_pair_by_pair(counter.packed.bits)
        for first, second in zip(by_pattern, pair_by_pair, strict=True):
            assert (first == second).all()

    @settings(max_examples=20)
    @given(binary_tables_with_gaps(max_prompts=20))
    def test_leaving_the_cosine_out_changes_nothing_else(self, table):
        rest = tuple(similarity for similarity in SIMILARITIES if similarity.choice != "cosine")
        first = compare_binary(ScoreTable(table), n_permutations=10, seed=3)
        few = compare_binary(ScoreTable(table), n_permutations=10, similarities=rest, seed=3)
        for a, b in zip([test for test in first.tests if BY_NAME[test.name] in rest], few.tests, strict=True):
            assert (a.pooled == b.pooled).all()
            assert [c.pvalue for c in a.comparisons.values()] == [c.pvalue for c in b.comparisons.values()]
        assert np.array_equal(first.mean_to_others["jaccard"], few.mean_to_others["jaccard"], equal_nan=True)

    def test_many_patterns_of_missing_cells_give_the_same_test(self, monkeypatch):
        table = (RNG.random((60, 9)) < 0.5).astype(float)
        table[RNG.random(table.shape) < 0.15] = np.nan
        first = compare_binary(ScoreTable(table), n_permutations=30, seed=3)
        monkeypatch.setattr(pair_counter, "MAX_PATTERNS", 0)
        second = compare_binary(ScoreTable(table), n_permutations=30, seed=3)
        for a, b in zip(first.tests, second.tests, strict=True):
            assert (a.pooled == b.pooled).all()
            assert all((a.comparisons[s].null == b.comparisons[s].null).all() for s in a.comparisons)

    @settings(max_examples=30)
    @given(st.one_of(binary_tables_with_gaps(), binary_tables()))
    def test_mean_to_others_is_the_mean_over_rows_with_shared_cells(self, table):
        means = compare_binary(ScoreTable(table), n_permutations=1, seed=0).mean_to_others
        present = ~np.isnan(table)
        for i in range(len(table)):
            rest = [j for j in range(len(table)) if j != i and (present[i] & present[j]).any()]
            for name, values in means.items():
                if rest:
                    pairs = [similarities(table[[i, j]], name)[0] for j in rest]
                    assert values[i] == pytest.approx(np.mean(pairs), abs=1e-12)
                else:
                    assert np.isnan(values[i])

    def test_pvalues_approach_the_shares_among_all_arrangements(self):
        table = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1.0]])
        columns = [set(permutations(table[:, j])) for j in range(3)]
        everything = [np.array(t).T for t in product(*columns)]
        result = {t.name: t for t in compare_binary(ScoreTable(table), n_permutations=4000, seed=5).tests}
        for name in BY_NAME:
            exact = [statistics(similarities(t, name)) for t in everything]
            observed = statistics(similarities(table, name))
            for statistic, value in observed.items():
                share = np.mean([e[statistic] >= value - 1e-9 for e in exact])
                error = np.sqrt(share * (1 - share) / 4000) + 1 / 4000
                assert result[name].comparisons[statistic].pvalue == pytest.approx(share, abs=4 * error)


class TestLaws:
    def test_equal_means_from_different_counts_tie(self):
        lattice = jaccard_lattice(6, OVERLAPS)
        places = {round(v, 9): i for i, v in enumerate(lattice.values)}
        thirds = np.zeros(lattice.size, np.int64)
        thirds[[places[round(v, 9)] for v in (1 / 2, 1 / 3, 1 / 6)]] = 1
        ends = np.zeros(lattice.size, np.int64)
        ends[[places[1.0], places[0.0]]] = 1, 2
        assert compare_exactly(lattice, thirds, ends[None, :])[1][0, 0] == 0

    def test_equal_means_of_square_roots_tie(self):
        lattice = cosine_lattice(8, OVERLAPS)
        at = {tuple(row): i for i, row in enumerate(np.round(lattice.values, 12)[:, None].tolist())}
        eighth, half = (at[(round(v, 12),)] for v in (1 / np.sqrt(8), 1 / np.sqrt(2)))
        first, second = np.zeros((2, lattice.size), np.int64)
        first[eighth], second[half], second[0] = 2, 1, 1
        statistics_, signs = compare_exactly(lattice, first, second[None, :])
        assert signs[0, 0] == 0
        assert signs[0, 3] == 1
        assert statistics_[0, 0] == pytest.approx(np.sqrt(2) / 4)

    def test_different_means_closer_than_rounding_do_not_tie(self):
        lattice = hamming_lattice(400, np.array([399, 400]))
        first = np.zeros(lattice.size, np.int64)
        first[10] = 10**17
        second = first.copy()
        second[10], second[11] = first[10] - 1, 1
        assert compare_exactly(lattice, first, second[None, :])[1][0, 0] == 1
        assert compare_exactly(lattice, second, first[None, :])[1][0, 0] == -1

    def test_equal_distances_tie_and_unequal_ones_do_not(self):
        pool = np.array([30, 30, 30])
        rows = np.array([[0, 10, 20], [20, 10, 0], [10, 10, 10], [11, 10, 9]])
        observed, null, signs = compare_distances(rows[0], rows, pool)
        assert observed == pytest.approx(1 / 3)
        assert null[2] == 0
        assert signs.tolist() == [0, 0, -1, -1]

    @given(st.integers(1, 40))
    def test_lattices_hold_every_value_once(self, k):
        for lattice in (
            hamming_lattice(k, np.arange(1, k + 1)),
            cosine_lattice(k, OVERLAPS),
            jaccard_lattice(k, OVERLAPS),
        ):
            assert (np.diff(lattice.values) > 0).all()
            assert lattice.values[0] == 0
            assert lattice.values[-1] == 1
            assert [float(lattice.exact_value(i)) for i in range(lattice.size)] == pytest.approx(
                lattice.values.tolist()
            )

    @settings(max_examples=30)
    @given(binary_tables_with_gaps(), st.randoms(use_true_random=False))
    def test_order_of_prompts_and_models_does_not_matter(self, table, random):
        rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
        random.shuffle(rows)
        random.shuffle(columns)
        first = compare_binary(ScoreTable(table), n_permutations=1, seed=0)
        second = compare_binary(ScoreTable(table[rows][:, columns]), n_permutations=1, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            assert (a.observed == b.observed).all()

    @settings(max_examples=30)
    @given(binary_tables(), st.randoms(use_true_random=False))
    def test_pvalues_of_complete_tables_do_not_depend_on_the_order_of_prompts(self, table, random):
        rows = list(range(table.shape[0]))
        random.shuffle(rows)
        first = compare_binary(ScoreTable(table), n_permutations=20, seed=0)
        second = compare_binary(ScoreTable(table[rows]), n_permutations=20, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            assert [c.pvalue for c in a.comparisons.values()] == [c.pvalue for c in b.comparisons.values()]

    @settings(max_examples=30)
    @example(np.array([[0, 0], [0, 0], [0, 0.5]]), Random(0))  # one row without zeros: no pair, no number
    @given(continuous_tables(), st.randoms(use_true_random=False))
    def test_order_does_not_matter_to_continuous_tables(self, table, random):
        rows = list(range(table.shape[0]))
        random.shuffle(rows)
        first = compare_continuous(ScoreTable(table), n_permutations=5, seed=0)
        second = compare_continuous(ScoreTable(table[rows]), n_permutations=5, seed=0)
        for a, b in zip(first.tests, second.tests, strict=True):
            assert (a.pooled == b.pooled).all()
            for name in ("mean", "p75", "p95", "variance"):
                assert a.comparisons[name].observed == pytest.approx(
                    b.comparisons[name].observed, abs=1e-12, nan_ok=True
                )
                assert a.comparisons[name].pvalue == b.comparisons[name].pvalue

    @given(continuous_tables(), st.floats(0.1, 10))
    @settings(max_examples=30)
    def test_cosines_do_not_change_when_all_scores_are_rescaled(self, table, factor):
        first = compare_continuous(ScoreTable(table), n_permutations=1, seed=0).tests[0].comparisons
        second = compare_continuous(ScoreTable(table * factor), n_permutations=1, seed=0).tests[0].comparisons
        for name in ("mean", "p75", "p95", "variance"):
            assert first[name].observed == pytest.approx(second[name].observed, abs=1e-9, nan_ok=True)

    @pytest.mark.parametrize("unit", [2.0**1000, 2.0**-1000, 1e100, 1e-100])
    def test_scores_of_any_finite_size_have_cosines(self, unit):
        table = np.random.default_rng(5).uniform(0.1, 1, (9, 4))
        mixed = table * np.where(np.arange(9) % 2, unit, 1.0)[:, None]
        expected = similarities(table, "cosine")
        for scaled in (table * unit, mixed):
            observed = compare_continuous(ScoreTable(scaled), n_permutations=1, seed=0).tests[0].comparisons
            assert observed["mean"].observed == pytest.approx(expected.mean(), abs=1e-9)
            assert observed["p95"].observed == pytest.approx(np.percentile(expected, 95), abs=1e-9)

    @given(st.integers(1, 60), st.integers(0, 10**6))
    def test_equal_rows_have_a_cosine_of_exactly_1(self, k, seed):
        rng = np.random.default_rng(seed)
        rows = 2.0 ** rng.integers(-300, 300, (20, 1)) * (0.1 + rng.random(k))
        (test,) = compare_continuous(ScoreTable(rows), n_permutations=1, seed=0).tests
        observed = {name: test.comparisons[name].observed for name in ("mean", "p75", "p95", "variance")}
        assert observed == {"mean": 1, "p75": 1, "p95": 1, "variance": 0}

    @pytest.mark.parametrize("spread", [1.0, 1e-1, 1e-3])
    def test_rows_that_are_nearly_parallel_can_still_be_separated(self, spread):
        """Scores of 70 and a little: cosines near 1, whose variance is far below a fixed slack for ties."""
        rng = np.random.default_rng(2)
        little = rng.normal(size=(40, 6)) + np.linspace(-3, 3, 40)[:, None] * np.array([1, 1, 1, -1, -1, -1])
        result = compare_continuous(ScoreTable(70 + spread * little), n_permutations=200, seed=0).tests[0].comparisons
        for statistic, comparison in result.items():
            assert comparison.n_equal < 20, statistic
            assert not comparison.is_discrete, statistic
        assert result["variance"].pvalue == pytest.approx(1 / 201)
        assert result["ks_d"].pvalue == pytest.approx(1 / 201)
        unit = (70 + spread * little) / 70
        gaps = [
            ((a - b) @ (a - b) * (a @ a) - ((a - b) @ a) ** 2) / (a @ a) / (b @ b) / 2 for a, b in combinations(unit, 2)
        ]  # 1 - cosine is half the squared sine, where both are small
        assert result["variance"].observed == pytest.approx(np.var(gaps), rel=0.02)

    @given(continuous_tables_with_gaps())
    def test_no_cosine_falls_below_the_least(self, table):
        for sign in (1.0, -1.0):
            values = similarities(sign * table, "cosine")
            assert (values >= min_cosine(ScoreTable(sign * table)) - 1e-12).all()

    def test_the_least_cosine_is_reached(self):
        table = np.array([[1.0, 3.0], [3.0, 1.0]])
        assert min_cosine(ScoreTable(table)) == pytest.approx(similarities(table, "cosine")[0], abs=1e-12)

    @settings(max_examples=40)
    @given(binary_tables(), st.integers(0, 50))
    def test_no_draw_changes_the_mean_hamming_similarity_of_a_complete_table(self, table, seed):
        for null in ("columns", "margins"):
            result = compare_binary(ScoreTable(table), n_permutations=10, null=null, seed=seed)
            mean = result.tests[0].comparisons["mean"]
            assert mean.reason
            assert mean.null == pytest.approx(np.full(10, mean.observed), abs=1e-12)
