"""The pages of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tracker.errors import NotFoundError, SuffrageError
from tracker.name_lists import join_names
from tracker.queries.browsing.keys import find_model_name, load_benchmark_keys, load_model_keys
from tracker.queries.catalogue.listing import ModelRow, list_models, list_runs
from tracker.queries.related_models.related_pairs import RelatedPair, list_pairs, load_related
from tracker.queries.selection import Selection
from tracker.report.number_format import format_count
from tracker.web.page import Page
from tracker.web.pages.selections import load_board
from tracker.web.query import Query
from tracker.web.records import run_record

MAX_RELATIVES = 5
"""Models listed for each benchmark."""
MAX_NAMES = 3


def show_model(query: Query) -> Page:
    """Return a model with its ranks, facts and runs."""

    def compute() -> dict[str, Any]:
        with query.session() as session:
            row = _find_model(query, find_model_name(session, query.key))
            keys, models = load_benchmark_keys(session), load_model_keys(session)
            runs = [run_record(run, models) for run in list_runs(session, model=row.name)]
        facts = {
            "organization": row.organization, "family": row.family, "parameters": row.parameters,
            "released": None if row.released is None else row.released.isoformat(), "open weights": row.open_weights,
            "other names": list(row.aliases),
        }  # fmt: skip
        return {
            "model": {"id": query.key, "name": row.name},
            "facts": {key: value for key, value in facts.items() if value not in (None, [], "")},
            "benchmarks": [{"label": label, "id": keys.get(label)} for label in row.benchmarks],
            "runs": [{**run, "benchmark_id": keys.get(run["benchmark"])} for run in runs],
        }

    data = query.cache.get(("model", query.key), compute)
    name = data["model"]["name"]
    labels = {row["label"]: row["id"] for row in data["benchmarks"] if row["label"] not in query.excluded}
    outcome = query.background.request(("standings", query.key), partial(_load_standings, query, name, labels))
    rows = outcome.value or [
        {"benchmark": label, "benchmark_id": key, "problem": "", "rank": None} for label, key in labels.items()
    ]
    data = {**data, "headline": _describe_standings(rows, outcome.is_computing), "standings": rows}
    return Page(title=name, template="model.html", data={**data, **outcome.as_record()}, table="standings")


def _load_standings(
    query: Query, name: str, labels: dict[str, int | None], report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return rank and mean of a model on each of its benchmarks, with their intervals."""
    rows: list[dict[str, Any]] = []
    for label, key in labels.items():
        report(f"ranking the models on {label}")
        place: dict[str, Any] = {"benchmark": label, "benchmark_id": key}
        try:
            board, _ = load_board(query, Selection(benchmark=label))
        except SuffrageError as error:
            rows.append({**place, "problem": str(error), "rank": None})
            continue
        row = next((row for row in board.rows if row.model == name), None)
        if row is None:
            rows.append({**place, "problem": f"It has no score under {board.metric}.", "rank": None})
            continue
        interval = board.rank_intervals.get(name)
        rows.append(
            {
                **place, "problem": "", "rank": row.rank, "rank_low": interval.low if interval else None,
                "rank_high": interval.high if interval else None, "n_ranked": len(board.rank_intervals),
                "metric": board.metric, "mean": row.mean, "low": row.low, "high": row.high, "n": row.n,
                "unit": board.unit, "coverage": row.coverage, "run_id": row.run_id, "excluded": row.excluded,
                "leader": join_names(board.leaders, MAX_NAMES), "unverified": row.unverified,
            }
        )  # fmt: skip
    return rows


def _describe_standings(rows: list[dict[str, Any]], is_computing: bool) -> str:
    """Return the ranks of a model as a sentence."""
    if is_computing:
        return f"It has complete runs on {format_count(len(rows), 'benchmark')}; its ranks are being computed."
    ranked = [row for row in rows if row["rank"] is not None]
    if not ranked:
        return "No benchmark ranks this model."
    if len(ranked) == 1:
        [row] = ranked
        if row["rank_low"] is None:
            return f"Rank {row['rank']:g} on {row['benchmark']}."
        low, high = row["rank_low"], row["rank_high"]
        span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return (
            f"Rank {row['rank']:g} of {row['n_ranked']} on {row['benchmark']}; with 95% confidence its rank is {span}."
        )
    best = min(ranked, key=lambda row: row["rank"])
    n_first = sum(row["rank_low"] == 1 or row["rank"] == 1 for row in ranked)
    return (
        f"Ranked on {format_count(len(ranked), 'benchmark')}, best on {best['benchmark']} (rank {best['rank']:g}); "
        f"it may be first on {n_first}."
    )


def show_relatives(query: Query) -> Page:
    """Return the models whose errors agree most with those of a model, on each of its benchmarks."""
    with query.session() as session:
        name = find_model_name(session, query.key)
        keys, models = load_benchmark_keys(session), load_model_keys(session)
    rows, states = [], []
    for label in _find_model(query, name).benchmarks:
        outcome = query.background.request(("related", label), partial(_load_pairs, query, label))
        states.append({"benchmark": label, **outcome.as_record()})
        pairs = [pair for pair in outcome.value or () if name in (pair.model, pair.other_model)]
        for pair in pairs[:MAX_RELATIVES]:
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


def _load_pairs(query: Query, label: str, report: Callable[[str], None]) -> list[RelatedPair]:
    report(f"comparing the errors of all pairs of models on {label}")
    with query.session() as session:
        return list_pairs(load_related(session, Selection(benchmark=label)), every=True)
