"""The page of a prompt: text, statistics, similar prompts, filter decisions, and the response of every model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tracker.errors import SelectionError, SuffrageError
from tracker.queries.browsing.prompt_list import describe_prompts
from tracker.queries.browsing.prompt_responses import RunResponses, StoredPrompt, find_prompt, load_responses
from tracker.queries.browsing.similar_texts import TextIndex, load_text_index
from tracker.queries.browsing.similar_vectors import SimilarVectors
from tracker.queries.embeddings import load_embeddings
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.selection import Selection
from tracker.report.number_format import format_score, format_share
from tracker.web.page import Page
from tracker.web.pages.prompts import list_decisions, load_filters, load_statistics, statistics_record
from tracker.web.query import Query

MAX_SIMILAR = 5


def show_prompt(query: Query) -> Page:
    """Return a prompt with the responses of all models, side by side."""
    with query.session() as session:
        prompt = find_prompt(session, query.key)
        responses = load_responses(session, prompt)
    return make_prompt_page(query, prompt, responses)


def make_prompt_page(query: Query, prompt: StoredPrompt, responses: Sequence[RunResponses]) -> Page:
    """Return the page of a prompt that has been read."""
    numbers = _load_numbers(query, prompt)
    decisions = [_explain(kept, prompt.id) for kept in load_filters(query, prompt.benchmark)]
    data = {
        "headline": _describe(numbers),
        "prompt": asdict(prompt) | {"details": dict(prompt.details), "choices": list(prompt.choices or ())},
        "statistics": numbers,
        "decisions": [record for record in decisions if record["decision"]],
        "similar": _find_similar(query, prompt),
        "responses": [record for run in responses for record in _response_records(run)],
    }
    trail = [
        ("Benchmarks", "/"),
        (prompt.benchmark, f"/benchmark/{prompt.benchmark_id}"),
        ("Prompts", f"/benchmark/{prompt.benchmark_id}/prompts"),
    ]
    title = f"Prompt {prompt.name} of {prompt.task or prompt.benchmark}"
    return Page(title=title, template="prompt.html", data=data, table="responses", trail=trail)


def _load_numbers(query: Query, prompt: StoredPrompt) -> dict[str, Any]:
    """Return the statistics of a prompt, and the share of the prompts that are easier; {} without scores."""
    try:
        scores, statistics = load_statistics(query, Selection(benchmark=prompt.benchmark))
    except SuffrageError:  # a benchmark without scores of prompts, or with several metrics
        return {}
    [place] = np.flatnonzero(statistics.prompt_ids == prompt.id)[:1] if prompt.id in statistics.prompt_ids else [None]
    if place is None or not math.isfinite(statistics.mean[place]):
        return {}
    easier = (
        statistics.mean > statistics.mean[place]
        if scores.higher_is_better
        else (statistics.mean < statistics.mean[place])
    )
    row = scores.Q[place][~np.isnan(scores.Q[place])]
    is_binary = bool(np.isin(row, (0.0, 1.0)).all())
    return statistics_record(statistics, int(place)) | {
        "metric": scores.metric,
        "easier": float(easier.sum() / max(1, len(easier) - 1)),
        "n_solved": int((row == 1).sum()) if is_binary and scores.higher_is_better else None,
    }


def _describe(numbers: dict[str, Any]) -> str:
    """Return how hard a prompt is, and whether it ranks models as the others do, in one sentence or two."""
    if not numbers:
        return "No statistic: the benchmark has no scores of this prompt, or several metrics."
    solved = f"{numbers['n_solved']} of {numbers['n_models']} models score 1 on it"
    mean = f"its mean {numbers['metric']} is {format_score(numbers['mean'])} over {numbers['n_models']} models"
    text = mean if numbers["n_solved"] is None else solved
    text = f"{text[0].upper()}{text[1:]}; {format_share(numbers['easier'])} of the prompts are easier."
    if (numbers["discrimination"] or 0) < 0:
        text += " Better models do worse on it: its reference answer may be wrong."
    return text


def _find_similar(query: Query, prompt: StoredPrompt) -> list[dict[str, Any]]:
    """Return the most similar prompts: by the cosine of stored vectors, else those with nearly the same text."""

    def compute() -> SimilarVectors | TextIndex:
        with query.session() as session:
            try:
                return SimilarVectors(vectors=load_embeddings(session, Selection(benchmark=prompt.benchmark)))
            except SelectionError:  # no vectors, or of several encoders
                return load_text_index(session, prompt.benchmark_id)

    index = query.cache.get(("similar_prompts", prompt.benchmark), compute)
    if isinstance(index, TextIndex):
        nearest, measure = index.find_similar(prompt.id, MAX_SIMILAR), "equal word pairs"
    else:
        nearest, measure = index.find(prompt.id, MAX_SIMILAR), "cosine similarity"
    with query.session() as session:
        described = describe_prompts(session, [key for key, _ in nearest]) if nearest else {}
    return [{**described[key], "similarity": similarity, "measure": measure} for key, similarity in nearest]


def _explain(kept: PromptFilter, key: int) -> dict[str, Any]:
    """Return what a filter decided on a prompt, and for which reasons."""
    prompt_ids = np.array([key], dtype=np.int64)
    [decision] = list_decisions(kept, prompt_ids)
    reasons = [
        {"step": step, "removes": bool(kept.removed(step, prompt_ids)[0])}
        for step in kept.reasons
        if kept.flagged(step, prompt_ids)[0]
    ]
    return {
        "finding_id": kept.finding_id, "analysis": kept.made_by, "decision": decision, "reasons": reasons,
        "stale": kept.stale,
    }  # fmt: skip


def _response_records(run: RunResponses) -> list[dict[str, Any]]:
    """Return a record for each response of a run."""
    fields = ("run_id", "model_id", "model", "condition", "variant")
    common = {name: getattr(run, name) for name in fields}
    return [
        common
        | {
            "trial": trial.trial,
            "answer": trial.answers.get("", next(iter(trial.answers.values()), None)),
            "other_texts": {name: text for name, text in trial.answers.items() if name and text},
            "probability": trial.probability,
            "status": trial.status,
            "scores": dict(sorted(trial.scores.items())),
        }
        for trial in run.trials
    ]
