"""The first page, with a search over names and prompts."""

from __future__ import annotations

from typing import Any

from tracker.queries.browsing.keys import load_benchmark_keys, load_model_keys
from tracker.queries.browsing.search import find_names, find_prompts
from tracker.queries.catalogue.listing import list_benchmarks
from tracker.queries.findings.finding_records import list_findings
from tracker.queries.resolution import benchmark_label
from tracker.web.page import Page
from tracker.web.query import Query
from tracker.web.records import finding_record

N_NEWEST = 10
MAX_FOUND = 50


def show_home(query: Query) -> Page:
    """Return all benchmarks, and the newest findings."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            keys = load_benchmark_keys(session)
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
            findings = [finding_record(row) for row in list_findings(session)[:N_NEWEST]]
            return {"benchmarks": rows, "findings": findings}

    data = query.cache.get("home", compute)
    return Page(title="Suffrage", template="home.html", data=data, table="benchmarks")


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
