from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import pytest
from drawn_vectors import all_distances, topics, whole_numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from analyses.numerics.filtering.similar_prompts.cosine_distances import NormalizedVectors
from analyses.numerics.filtering.similar_prompts.neighbours import find_nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_groups import (
    CELLS,
    ThresholdComponents,
    find_components,
    find_stars,
    is_lexically_similar,
)


def pairwise_distances(E: np.ndarray) -> np.ndarray:
    """The distance of every pair; infinite for a prompt with itself."""
    distances = all_distances(E)
    np.fill_diagonal(distances, np.inf)
    return distances


def linked_in_full(distances: np.ndarray, thresholds: Sequence[float]) -> ThresholdComponents:
    """The graph of all pairs, for each threshold anew."""
    groups, n_pairs = [], []
    for threshold in thresholds:
        near = distances < threshold
        labels = connected_components(csr_array(near), directed=False)[1]
        numbers = {label: i for i, label in enumerate(dict.fromkeys(labels[near.any(axis=1)].tolist()))}
        groups.append([numbers.get(label, -1) if near[i].any() else -1 for i, label in enumerate(labels.tolist())])
        n_pairs.append(int(near.sum()) // 2)
    return ThresholdComponents(
        thresholds=np.array(thresholds),
        groups=np.array(groups, np.int32).reshape(len(thresholds), len(distances)),
        n_pairs=np.array(n_pairs),
    )


def agree(result: ThresholdComponents, reference: ThresholdComponents) -> None:
    np.testing.assert_array_equal(result.thresholds, reference.thresholds)
    np.testing.assert_array_equal(result.n_pairs, reference.n_pairs)
    np.testing.assert_array_equal(result.groups, reference.groups)


def stars_one_by_one(distances: np.ndarray, threshold: float, texts: Sequence[str] | None, protect: float) -> list[int]:
    """As the rule is told, prompt by prompt."""
    star, n_stars = [-1] * len(distances), 0
    for centre in range(len(distances)):
        members = [centre]
        for candidate in np.flatnonzero(distances[centre] < threshold).tolist():
            is_similar = texts is not None and SequenceMatcher(None, texts[centre], texts[candidate]).ratio() > protect
            members += [] if is_similar else [candidate]
        members = [m for m in members if star[m] == -1]
        if len(members) >= 2:
            for m in members:
                star[m] = n_stars
            n_stars += 1
    return star


def some_texts(n: int, seed: int) -> list[str]:
    """Few words, so that many texts are nearly the same."""
    rng = np.random.default_rng(seed)
    pattern = np.array(["what", "is", "the", "sum", "of", "two", "three", "and"])
    return [" ".join(rng.choice(pattern[: rng.integers(2, 9)], rng.integers(0, 7))) for _ in range(n)]


class TestComponentsAgainstReference:
    @settings(max_examples=60)
    @given(
        n=st.integers(1, 70),
        d=st.sampled_from([1, 2, 4]),
        k=st.integers(0, 70),
        seed=st.integers(0, 999),
        n_thresholds=st.integers(1, 9),
    )
    def test_thresholds_that_are_distances_do_not_join_those_pairs(self, n, d, k, seed, n_thresholds):
        E = whole_numbers(n, d, 2, seed)
        distances, rng = pairwise_distances(E), np.random.default_rng(seed)
        candidates = np.append(distances[np.isfinite(distances)], [0, 2, 3])
        thresholds = np.sort(rng.choice(candidates, n_thresholds)).tolist()
        agree(find_components(E, find_nearest_neighbours(E, k), thresholds), linked_in_full(distances, thresholds))

    @pytest.mark.parametrize(("n", "d", "k"), [(2100, 24, 20), (2100, 24, 2), (600, 384, 100), (300, 384, 0)])
    def test_many_prompts_in_several_blocks_are_linked_as_in_the_graph_of_all(self, n, d, k):
        E = topics(n, d, seed=n)
        distances = pairwise_distances(E)
        thresholds = np.quantile(distances[0, 1:], [0.0, 0.01, 0.05, 1.0]) * (1 + 1e-9)
        agree(
            find_components(E, find_nearest_neighbours(E, k), thresholds.tolist()),
            linked_in_full(distances, thresholds),
        )

    @pytest.mark.parametrize("k", [0, 5, 59])
    def test_differences_that_single_precision_cannot_see_decide(self, k):
        rng = np.random.default_rng(1)
        E = 64 * rng.integers(-9, 10, 70) + rng.integers(-1, 2, (60, 70))  # exact products, nearly equal vectors
        E = E.astype(np.float32)
        distances = pairwise_distances(E)
        thresholds = np.quantile(distances[np.isfinite(distances)], [0.01, 0.02, 0.3, 0.9], method="lower").tolist()
        assert thresholds[-1] < 1e-4
        agree(find_components(E, find_nearest_neighbours(E, k), thresholds), linked_in_full(distances, thresholds))

    def test_products_on_the_other_side_of_a_mark_than_the_distance_do_not_decide(self):
        E = topics(400, 384, seed=2, spread=2.0)
        everyone, unit = find_nearest_neighbours(E, 399), NormalizedVectors.of(E).unit
        rough = np.take_along_axis(1 - (unit @ unit.T).astype(np.float64), everyone.indices.astype(np.intp), axis=1)
        before = np.floor(rough * CELLS / 2) < np.floor(everyone.distances * CELLS / 2)
        thresholds = np.sort(everyone.distances[before]).tolist()
        assert len(thresholds) > 20
        result, reference = (
            find_components(E, lists, thresholds) for lists in (find_nearest_neighbours(E, 0), everyone)
        )
        agree(result, reference)


class TestComponentsLaws:
    @settings(max_examples=20)
    @given(seed=st.integers(0, 999), k=st.integers(0, 79))
    def test_the_length_of_the_lists_changes_nothing(self, seed, k):
        E = topics(80, 12, seed)
        thresholds = np.linspace(0, 1.5, 12).tolist()
        few, many = (find_components(E, find_nearest_neighbours(E, size), thresholds) for size in (k, 79))
        assert few.groups.tobytes() == many.groups.tobytes()
        assert few.n_pairs.tobytes() == many.n_pairs.tobytes()

    @settings(max_examples=20)
    @given(seed=st.integers(0, 999))
    def test_groups_of_a_threshold_are_the_same_alone_and_on_a_path(self, seed):
        E = topics(80, 12, seed)
        neighbours, thresholds = find_nearest_neighbours(E, 10), np.linspace(0.1, 1.2, 8)
        path = find_components(E, neighbours, thresholds.tolist())
        for t, threshold in enumerate(thresholds):
            alone = find_components(E, neighbours, [float(threshold)])
            np.testing.assert_array_equal(path.groups[t], alone.groups[0])
            assert path.n_pairs[t] == alone.n_pairs[0]

    @settings(max_examples=20)
    @given(seed=st.integers(0, 999))
    def test_the_order_of_prompts_changes_numbers_only(self, seed):
        rng, E = np.random.default_rng(seed), topics(60, 8, seed)
        order, thresholds = rng.permutation(60), [0.2, 0.5, 0.9]
        result = find_components(E, find_nearest_neighbours(E, 5), thresholds)
        moved = find_components(E[order], find_nearest_neighbours(E[order], 5), thresholds)
        np.testing.assert_array_equal(moved.n_pairs, result.n_pairs)
        for a, b in zip(result.groups[:, order], moved.groups, strict=True):
            assert {frozenset(np.flatnonzero(a == g)) for g in set(a) - {-1}} == {
                frozenset(np.flatnonzero(b == g)) for g in set(b) - {-1}
            }
            np.testing.assert_array_equal(a == -1, b == -1)
            assert list(dict.fromkeys(b[b >= 0])) == list(range(b.max() + 1))


class TestComponentsOfDegenerateInput:
    def test_equal_vectors_are_separate_at_0_and_joined_above(self):
        E = np.tile(topics(1, 384, seed=5), (5, 1))
        E[2] *= -1
        result = find_components(E, find_nearest_neighbours(E, 2), [0.0, 1e-300, 2.0, 2.1])
        assert result.n_pairs.tolist() == [0, 6, 6, 10]
        assert result.groups.tolist() == [[-1] * 5, [0, 0, -1, 0, 0], [0, 0, -1, 0, 0], [0] * 5]

    @pytest.mark.parametrize("n", [0, 1])
    def test_without_other_prompts_there_are_no_groups(self, n):
        E = np.ones((n, 4), np.float32)
        result = find_components(E, find_nearest_neighbours(E), [0.5, 3.0])
        assert result.n_pairs.tolist() == [0, 0]
        assert result.groups.tolist() == [[-1] * n] * 2
        assert find_stars(E, find_nearest_neighbours(E), 3.0).tolist() == [-1] * n


class TestStarsAgainstReference:
    @settings(max_examples=60)
    @given(
        n=st.integers(1, 50),
        k=st.integers(0, 50),
        seed=st.integers(0, 999),
        lexical=st.booleans(),
        protect=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    )
    def test_stars_are_those_of_the_rule_applied_prompt_by_prompt(self, n, k, seed, lexical, protect):
        E = whole_numbers(n, 4, 2, seed)
        distances, rng = pairwise_distances(E), np.random.default_rng(seed)
        threshold = float(rng.choice(np.append(distances[np.isfinite(distances)], [0, 3])))
        texts = some_texts(n, seed) if lexical else None
        result = find_stars(E, find_nearest_neighbours(E, k), threshold, texts=texts, protect=protect)
        assert result.tolist() == stars_one_by_one(distances, threshold, texts, protect)

    @pytest.mark.parametrize("k", [3, 60])
    def test_many_prompts_in_several_blocks_are_in_the_same_stars(self, k):
        E = topics(2100, 24, seed=9)
        distances = pairwise_distances(E)
        threshold = float(np.quantile(distances[0, 1:], 0.01))
        result = find_stars(E, find_nearest_neighbours(E, k), threshold)
        assert result.tolist() == stars_one_by_one(distances, threshold, None, 0.8)
        assert len(set(result.tolist())) > 20


class TestStars:
    E = np.array([[1.0, t] for t in (0.0, 0.1, 0.2, 0.3)], np.float32)
    """A chain: each is near the next, at distances of about 0.005, but not near the one after."""

    def test_a_chain_that_is_one_component_is_two_stars(self):
        neighbours = find_nearest_neighbours(self.E)
        assert find_components(self.E, neighbours, [0.006]).groups.tolist() == [[0, 0, 0, 0]]
        assert find_stars(self.E, neighbours, 0.006).tolist() == [0, 0, 1, 1]

    def test_a_centre_of_an_earlier_star_gathers_the_others_without_itself(self):
        E = np.array([[1.0, t, u] for t, u in ((0, 0), (0.1, 0), (0.17, 0.06), (0.17, -0.06))], np.float32)
        result = find_stars(E, find_nearest_neighbours(E), 0.006)
        assert pairwise_distances(E)[2, 3] > 0.006
        assert result.tolist() == [0, 0, 1, 1]

    def test_texts_that_are_nearly_the_same_are_protected_and_free_for_a_later_star(self):
        texts = ["what is 2 + 3", "what is 2 * 3", "name a colour of the sky", "which letter comes first"]
        E = np.ones((4, 3), np.float32)
        neighbours = find_nearest_neighbours(E)
        assert find_stars(E, neighbours, 0.1, texts=texts).tolist() == [0, -1, 0, 0]
        assert find_stars(E, neighbours, 0.1, texts=texts, protect=0.95).tolist() == [0, 0, 0, 0]
        assert find_stars(E[:2], find_nearest_neighbours(E[:2]), 0.1, texts=texts[:2]).tolist() == [-1, -1]


class TestLexicalRatio:
    @settings(max_examples=150)
    @given(
        a=st.text("ab c", max_size=40) | st.text("abcdefgh ", min_size=190, max_size=260),
        edits=st.lists(st.tuples(st.integers(0, 260), st.sampled_from(["", "x", "ab"])), max_size=12),
        at_least=st.sampled_from([0.0, 0.3, 0.5, 0.8, 0.9, 1.0]),
    )
    def test_it_is_whether_the_ratio_of_difflib_is_above_the_bound(self, a, edits, at_least):
        b = a
        for place, piece in edits:
            b = b[:place] + piece + b[place + 1 :]
        for first, second in ((a, b), (b, a)):
            ratio = SequenceMatcher(None, first, second).ratio()
            assert is_lexically_similar(first, second, at_least) == (ratio > at_least)
            assert not is_lexically_similar(first, second, ratio)
            assert is_lexically_similar(first, second, np.nextafter(ratio, -1.0))


class TestErrors:
    @pytest.mark.parametrize("thresholds", [[], [0.2, 0.1], [float("nan"), 0.1]])
    def test_thresholds_that_do_not_ascend_are_refused(self, thresholds):
        E = topics(10, 3, seed=0)
        with pytest.raises(ValueError, match="thresholds must ascend"):
            find_components(E, find_nearest_neighbours(E), thresholds)
