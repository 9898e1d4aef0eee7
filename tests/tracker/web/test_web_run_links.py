"""The links of a run lead to pages that exist, whatever scores the run has."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from tracker.database import connect, transaction
from tracker.queries.sql import tables
from tracker.web.access import Access
from tracker.web.application import create_application

N_PROMPTS = 6
RUNS = {
    1: ("complete", "accuracy", None),
    2: ("complete", "accuracy", None),
    3: ("complete", "f1", None),
    4: ("complete", None, "accuracy"),
    5: ("partial", "accuracy", None),
    6: ("partial", "bleu", None),
    7: ("complete", None, None),
}
"""Status of each run, and the metrics of its scores of prompts and of its published scores of tasks."""


@pytest.fixture
def client(sqlite_url: str) -> TestClient:
    """A server of a benchmark whose runs have scores under different metrics, of prompts or of whole tasks."""
    engine = connect(sqlite_url)
    with transaction(engine) as session:

        def key(table: sa.TableClause, **values: object) -> int:
            return int(session.execute(sa.insert(table).values(**values).returning(table.c.id)).scalar_one())

        benchmark = key(tables.benchmark, name="b", revision="")
        task = key(tables.task, benchmark_id=benchmark, name="t")
        metrics = {name: key(tables.metric, name=name, higher_is_better=True) for name in ("accuracy", "f1", "bleu")}
        prompts = [
            key(tables.prompt, task_id=task, occurrence=0, content_hash=f"h{i}", text=f"{i}?") for i in range(N_PROMPTS)
        ]
        for number, (status, of_prompts, of_tasks) in RUNS.items():
            run = key(
                tables.run, benchmark_id=benchmark, model_id=key(tables.model, name=f"model {number}"),
                condition="full", variant="", label="", limited=False, status=status, n_scores=N_PROMPTS,
                checksum="0" * 32, ingested=sa.func.current_timestamp(),
            )  # fmt: skip
            assert run == number
            if of_prompts:
                row = {"run_id": run, "metric_id": metrics[of_prompts], "trial": 0}
                rows = [
                    {**row, "prompt_id": prompt, "value": float(i % number == 0)} for i, prompt in enumerate(prompts)
                ]
                session.execute(sa.insert(tables.score), rows)
            if of_tasks:
                row = {"run_id": run, "metric_id": metrics[of_tasks], "task_id": task, "value": 0.5}
                session.execute(sa.insert(tables.task_score).values(**row))
    return TestClient(create_application(engine, Access()), base_url="http://127.0.0.1")


@pytest.mark.parametrize("number", RUNS)
def test_every_link_of_a_run_leads_to_a_page(client: TestClient, number: int) -> None:
    text = client.get(f"/run/{number}").text
    tabs = re.findall('href="([^"]+)"', text.partition('aria-label="Pages of this run"')[2].partition("</nav>")[0])
    names = [address.partition("?")[0].rpartition("/")[2] for address in tabs]
    expected = {4: ["responses", "history"], 6: ["responses"], 7: ["responses"]}
    assert names == expected.get(number, ["responses", "history", "compare"])
    for address in tabs:
        response = client.get(address.replace("&amp;", "&"))
        assert response.status_code == 200, response.text[-500:]
        if "compare" in address:
            assert f"model {number}" in response.text
