"""What models answered, prompt by prompt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from tracker.queries.arrow import read_arrow
from tracker.queries.filters import chosen_filter
from tracker.queries.resolution import chosen_runs, chosen_tasks, find_benchmark, find_metric
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of a selection's runs; of several trials the first, of several extractions the plainest.

    Attributes:
        codes: ``(n_prompts, n_models)`` int32 number of the answer's text in ``texts``; -1 = none was given, or none
            could be extracted.
        probability: ``(n_prompts, n_models)`` float64 the model's own probability of its answer; NaN = not known.
        texts: distinct answers, sorted.
        prompt_ids: ``(n_prompts,)`` int64, the order of the performance matrix of the same selection, but with every
            prompt of its tasks.
        models: name of each column, as in the performance matrix.
        run_ids: ``(n_models,)`` int64.
    """

    codes: NDArray[np.int32]
    probability: NDArray[np.float64]
    texts: tuple[str, ...]
    prompt_ids: NDArray[np.int64]
    models: tuple[str, ...]
    run_ids: NDArray[np.int64]

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Answers:
        """The answers of a selection; see `answers`."""
        return answers(session, selection)

    def of(self, prompt_ids: NDArray[np.int64]) -> Answers:
        """The answers to some of these prompts, in their order.

        Args:
            prompt_ids: ``(m,)`` int64 keys, all among ours.
        """
        order = np.argsort(self.prompt_ids)
        rows = order[np.searchsorted(self.prompt_ids, prompt_ids, sorter=order)]
        return replace(self, codes=self.codes[rows], probability=self.probability[rows], prompt_ids=prompt_ids)

    @property
    def digest(self) -> str:
        """SHA-256 of who said what, how sure."""
        hashed = hashlib.sha256("\x1f".join((*self.texts, "", *self.models)).encode())
        hashed.update(self.codes.tobytes() + self.probability.tobytes() + self.prompt_ids.tobytes())
        return hashed.hexdigest()


def answers(session: Session, selection: Selection) -> Answers:
    """What the models of a selection answered; cells without a stored answer are empty.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run is not there.
        SelectionError: the selection is empty, or leaves the metric open where there are several.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    tasks = chosen_tasks(session, benchmark, selection)
    metric, _ = find_metric(session, benchmark, selection, ("prompt",))
    runs = chosen_runs(session, benchmark, metric, "prompt", selection)
    prompt_ids, _ = read_prompts(session, tasks, chosen_filter(session, benchmark, selection))
    row = {key: i for i, key in enumerate(prompt_ids.tolist())}
    column = {run.id: j for j, run in enumerate(runs)}
    listed = ",".join(str(run.id) for run in runs)
    stored = read_arrow(
        session,
        "SELECT run_id, prompt_id, text, CASE WHEN probability IS NULL THEN -1.0 ELSE probability END "
        f"FROM answer WHERE run_id IN ({listed}) AND status = 'ok' AND text IS NOT NULL "
        "ORDER BY run_id, prompt_id, extraction DESC, trial DESC",  # what comes last stays
    )
    said = [part.to_pylist() for part in stored.columns]
    texts = tuple(sorted(set(said[2])))
    code = {text: number for number, text in enumerate(texts)}
    codes = np.full((len(prompt_ids), len(runs)), -1, dtype=np.int32)
    probability = np.full(codes.shape, np.nan)
    for run_id, prompt_id, text, chance in zip(*said, strict=True):
        if (i := row.get(prompt_id)) is not None:
            cell = i, column[run_id]
            codes[cell], probability[cell] = code[text], np.nan if chance < 0 else chance
    return Answers(
        codes=codes,
        probability=probability,
        texts=texts,
        prompt_ids=prompt_ids,
        models=tuple(run.column for run in runs),
        run_ids=np.array([run.id for run in runs], dtype=np.int64),
    )
