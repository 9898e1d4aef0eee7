"""Reported scores against those computed from the rows: what differs is named, and perplexities rank as reported."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from drift import __main__ as drift_program
from drift.comparison import TaskComparison, compare
from drift.environments import Environment
from drift.harness import Release
from drift.lm_eval_runs import HARNESS
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import BadInputError
from tracker.exporting.formats.runs import export_runs
from tracker.ingest.measurement import (
    ParsedFile,
    ReadOptions,
    RunDescription,
    Scores,
    TaskScores,
    metric_description,
)
from tracker.ingest.parsing.aggregations import TaskRows, aggregate, sample_stderr
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.parsing.reported_scores import ReportedScores
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.reported_score import ReportedScore
from tracker.queries.catalogue.listing import list_models, list_runs
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.selection import Selection
from tracker.recording.pipeline import compute_report

STAMP = "2026-01-02T03-04-05"
EXPLAINED = {"f3a1c0de-4b2e-4c1a-9f6d-1b7e5a2c8d40.json": 1}
"""Differences in the samples that are in the files: this example of an aggregate has one of its instances only."""


def options(path: Path) -> ReadOptions:
    return ReadOptions(
        model="m" if "lm_eval" in path.parts else None, benchmark="b" if "tabular" in path.parts else None
    )


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    folder = shared / "samples"
    if not folder.is_dir():
        pytest.skip(f"no samples of harnesses in {shared}")
    return folder


def test_no_sample_differs_from_what_its_harness_reports(samples: Path) -> None:
    counts = {}
    for path in find_files([samples], ReadOptions()):
        if differences := parse_file(path, options(path)).differences:
            counts[path.name] = len(differences)
    assert counts == EXPLAINED


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of the numbers in JSON."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from numbers(part, (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from numbers(part, (*path, place))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def changed(data: Any, path: tuple[Any, ...]) -> Any:
    """JSON with another number at a place."""
    if not path:
        return data + 0.0123 if isinstance(data, float) else data + 1
    copied: Any = dict(data) if isinstance(data, dict) else list(data)
    copied[path[0]] = changed(data[path[0]], path[1:])
    return copied


def of_lm_eval(path: tuple[Any, ...]) -> bool:
    return path[0] == "results" and path[1] != "math_rephrased_full" and path[2] != "sample_len"


def of_inspect(path: tuple[Any, ...]) -> bool:
    return path[:2] == ("results", "scores") and path[-1] == "value"


REPORTING: dict[str, tuple[str, Callable[[tuple[Any, ...]], bool]]] = {
    "lm_eval/results_2026-01-21T03-44-18.458309.json": ("lm_eval", of_lm_eval),
    "lm_eval/generated_0.4.13/i82qcls7/results_2026-11-21T01-34-57.434897.json": ("lm_eval", of_lm_eval),
    "inspect/data_arc_qwen.json": ("inspect", of_inspect),
    "inspect/data_pubmedqa_gpt4o_mini.json": ("inspect", of_inspect),
    "evalplus/synthetic_samples.eval_results.json": ("evalplus", lambda path: path[0] == "pass_at_k"),
    "opencompass/synthetic/20261121_013457/results/demo_model/demo_gen.json": (
        "opencompass", lambda path: path == ("accuracy",)
    ),
    "opencompass/synthetic/20261121_013457/results/demo_model/demo_ppl.json": (
        "opencompass", lambda path: path == ("accuracy",)
    ),
}  # fmt: skip
"""Samples in JSON that report scores of the rows which they hold, and the places of these scores."""


@pytest.mark.parametrize("name", REPORTING)
def test_a_changed_value_of_a_sample_is_named(samples: Path, tmp_path: Path, name: str) -> None:
    top, is_reported = REPORTING[name]
    shutil.copytree(samples / top, tmp_path / top)
    path = tmp_path / name
    data = json.loads(path.read_text())
    places = [place for place in numbers(data) if is_reported(place)]
    assert places
    for place in places:
        if "opencompass" in name:  # percentages have at most 100
            path.write_text(json.dumps({**data, "accuracy": 49.9}))
        else:
            path.write_text(json.dumps(changed(data, place)))
        assert len(parse_file(path, options(path)).differences) == 1, place


def test_a_changed_value_of_a_sample_in_other_files_is_named(samples: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "helm", tmp_path / "helm")
    for path in sorted((tmp_path / "helm").rglob("stats.json")):
        stats = json.loads(path.read_text())
        n_named = 0
        for place, stat in enumerate(stats):
            if stat["name"]["name"] in ("exact_match", "f1_score", "rouge_l") and "perturbation" not in stat["name"]:
                path.write_text(json.dumps(changed(stats, (place, "mean"))))
                differences = parse_file(path.with_name("per_instance_stats.json"), ReadOptions()).differences
                n_named += len(differences)
                assert len(differences) == (stat["name"]["split"] == "test" or "hellaswag" in str(path)), stat["name"]
        assert n_named
    shutil.copytree(samples / "openai_evals", tmp_path / "openai_evals")
    (log,) = (tmp_path / "openai_evals").iterdir()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [changed(line, ("final_report", "accuracy")) if "final_report" in line else line for line in lines]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(parse_file(log, ReadOptions()).differences) == 1


class TestAgainstTheHarness:
    @given(scores=st.lists(st.tuples(st.floats(-50, 0), st.integers(1, 40)), min_size=2, max_size=20))
    @settings(max_examples=20, deadline=None)
    def test_aggregations_are_those_of_lm_eval(self, scores: list[tuple[float, int]]) -> None:
        metrics = pytest.importorskip("lm_eval.api.metrics")
        likelihoods, weights = (np.array(column, dtype=float) for column in zip(*scores, strict=True))
        places = np.arange(len(scores))
        zeros = np.zeros(len(scores), dtype=np.int64)
        rows = TaskRows(likelihoods, places, zeros, zeros, {"word_perplexity": weights})
        plain = likelihoods.tolist()
        expected = {
            "mean": metrics.mean(plain),
            "upper_median": metrics.median(plain),
            "perplexity": metrics.perplexity(plain),
            "weighted_perplexity": metrics.weighted_perplexity(scores),
            "bits_per_byte": metrics.bits_per_byte(scores),
        }
        for name, value in expected.items():
            assert aggregate(rows, name, "word_perplexity") == pytest.approx(value, rel=1e-9), name
        assert sample_stderr(likelihoods) == pytest.approx(metrics.mean_stderr(plain), rel=1e-9)

    @given(
        passed=st.lists(st.lists(st.booleans(), min_size=3, max_size=5), min_size=1, max_size=6), k=st.integers(1, 3)
    )
    def test_pass_at_k_is_the_share_of_draws_with_a_passing_trial(self, passed: list[list[bool]], k: int) -> None:
        from itertools import combinations

        draws = [[any(draw) for draw in combinations(trials, k)] for trials in passed]
        expected = np.mean([np.mean(of_prompt) for of_prompt in draws])
        prompts = np.repeat(np.arange(len(passed)), [len(trials) for trials in passed])
        values = np.array([float(trial) for trials in passed for trial in trials])
        rows = TaskRows(values, prompts, np.zeros_like(prompts), np.zeros_like(prompts), {})
        assert aggregate(rows, f"pass@{k}", "") == pytest.approx(expected)


def sample(number: int, **scores: Any) -> dict[str, Any]:
    """A sample of a task with log-likelihoods of texts."""
    return {
        "doc_id": number,
        "doc": {"text": f"Text {number} ends with a word"},
        "target": f" {number}",
        "arguments": {"gen_args_0": {"arg_0": "Text", "arg_1": f" {number}"}},
        "resps": [[["-1.0", "False"]]],
        "filtered_resps": [["-1.0", "False"]],
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": f"hash{number}",
        **scores,
    }


def write_run(
    folder: Path, model: str, rows: list[dict[str, Any]], reported: dict[str, Any], config: dict[str, Any] | None = None
) -> Path:
    """Write the results and samples of a run of lm-eval on one task."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"results_{STAMP}.json"
    results = {
        "results": {"t": reported},
        "configs": {"t": config or {}},
        "higher_is_better": {"t": {name.split(",")[0]: False for name in reported}},
        "n-samples": {"t": {"original": len(rows), "effective": len(rows)}},
        "config": {"model_args": f"pretrained={model}"},
        "lm_eval_version": "0.4.9",
    }
    path.write_text(json.dumps(results))
    (folder / f"samples_t_{STAMP}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def of_tasks(reading: ParsedFile) -> dict[str, tuple[float, float]]:
    """Value and standard error of each task score."""
    blocks = [block for block in reading.measurements if isinstance(block, TaskScores)]
    return {
        block.metric.name: (float(block.values[0]), float(block.stderr[0]))
        for block in blocks
        if block.stderr is not None
    }


LIKELIHOODS = {"good": [-1.0, -2.0, -3.0], "bad": [-3.0, -4.0, -6.5]}
PERPLEXITY = {name: math.exp(-sum(values) / 3) for name, values in LIKELIHOODS.items()}


class TestPerplexity:
    def write(self, folder: Path) -> list[Path]:
        return [
            write_run(
                folder / name,
                f"org/{name}",
                [sample(n, perplexity=value, acc=0) for n, value in enumerate(values)],
                {"perplexity,none": PERPLEXITY[name], "perplexity_stderr,none": 0.25, "acc,none": 0.0},
            )
            for name, values in LIKELIHOODS.items()
        ]

    def test_models_rank_and_export_as_the_harness_has_them(self, store: sa.Engine, tmp_path: Path) -> None:
        for path in self.write(tmp_path):
            assert ingest_file(store, path).changes.warnings == ()
        with transaction(store, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark="t", metric="perplexity"))
            rows = load_leaderboard(session, Selection(benchmark="t", metric="loglikelihood"))
            stored = session.execute(sa.text("SELECT value, stderr, n_prompts FROM task_score ORDER BY value")).all()
        assert [(row.model, row.rank, row.mean) for row in board.rows] == [
            ("org/good", 1, pytest.approx(PERPLEXITY["good"])),
            ("org/bad", 2, pytest.approx(PERPLEXITY["bad"])),
        ]
        assert (board.unit, board.higher_is_better) == ("task", False)
        assert [(row.model, row.mean) for row in rows.rows] == [("org/good", -2.0), ("org/bad", -4.5)]
        assert [tuple(row) for row in stored] == [
            (pytest.approx(PERPLEXITY["good"]), 0.25, 3), (pytest.approx(PERPLEXITY["bad"]), 0.25, 3)
        ]  # fmt: skip

    def test_exports_hold_the_harness_value(self, tmp_path: Path) -> None:
        engine = connect(f"sqlite:///{tmp_path}/store.db")
        for path in self.write(tmp_path):
            ingest_file(engine, path)
        url = f"sqlite:///{tmp_path}/store.db"
        command = ["export", "scores", "t", "--metric", "perplexity", "--database", url, "--output"]
        for output in ([str(tmp_path / "p.csv")], [str(tmp_path / "records"), "--format", "every-eval-ever"]):
            result = CliRunner().invoke(suffrage, [*command, *output])
            assert result.exit_code == 0, result.output
        with (tmp_path / "p.csv").open() as file:
            exported = {row["model"]: float(row["score"]) for row in csv.DictReader(file)}
        assert exported == {f"org/{name}": pytest.approx(value) for name, value in PERPLEXITY.items()}
        records = [json.loads(path.read_text()) for path in (tmp_path / "records").rglob("*.json")]
        values = {
            record["model_info"]["id"]: record["evaluation_results"][0]["score_details"]["score"] for record in records
        }
        assert values == exported
        engine.dispose()

    def test_another_perplexity_than_that_of_the_rows_is_named(self, tmp_path: Path) -> None:
        path = write_run(
            tmp_path, "m", [sample(0, perplexity=-1.0), sample(1, perplexity=-1.0)], {"perplexity,none": 2.7}
        )
        (difference,) = parse_file(path, ReadOptions()).differences
        assert difference.text == "the file reports perplexity,none of t as 2.7, but its scores give 2.71828"

    def test_of_a_model_with_random_weights_is_beyond_all_exact_integers(self, tmp_path: Path) -> None:
        rows = [sample(n, perplexity=value, acc=0) for n, value in enumerate([-60.0, -70.0, -80.0])]
        path = write_run(
            tmp_path, "org/random", rows, {"perplexity,none": math.exp(70), "perplexity_stderr,none": 1e30}
        )
        assert of_tasks(parse_file(path, ReadOptions()))["perplexity"] == (pytest.approx(math.exp(70)), 1e30)

    def test_rolling_perplexities_are_weighted(self, tmp_path: Path) -> None:
        pairs = [(-10.0, 4, 20), (-3.0, 1, 9)]
        rows = [
            sample(n, word_perplexity=[ll, words], byte_perplexity=[ll, n_bytes], bits_per_byte=[ll, n_bytes])
            for n, (ll, words, n_bytes) in enumerate(pairs)
        ]
        reported = {
            "word_perplexity,none": math.exp(13 / 5),
            "byte_perplexity,none": math.exp(13 / 29),
            "bits_per_byte,none": 13 / 29 / math.log(2),
            "bits_per_byte_stderr,none": "N/A",
        }
        reading = parse_file(write_run(tmp_path, "m", rows, reported), ReadOptions())
        assert not reading.warnings
        assert {name: value for name, (value, _) in of_tasks(reading).items()} == {
            name.split(",")[0]: value for name, value in reported.items() if isinstance(value, float)
        }
        (block,) = (block for block in reading.measurements if isinstance(block, Scores))
        assert (block.metric.name, block.values.tolist()) == ("loglikelihood", [-10.0, -3.0])
        wrong = parse_file(write_run(tmp_path, "m", rows, {**reported, "word_perplexity,none": 13.0}), ReadOptions())
        assert len(wrong.differences) == 1


