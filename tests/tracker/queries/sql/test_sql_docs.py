"""Queries of docs/how-to/sql.md run on both engines; docs/reference/schema.md names every table and column."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_scores

from tracker import schema
from tracker.database import connect, transaction
from tracker.queries.sql.read_only import read_only_sql
from tracker.schema.views import VIEWS

DOCS = Path(__file__).parents[4] / "docs"
COOKBOOK = (DOCS / "how-to/sql.md").read_text()
SCHEMA = (DOCS / "reference/schema.md").read_text()
QUERIES = dict(
    zip(re.findall(r"^### (\d+\. .+)$", COOKBOOK, re.M), re.findall(r"```sql\n(.+?)```", COOKBOOK, re.S), strict=True)
)


def fill(store: sa.Engine) -> None:
    """A small MMLU-Pro that has something to say to every question."""
    Q = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, np.nan]])
    models, tasks = ["Yi-34B", "Yi-6B", "gemma-7b"], ["law", "math", "math", "law"]
    add_scores(store, Q * 0, benchmark="mmlu_pro", models=models, tasks=tasks, label="first")
    runs = add_scores(store, Q, benchmark="mmlu_pro", models=models, tasks=tasks, label="second")
    add_scores(store, Q[:, 1:2], benchmark="mmlu_pro", models=["Yi-6B"], tasks=tasks, label="third", status="hidden")
    with transaction(store) as session:
        session.execute(sa.update(schema.Run).where(schema.Run.id == 7).values(reason="odd"))
        session.add(schema.Source(identity="i", digest="d", path="scores.csv", format="wide"))
        session.add(
            schema.StoredFinding(
                benchmark_id=1,
                analysis="prompt-correlation",
                parameters={},
                selection={},
                input_digest="",
                code_version="",
                stale="deleted since: run 9",
            )
        )
        session.flush()
        session.add(schema.FindingMetric(finding_id=1, name="hamming.variance.pvalue", value=0.001))
        session.add(schema.FindingMetric(finding_id=1, name="hamming.mean.pvalue", reason="invariant"))
        for run_id in runs:
            session.add(schema.RunSource(run_id=run_id, source_id=1))
            session.add(schema.FindingRun(finding_id=1, run_id=run_id, role="scores", checksum="0"))
            for prompt_id, text in ((1, "A"), (3, "C")):
                session.add(schema.Answer(run_id=run_id, prompt_id=prompt_id, extraction="", trial=0, text=text))
        finding = {"analysis": "smart-filtering", "input_digest": "", "code_version": ""}
        session.add(schema.StoredFinding(id=12, benchmark_id=1, parameters={}, selection={}, **finding))
        session.flush()
        for prompt_id, kept in ((1, False), (2, True), (3, False)):
            session.add(schema.FilterDecision(finding_id=12, prompt_id=prompt_id, kept=kept))
        for prompt_id, step, cluster, retained in (
            (1, "easy", None, False),
            (1, "similar", 0, True),
            (2, "easy", None, True),
            (3, "similar", 0, False),
            (3, "contaminated", None, False),
        ):
            reason = {"step": step, "cluster": cluster, "retained": retained}
            session.add(schema.FilterReason(finding_id=12, prompt_id=prompt_id, **reason))


class TestCookbook:
    def test_there_are_sixteen_questions(self) -> None:
        assert len(QUERIES) == 16

    def test_every_query_answers_the_same_on_both_engines(self, sqlite_url: str, postgres_url: str) -> None:
        answers: list[dict[str, object]] = []
        for url in (sqlite_url, postgres_url):
            store = connect(url)
            fill(store)
            outcome: dict[str, object] = {}
            for question, query in QUERIES.items():
                with read_only_sql(store, query) as result:
                    when = [i for i, column in enumerate(result.columns) if column in ("recorded", "ingested")]
                    rows = [tuple(v for i, v in enumerate(row) if i not in when) for row in result.rows]
                    outcome[question] = (result.columns, rows)
                assert rows, f"{question} has no answer"
            answers.append(outcome)
            store.dispose()
        assert answers[0] == answers[1]

    @pytest.mark.parametrize(
        ("number", "first"),
        [
            (1, (1, "Yi-34B", 0.75, 4, 1.0)),
            (3, ("law", 4, 1.0, 0.0, "Question 3?")),
            (5, ("gemma-7b", "law", 1, 2)),
            (8, ("math", 3, 3, "Question 2?", "A")),
            (9, (3, "A", "C", 3, "Question 2?")),
            (10, (1, "prompt-correlation", "Yi-34B", 4, "scores.csv", "d", "changed since")),
            (11, ("law", 1, "easy", None, "Question 0?")),
            (12, ("law", 1, 0, 1)),
            (13, ("law", 4, "Question 3?")),
            (14, ("law", 1, 0.0, 1.0, "Question 0?")),
            (15, (7, "mmlu_pro", "Yi-6B", "hidden", None, "odd")),
            (16, (1, "prompt-correlation", 4, "complete", None, "deleted since: run 9")),
        ],
    )
    def test_answers_are_right(self, sqlite_url: str, number: int, first: tuple[object, ...]) -> None:
        store = connect(sqlite_url)
        fill(store)
        query = next(query for question, query in QUERIES.items() if question.startswith(f"{number}."))
        with read_only_sql(store, query) as result:
            assert next(result.rows) == first
        store.dispose()


class TestSchema:
    def test_every_table_and_column_is_described_as_it_is(self) -> None:
        described = SCHEMA.split("## Every table and column")[1]
        silent = []
        for table in schema.metadata.sorted_tables:
            section = re.search(rf"^\*\*{table.name}\*\*: (.+?)(?=^\*\*|^###|\Z)", described, re.M | re.S)
            lines = section.group(1) if section else ""
            silent += [f"{table.name}.{c.name}" for c in table.columns if f"- `{c.name}`: {c.comment}" not in lines]
        assert silent == []

    def test_no_table_or_column_is_described_that_is_not_there(self) -> None:
        described = SCHEMA.split("## Every table and column")[1]
        assert set(re.findall(r"^\*\*(\w+)\*\*:", described, re.M)) == set(schema.metadata.tables)
        n_columns = sum(len(table.columns) for table in schema.metadata.sorted_tables)
        assert len(re.findall(r"^- `\w+`:", described, re.M)) == n_columns

    def test_every_view_is_described_with_its_columns(self, sqlite_url: str) -> None:
        store = connect(sqlite_url)
        for view in VIEWS:
            section = re.search(rf"^- `{view}`: (.+?)(?=^- `|^##)", SCHEMA, re.M | re.S)
            assert section is not None
            columns = {column["name"] for column in sa.inspect(store).get_columns(view)}
            assert columns <= set(re.findall(r"`(\w+)`", section.group(1)))
        store.dispose()
