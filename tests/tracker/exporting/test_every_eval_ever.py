"""Runs as files of Every Eval Ever, and back."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.exporting.formats.every_eval_ever import build_every_eval_ever_files
from tracker.exporting.formats.every_eval_ever import instances as every_eval_ever_rows
from tracker.ingest.measurement import (
    Answers,
    Measurement,
    MetricDescription,
    ParsedFile,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    TaskScores,
)
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.write.writer import store_file
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import NO_BOUNDS, estimate_means

PATH = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(_samples\.jsonl|\.json)"
)
NAN = float("nan")
ACCURACY = MetricDescription(name="accuracy", higher_is_better=True, lower=0.0, upper=1.0)
LOSS = MetricDescription(name="loss,strict match", higher_is_better=False)
POINTS = MetricDescription(name="acc", higher_is_better=True, lower=0.0, upper=100.0)

PROMPT_NAMES = Prompts(
    keys=["p1", "p2", "p3", "p4"],
    tasks=["alpha", "alpha", "beta/γ", ""],
    text=["Why?", "How?\nSo.", 'Lone \U0001f600 "quote"', None],
    choices=[["yes", "no"], None, ["A", "C", "B"], None],
    answer=["B", "four", "B", None],
    split=["test", None, "validation", None],
    details=[{"source": "web", "n": 3, "nested": {"a": [1, None]}}, {"accepted_answers": ["four", "4"]}, None, None],
)
HASHED = Prompts(keys=["h1", "h2"], tasks=["alpha", "beta/γ"], namespace="lm_eval", text=["Which?", "Which?"])
FIRST = RunDescription(
    model="org/model-7b",
    label="2026-01-02T03-04-05",
    few_shot=5,
    settings={"temperature": 0.7, "stop": ["\n"], "seed": 1, "nested": {"a": None}},
    limited=True,
    started=datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC),
    model_facts={"organization": "Somebody", "parameters": 7_000_000_000, "open_weights": True, "family": "model",
                 "released": "2025-05-06"},
)  # fmt: skip
SECOND = RunDescription(model="plain", condition="answer_only", variant="shuffled")


def scores(
    run: RunDescription, metric: MetricDescription, of: Prompts, values: Sequence[float], trials: Any = 0
) -> Scores:
    return Scores(run=run, metric=metric, prompts=of, values=np.array(values), trials=trials)


def blocks() -> list[Measurement]:
    message = Answers(
        run=FIRST,
        prompts=PROMPT_NAMES,
        text=["B", None, "  ", "left out"],
        probability=np.array([0.1 + 0.2, NAN, NAN, NAN]),
        status=["ok", "empty", "ok", "ok"],
    )
    strict = Answers(
        run=FIRST,
        prompts=PROMPT_NAMES,
        text=["b", None, None, None],
        status=["ok", "error", "error", "ok"],
        extraction="strict, first",
        predicted=np.array([True, True, True, False]),
    )
    return [
        scores(FIRST, ACCURACY, PROMPT_NAMES, [1, 0, 1, NAN]),
        scores(FIRST, ACCURACY, PROMPT_NAMES, [0, NAN, 1, NAN], trials=1),
        scores(FIRST, ACCURACY, PROMPT_NAMES, [1, NAN, NAN, NAN], trials=5),
        scores(FIRST, LOSS, PROMPT_NAMES, [0.1 + 0.2, -1e-7, NAN, NAN]),
        scores(FIRST, LOSS, HASHED, [3.5, 1e6]),
        message,
        strict,
        scores(SECOND, POINTS, PROMPT_NAMES, [12.5, 100, 0, 99.9]),
        scores(SECOND, ACCURACY, HASHED, [1, 0]),
        TaskScores(run=SECOND, metric=POINTS, tasks=["alpha", "gamma"], values=np.array([71.5, 1 / 3]),
                   stderr=np.array([0.25, NAN]), n_prompts=[200, None]),
    ]  # fmt: skip


def keep(engine: sa.Engine, blocks: Sequence[Measurement], benchmark: str = "bench@v2") -> None:
    file = ParsedFile(path=Path("a"), files=(), format="made", digest=benchmark, identity=benchmark,
                      measurements=blocks, harness="asker 1.2")  # fmt: skip
    with transaction(engine, exclusive=True) as session:
        store_file(session, file, ReadOptions(benchmark=benchmark))


def written(engine: sa.Engine, folder: Path, chosen: Any = None) -> dict[str, bytes]:
    """The files of an export, by path, which are also put into a folder."""
    with transaction(engine, write=False) as session:
        exported = build_every_eval_ever_files(
            session, chosen if chosen is not None else Selection(benchmark="bench@v2")
        )
        files = {path: b"".join(exported[path]) for path in exported}
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return files


def reimported(folder: Path, name: str = "again") -> sa.Engine:
    """A new store with the files of a folder."""
    engine = connect(f"sqlite:///{folder / name}.db")
    for path in find_files([folder / "data"]):
        with transaction(engine, exclusive=True) as session:
            store_file(session, parse_file(path, ReadOptions()), ReadOptions())
    return engine


RUN = "b.name || '@' || b.revision, m.name, r.condition, r.variant, r.label"
OF_RUN = "JOIN run r ON r.id = x.run_id JOIN benchmark b ON b.id = r.benchmark_id JOIN model m ON m.id = r.model_id"
OF_PROMPT = "JOIN prompt_alias a ON a.prompt_id = x.prompt_id JOIN task t ON t.id = a.task_id"
STORED_QUERIES = {
    "scores": f"SELECT {RUN}, k.name, t.name, a.namespace, a.key, x.trial, x.value FROM score x {OF_RUN} {OF_PROMPT} "
    "JOIN metric k ON k.id = x.metric_id",
    "answers": f"SELECT {RUN}, t.name, a.namespace, a.key, x.trial, x.extraction, x.text, x.probability, x.status "
    f"FROM answer x {OF_RUN} {OF_PROMPT}",
    "task scores": f"SELECT {RUN}, k.name, t.name, x.value, x.stderr, x.n_prompts FROM task_score x {OF_RUN} "
    "JOIN task t ON t.id = x.task_id JOIN metric k ON k.id = x.metric_id",
    "metrics": "SELECT name, higher_is_better + 0, lower, upper FROM metric",
    "models": "SELECT name, organization, family, parameters, released, open_weights + 0 FROM model",
    "runs": f"SELECT {RUN}, r.few_shot, r.settings, r.limited + 0, r.started, r.n_scores FROM run r "
    "JOIN benchmark b ON b.id = r.benchmark_id JOIN model m ON m.id = r.model_id",
    "prompts": "SELECT t.name, a.namespace, a.key, p.text, p.choices, p.answer, p.split, p.details, p.content_hash "
    "FROM prompt p JOIN prompt_alias a ON a.prompt_id = p.id JOIN task t ON t.id = p.task_id",
    "harnesses": "SELECT DISTINCT harness FROM source",
}


def content(engine: sa.Engine) -> dict[str, list[str]]:
    """Everything a store holds, in names instead of keys."""
    with engine.connect() as connection:
        result = {}
        for name, query in STORED_QUERIES.items():
            if engine.dialect.name == "postgresql":
                query = re.sub(r"(\w+) \+ 0", r"\1::int", query)
            rows = connection.execute(sa.text(query)).all()
            result[name] = sorted(str(tuple(map(_plain, row))) for row in rows)
        return result


def _plain(value: Any) -> Any:
    """A value as both engines would spell it."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json.loads(value)
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True)
    return str(value) if hasattr(value, "isoformat") else value