class TestCorpusMetrics:
    def test_are_scores_of_the_task_with_their_standard_errors(self, tmp_path: Path) -> None:
        rows = [sample(n, bleu=["a", "b"], chrf=["a", "b"]) for n in range(2)]
        reported = {"bleu,none": 31.5, "bleu_stderr,none": 1.5, "chrf,none": 55.0, "chrf_stderr,none": "N/A"}
        reading = parse_file(write_run(tmp_path, "m", rows, reported), ReadOptions())
        assert of_tasks(reading) == {"bleu": (31.5, 1.5), "chrf": (55.0, pytest.approx(math.nan, nan_ok=True))}
        assert reading.warnings == ["t: no scores per prompt, at most task scores, of bleu, chrf"]

    def test_a_metric_with_an_unknown_aggregation_is_never_a_mean_of_its_rows(self, tmp_path: Path) -> None:
        config = {"metric_list": [{"metric": "best", "aggregation": "<function best>"}]}
        rows = [sample(n, best=float(n)) for n in range(3)]
        reading = parse_file(write_run(tmp_path, "m", rows, {"best,none": 2.0}, config), ReadOptions())
        assert not reading.differences
        assert of_tasks(reading)["best"][0] == 2.0
        assert {block.metric.name for block in reading.measurements if isinstance(block, Scores)} == {"best_per_prompt"}


