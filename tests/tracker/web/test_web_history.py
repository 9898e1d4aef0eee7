"""Pages of a store with dated runs, checkpoints, a benchmark of one model, and a figure with a title."""

from __future__ import annotations

import io
import itertools
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from matplotlib.figure import Figure
from starlette.testclient import TestClient
from web_server import read

import tracker
from tracker.database import connect, transaction
from tracker.queries.sql import tables
from tracker.web.access import Access
from tracker.web.application import create_application

N_PROMPTS = 40
DATED = (("steady", 1, 0.5), ("steady", 20, 0.9), ("steady", 9, 0.7), ("single", 5, 0.6))
"""Models, days of their runs, and mean scores."""
CHECKPOINTS = (("tiny-step100", 0.2), ("tiny-step2k", 0.4), ("tiny-step1k", 0.6))
TITLE = 'Means <of> all "models"'


def fill(engine: sa.Engine) -> None:
    rng = np.random.default_rng(8)
    picture = io.BytesIO()
    Figure(figsize=(1, 1)).savefig(picture, metadata={"Title": TITLE})
    with transaction(engine) as session:

        def key(table: sa.TableClause, **values: object) -> int:
            return int(session.execute(sa.insert(table).values(**values).returning(table.c.id)).scalar_one())

        metric = key(tables.metric, name="accuracy", higher_is_better=True, lower=0.0, upper=1.0)
        models: dict[str, int] = {}

        def add_benchmark(name: str, runs: Any) -> None:
            owner = key(tables.benchmark, name=name, revision="")
            task = key(tables.task, benchmark_id=owner, name="sums")
            prompts = [
                key(tables.prompt, task_id=task, occurrence=0, content_hash=f"{name}{i}", text=f"{i} + 1?")
                for i in range(N_PROMPTS)
            ]
            for number, (model, day, mean) in enumerate(runs):
                models[model] = models.get(model) or key(tables.model, name=model)
                run = key(
                    tables.run, benchmark_id=owner, model_id=models[model], condition="full", variant="",
                    label=str(number), limited=False, status="complete", n_scores=N_PROMPTS, checksum=f"{number:032}",
                    started=datetime(2026, 3, day, tzinfo=UTC) if day else None, ingested=sa.func.current_timestamp(),
                )  # fmt: skip
                values = (rng.random(N_PROMPTS) < mean).astype(float).tolist()
                rows = [
                    {"run_id": run, "prompt_id": prompt, "trial": 0, "metric_id": metric, "value": value}
                    for prompt, value in zip(prompts, values, strict=True)
                ]
                session.execute(sa.insert(tables.score), rows)

        add_benchmark("dated", DATED)
        add_benchmark("training", [(model, 0, mean) for model, mean in CHECKPOINTS])
        add_benchmark("alone", [("single", 0, 0.5)])
        finding = key(
            tables.finding, analysis="any", parameters={}, selection={}, input_digest="", code_version="",
            status="complete", headline="A.", evidence=[], caveats=[], warnings=[], timings={},
            recorded=sa.func.current_timestamp(),
        )  # fmt: skip
        for name, content in (("titled.png", picture.getvalue()), ("plain.png", b"damaged")):
            row = {"finding_id": finding, "name": name, "media_type": "image/png", "content": content}
            session.execute(sa.insert(tables.finding_artifact).values(row))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> str:
    path = tmp_path_factory.mktemp("history") / "store.db"
    shutil.copy(sqlite_template, path)
    engine = connect(f"sqlite:///{path}")
    fill(engine)
    engine.dispose()
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[TestClient]:
    with TestClient(create_application(connect(url), Access()), base_url="http://localhost") as opened:
        yield opened


class TestHistory:
    def test_dated_runs_have_the_numbers_of_the_command(self, client: TestClient, url: str) -> None:
        expected = tracker.open(url).history("dated")
        data = read(client.get, "/benchmark/1/history.json")
        assert (data["by"], data["headline"]) == ("date", expected.describe())
        same = {"model": "model", "run": "run", "mean": "mean", "change": "change", "holm": "holm", "change_low": "low"}
        same |= {"change_high": "high", "since": "since", "n_better": "n_better", "n_worse": "n_worse"}
        records = expected.list_records()
        assert [[row[name] for name in same] for row in data["rows"]] == [
            [record.get(name) for name in same.values()] for record in records
        ]
        assert [None not in [row[name] for name in same] for row in data["rows"]] == [False, False, True, True]
        assert [row["when"][:10] for row in data["rows"] if row["model"] == "steady"] == [
            "2026-03-01", "2026-03-09", "2026-03-20"
        ]  # fmt: skip
        assert (data["chart"]["axis"], len(data["chart"]["lines"])) == ("date", 1)

    def test_checkpoints_have_the_means_of_the_command_by_step(self, client: TestClient, url: str) -> None:
        means = {record["model"]: record["mean"] for record in tracker.open(url).history("training").list_records()}
        data = read(client.get, "/benchmark/2/history.json")
        names = ["tiny-step100", "tiny-step1k", "tiny-step2k"]
        assert data["by"] == "step"
        assert [(row["model"], row["x"], row["mean"]) for row in data["rows"]] == [
            (name, step, means[name]) for name, step in zip(names, (100, 1000, 2000), strict=True)
        ]
        changes = [None, *(means[b] - means[a] for a, b in itertools.pairwise(names))]
        assert [row["change"] for row in data["rows"]] == changes
        assert data["headline"].startswith("tiny-step2k, the last of 3 checkpoints, has mean")


@pytest.mark.parametrize("query", ["", "?a=single", "?a=run:8"])
def test_a_benchmark_of_one_model_has_nothing_to_compare(client: TestClient, query: str) -> None:
    page = client.get(f"/benchmark/3/compare{query}")
    assert (page.status_code, "There is nothing to compare" in page.text) == (200, True)
    assert client.get("/benchmark/3/compare.csv").status_code == 200
    assert client.get("/benchmark/3/compare?a=nobody").status_code == 400


def test_the_title_of_a_figure_stands_for_its_name(client: TestClient) -> None:
    figures = read(client.get, "/finding/1.json")["figures"]
    assert figures == [{"name": "plain", "title": ""}, {"name": "titled", "title": TITLE}]
    text = client.get("/finding/1").text
    assert 'alt="Means &lt;of&gt; all &#34;models&#34;; the tables' in text
    assert (text.count("<figcaption>"), "<figcaption>plain</figcaption>" in text) == (1, True)
