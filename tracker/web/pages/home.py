"""The first page, and the search over names and prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tracker.errors import SuffrageError
from tracker.queries.browsing.keys import load_benchmark_keys, load_model_keys
from tracker.queries.browsing.newest_runs import list_newest_runs
from tracker.queries.browsing.search import find_names, find_prompts
from tracker.queries.catalogue.listing import list_benchmarks
from tracker.queries.findings.finding_records import list_findings
from tracker.queries.resolution import benchmark_label
from tracker.queries.selection import Selection
from tracker.report.number_format import format_count
from tracker.web.page import Page
from tracker.web.pages.selections import load_board
from tracker.web.query import Query
from tracker.web.records import finding_record, run_record

N_NEWEST = 10
MAX_FOUND = 50


def show_home(query: Query) -> Page:
    """Return all benchmarks with their leaders, the newest runs, and the newest findings."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            keys = load_benchmark_keys(session)
            models = load_model_keys(session)
            rows = []
            for row in list_benchmarks(session):
                label = benchmark_label(row.name, row.revision)
                rows.append(
                    {
                        "id": keys[label], "label": label, "n_tasks": row.n_tasks, "n_prompts": row.n_prompts,
                        "n_with_text": row.n_with_text, "n_models": row.n_models, "n_runs": row.n_runs,
                        "metrics": list(row.metrics),
                    }
                )  # fmt: skip
            findings = [
                {**finding_record(row), "benchmark_id": keys.get(row.benchmark or "")}
                for row in list_findings(session)[:N_NEWEST]
            ]
            runs = [
                {**run_record(run, models), "benchmark_id": keys.get(run.benchmark), "since": since}
                for run, since in list_newest_runs(session, N_NEWEST)
            ]
            return {"benchmarks": rows, "runs": runs, "findings": findings}

    every = query.cache.get("home", compute)
    stored = {
        "benchmarks": [row for row in every["benchmarks"] if row["label"] not in query.excluded],
        "runs": [row for row in every["runs"] if row["benchmark"] not in query.excluded],
        "findings": [row for row in every["findings"] if row["benchmark"] not in query.excluded],
    }
    labels = [row["label"] for row in stored["benchmarks"]]
    outcome = query.background.request("leads", partial(_load_leads, query, labels))
    leads = outcome.value or {}
    benchmarks = [{**row, "lead": leads.get(row["label"], "")} for row in stored["benchmarks"]]
    data = {**stored, "headline": _describe_store(stored), "benchmarks": benchmarks, **outcome.as_record()}
    return Page(title="Suffrage", template="home.html", data=data, table="benchmarks")


def _load_leads(query: Query, labels: Sequence[str], report: Callable[[str], None]) -> dict[str, str]:
    """Return who is first on each benchmark, in one sentence; why nobody is where nothing can be ranked."""
    leads = {}
    for label in labels:
        report(f"ranking the models on {label}")
        try:
            board, _ = load_board(query, Selection(benchmark=label))
            leads[label] = board.describe_lead()
        except SuffrageError as error:
            leads[label] = str(error)
    return leads


def _describe_store(stored: dict[str, Any]) -> str:
    """Return what the store has, and what came last, as a sentence."""
    benchmarks, runs = stored["benchmarks"], stored["runs"]
    if not runs:
        return ""
    n_runs = sum(row["n_runs"] for row in benchmarks)
    latest = runs[0]
    return (
        f"{format_count(len(benchmarks), 'benchmark')} with {format_count(n_runs, 'run')}. The newest is of "
        f"{latest['model']} on {latest['benchmark']}, {latest['ingested']}."
    )


def show_search(query: Query) -> Page:
    """Return benchmarks, models and prompts that contain a text."""
    text = query.text("q").strip()
    with query.session() as session:
        benchmarks = find_names(load_benchmark_keys(session), text, MAX_FOUND)
        models = find_names({name: key.id for name, key in load_model_keys(session).items()}, text, MAX_FOUND)
        prompts = find_prompts(session, text, MAX_FOUND)
    rows = [
        *(search_record("benchmark", key, name) for name, key in benchmarks),
        *(search_record("model", key, name) for name, key in models),
        *(search_record("prompt", key, label, question) for key, label, question in prompts),
    ]
    data = {"q": text, "rows": rows, "max_found": MAX_FOUND}
    return Page(title=f"Search: {text}" if text else "Search", template="search.html", data=data, table="rows")


def search_record(kind: str, key: int, name: str, text: str = "") -> dict[str, Any]:
    """Return a result of a search; a prompt has the name of its benchmark, and its question."""
    return {"kind": kind, "id": key, "name": name, "text": text}
