"""A portion of a run that is being evaluated: its new and contradictory values."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.connections.partitions import in_partitions_of_runs
from tracker.database import split_keys
from tracker.errors import ConflictError, NotFoundError
from tracker.ingest.measurement import metric_description
from tracker.ingest.resolve.catalogue_resolver import CatalogueResolver
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.ingest.write.bulk_rows import fetch_raw_rows, insert_answers, insert_scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum
from tracker.ingest.write.score_columns import ScoreColumn, pack
from tracker.run_settings import USAGE, evaluation_identity
from tracker.schema import Answer, Metric, Model, Run, Score, metadata

TOLERANCE = 1e-5
"""Tolerance for scores and probabilities, because batches of different sizes round differently."""


ExtractedAnswer = tuple[str, str | None, float | None, str]
"""Extraction, text, probability and status (ok, error, empty, truncated) of an answer."""

StoredAnswer = tuple[str | None, float | None, str]
"""Text, probability and status of a stored answer."""

ScoreKey = tuple[int, int, int]
"""Metric, prompt, trial."""

AnswerKey = tuple[int, str, int]
"""Prompt, extraction, trial."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredResponse:
    """One response to one prompt, scored.

    Attributes:
        prompt_id: key of the prompt.
        trial: 0 for the first answer to the prompt.
        scores: scores by metric; NaN = missing, stored as no row.
        answers: extracted answers, at most one per extraction.
        usage: resources of this response, such as ``tokens_read``; counted only if the response is stored, so that
            repeated requests count once.
    """

    prompt_id: int
    trial: int = 0
    scores: Mapping[str, float]
    answers: tuple[ExtractedAnswer, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)


def add_responses(
    session: Session, run_id: int, rows: Sequence[ScoredResponse], usage: Mapping[str, float] | None = None
) -> int:
    """Add a portion of responses; responses equal to stored ones (tolerance 1e-5) are skipped.

    Updates the number of scores, the checksum and the usage (``n_prompts``: prompts with scores).

    Args:
        session: an exclusive transaction that writes.
        run_id: key returned by `tracker.ingest.write.live.live_runs.open_run`.
        rows: the responses, in any order.
        usage: further resources of the portion, such as ``seconds``; always counted.

    Returns:
        The number of new rows.

    Raises:
        NotFoundError: the run was deleted.
        ConflictError: different values are stored, the run has ended without these, it came from a file, a score is
            outside its metric's bounds, or the stored bounds differ.
    """
    run = get_live_run(session, run_id)
    metrics = _metrics(session, run, rows)
    scores = _scores(rows, metrics)
    answers = _answers(rows)
    prompts = sorted({row.prompt_id for row in rows})
    stored_scores = _load_scores(session, run_id, [metric.id for metric in metrics.values()], prompts)
    stored_answers = _load_answers(session, run_id, prompts)
    if different := _differing_prompts(scores, stored_scores, answers, stored_answers):
        raise _conflict(session, run, different)
    fresh = {key: value for key, value in scores.items() if key not in stored_scores}
    recovered = [key for key, answer in answers.items() if _is_recovered(stored_answers.get(key), answer)]
    recovered_keys = set(recovered)
    new_answers = {key: answers[key] for key in answers if key not in stored_answers or key in recovered_keys}
    before = {(prompt, trial) for _, prompt, trial in stored_scores}
    new = {(prompt, trial): None for _, prompt, trial in fresh if (prompt, trial) not in before}
    if run.status != "partial":
        if new:
            raise ConflictError(
                f"{_run_name(session, run)} has ended without {len(new):,} of these answers: another "
                "evaluation of it finished first. To evaluate again, run the command with --again."
            )
        return 0
    columns = list(_columns(fresh))
    insert_scores(session, ((run_id, column) for column in columns))
    _delete_failures(session, run_id, recovered)
    insert_answers(session, [(run_id, *key, *answer) for key, answer in sorted(new_answers.items())])
    run.n_scores += sum(map(len, columns))
    run.checksum = combine_checksums(run.checksum, compute_checksum(columns))
    firsts = {prompt for prompt, _ in new} - {prompt for prompt, _ in before}
    counted: list[Mapping[str, float]] = [usage or {}, {"n_prompts": len(firsts)}]
    for row in rows:
        if (row.prompt_id, row.trial) in new:
            counted.append(row.usage)
            del new[row.prompt_id, row.trial]  # a duplicate row counts once
    n_new = len(counted) - 2
    run.settings = {**(run.settings or {}), USAGE: _sum((run.settings or {}).get(USAGE) or {}, counted)}
    session.flush()
    return n_new