class TestFilters:
    def rows(self) -> list[dict[str, Any]]:
        """Two filters, one after the other, that agree on the first document only; no field names them."""
        return [
            {name: value for name, value in sample(n, em=score).items() if name != "filter"}
            | {"filtered_resps": [text], "resps": [["It is 4."]], "arguments": [["Q", {"until": []}]]}
            for text, scores in (("4", (1.0, 0.0)), ("4.", (1.0, 1.0)))
            for n, score in enumerate(scores)
        ]

    def test_without_a_field_are_those_of_the_configuration_in_order(self, tmp_path: Path) -> None:
        config = {"filter_list": [{"name": "strict"}, {"name": "flexible"}]}
        reported = {"em,strict": 0.5, "em,flexible": 1.0}
        reading = parse_file(write_run(tmp_path, "m", self.rows(), reported, config), ReadOptions())
        assert not reading.differences
        values = {b.metric.name: b.values.tolist() for b in reading.measurements if isinstance(b, Scores)}
        assert values == {"em,strict": [1.0, 0.0], "em,flexible": [1.0, 1.0]}

    def test_without_a_field_or_results_have_numbers(self, tmp_path: Path) -> None:
        write_run(tmp_path, "m", self.rows(), {})
        (tmp_path / f"results_{STAMP}.json").unlink()
        reading = parse_file(tmp_path / f"samples_t_{STAMP}.jsonl", ReadOptions(model="m"))
        values = {b.metric.name: b.values.tolist() for b in reading.measurements if isinstance(b, Scores)}
        assert values == {"em": [1.0, 0.0], "em,filter 2": [1.0, 1.0]}


