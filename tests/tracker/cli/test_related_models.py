"""`suffrage models related`: near-copies and families of a benchmark's models."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from command_runner import run, written

from tracker.database import connect
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.related_models.related import relate_models
from tracker.queries.related_models.related_pairs import list_pairs

MODELS = ("ada", "aurora-7b", "aurora-70b", "bob", "cleo", "dora", "copy of bob")


@pytest.fixture(scope="module")
def related_store(tmp_path_factory: pytest.TempPathFactory) -> sa.Engine:
    """Independent models, two of one series, and a copy of `bob` with 5 % of the scores changed."""
    folder = tmp_path_factory.mktemp("related")
    engine = connect(f"sqlite:///{folder / 'store.db'}")
    rng = np.random.default_rng(3)
    odds = np.linspace(-0.5, 1, 6) - rng.normal(0, 1.5, (300, 1))
    Q = (rng.random((300, 6)) < 1 / (1 + np.exp(-odds))).astype(int)
    Q = np.column_stack([Q, np.abs(Q[:, 3] - (rng.random(300) < 0.05))])
    lines = [f"p{i}," + ",".join(map(str, row)) for i, row in enumerate(Q.tolist())]
    text = "\n".join(["prompt_id," + ",".join(MODELS), *lines])
    run(engine, "ingest", written(folder / "scores.csv", text), "--benchmark", "b", "--no-mlflow")
    return engine


def test_the_verdict_comes_first_and_the_command_leaves_near_copies_out(related_store):
    result = run(related_store, "models", "related", "b")
    first, *rest = result.stderr.splitlines()
    assert first.startswith("5 families of 7 models; the closest pair is bob and copy of bob: they agree on 88% of")
    assert first.endswith("% expected.")
    assert "  bob represents copy of bob" in rest or "  copy of bob represents bob" in rest
    commands = [line for line in rest if line.startswith(("Leave near-copies out: ", "One model per family: "))]
    assert len(commands) == 2
    for line, n in zip(commands, (6, 5), strict=True):
        names = line.partition(" --models ")[2].strip("'")
        board = run(related_store, "leaderboard", "b", "--models", names, "--format", "json")
        assert len(json.loads(board.stdout)) == n
    assert result.stdout.splitlines()[2].startswith("bob")


def test_csv_and_json_have_all_pairs(related_store):
    pairs = json.loads(run(related_store, "models", "related", "b", "--format", "json").stdout)
    assert len(pairs) == 21
    assert [{pair["model"], pair["other_model"]} for pair in pairs if pair["near_copy"]] == [{"bob", "copy of bob"}]
    assert {frozenset((pair["model"], pair["other_model"])) for pair in pairs if pair["same_family"]} == {
        frozenset(("bob", "copy of bob")),
        frozenset(("aurora-7b", "aurora-70b")),
    }
    assert pairs[0]["agreement"] > 0.85 > 0.5 > pairs[0]["expected"]
    table = list(csv.DictReader(io.StringIO(run(related_store, "models", "related", "b", "--format", "csv").stdout)))
    assert len(table) == 21


def test_models_without_errors_have_no_agreement(tmp_path: Path) -> None:
    engine, rng = connect(f"sqlite:///{tmp_path / 'store.db'}"), np.random.default_rng(2)
    table = np.column_stack([np.ones((60, 2)), rng.random((60, 3)) < [0.7, 0.6, 0.5]]).astype(int)
    rows = [",".join([f"q{i}", *map(str, row)]) for i, row in enumerate(table)]
    lines = ["prompt_id,sol,nova,comet,pulsar,quasar", *rows]
    run(engine, "ingest", written(tmp_path / "scores.csv", "\n".join(lines)), "--benchmark", "b", "--no-mlflow")
    result = run(engine, "models", "related", "b")
    assert "nan" not in result.stderr + result.stdout
    assert "sol and nova" not in result.stderr.splitlines()[0]
    pairs = json.loads(run(engine, "models", "related", "b", "--format", "json").stdout)
    pair = next(pair for pair in pairs if {pair["model"], pair["other_model"]} == {"sol", "nova"})
    assert (pair["agreement"], pair["excess"]) == (None, None)
    assert all(pair["expected"] is None or 0 <= pair["expected"] <= 1 for pair in pairs)


def test_two_models_are_grouped_by_name_alone(related_store):
    result = run(related_store, "models", "related", "b", "--models", "aurora-7b,aurora-70b")
    assert result.stderr.splitlines()[0] == (
        "1 family of 2 models, by name and stored facts alone: near-copies are found among 3 models or more."
    )


def test_stored_families_replace_names(related_store, tmp_path: Path):
    facts = written(tmp_path / "facts.csv", "model,family\naurora-7b,north\nada,north\n")
    run(related_store, "models", "import", facts)
    pairs = json.loads(run(related_store, "models", "related", "b", "--format", "json").stdout)
    same = {frozenset((pair["model"], pair["other_model"])) for pair in pairs if pair["same_family"]}
    assert frozenset(("aurora-7b", "ada")) in same
    assert frozenset(("aurora-7b", "aurora-70b")) not in same


def test_above_the_limit_pairs_are_those_of_families() -> None:
    names = tuple(f"m{i:04}" if i > 2 else f"llama-3-{8 * (i + 1)}b" for i in range(2001))
    scores = PerformanceMatrix(
        Q=(np.arange(3 * 2001) % 2).reshape(3, 2001).astype(float),
        prompt_ids=np.arange(3),
        tasks=np.full(3, ""),
        models=names,
        run_ids=np.arange(2001),
    )
    related = relate_models(scores)
    assert related.reason.startswith("pairs of at most 2,000 models")
    pairs = list_pairs(related)
    assert {frozenset((pair.model, pair.other_model)) for pair in pairs} <= {
        frozenset(pair) for pair in combinations(names[:3], 2)
    }
    assert len(pairs) == 2
    assert not any(pair.near_copy for pair in pairs)
    assert all(pair.same_family and pair.excess is None for pair in pairs)