def _differing_prompts(
    scores: Mapping[ScoreKey, float],
    stored_scores: Mapping[ScoreKey, float],
    answers: Mapping[AnswerKey, StoredAnswer],
    stored_answers: Mapping[AnswerKey, StoredAnswer],
) -> list[int]:
    """Return the prompts whose score or answer contradicts a stored one, in ascending order."""
    scored = {key for key in scores if key in stored_scores and not _is_close(stored_scores[key], scores[key])}
    answered = {key for key in answers if key in stored_answers and not _agree(stored_answers[key], answers[key])}
    return sorted({prompt for _, prompt, _ in scored} | {prompt for prompt, _, _ in answered})


def _is_recovered(stored: StoredAnswer | None, new: StoredAnswer) -> bool:
    """Return whether an answer replaces a stored failure."""
    return stored is not None and stored[2] == "error" != new[2]


def get_live_run(session: Session, run_id: int) -> Run:
    """Return the current state of the run.

    Raises:
        NotFoundError: the run was deleted.
        ConflictError: the run came from a file.
    """
    run = session.get(Run, run_id, populate_existing=True)
    if run is None:
        hint = "It was deleted during its evaluation. Run the command again to start over."
        raise NotFoundError("run", run_id, hint=hint)
    if evaluation_identity(run.settings) is None:
        raise ConflictError(f"Run {run_id} came from a file. Extend it with suffrage ingest.")
    return run


def _metrics(session: Session, run: Run, rows: Sequence[ScoredResponse]) -> dict[str, Metric]:
    model = session.get_one(Model, run.model_id)
    identities = CatalogueResolver(session, Path(model.name))
    names = dict.fromkeys(name for row in rows for name in row.scores)
    return {name: identities.metric(metric_description(name)) for name in names}


def _scores(rows: Sequence[ScoredResponse], metrics: Mapping[str, Metric]) -> dict[ScoreKey, float]:
    """Return all scores.

    Raises:
        ConflictError: a score is outside its metric's bounds, or two rows contradict each other.
    """
    scores: dict[ScoreKey, float] = {}
    for row in rows:
        for name, score in row.scores.items():
            if math.isnan(score):
                continue
            metric, value = metrics[name], float(score) + 0.0  # -0.0 becomes 0.0
            lower = -math.inf if metric.lower is None else metric.lower
            upper = math.inf if metric.upper is None else metric.upper
            if math.isinf(value) or not lower <= value <= upper:
                raise ConflictError(
                    f"Prompt {row.prompt_id} has {value:g} for {name}, whose stored bounds are "
                    f"[{lower:g}, {upper:g}]. This portion was not stored; choose another metric."
                )
            assert metric.id is not None
            key = (metric.id, row.prompt_id, row.trial)
            if not _is_close(scores.setdefault(key, value), value):
                raise ConflictError(f"Prompt {row.prompt_id} has two scores for {name}; evaluate it once.")
    return scores


