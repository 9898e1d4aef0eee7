"""The pages of runs: those of a benchmark, one run, and its responses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from tracker.queries.browsing.keys import find_benchmark_label, load_benchmark_keys, load_model_keys
from tracker.queries.browsing.run_responses import RunPrompts, describe_run_responses, load_run_prompts
from tracker.queries.browsing.run_scores import load_metrics_of_run, load_task_scores
from tracker.queries.catalogue.listing import find_run, list_runs
from tracker.queries.catalogue.unverified_runs import parse_differences
from tracker.queries.resolution import UNITS, find_benchmark, find_metric, list_metrics
from tracker.queries.selection import Selection, Unit
from tracker.report.number_format import format_count, format_score
from tracker.web.page import Page
from tracker.web.query import Query
from tracker.web.records import run_record

RESPONSE_SORT_KEYS = ("prompt", "task", "score")


def show_runs(query: Query) -> Page:
    """Return all runs of a benchmark, the latest first."""
    with query.session() as session:
        label = find_benchmark_label(session, query.key)

    def compute() -> list[dict[str, Any]]:
        with query.session() as session:
            models = load_model_keys(session)
            return [run_record(run, models) for run in list_runs(session, benchmark=label)]

    runs = query.cache.get(("runs", label), compute)
    page_rows, paging = query.take_page(runs)
    data = {
        "benchmark": {"id": query.key, "label": label},
        "headline": _describe_runs(runs),
        "rows": page_rows,
        "paging": paging,
    }
    trail = [("Benchmarks", "/"), (label, f"/benchmark/{query.key}")]
    return Page(title=f"Runs of {label}", template="runs.html", data=data, table="rows", trail=trail)


def show_run(query: Query) -> Page:
    """Return a run with its settings, files, and scores by task."""
    data = _load_run(query) | {"mlflow": query.find_mlflow_run("run", query.key)}
    run = data["run"]
    title = f"Run {query.key}: {run['model']} on {run['benchmark']}"
    return Page(title=title, template="run.html", data=data, table="tasks", trail=_trail(run)[:-1])


def show_run_responses(query: Query) -> Page:
    """Return the responses of a run, prompt by prompt."""
    run = _load_run(query)["run"]
    metric = query.text("metric")

    def compute() -> RunPrompts:
        with query.session() as session:
            return load_run_prompts(session, query.key, metric)

    prompts = query.cache.get(("run_prompts", query.key, metric), compute)
    places = _select_prompts(prompts, query)
    page_places, paging = query.take_page(places)
    keys = prompts.prompt_ids[list(page_places)].tolist()
    with query.session() as session:
        records = describe_run_responses(session, query.key, keys)
    scores = (float(prompts.score[place]) for place in page_places)
    rows = [
        {**records[key], "score": score if math.isfinite(score) else None}
        for key, score in zip(keys, scores, strict=True)
    ]
    mean = float(np.nanmean(prompts.score[places])) if np.isfinite(prompts.score[places]).any() else math.nan
    data = {
        "run": run,
        "metric": prompts.metric,
        "tasks": sorted({*prompts.tasks.tolist()} - {""}),
        "headline": f"{format_count(len(places), 'prompt')}, mean {prompts.metric or 'score'} {format_score(mean)}.",
        "rows": rows,
        "paging": paging,
        "options": dict(query.parameters),
    }
    title = f"Responses of {run['model']} in run {query.key}"
    return Page(title=title, template="run_responses.html", data=data, table="rows", trail=_trail(run))


def _load_run(query: Query) -> dict[str, Any]:
    def compute() -> dict[str, Any]:
        with query.session() as session:
            run = find_run(session, query.key)
            record = run_record(run, load_model_keys(session))
            record["benchmark_id"] = load_benchmark_keys(session).get(run.benchmark)
            tasks = load_task_scores(session, query.key)
            record["metrics"] = {unit: _find_ranked_metric(session, query.key, run.benchmark, unit) for unit in UNITS}
        record["settings"] = dict(run.settings or {})
        record["differences"] = [asdict(value) for value in parse_differences(run.unverified)]
        settings = [{"name": name, "value": value} for name, value in _flatten(run.settings or {})]
        return {"run": record, "headline": _describe_run(record), "settings": settings, "tasks": tasks}

    return query.cache.get(("run", query.key), compute)


def _find_ranked_metric(session: Session, key: int, label: str, unit: Unit) -> dict[str, Any]:
    """Return the metric under which a run can be compared with others of its benchmark.

    Args:
        session: the store.
        key: of the run.
        label: of the benchmark.
        unit: of the scores.

    Returns:
        ``is_ranked`` is whether there is one; ``name`` is None if it is the one that pages have by default.
    """
    benchmark, selection = find_benchmark(session, label), Selection(benchmark=label)
    ranked = {metric.name for metric in list_metrics(session, benchmark, selection, unit)}
    names = [name for name in load_metrics_of_run(session, key, unit) if name in ranked]
    if not names:
        return {"is_ranked": False, "name": None}
    default, default_unit = find_metric(session, benchmark, selection, UNITS)
    is_default = default.name in names and default_unit == unit
    return {"is_ranked": True, "name": None if is_default else names[0]}


def _trail(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pages above the responses of a run."""
    return [
        ("Benchmarks", "/"),
        (run["benchmark"], f"/benchmark/{run['benchmark_id']}"),
        (f"Run {run['id']}", f"/run/{run['id']}"),
    ]


def _describe_run(run: Mapping[str, Any]) -> str:
    """Return the result of a run as a sentence."""
    means = ", ".join(f"{name} {format_score(mean)}" for name, mean in run["means"].items())
    state = "" if run["status"] == "complete" else f" The run is {run['status']}."
    scored = f" over {format_count(run['n_scores'], 'score')}" if run["n_scores"] else ""
    return f"Mean {means}{scored}.{state}" if means else f"No score is stored.{state}"


def _describe_runs(runs: list[dict[str, Any]]) -> str:
    """Return how many runs there are, and which of them need attention."""
    if not runs:
        return "No run is stored."
    n_other = sum(run["status"] != "complete" for run in runs)
    n_unverified = sum(bool(run["unverified"]) for run in runs)
    parts = [format_count(len(runs), "run")]
    parts += [f"{n_other} of them not complete"] if n_other else []
    parts += [f"{n_unverified} unverified: the file reports other scores than its rows give"] if n_unverified else []
    return f"{', '.join(parts)}. The latest, run {runs[0]['id']}, is of {runs[0]['model']}."


def _flatten(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings by name, with dots between nested names."""
    for name, value in settings.items():
        full = f"{above}.{name}" if above else str(name)
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, full)
        else:
            yield full, value


def _select_prompts(prompts: RunPrompts, query: Query) -> list[int]:
    """Return the places of the prompts that match, in the order that the reader chose."""
    chosen = np.ones(len(prompts.prompt_ids), dtype=bool)
    if task := query.text("task"):
        chosen &= prompts.tasks == task
    low = query.number("from", -math.inf, low=-math.inf, high=math.inf, kind=float)
    high = query.number("to", math.inf, low=-math.inf, high=math.inf, kind=float)
    if low > -math.inf or high < math.inf:
        chosen &= (prompts.score >= low) & (prompts.score <= high)
    key = query.choice("sort", RESPONSE_SORT_KEYS, "prompt")
    columns = {"prompt": prompts.prompt_ids, "task": prompts.tasks, "score": prompts.score}
    return query.sort_places(np.flatnonzero(chosen), columns[key])
