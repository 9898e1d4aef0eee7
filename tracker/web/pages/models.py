"""The pages of a model and of a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from tracker.errors import NotFoundError
from tracker.queries.browsing.keys import find_model_name, load_benchmark_keys, load_model_keys
from tracker.queries.browsing.run_scores import load_task_scores
from tracker.queries.catalogue.listing import ModelRow, find_run, list_models, list_runs
from tracker.queries.related_models.related_pairs import RelatedPair, list_pairs, load_related
from tracker.queries.selection import Selection
from tracker.web.page import Page
from tracker.web.query import Query
from tracker.web.records import run_record

MAX_RELATIVES = 5
"""Models listed for each benchmark."""


def show_model(query: Query) -> Page:
    """Return a model with its facts and runs."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            row = _find_model(query, find_model_name(session, query.key))
            name = row.name
            keys, models = load_benchmark_keys(session), load_model_keys(session)
            runs = [run_record(run, models) for run in list_runs(session, model=name)]
        facts = {
            "organization": row.organization, "family": row.family, "parameters": row.parameters,
            "released": None if row.released is None else row.released.isoformat(), "open weights": row.open_weights,
            "other names": list(row.aliases),
        }  # fmt: skip
        return {
            "model": {"id": query.key, "name": name},
            "facts": {key: value for key, value in facts.items() if value not in (None, [], "")},
            "benchmarks": [{"label": label, "id": keys.get(label)} for label in row.benchmarks],
            "runs": [{**run, "benchmark_id": keys.get(run["benchmark"])} for run in runs],
        }

    data = query.cache.get(("model", query.key), compute)
    return Page(title=data["model"]["name"], template="model.html", data=data, table="runs")


def show_relatives(query: Query) -> Page:
    """Return the models whose errors agree most with those of a model, on each of its benchmarks."""
    with query.session() as session:
        name = find_model_name(session, query.key)
        keys, models = load_benchmark_keys(session), load_model_keys(session)
    rows, states = [], []
    for label in _find_model(query, name).benchmarks:
        pairs, state = query.background.request(("related", label), partial(_load_pairs, query, label))
        states.append({"benchmark": label, "state": state})
        for pair in [pair for pair in pairs or () if name in (pair.model, pair.other_model)][:MAX_RELATIVES]:
            relative = pair.other_model if pair.model == name else pair.model
            rows.append(
                {
                    "benchmark": label, "benchmark_id": keys.get(label), "model": relative,
                    "model_id": models[relative].id if relative in models else None, "agreement": pair.agreement,
                    "expected": pair.expected, "excess": pair.excess, "pvalue": pair.pvalue, "n": pair.n,
                    "near_copy": pair.near_copy, "same_family": pair.same_family,
                }
            )  # fmt: skip
    data = {"model": {"id": query.key, "name": name}, "rows": rows, "states": states}
    return Page(title=f"Relatives of {name}", template="relatives.html", data=data, table="rows",
                trail=[(name, f"/model/{query.key}")])  # fmt: skip


def _find_model(query: Query, name: str) -> ModelRow:
    """Return a model with its facts.

    Raises:
        NotFoundError: the name is another name of a merged model.
    """

    def compute() -> dict[str, ModelRow]:
        with query.session() as session:
            return {row.name: row for row in list_models(session)}

    rows = query.cache.get("models", compute)
    if name not in rows:
        raise NotFoundError("model", name, list(rows))
    return rows[name]


def _load_pairs(query: Query, label: str) -> list[RelatedPair]:
    with query.session() as session:
        return list_pairs(load_related(session, Selection(benchmark=label)), every=True)


def show_run(query: Query) -> Page:
    """Return a run with its settings, files, and scores by task."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            run = find_run(session, query.key)
            record = run_record(run, load_model_keys(session))
            record["benchmark_id"] = load_benchmark_keys(session).get(run.benchmark)
            tasks = load_task_scores(session, query.key)
        record["settings"] = dict(run.settings or {})
        return {"run": record, "tasks": tasks}

    data = query.cache.get(("run", query.key), compute)
    run = data["run"]
    trail = [("Benchmarks", "/"), (run["benchmark"], f"/benchmark/{run['benchmark_id']}")]
    title = f"Run {query.key}: {run['model']} on {run['benchmark']}"
    return Page(title=title, template="run.html", data=data, table="tasks", trail=trail)
