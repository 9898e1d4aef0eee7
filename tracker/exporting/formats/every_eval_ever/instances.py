"""Stream the instances of a run in the format of Every Eval Ever: a row per prompt, trial and metric."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.queries.sql import tables

PROMPTS_TOGETHER = 1000
CHUNKS_KEPT = 16
UNNAMED = "suffrage"
"""Namespace of prompts without a name in any file; they are named by their key."""

StoredAnswer = tuple[str, str | None, float | None, str]
"""Extraction, text, probability, status."""


@dataclass(frozen=True, kw_only=True)
class ExportedMetric:
    """A metric.

    Attributes:
        id, name, higher_is_better, lower, upper: as stored.
    """

    id: int
    name: str
    higher_is_better: bool
    lower: float | None
    upper: float | None

    def is_best(self, value: float) -> bool:
        """Return the best possible score: the bound on the better side, else 1, or 0 if lower is better."""
        if self.higher_is_better:
            return value >= (1.0 if self.upper is None else self.upper)
        return value <= (0.0 if self.lower is None else self.lower)


@dataclass(frozen=True, kw_only=True)
class InstanceSource:
    """What the rows of one run have in common.

    Attributes:
        run_id: its key.
        evaluation_id, model: names of evaluation and model in the rows.
        metrics: metrics to export, by key.
        names: the evaluation_name of each task, by key.
        scored: keys of the metrics under which the run has scores of prompts.
    """

    run_id: int
    evaluation_id: str
    model: str
    metrics: Mapping[int, ExportedMetric]
    names: Mapping[int, str]
    scored: Sequence[int]


@dataclass
class PromptMeans:
    """Means of prompts, averaged over trials, under one metric in one task.

    Attributes:
        means: of each prompt.
        only_binary: whether every score is 0 or 1.
    """

    means: array[float] = field(default_factory=lambda: array("d"))
    only_binary: bool = True


@dataclass
class InstanceCounts:
    """Counts and means collected while rows are written.

    Attributes:
        means: by key of metric and task.
        n_rows: rows written.
        n_answers_left_out: answers without any score, which the schema cannot represent.
    """

    means: dict[tuple[int, int], PromptMeans] = field(default_factory=lambda: defaultdict(PromptMeans))
    n_rows: int = 0
    n_answers_left_out: int = 0


def hash_result(name: str, metric: str) -> str:
    """Return the key by which rows refer to their result."""
    return f"{name}/{metric}"


class PromptFields:
    """Prompt fields of rows, read in chunks of a thousand; the last chunks are cached for the next run.

    Args:
        session: the store.
        prompt_ids: ``(n,)`` int64, ascending.
    """

    def __init__(self, session: Session, prompt_ids: NDArray[np.int64]) -> None:
        self.session = session
        self.chunks = [
            prompt_ids[first : first + PROMPTS_TOGETHER].tolist()
            for first in range(0, len(prompt_ids), PROMPTS_TOGETHER)
        ]
        self.chunk = lru_cache(maxsize=CHUNKS_KEPT)(self._chunk)

    def _chunk(self, place: int) -> dict[int, tuple[int, dict[str, Any], dict[str, str]]]:
        """Return task, fields and metadata of each prompt."""
        keys = self.chunks[place]
        alias, prompt = tables.prompt_alias.c, tables.prompt.c
        names: dict[int, tuple[str, str]] = {}
        query = sa.select(alias.prompt_id, alias.namespace, alias.key).where(alias.prompt_id.in_(keys))
        for key, *parts in self.session.execute(query):
            name = (str(parts[0]), str(parts[1]))
            names[key] = min(names.get(key, name), name)
        content = sa.select(
            prompt.id, prompt.task_id, prompt.text, prompt.choices, prompt.answer, prompt.split, prompt.details
        ).where(prompt.id.in_(keys))
        return {
            row.id: (row.task_id, *_parts(names.get(row.id, (UNNAMED, str(row.id))), row))
            for row in self.session.execute(content)
        }


def stream_rows(session: Session, of: InstanceSource, prompts: PromptFields, counts: InstanceCounts) -> Iterator[bytes]:
    """Yield the rows as lines of JSON, in the order of prompts, trials and metrics; a piece per thousand prompts.

    Args:
        session: the store.
        of: the run.
        prompts: the prompts.
        counts: is filled while rows are written.
    """
    for place, keys in enumerate(prompts.chunks):
        scores = _scores(session, of, keys)
        if not scores:
            counts.n_answers_left_out += sum(map(len, _answers(session, of.run_id, keys).values()))
            continue
        answers = _answers(session, of.run_id, keys)
        parts = prompts.chunk(place)
        lines: list[bytes] = []
        by_prompt: dict[tuple[int, int], list[float]] = defaultdict(list)
        for (prompt, trial), scored in sorted(scores.items()):
            task, fields, metadata = parts[prompt]
            trial_answers = answers.pop((prompt, trial), [])
            common = _common(of, task, fields, metadata, trial, trial_answers)
            for metric_id, value in sorted(scored.items()):
                metric = of.metrics[metric_id]
                common["evaluation_result_id"] = hash_result(of.names[task], metric.name)
                common["evaluation"] = {"score": value, "is_correct": metric.is_best(value)}
                lines.append(orjson.dumps(common, option=orjson.OPT_APPEND_NEWLINE))
                by_prompt[metric_id, prompt].append(value)
        for (metric_id, prompt), values in by_prompt.items():
            prompt_means = counts.means[metric_id, parts[prompt][0]]
            prompt_means.means.append(sum(values) / len(values))
            prompt_means.only_binary = prompt_means.only_binary and all(value in (0.0, 1.0) for value in values)
        counts.n_rows += len(lines)
        counts.n_answers_left_out += sum(map(len, answers.values()))
        yield b"".join(lines)


def _parts(name: tuple[str, str], row: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the prompt's fields of a row, and the metadata without a field in the schema."""
    details = dict(row.details) if isinstance(row.details, dict) else {}
    accepted = details.get(vocabulary.ACCEPTED)
    reference = [] if row.answer is None else [row.answer]
    if isinstance(accepted, list) and len(accepted) > 1 and accepted[0] == row.answer and _all_texts(accepted):
        reference = accepted
        del details[vocabulary.ACCEPTED]
    details = {key: value for key, value in details.items() if not key.startswith(vocabulary.PREFIX)}
    encoded = [key for key, value in details.items() if not isinstance(value, str)]
    metadata = {key: value if isinstance(value, str) else _json(value) for key, value in details.items()}
    if encoded:
        metadata[vocabulary.AS_JSON] = _json(encoded)
    if row.split is not None:
        metadata[vocabulary.SPLIT] = row.split
    if name[0] != vocabulary.NAMESPACE:
        metadata[vocabulary.NAMED_BY] = name[0]
    raw = row.text or ""
    question: dict[str, Any] = {"raw": raw, "reference": reference}
    if isinstance(row.choices, list) and _all_texts(row.choices):
        question["choices"] = row.choices
    fields = {"sample_id": name[1], "sample_hash": vocabulary.sample_hash(raw, reference), "input": question}
    return fields, metadata


