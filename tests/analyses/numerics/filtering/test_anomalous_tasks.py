from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.numerics.filtering.anomalous_tasks import (
    MEAN_TO_SD,
    MIN_DIFFERENCE,
    TO_SD,
    AnomalousTask,
    find_anomalous_tasks,
)

RNG = np.random.default_rng(5)


def table(lengths: list[float], n_choices: list[float], n_each: int = 30, spread: float = 0.2):
    """Prompts of tasks t0, t1, ... of some typical length and number of choices."""
    tasks = np.repeat([f"t{place}" for place in range(len(lengths))], n_each)
    typical = np.repeat(np.asarray(lengths, float), n_each)
    return tasks, typical * np.exp(RNG.normal(0, spread, len(tasks))), np.repeat(np.asarray(n_choices, float), n_each)


def one_task_after_another(tasks, lengths, n_choices, E, at_least) -> dict[tuple[str, str], tuple[float, float]]:
    """Value and z of each anomaly, by the definition."""
    units = E / np.linalg.norm(E, axis=1, keepdims=True)
    names = sorted(set(tasks))
    measured = {"length": [], "n_choices": [], "distance": []}
    for name in names:
        is_in_task = tasks == name
        measured["length"].append(np.log1p(lengths[is_in_task]).mean())
        measured["n_choices"].append(n_choices[is_in_task].mean())
        a, b = units[is_in_task].mean(axis=0), units[~is_in_task].mean(axis=0)
        measured["distance"].append(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    result = {}
    for measure, values in measured.items():
        middle = np.median(values)
        mad = np.median(np.abs(values - middle))
        deviation = TO_SD * mad if mad > 1e-9 else MEAN_TO_SD * np.mean(np.abs(values - middle))
        for name, value in zip(names, values, strict=True):
            off = abs(value - middle)
            is_far = off >= MIN_DIFFERENCE[measure] and off / deviation >= at_least
            if is_far and (measure != "distance" or value > middle):
                drawn = np.expm1(value) if measure == "length" else value
                result[name, measure] = drawn, (value - middle) / deviation
    return result


class TestAgainstReference:
    @settings(max_examples=40)
    @given(seed=st.integers(0, 9999), n_tasks=st.integers(5, 9), at_least=st.sampled_from([1.0, 3.5]))
    def test_anomalies_are_those_of_the_definition(self, seed, n_tasks, at_least):
        rng = np.random.default_rng(seed)
        tasks = rng.permutation(np.concatenate([np.arange(n_tasks), rng.integers(0, n_tasks, 60)])).astype(str)
        centres = rng.normal(size=(n_tasks, 4)) * 0.3 + 1
        E = centres[tasks.astype(int)] + rng.normal(0, 0.3, (len(tasks), 4))
        lengths = np.exp(rng.normal(5, 1, n_tasks)[tasks.astype(int)])
        n_choices = rng.integers(3, 6, n_tasks)[tasks.astype(int)].astype(float)
        result = find_anomalous_tasks(tasks, lengths, n_choices, E, at_least=at_least)
        expected = one_task_after_another(tasks, lengths, n_choices, E, at_least)
        assert {(a.task, a.measure) for a in result} == set(expected)
        for anomaly in result:
            value, z = expected[anomaly.task, anomaly.measure]
            assert anomaly.value == pytest.approx(value, rel=1e-9)
            assert anomaly.z == pytest.approx(z, rel=1e-6)
        assert [abs(a.z) for a in result] == sorted((abs(a.z) for a in result), reverse=True)

    def test_categories_of_a_real_benchmark_are_similar_and_three_of_its_sources_offer_few_choices(self, shared):
        rows = pq.read_table(shared / "data/mmlu_pro/prompts.parquet").to_pylist()
        lengths = np.array([len(row["question"]) for row in rows], float)
        n_choices = np.array([len(json.loads(row["choices"])) for row in rows], float)
        by = {key: np.array([row[key] for row in rows]) for key in ("category", "src")}
        assert find_anomalous_tasks(by["category"], lengths, n_choices, None) == ()
        result = find_anomalous_tasks(by["src"], lengths, n_choices, None)
        assert [a.task.removeprefix("ori_mmlu-") for a in result] == [
            "security_studies",
            "logical_fallacies",
            "virology",
        ]
        assert {a.measure for a in result} == {"n_choices"}


class TestLaws:
    def test_a_task_of_long_prompts_is_named_with_its_typical_length(self):
        (result,) = find_anomalous_tasks(*table([100, 110, 95, 105, 90, 100, 900], [4] * 7), None)
        assert isinstance(result, AnomalousTask)
        assert (result.task, result.measure) == ("t6", "length")
        assert result.value == pytest.approx(900, rel=0.15)
        assert result.median == pytest.approx(100, rel=0.15)
        assert result.z > 3.5

    def test_a_task_of_short_prompts_is_named_too(self):
        (result,) = find_anomalous_tasks(*table([100, 110, 95, 105, 90, 100, 12], [4] * 7), None)
        assert result.z < -3.5

    def test_where_all_others_are_equal_one_that_differs_has_a_finite_z(self):
        (result,) = find_anomalous_tasks(*table([100] * 20, [4] * 19 + [2]), None)
        assert (result.task, result.measure, result.value, result.median) == ("t19", "n_choices", 2, 4)
        assert result.z == pytest.approx(-20 / 1.2533)

    def test_equal_tasks_have_no_anomaly(self):
        tasks, _, n_choices = table([100] * 6, [4] * 6)
        assert find_anomalous_tasks(tasks, np.full(len(tasks), 77.0), n_choices, np.ones((len(tasks), 3))) == ()

    def test_small_differences_are_not_anomalous_however_equal_the_rest(self):
        tasks, lengths, n_choices = table([100] * 6, [4] * 6, spread=0.0)
        n_choices[-1] = 3
        lengths[-30:] *= 1.2
        assert find_anomalous_tasks(tasks, lengths, n_choices, None) == ()

    def test_a_task_far_from_the_rest_is_named_and_one_near_to_it_never(self):
        tasks = np.repeat([f"t{place}" for place in range(8)], 40)
        centres = np.ones((8, 16)) + 0.6 * RNG.normal(size=(8, 16))
        centres[6], centres[7] = -np.ones(16), 1
        E = centres.repeat(40, axis=0) + 0.1 * RNG.normal(size=(320, 16))
        same = np.full(320, 4.0)
        (result,) = find_anomalous_tasks(tasks, same, same, E.astype(np.float32))
        assert (result.task, result.measure) == ("t6", "distance")
        assert 1 < result.value <= 2

    def test_length_of_vectors_makes_no_difference(self):
        tasks = np.repeat([f"t{place}" for place in range(6)], 10)
        E = RNG.normal(size=(60, 5)) + np.repeat(RNG.normal(size=(6, 5)), 10, axis=0)
        same = np.full(60, 4.0)
        first = find_anomalous_tasks(tasks, same, same, E, at_least=0.5)
        second = find_anomalous_tasks(tasks, same, same, E * RNG.uniform(0.1, 9, (60, 1)), at_least=0.5)
        assert [(a.task, round(a.z, 9)) for a in first] == [(a.task, round(a.z, 9)) for a in second]
        assert len(first) > 0

    def test_what_is_not_known_is_left_out(self):
        tasks, lengths, n_choices = table([100, 110, 95, 105, 90, 100, 900], [4] * 7)
        E = np.ones((len(tasks), 3)) + 0.1 * RNG.normal(size=(len(tasks), 3))
        more = np.append(tasks, ["t0", "unknown", "t1"])
        with_gaps = (np.append(values, [np.nan] * 3) for values in (lengths, n_choices))
        vectors = np.vstack([E, np.zeros(3), np.full(3, np.nan), [np.inf, 1, 1]])
        assert find_anomalous_tasks(more, *with_gaps, vectors) == find_anomalous_tasks(tasks, lengths, n_choices, E)

    def test_of_fewer_than_five_tasks_none_stands_out(self):
        assert find_anomalous_tasks(*table([100, 100, 100, 9000], [4, 4, 4, 2]), None) == ()
        tasks, lengths, n_choices = table([100, 100, 100, 100, 9000], [4] * 5)
        assert len(find_anomalous_tasks(tasks, lengths, n_choices, None)) == 1
        lengths[tasks == "t0"] = np.nan
        assert find_anomalous_tasks(tasks, lengths, n_choices, None) == ()

    def test_no_prompts_have_no_tasks(self):
        assert find_anomalous_tasks(np.empty(0, str), np.empty(0), np.empty(0), np.empty((0, 3))) == ()


class TestErrors:
    @pytest.mark.parametrize("at_least", [0.0, -1.0, np.nan])
    def test_the_least_z_is_above_zero(self, at_least):
        with pytest.raises(ValueError, match="above 0"):
            find_anomalous_tasks(np.array(["a"]), np.ones(1), np.ones(1), None, at_least=at_least)
