"""The whole filter, held to a slow one written from the paper."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from plain_smart import Plain, RefusedError, plain_smart
from small_benchmarks import SmallBenchmark, small

from analyses.smart_filtering import SmartFiltering
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.filtering.filter_models import ModelOrigin
from tracker.recording.finding import Report


def any_benchmark(rng: np.random.Generator) -> SmallBenchmark:
    """A small benchmark from which some of what is stored is missing."""
    b = small(int(rng.integers(2**31)))
    n, m = b.scores.shape
    changes: dict[str, Any] = {}

    def without(matrix: np.ndarray) -> np.ndarray:
        """All of one model, or of some prompts."""
        matrix = matrix.copy()
        if rng.random() < 0.5:
            matrix[:, rng.integers(m)] = np.nan
        else:
            matrix[rng.random(n) < 0.3] = np.nan
        return matrix

    kind = ["letters", "likelihoods"][rng.integers(2)]
    match rng.integers(8):
        case 0:
            changes["gold"] = {kind: b.gold[kind]}
        case 1:
            changes["gold"] = b.gold | {kind: without(b.gold[kind])}
        case 2 if rng.random() < 0.3:
            changes["gold"] = {}
    match rng.integers(8):
        case 0:
            changes["blind"] = None
            changes["blind_gold"] = {}
        case 1:
            changes["blind"] = without(b.blind)
        case 2:
            changes["blind_gold"] = b.blind_gold | {kind: without(b.blind_gold[kind])}
        case 3:
            changes["blind_gold"] = {kind: b.blind_gold[kind]}
    match rng.integers(6):
        case 0:
            changes["makers"] = {name: maker for name, maker in b.makers.items() if rng.random() < 0.8}
        case 1:
            changes["makers"] = {
                name: ModelOrigin(organization=maker.organization, open_weights=[None, False, True][rng.integers(3)])
                for name, maker in b.makers.items()
            }
    if rng.random() < 0.3:
        changes["named_models"] = tuple(rng.choice(b.models, int(rng.integers(1, 5)), replace=False).tolist())
    if rng.random() < 0.15:
        changes["answer_probability"] = without(b.answer_probability)
    if rng.random() < 0.2:
        scores = b.scores.copy()
        scores[rng.random(n) < 0.1] = np.nan  # asked of nobody
        changes["scores"] = scores
    if rng.random() < 0.05:
        changes["vectors"] = None
    return b.but(**changes)


def any_options(rng: np.random.Generator) -> dict[str, Any]:
    """Options, a default as often as another value."""
    alternatives: dict[str, list[Any]] = {
        "duplicates": ["question"],
        "exclude_task": [("task 2",), ("task 0", "task 4")],
        "n_models": [1, 2, 4],
        "open_only": [True],
        "confidence": [0.0, 0.5, 0.95],
        "probability": ["letters", "likelihoods"],
        "retain": [0.0, 0.5, 1.0],
        "n_neighbours": [1, 3, 100],
        "bandwidth": [0.05, 0.3, 1.0],
        "unimodal": ["half"],
        "threshold": [0.01, 0.05, 0.3],
        "groups": ["stars"],
        "protect_lexical": [0.5, 1.0],
        "largest_group": [0.02, 0.05, 1.0],
        "seed": [1, 2, 3],
    }
    chosen = {name: values[rng.integers(len(values))] for name, values in alternatives.items() if rng.random() < 0.4}
    rare = {name: True for name in ("without_confidence", "without_similar") if rng.random() < 0.15}
    usual = {"n_models": 3, "n_neighbours": 4, "largest_group": 0.3, "allow_unknown": bool(rng.random() < 0.7)}
    return usual | chosen | rare


def assert_as_plain(b: SmallBenchmark, options: dict[str, Any]) -> Report | None:
    """The report is what the slow filter says; None where both refuse."""
    try:
        report = b.run(**options)
    except (SelectionError, NotFoundError) as error:
        message = str(error)
        with pytest.raises(RefusedError) as expected_error:
            plain_smart(b, **{name: value for name, value in options.items() if name != "seed"})
        assert re.search(str(expected_error.value), message)
        return None
    result = report.finding
    assert isinstance(result, SmartFiltering)
    threshold = result.metrics.get("similar.threshold")
    threshold = threshold if isinstance(threshold, float) else None
    plain = plain_smart(b, near=threshold, **{name: value for name, value in options.items() if name != "seed"})
    assert ("similar.threshold" in result.metrics) != options.get("without_similar", False)
    if "similar.threshold" in result.metrics:
        assert (threshold is None) == (plain.threshold is None)
        assert result.metrics["similar.n_pairs"] == plain.n_pairs
        assert result.metrics["similar.largest_group_share"] == plain.largest / len(plain.rows)
    if threshold is not None:
        assert threshold == pytest.approx(plain.threshold, abs=1.01 * plain.unit)
    assert list(result.filter_models) == plain.filter_models
    kinds = set(report.tables["filter_models"]["probability_of"].to_pylist())
    assert kinds == {plain.kind or None}
    assert set(result.steps) - set(result.skipped) == set(plain.flagged)
    _assert_steps(result, plain)
    _assert_decisions(report, b, plain)
    return report


def _assert_steps(result: SmartFiltering, plain: Plain) -> None:
    """Flags and groups are equal; as many go of each group as have to."""
    rows = np.array(plain.rows)
    for name, step in result.steps.items():
        flagged = plain.flagged.get(name, set())
        assert set(rows[step.flagged].tolist()) == flagged, name
        assert step.removed.sum() == plain.n_removed.get(name, 0), name
        assert not (step.removed & ~step.flagged).any()
        groups = [set(rows[step.groups == g].tolist()) for g in range(step.groups.max(initial=-1) + 1)]
        assert sorted(map(sorted, groups)) == sorted(map(sorted, plain.groups.get(name, []))), name
        removed = set(rows[step.removed].tolist())
        for group in groups:
            assert len(group & removed) == {"duplicate": len(group) - 1, "similar": len(group) // 2}[name]


def _assert_decisions(report: Report, b: SmallBenchmark, plain: Plain) -> None:
    """Every prompt with a score is judged; it stays unless a step removes it, and says why if not."""
    decided = report.filter
    assert decided is not None
    assert decided.prompt_ids.tolist() == b.prompt_ids[plain.rows].tolist()
    removed: set[int] = set()
    for name, reason in decided.reasons.items():
        flagged = {int(b.prompt_ids[i]) for i in plain.flagged.get(name, set())}
        assert set(reason.prompt_ids.tolist()) == flagged
        removed |= set(reason.prompt_ids[~reason.retained].tolist())
    assert set(decided.prompt_ids[~decided.kept].tolist()) == removed
    assert set(decided.reasons) == {"duplicate", "anomalous", "easy", "contaminated", "similar", "suspect-label"}
    assert decided.reasons["suspect-label"].retained.all()


class TestAgainstReference:
    @pytest.mark.parametrize("seed", range(20))
    def test_flags_groups_and_counts_are_those_of_a_slow_filter(self, seed: int) -> None:
        rng = np.random.default_rng([5, seed])
        assert_as_plain(any_benchmark(rng), any_options(rng))

    @pytest.mark.soak
    @pytest.mark.parametrize("first", range(20, 2000, 99))
    def test_the_same_of_many_more(self, first: int) -> None:
        for seed in range(first, first + 99):
            rng = np.random.default_rng([5, seed])
            assert_as_plain(any_benchmark(rng), any_options(rng))