def _common(
    of: InstanceSource,
    task: int,
    fields: Mapping[str, Any],
    metadata: Mapping[str, str],
    trial: int,
    answers: Sequence[StoredAnswer],
) -> dict[str, Any]:
    """Return a row without result and score."""
    more = {
        extraction: [status, probability]
        for extraction, text, probability, status in answers
        if probability is not None or status != ("ok" if (text or "").strip() else "empty")
    }
    all_metadata = dict(metadata)
    if trial:
        all_metadata[vocabulary.TRIAL] = str(trial)
    if more:
        all_metadata[vocabulary.ANSWERS] = _json(more)
    row: dict[str, Any] = {
        "schema_version": vocabulary.VERSION,
        "evaluation_id": of.evaluation_id,
        "model_id": of.model,
        "evaluation_name": of.names[task],
        "evaluation_result_id": "",
        **fields,
        "interaction_type": "single_turn",
        "output": {"raw": [text or "" for _, text, _, _ in answers[:1]]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": text or "",
                "extraction_method": extraction or vocabulary.UNKNOWN,
                "is_terminal": True,
            }
            for extraction, text, _, _ in answers
        ],
        "evaluation": {},
    }
    if any(status == "error" for *_, status in answers):
        row["error"] = "the model failed, but has a score"
    if all_metadata:
        row["metadata"] = all_metadata
    return row


def _scores(session: Session, of: InstanceSource, keys: Sequence[int]) -> dict[tuple[int, int], dict[int, float]]:
    """Return scores by prompt, trial and metric. Each metric is one range of the table's primary key."""
    score: Any = tables.score.c
    known = set(keys)
    scores: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    for metric in of.scored:
        query = sa.select(score.prompt_id, score.trial, score.value).where(
            score.run_id == of.run_id,
            score.metric_id == metric,
            score.prompt_id.between(keys[0], keys[-1]),
            in_partitions_of_runs(session, tables.score, [of.run_id]),
        )
        for prompt, trial, value in session.execute(query):
            if prompt in known:
                scores[prompt, trial][metric] = value
    return scores


def _answers(session: Session, run_id: int, keys: Sequence[int]) -> dict[tuple[int, int], list[StoredAnswer]]:
    """Return the answers by prompt and trial, in the order of the extractions' names."""
    answer: Any = tables.answer.c
    known = set(keys)
    query = sa.select(
        answer.prompt_id, answer.trial, answer.extraction, answer.text, answer.probability, answer.status
    ).where(
        answer.run_id == run_id,
        answer.prompt_id.between(keys[0], keys[-1]),
        in_partitions_of_runs(session, tables.answer, [run_id]),
    )
    answers: dict[tuple[int, int], list[StoredAnswer]] = defaultdict(list)
    for prompt, trial, *stored in session.execute(query):
        if prompt in known:
            answers[prompt, trial].append((stored[0], stored[1], stored[2], stored[3]))
    for same_trial in answers.values():
        same_trial.sort(key=lambda stored_answer: stored_answer[0])
    return answers


def _all_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