def aggregates(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Aggregates by the model's name."""
    values = [json.loads(data) for path, data in files.items() if path.endswith(".json")]
    return {item["model_info"]["id"]: item for item in values}


class TestRoundTrip:
    def test_an_export_that_is_ingested_gives_the_same_store(self, store: sa.Engine, tmp_path: Path) -> None:
        keep(store, blocks())
        written(store, tmp_path)
        before, after = content(store), content(reimported(tmp_path))
        omitted = [row for row in before["answers"] if "left out" in row]
        assert len(omitted) == 1, "the answer to a prompt without a score"
        before["answers"].remove(omitted[0])
        for name, rows in before.items():
            assert after[name] == rows, name

    @pytest.mark.parametrize("seed", range(4))
    def test_any_scores_come_back_to_the_last_bit(self, sqlite_url: str, tmp_path: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        engine = connect(sqlite_url)
        n = int(rng.integers(1, 60))
        group: list[Measurement] = []
        of = Prompts(keys=[f"k{i}" for i in range(n)], tasks=[f"t{i % 3}" for i in range(n)],
                     text=[f"Question {i % 7}?" for i in range(n)])  # fmt: skip
        for model in ("m1", "m2", "m3"):
            for trial in range(int(rng.integers(1, 4))):
                values = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, size=n)
                values[rng.random(n) < 0.2] = NAN
                group.append(scores(RunDescription(model=model), LOSS, of, values.tolist(), trials=trial))
        keep(engine, group)
        written(engine, tmp_path)
        before, after = content(engine), content(reimported(tmp_path))
        assert (after["scores"], after["runs"]) == (before["scores"], before["runs"])
        assert before["scores"]

    def test_into_the_same_store_nothing_changes(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        before = content(engine)
        written(engine, tmp_path)
        for path in find_files([tmp_path / "data"]):
            with transaction(engine, exclusive=True) as session:
                stored = store_file(session, parse_file(path, ReadOptions()), ReadOptions())
            assert (stored.n_scores, stored.n_answers, stored.n_task_scores, len(stored.runs_new)) == (0, 0, 0, 0)
        assert content(engine) == before


class TestFiles:
    @pytest.fixture
    def files(self, sqlite_url: str, tmp_path: Path) -> dict[str, bytes]:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        return written(engine, tmp_path)

    def test_both_kinds_are_valid_by_the_schemas_of_0_3(self, files: dict[str, bytes], shared: Path) -> None:
        import jsonschema

        folder = shared / "samples" / "every_eval_ever"
        whole, row = (
            jsonschema.Draft7Validator(json.loads((folder / name).read_text()))
            for name in ("eval.schema.json", "instance_level_eval.schema.json")
        )
        for path, data in files.items():
            if path.endswith(".jsonl"):
                for line in data.splitlines():
                    row.validate(json.loads(line))
            else:
                whole.validate(json.loads(data))

    def test_paths_are_collection_developer_model_and_a_uuid_of_version_4(self, files: dict[str, bytes]) -> None:
        assert len(files) == 4
        assert all(PATH.fullmatch(path) for path in files)
        folders = {tuple(path.split("/")[1:4]) for path in files}
        assert folders == {("bench@v2", "Somebody", "model-7b"), ("bench@v2", "unknown", "plain")}

    def test_rows_have_every_field_and_point_to_a_result_of_their_aggregate(self, files: dict[str, bytes]) -> None:
        for path, data in files.items():
            if not path.endswith(".json"):
                continue
            values = json.loads(data)
            detailed = values["detailed_evaluation_results"]
            rows = files[detailed["file_path"]]
            assert detailed["checksum"] == hashlib.sha256(rows).hexdigest()
            assert detailed["total_rows"] == len(rows.splitlines())
            ids = [item["evaluation_result_id"] for item in values["evaluation_results"]]
            assert len(set(ids)) == len(ids)
            names = {item["evaluation_result_id"]: item["evaluation_name"] for item in values["evaluation_results"]}
            for row in map(json.loads, rows.splitlines()):
                assert names[row["evaluation_result_id"]] == row["evaluation_name"]
                assert (row["evaluation_id"], row["model_id"]) == (
                    values["evaluation_id"],
                    values["model_info"]["id"],
                )
                assert (row["schema_version"], row["interaction_type"]) == ("0.3.0", "single_turn")
                assert isinstance(row["evaluation"]["score"], float)
                assert isinstance(row["evaluation"]["is_correct"], bool)
                assert isinstance(row["input"]["raw"], str)
                assert all(isinstance(item, str) for item in row["input"]["reference"] + row["output"]["raw"])
                assert all(isinstance(item, str) for item in row.get("metadata", {}).values())

    def test_every_metric_has_a_result_for_each_task_and_one_over_all(self, files: dict[str, bytes]) -> None:
        result = {
            (
                item["evaluation_name"],
                item["metric_config"]["metric_id"],
                item["evaluation_result_id"].endswith("/all tasks"),
            )
            for item in aggregates(files)["org/model-7b"]["evaluation_results"]
        }
        per_task = {
            (f"bench@v2.{task}", metric, False) for task in ("alpha", "beta/γ") for metric in (ACCURACY.name, LOSS.name)
        }
        assert result == per_task | {("bench@v2", metric, True) for metric in (ACCURACY.name, LOSS.name)}

    def test_direction_and_bounds_are_those_of_the_metric(self, files: dict[str, bytes]) -> None:
        values = aggregates(files)
        configs = {
            item["metric_config"]["metric_id"]: item["metric_config"]
            for item in values["org/model-7b"]["evaluation_results"]
        }
        assert configs[ACCURACY.name]["score_type"] == "binary"
        assert (configs[LOSS.name]["lower_is_better"], configs[LOSS.name]["score_type"]) == (True, "continuous")
        assert (configs[LOSS.name]["min_score"], configs[LOSS.name]["max_score"]) == (None, None)

    def test_a_score_is_correct_where_none_is_better(self, files: dict[str, bytes]) -> None:
        rows = [json.loads(line) for path in files if path.endswith("l") for line in files[path].splitlines()]
        points = {row["evaluation"]["score"]: row["evaluation"]["is_correct"] for row in rows
                  if row["evaluation_result_id"].endswith("/acc")}  # fmt: skip
        assert points == {12.5: False, 100: True, 0: False, 99.9: False}

    def test_what_was_published_for_a_task_stands_beside_what_its_prompts_give(self, files: dict[str, bytes]) -> None:
        result = {
            item["evaluation_result_id"]: item["score_details"]
            for item in aggregates(files)["plain"]["evaluation_results"]
        }
        published = {"score": 71.5, "uncertainty": {"num_samples": 200, "standard_error": {"value": 0.25}}}
        assert result["bench@v2.alpha/acc/published"] == published
        assert result["bench@v2.alpha/acc"]["score"] == 56.25
        assert result["bench@v2.gamma/acc"] == {"score": 1 / 3}


class TestAgainstReference:
    def test_mean_error_and_interval_are_those_of_the_means_of_trials(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        files = written(engine, tmp_path)
        values = aggregates(files)["org/model-7b"]["evaluation_results"]
        details = {item["evaluation_result_id"]: item["score_details"] for item in values}
        for name, means in {
            "bench@v2/accuracy/all tasks": [2 / 3, 0, 1],
            "bench@v2.alpha/accuracy": [2 / 3, 0],
            "bench@v2/loss,strict match/all tasks": [0.1 + 0.2, -1e-7, 3.5, 1e6],
        }.items():
            result, n = details[name], len(means)
            error = statistics.stdev(means) / n**0.5
            assert result["score"] == pytest.approx(statistics.fmean(means), rel=1e-12)
            doubt = result["uncertainty"]
            assert doubt["num_samples"] == n
            assert doubt["standard_error"]["value"] == pytest.approx(error, rel=1e-12)
            interval = doubt["confidence_interval"]
            bounds = (0.0, 1.0) if "accuracy" in name else NO_BOUNDS
            expected = estimate_means(np.array(means)[:, None], group_rows(np.full(n, "")), bounds=bounds)
            assert (interval["lower"], interval["upper"]) == (expected.low[0], expected.high[0])
            known = "Dirichlet shares (Gaffke 2005)" if "accuracy" in name else "bootstrap-t or Hall 1992"
            assert interval["method"] == known
        assert details["bench@v2.beta/γ/accuracy"]["uncertainty"] == {"num_samples": 1}, "one prompt has no spread"


class TestLaws:
    def test_the_same_bytes_again_in_any_order_and_in_pieces_of_any_size(
        self, store: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep(store, blocks())
        files = written(store, tmp_path)
        assert written(store, tmp_path) == files
        with transaction(store, write=False) as session:
            exported = build_every_eval_ever_files(session, Selection(benchmark="bench@v2"))
            assert {path: b"".join(exported[path]) for path in reversed(list(exported))} == files
        monkeypatch.setattr(every_eval_ever_rows, "PROMPTS_TOGETHER", 1)
        with transaction(store, write=False) as session:
            exported = build_every_eval_ever_files(session, Selection(benchmark="bench@v2"))
            pieces = {path: list(exported[path]) for path in exported}
        assert {path: b"".join(group) for path, group in pieces.items()} == files
        assert max(map(len, pieces.values())) > 2

    def test_runs_by_key_are_the_same_files_as_their_benchmark(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        keep(engine, [scores(RunDescription(model="m"), ACCURACY, PROMPT_NAMES, [1, 1, 1, 1])], "other")
        files = written(engine, tmp_path) | written(engine, tmp_path, Selection(benchmark="other"))
        with engine.connect() as connection:
            keys = list(connection.scalars(sa.select(tables.run.c.id)))
        assert written(engine, tmp_path, keys) == files
        assert len(written(engine, tmp_path, keys[:1])) == 2

    def test_a_selection_leaves_out_what_it_does_not_name(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        chosen = Selection(benchmark="bench@v2", models=("org/model-7b",), metric=ACCURACY.name, tasks=("alpha",))
        (values,) = aggregates(written(engine, tmp_path, chosen)).values()
        assert [item["evaluation_result_id"] for item in values["evaluation_results"]] == ["bench@v2.alpha/accuracy"]
        assert values["detailed_evaluation_results"]["total_rows"] == 4

    def test_answers_without_a_score_are_counted(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        with transaction(engine, write=False) as session:
            exported = build_every_eval_ever_files(session, Selection(benchmark="bench@v2"))
            for path in exported:
                assert b"".join(exported[path])
            (warning,) = exported.warnings
        assert warning.startswith("1 answers to prompts without a score were left out")


class TestErrors:
    def test_what_is_not_there_is_named(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        keep(engine, blocks())
        with transaction(engine, write=False) as session:
            for chosen in (
                Selection(benchmark="nowhere"),
                Selection(benchmark="bench@v2", models=("nobody",)),
                Selection(benchmark="bench@v2", metric="none"),
                Selection(benchmark="bench@v2", tasks=("none",)),
                [99],
            ):
                with pytest.raises(NotFoundError):
                    build_every_eval_ever_files(session, chosen)

    def test_a_benchmark_without_scores_is_refused(self, sqlite_url: str) -> None:
        engine = connect(sqlite_url)
        keep(engine, [PROMPT_NAMES])
        with transaction(engine, write=False) as session, pytest.raises(SelectionError, match="no scores yet"):
            build_every_eval_ever_files(session, Selection(benchmark="bench@v2"))