class TestGroups:
    @pytest.mark.parametrize(("value", "n_differences"), [(2 / 3, 0), (0.75, 0), (0.7, 1)])
    def test_are_means_of_prompts_or_of_tasks(self, tmp_path: Path, value: float, n_differences: int) -> None:
        path = write_run(tmp_path, "m", [sample(n, acc=float(n == 0)) for n in range(2)], {})
        results = json.loads(path.read_text())
        results["results"] = {"g": {"acc,none": value}, "t": {"acc,none": 0.5}, "u": {"acc,none": 1.0}}
        results["group_subtasks"] = {"g": ["t", "u"]}
        path.write_text(json.dumps(results))
        (tmp_path / f"samples_u_{STAMP}.jsonl").write_text(json.dumps(sample(0, acc=1.0)) + "\n")
        assert len(parse_file(path, ReadOptions()).differences) == n_differences


ROWS = [sample(n, acc=float(n == 0)) for n in range(4)]


class TestStore:
    def unverified(self, store: sa.Engine) -> list[str | None]:
        with transaction(store, write=False) as session:
            return list(session.scalars(sa.text("SELECT unverified FROM run ORDER BY id")))

    def test_a_difference_marks_the_run_until_a_right_file_replaces_it(self, store: sa.Engine, tmp_path: Path) -> None:
        path = write_run(tmp_path, "m", ROWS, {"acc,none": 0.99})
        text = "the file reports acc,none of t as 0.99, but its scores give 0.25"
        assert ingest_file(store, path).changes.warnings == (f"{text}; the run is unverified",)
        assert self.unverified(store) == [text]
        write_run(tmp_path, "m", ROWS, {"acc,none": 0.25})
        ingest_file(store, path)
        assert self.unverified(store) == [None]

    def test_every_ranking_and_list_names_the_run(self, store: sa.Engine, tmp_path: Path) -> None:
        for name, reported in (("a", 0.25), ("b", 0.99)):
            ingest_file(store, write_run(tmp_path / name, f"org/{name}", ROWS, {"acc,none": reported}))
        with transaction(store, write=False) as session:
            board = load_leaderboard(session, Selection(benchmark="t"))
            runs = {row.model: bool(row.unverified) for row in list_runs(session)}
            models = {row.name: row.n_unverified for row in list_models(session)}
            views = [
                {row.model: row.unverified is not None for row in session.execute(sa.text(f"SELECT * FROM {view}"))}
                for view in ("leaderboard", "run_history")
            ]
            exported = [row for batch in export_runs(session).batches for row in batch.to_pylist()]
        expected = {"org/a": False, "org/b": True}
        assert {row.model: bool(row.unverified) for row in board.rows} == expected
        assert board.warnings[0].startswith("Unverified runs: org/b (run 2): the file reports acc,none of t as 0.99")
        assert [runs, *views] == [expected] * 3
        assert {row["model"]: row["unverified"] is not None for row in exported} == expected
        assert models == {"org/a": 0, "org/b": 1}
        url = store.url.render_as_string(hide_password=False)
        for kind in ("csv", "every-eval-ever"):
            command = ["export", "scores", "t", "--database", url, "--format", kind, "--output", str(tmp_path / kind)]
            assert "Unverified runs: org/b (run 2)" in CliRunner().invoke(suffrage, command).output, kind
        parameters = {"model_a": "org/a", "model_b": "org/b", "n_resamples": 9, "seed": 0}
        report = compute_report(store, "comparison", Selection(benchmark="t"), parameters)
        assert any("Unverified runs: org/b" in text for text in (*report.summary.caveats, *report.warnings))

    def test_strict_stores_nothing(self, store: sa.Engine, tmp_path: Path) -> None:
        path = write_run(tmp_path, "m", ROWS, {"acc,none": 0.99})
        with pytest.raises(BadInputError, match=r"as 0.99, but its scores give 0.25(?s:.*)Nothing was stored"):
            ingest_file(store, path, strict=True)
        assert self.unverified(store) == []
        assert ingest_file(store, write_run(tmp_path, "m", ROWS, {"acc,none": 0.25}), strict=True).changes.n_scores

    def test_an_unknown_version_is_a_warning(self, tmp_path: Path) -> None:
        path = write_run(tmp_path, "m", ROWS, {"acc,none": 0.25})
        path.write_text(path.read_text().replace("0.4.9", "0.5.0"))
        assert parse_file(path, ReadOptions()).warnings == ["unknown lm_eval_version 0.5.0; read as 0.4"]


