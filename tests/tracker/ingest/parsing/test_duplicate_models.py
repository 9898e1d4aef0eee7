"""What a file holds more than once is said, and left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from measurement_blocks import answers, scores, task_scores

from tracker.ingest.files.tabular.column_means import column_means
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.parsing.duplicate_models import DuplicateModels

Write = Callable[[str], Path]
MODELS = [f"m{n}" for n in range(12)]
KEYS = [f"q{n}" for n in range(40)]


def describe_duplicates(blocks: Sequence[Measurement]) -> Iterator[str]:
    """Warnings about the blocks of one file."""
    duplicates = DuplicateModels()
    for block in blocks:
        duplicates.add(block)
    return duplicates.warnings()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return written


def read(path: Path, **options: Any) -> Sequence[str]:
    return parse_file(path, ReadOptions(benchmark="b", **options)).warnings


def leaderboard(columns: dict[str, Any], models: Sequence[str] = MODELS) -> str:
    rows = [",".join([model, *(str(cells[n]) for cells in columns.values())]) for n, model in enumerate(models)]
    return "\n".join([",".join(["model", *columns]), *rows]) + "\n"


def single_scores(columns: dict[str, Any]) -> str:
    """A table with a row per model and task; its columns are not compared while it is read."""
    rows = [
        f"{model},{task},{cells[n]}"
        for task, cells in columns.items()
        for n, model in enumerate(MODELS)
        if str(cells[n]) not in ("", "nan")
    ]
    return "\n".join(["model,task,score", *rows]) + "\n"


def drawn(n_tasks: int, digits: int = 2, seed: int = 0) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    return {f"task {n}": rng.uniform(20, 90, len(MODELS)).round(digits).tolist() for n in range(n_tasks)}


def mean(columns: Sequence[Sequence[float]], digits: int = 2) -> list[float]:
    return np.round(np.mean(columns, axis=0), digits).tolist()


class TestModels:
    def test_models_with_the_same_scores_are_named_together(self, write: Write) -> None:
        columns = {task: [*cells[:9], *[cells[9]] * 3] for task, cells in drawn(4).items()}
        (warning,) = read(write(leaderboard(columns)))
        assert "3 models have the same scores as another model: 'm9', 'm10', 'm11'." in warning
        assert "--models" in warning

    def test_two_sorts_are_distinguished_and_many_names_are_cut_short(self) -> None:
        blocks: list[Measurement] = [task_scores({"x": 1, "y": 2, "z": 3}, f"a{n}") for n in range(7)]
        blocks += [task_scores({"x": 1, "z": 3, "y": 4}, f"b{n}") for n in range(2)]
        (warning,) = describe_duplicates(blocks)
        assert (
            "9 models have the same scores as another model in 2 groups: 'a0', 'a1', 'a2', 'a3', 'a4' and 2 more"
            in warning
        )
        assert "'b0', 'b1'." in warning

    def test_the_order_of_tasks_a_missing_score_and_the_sign_of_zero_make_no_difference(self) -> None:
        single = task_scores({"x": 0.0, "y": 2, "z": 3}, "one")
        assert list(describe_duplicates([single, task_scores({"z": 3, "y": 2, "x": -0.0, "w": np.nan}, "two")]))

    def test_runs_under_another_condition_or_of_the_same_model_are_no_copies(self) -> None:
        cells = {"x": 1, "y": 2, "z": 3}
        assert not list(
            describe_duplicates([task_scores(cells, "a"), task_scores(cells, "b", condition="answer_only")])
        )
        assert not list(describe_duplicates([task_scores(cells, "a"), task_scores(cells, "a", label="entry 2")]))

    def test_models_of_a_wide_table_are_compared_on_all_prompts(self, write: Write) -> None:
        lines = [f"q{n},{n % 2},{n % 2},{n % 2 if n else 1},{'' if n == 3 else n % 2}" for n in range(40)]
        (warning,) = read(write("\n".join(["prompt_id,A,B,C,D", *lines]) + "\n"))
        assert "'A', 'B'." in warning

    def test_models_of_a_long_table_too(self, write: Write) -> None:
        lines = [f"{model},q{n},{n % 3 == 0:d}" for model in ("A", "B") for n in range(40)]
        assert "'A', 'B'." in read(write("\n".join(["model,prompt_id,score", *lines]) + "\n"))[0]

    def test_equal_answers_count_as_equal_scores(self) -> None:
        texts: dict[Any, str | None] = dict.fromkeys(KEYS, "A") | {"q0": None}
        assert list(describe_duplicates([answers(texts, "a"), answers(texts, "b")]))
        assert not list(describe_duplicates([answers(texts, "a"), answers(texts | {"q0": ""}, "b")]))

    def test_the_same_values_of_other_prompts_or_trials_are_no_copies(self) -> None:
        first = scores(dict.fromkeys(KEYS, 1.0), "a")
        assert list(describe_duplicates([first, scores(dict.fromkeys(KEYS, 1.0), "b")]))
        assert not list(describe_duplicates([first, scores({f"other {key}": 1.0 for key in KEYS}, "b")]))
        assert not list(describe_duplicates([first, scores(dict.fromkeys(KEYS, 1.0), "b", trials=1)]))

    def test_few_scores_are_equal_by_chance_and_not_spoken_of(self) -> None:
        assert not list(describe_duplicates([scores({"q1": 1, "q2": 0}, "a"), scores({"q1": 1, "q2": 0}, "b")]))
        assert not list(describe_duplicates([task_scores({"x": 1, "y": 2}, "a"), task_scores({"x": 1, "y": 2}, "b")]))

    @given(st.integers(0, 2**20 - 1), st.integers(0, 2**20 - 1))
    def test_models_are_copies_exactly_where_all_scores_agree(self, first: int, second: int) -> None:
        blocks = []
        for model, bits in (("a", first), ("b", second)):
            blocks.append(scores({key: bits >> n & 1 for n, key in enumerate(KEYS[:20])}, model))
        assert bool(list(describe_duplicates(blocks))) == (first == second)


class TestTasks:
    def test_equal_columns_are_named_in_their_groups(self, write: Write) -> None:
        columns = drawn(2)
        table = {f"Retrieval-{n}": columns["task 0"] for n in range(1, 13)} | {"STS": columns["task 1"]}
        (warning,) = read(write(leaderboard(table)))
        assert "12 tasks have the same scores as another task: Retrieval-1 … -12. 2 of 13 tasks differ" in warning
        assert "--tasks" in warning

    def test_names_that_do_not_count_up_are_listed(self, write: Write) -> None:
        columns = drawn(2)
        table = {"x": columns["task 0"], "y": columns["task 1"], "z1": columns["task 0"], "z3": columns["task 0"]}
        assert "'x', 'z1', 'z3'. 2 of 4" in read(write(leaderboard(table)))[0]

    def test_columns_that_differ_in_one_cell_are_not_equal(self, write: Write) -> None:
        columns = drawn(2)
        almost = [*columns["task 0"][:-1], ""]
        assert not read(write(leaderboard(columns | {"almost": almost})))

    def test_all_formats_of_whole_tasks_are_looked_at(self, write: Write) -> None:
        lines = [f"m{n},{task},{n / 7:.3f}" for n in range(5) for task in ("x", "y")]
        assert "'x', 'y'" in read(write("\n".join(["model,task,score", *lines]) + "\n"))[0]

    def test_metrics_are_looked_at_each_for_itself(self, write: Write) -> None:
        lines = [f"m{n},{task},acc,{n / 7:.3f}" for n in range(5) for task in ("x", "y")]
        lines += [f"m{n},{task},f1,{n / (7 + len(task)):.3f}" for n in range(5) for task in ("x", "yy")]
        warnings = read(write("\n".join(["model,task,metric,score", *lines]) + "\n"))
        assert [warning.partition(" tasks")[0] for warning in warnings] == ["under 'acc': 2"]


class TestAverages:
    def test_a_column_that_is_the_mean_of_all_others(self, write: Write) -> None:
        columns = drawn(6)
        table = {"Index (6 datasets)": mean(list(columns.values()))} | columns
        (warning,) = read(write(single_scores(table)))
        assert warning.startswith("'Index (6 datasets)' is the mean of all other tasks, within rounding. ")
        assert "--tasks" in warning

    @pytest.mark.parametrize("digits", [0, 1, 15])
    def test_it_may_be_rounded_to_fewer_digits_or_not_at_all(self, write: Write, digits: int) -> None:
        columns = drawn(6)
        table = columns | {"composite": mean(list(columns.values()), digits)}
        assert "'composite' is the mean of all other tasks" in read(write(single_scores(table)))[0]

    def test_scores_as_large_as_a_float_are_compared(self, write: Write) -> None:
        unit = 1e306
        scores = {name: [value * unit for value in column] for name, column in drawn(6).items()}
        composite = np.mean([np.array(column) / unit for column in scores.values()], axis=0) * unit
        (warning,) = read(write(single_scores(scores | {"composite": composite.tolist()})))
        assert warning.startswith("'composite' is the mean of all other tasks")
        assert not read(write(single_scores(scores | {"composite": [unit] * 4 + [2 * unit] * 8})))

    def test_an_average_over_copies_that_was_copied_itself(self, write: Write) -> None:
        columns = drawn(3)
        table = {f"R-{n}": columns["task 0"] for n in range(1, 4)}
        table |= {f"S-{n}": columns["task 1"] for n in range(1, 3)} | {"x": columns["task 2"]}
        average = mean(list(table.values()))
        warnings = read(write(single_scores(table | {f"composite-{n}": average for n in range(1, 7)})))
        assert "R-1 … -3; 'S-1', 'S-2'; composite-1 … -6. 4 of 12" in warnings[0]
        assert "composite-1 … -6 are each the mean of all other tasks" in warnings[1]

    def test_an_average_that_counts_one_of_each_sort(self, write: Write) -> None:
        columns = drawn(3)
        average = mean(list(columns.values()))
        table = columns | {"again": columns["task 0"], "composite": average}
        assert "'composite' is the mean of all other tasks" in read(write(single_scores(table)))[1]

    def test_averages_of_neighbours_beside_the_average_of_all(self, write: Write) -> None:
        columns = drawn(9)
        table = dict(list(columns.items())[:4]) | {"maths": mean(list(columns.values())[:4])}
        table |= {"composite": mean(list(columns.values())), "languages": mean(list(columns.values())[4:])} | columns
        warnings = read(write(single_scores(table)))
        assert [warning.partition(", within")[0] for warning in warnings] == [
            "'maths' is the mean of task 0 … 3",
            "'composite' is the mean of all other tasks",
            "'languages' is the mean of task 4 … 8",
        ]

    def test_missing_scores_are_left_out_of_the_comparison(self, write: Write) -> None:
        columns = drawn(4)
        composite = mean(list(columns.values()))
        columns["task 1"][3] = columns["task 2"][5] = ""  # type: ignore[call-overload]
        (warning,) = read(write(single_scores(columns | {"composite": composite})))
        assert "for the 10 models that have all of them" in warning

    def test_a_mean_of_two_models_or_of_coarse_scores_may_be_chance(self, write: Write) -> None:
        assert not read(write("model,x,y,z\nA,10.5,20.5,15.5\nB,1.25,2.25,1.75\n"))
        assert not read(write("model,x,y,z\nA,1,3,2\nB,4,6,5\nC,0,2,1\nD,5,7,6\n"))

    @settings(max_examples=50)
    @given(arrays(np.float64, (12, 5), elements=st.integers(0, 10_000).map(lambda n: n / 100)), st.integers(0, 4))
    def test_what_is_found_is_a_mean_and_a_mean_that_varies_is_found(self, T: np.ndarray, at: int) -> None:
        table = np.insert(T, at, np.round(T.mean(axis=1), 2), axis=1)
        equal: dict[bytes, list[int]] = {}
        for place, column in enumerate(table.T):
            equal.setdefault(column.tobytes(), []).append(place)
        groups = list(equal.values())
        means = column_means(table, groups)
        for single in means:
            assert np.abs(table[:, list(single.of)].mean(axis=1) - table[:, single.column]).max() <= 0.0101
        if len(groups) == 6 and table[:, at].std() > 1:
            assert at in [single.column for single in means]


class TestRealData:
    def test_leaderboards_as_published(self, shared: Path) -> None:
        folder = shared / "data" / "leaderboards"
        arrows_differ = {"ordinal_heim_aesthetics_auto", "ordinal_heim_quality_auto"}
        warnings = {
            path.stem: " | ".join(read(path, higher_is_better=True))
            for path in folder.glob("*.csv")
            if path.stem not in arrows_differ
        }
        quiet = {name for name, texts in warnings.items() if not texts}
        assert "Classification-1 … -12; Clustering-1 … -11; " in warnings["cardinal_mteb"]
        assert "7 of 56 tasks differ" in warnings["cardinal_mteb"]
        assert warnings["ordinal_heim_black_out"].startswith("14 models have the same scores as another model: ")
        assert "'KerasNLP XLM-R', 'KerasNLP RoBERTa'" in warnings["cardinal_glue"]
        assert "'CultriX/MistralTrixTest' (line 48)" in warnings["cardinal_openllm"]
        assert quiet >= {"cardinal_vtab", "cardinal_superglue", "cardinal_bigbenchhard", "ordinal_bigcode"}
        assert not any("mean of" in texts for texts in warnings.values())