def _answers(rows: Sequence[ScoredResponse]) -> dict[AnswerKey, StoredAnswer]:
    """Return all answers as stored.

    Raises:
        ConflictError: two rows contradict each other.
    """
    answers: dict[AnswerKey, StoredAnswer] = {}
    for row in rows:
        for extraction, text, chance, status in row.answers:
            known = None if chance is None or math.isnan(chance) else float(chance)
            kept = (None if text is None else make_storable(text), known, status)
            if not _agree(answers.setdefault((row.prompt_id, make_storable(extraction), row.trial), kept), kept):
                raise ConflictError(f"Prompt {row.prompt_id} has two answers in one trial; evaluate it once.")
    return answers


def _load_scores(
    session: Session, run_id: int, metric_ids: Sequence[int | None], prompts: Sequence[int]
) -> dict[ScoreKey, float]:
    score: Any = Score
    scores: dict[ScoreKey, float] = {}
    for part in split_keys(prompts):
        query = sa.select(score.metric_id, score.prompt_id, score.trial, score.value).where(
            score.run_id == run_id,
            score.metric_id.in_(metric_ids),
            score.prompt_id.in_(part),
            in_partitions_of_runs(session, metadata.tables["score"], [run_id]),
        )
        scores.update(((row[0], row[1], row[2]), row[3]) for row in fetch_raw_rows(session, query))
    return scores


def _load_answers(session: Session, run_id: int, prompts: Sequence[int]) -> dict[AnswerKey, StoredAnswer]:
    answer: Any = Answer
    answers: dict[AnswerKey, StoredAnswer] = {}
    for part in split_keys(prompts):
        query = sa.select(
            answer.prompt_id, answer.extraction, answer.trial, answer.text, answer.probability, answer.status
        ).where(
            answer.run_id == run_id,
            answer.prompt_id.in_(part),
            in_partitions_of_runs(session, metadata.tables["answer"], [run_id]),
        )
        answers.update(((row[0], row[1], row[2]), (row[3], row[4], row[5])) for row in fetch_raw_rows(session, query))
    return answers


def _delete_failures(session: Session, run_id: int, keys: Sequence[AnswerKey]) -> None:
    """Delete failures that are replaced by an answer."""
    answer: Any = Answer
    for prompt, extraction, trial in keys:
        session.execute(
            sa.delete(Answer).where(
                answer.run_id == run_id,
                answer.prompt_id == prompt,
                answer.extraction == extraction,
                answer.trial == trial,
                in_partitions_of_runs(session, metadata.tables["answer"], [run_id]),
            )
        )


def _columns(scores: Mapping[ScoreKey, float]) -> Iterator[ScoreColumn]:
    by_metric: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for (metric, prompt, trial), value in scores.items():
        by_metric[metric].append((prompt, trial, value))
    for metric, rows in sorted(by_metric.items()):
        prompts, trials, values = zip(*sorted(rows), strict=True)
        keys = pack(np.array(prompts, dtype=np.int64), np.array(trials, dtype=np.int64))
        yield ScoreColumn(metric, keys, np.array(values, dtype=np.float64))


def _sum(before: Mapping[str, float], added: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total = dict(before)
    for usage in added:
        for name, value in usage.items():
            total[name] = total.get(name, 0) + value
    return total


def _is_close(first: float, second: float) -> bool:
    return abs(first - second) <= TOLERANCE


def _agree(stored: StoredAnswer, new: StoredAnswer) -> bool:
    """Return whether two answers are compatible; a failure is compatible with any answer."""
    if "error" in (stored[2], new[2]):
        return True
    same = stored[1] is None or new[1] is None or _is_close(stored[1], new[1])
    return same and (stored[0], stored[2]) == (new[0], new[2])


def _conflict(session: Session, run: Run, prompts: Sequence[int]) -> ConflictError:
    return ConflictError(
        f"{_run_name(session, run)} has different answers to {len(prompts):,} of these prompts (first: prompt "
        f"{prompts[0]}). If another process evaluates it, let that finish. "
        f"Otherwise delete it with suffrage runs delete {run.id}, or set another --variant."
    )


def _run_name(session: Session, run: Run) -> str:
    return f"Run {run.id} of {session.get_one(Model, run.model_id).name}"