class TestDriftCheck:
    """The comparison of `make drift`, which shares no code with the importer."""

    def test_numbers_that_the_store_holds_agree_and_a_changed_number_is_named(self, tmp_path: Path) -> None:
        rows = [sample(n, acc=value, perplexity=-1.0 - n) for n, value in enumerate((0, 1, 1, 1))]
        correct = {"acc,none": 0.75, "acc_stderr,none": 0.25, "perplexity,none": math.exp(2.5)}
        changed = {"acc,none": 0.5, "acc_stderr,none": 0.2, "perplexity,none": 2.5}
        worse = [row | {"perplexity": row["perplexity"] - 1} for row in rows]
        for name, reported in (("correct", correct), ("changed", changed)):
            folder = tmp_path / name
            write_run(folder / "m", "org/m", rows, reported)
            write_run(folder / "n", "org/n", worse, correct | {"perplexity,none": math.exp(3.5)})
            comparisons = compare(HARNESS, folder, tmp_path / f"{name}.db")
            differences = [text for task in comparisons for text in comparisons[task].differences]
            assert comparisons["t"].n_compared == 20
            names_of_changes = {key for key in correct if any(f"reported {key} =" in text for text in differences)}
            assert names_of_changes == (set() if name == "correct" else set(correct))
        assert "org/m: rank 2 by the reported acc,none, leaderboard 1.5" in differences

    def test_a_release_that_yields_too_few_numbers_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(drift_program, "install", lambda *_: Environment(tmp_path, "1.0"))
        monkeypatch.setattr(drift_program, "compare", lambda *_: {"t": TaskComparison(n_compared=4)})
        harness = replace(HARNESS, run=lambda *_: [tmp_path])
        (tmp_path / "h").mkdir()
        for min_compared, expected in ((4, [False]), (5, [False, True])):
            release = Release(requirements=("h",), min_compared=min_compared)
            assert [row.failed for row in drift_program._check(harness, release, tmp_path)] == expected


def test_a_format_that_declares_no_reported_scores_yields_none() -> None:
    run = RunDescription(model="m", benchmark="b")
    collected = ReportedScores(is_expected=False)
    with pytest.raises(TypeError, match="REPORTS_SCORES"):
        collected.add(ReportedScore(run=run, metric=metric_description("acc"), tasks=("t",), value=0.5))
