"""Load the models' answers to prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.packed.stored_scores import Grid
from tracker.queries.resolution import find_benchmark, find_metric, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selected_runs.runs import select_runs
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.splits.choice import choose_split
from tracker.queries.sql.arrow import arrow_reader, number_columns, word_column
from tracker.queries.sql.run_terms import run_terms

NOT_KNOWN = -1.0
"""Placeholder of a probability that is not stored, while rows are read."""


@dataclass(frozen=True, kw_only=True)
class AnswerMatrix(AnalysisInput):
    """The answers of a selection's runs: one per prompt and run.

    If an answer was extracted by several methods, the one behind the metric's scores is used, else the default. Of
    several trials, the first is used.

    Attributes:
        codes: ``(n_prompts, n_models)`` int32 index of the answer's text in ``texts``; -1 = no answer, or none could be
            extracted.
        probability: ``(n_prompts, n_models)`` float64 the model's probability of its answer; NaN = unknown.
        texts: distinct answers, sorted.
        prompt_ids: ``(n_prompts,)`` int64, in the order of the performance matrix of the same selection, but with every
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
    def load(cls, session: Session, selection: Selection) -> AnswerMatrix:
        """Load the answers of a selection; see `load_answers`."""
        return load_answers(session, selection)

    def align(self, prompt_ids: NDArray[np.int64]) -> AnswerMatrix:
        """Return the answers to some of these prompts, in their order.

        Args:
            prompt_ids: ``(m,)`` int64 keys, all among ``self.prompt_ids``.
        """
        order = np.argsort(self.prompt_ids)
        rows = order[np.searchsorted(self.prompt_ids, prompt_ids, sorter=order)]
        return replace(self, codes=self.codes[rows], probability=self.probability[rows], prompt_ids=prompt_ids)

    def select(self, run_ids: NDArray[np.int64]) -> AnswerMatrix:
        """Return the answers of some of these runs, in the order of the columns.

        Args:
            run_ids: ``(m,)`` int64 keys.
        """
        kept = np.isin(self.run_ids, run_ids)
        models = tuple(name for name, stays in zip(self.models, kept.tolist(), strict=True) if stays)
        codes, probability = self.codes[:, kept], self.probability[:, kept]
        return replace(self, codes=codes, probability=probability, models=models, run_ids=self.run_ids[kept])

    @property
    def digest(self) -> str:
        """SHA-256 of models, answers and probabilities."""
        hashed = hashlib.sha256("\x1f".join((*self.texts, "", *self.models)).encode())
        hashed.update(self.codes.tobytes() + self.probability.tobytes() + self.prompt_ids.tobytes())
        return hashed.hexdigest()


def load_answers(session: Session, selection: Selection) -> AnswerMatrix:
    """Load the answers of a selection's models; cells without a stored answer are empty.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: the selection is empty, or names no metric although there are several.
    """
    benchmark = find_benchmark(session, selection.benchmark)
    tasks = select_tasks(session, benchmark, selection)
    metric, _ = find_metric(session, benchmark, selection, ("prompt",))
    selection = choose_split(session, benchmark, metric, selection)
    runs = select_runs(session, benchmark, metric, "prompt", selection)
    prompt_ids, _ = read_prompts(session, tasks, load_selected_filter(session, benchmark, selection), selection.split)
    rows = _read(session, [run.id for run in runs], prompt_ids)
    chosen_rows = rows.first(
        scored_by=metric.name.partition(",")[2]
    )  # the filter of a harness is part of the metric's name
    shape = len(prompt_ids), len(runs)
    codes, probability = np.full(shape, -1, dtype=np.int32), np.full(shape, np.nan)
    answered = chosen_rows[rows.has_text[chosen_rows]]
    known = answered[rows.probability[answered] != NOT_KNOWN]
    in_order = np.array(sorted(range(len(rows.texts)), key=rows.texts.__getitem__), dtype=np.intp)
    used, codes.flat[rows.cells[answered]] = np.unique(np.argsort(in_order)[rows.codes[answered]], return_inverse=True)
    probability.flat[rows.cells[known]] = rows.probability[known]
    return AnswerMatrix(
        codes=codes,
        probability=probability,
        texts=tuple(rows.texts[code] for code in in_order[used].tolist()),
        prompt_ids=prompt_ids,
        models=tuple(run.column for run in runs),
        run_ids=np.array([run.id for run in runs], dtype=np.int64),
    )


@dataclass(frozen=True, kw_only=True)
class _StoredAnswers:
    """Answers as stored, in any order.

    Attributes:
        cells: ``(n,)`` int64 flat index of each in a matrix of prompts × runs, in row-major order.
        trials: ``(n,)`` int32.
        has_text: ``(n,)`` whether there is a text.
        codes, extractions: ``(n,)`` int32 indices of text and extraction method in the lists below.
        probability: ``(n,)`` float64.
        texts, extraction_names: distinct, in any order.
    """

    cells: NDArray[np.int64]
    trials: NDArray[np.int32]
    has_text: NDArray[np.bool_]
    codes: NDArray[np.int32]
    extractions: NDArray[np.int32]
    probability: NDArray[np.float64]
    texts: Sequence[str]
    extraction_names: Sequence[str]

    def first(self, *, scored_by: str) -> NDArray[np.intp]:
        """Return the row to use for each cell that has any: of the preferred extraction, the first trial."""
        names = self.extraction_names
        if len(names) <= 1 and not self.trials.any():
            return np.arange(len(self.cells))
        place = {name: number for number, name in enumerate(sorted(names, key=lambda name: (name != scored_by, name)))}
        preferred = np.array([place[name] for name in names])[self.extractions]
        order = np.lexsort((self.trials, preferred, self.cells))
        sorted_cells = self.cells[order]
        return order[np.flatnonzero(np.diff(sorted_cells, prepend=-1))]


def _read(session: Session, run_ids: Sequence[int], prompt_ids: NDArray[np.int64]) -> _StoredAnswers:
    grid = Grid(run_ids, prompt_ids)
    statement = (
        "SELECT run_id, prompt_id, trial, CASE WHEN status = 'ok' AND text IS NOT NULL THEN 1 ELSE 0 END, "
        f"CASE WHEN probability IS NULL THEN {NOT_KNOWN} ELSE probability END, COALESCE(text, ''), extraction "
        f"FROM answer WHERE {run_terms(session, run_ids)}"
    )
    texts: dict[str, int] = {}
    extractions: dict[str, int] = {}
    names = ("cells", "trials", "has_text", "probability", "codes", "extractions")
    kinds = (np.int64, np.int32, np.bool_, np.float64, np.int32, np.int32)
    parts = [[np.empty(0, dtype=kind)] for kind in kinds]
    with arrow_reader(session, statement, runs=run_ids) as reader:
        for batch in reader:
            runs, prompts, *numbers = number_columns(batch.select(range(5)))
            cells, is_row = grid.cells(runs, prompts)
            words = _numbered(batch.column(5), texts), _numbered(batch.column(6), extractions)
            columns = (cells, *(column[is_row] for column in (*numbers, *words)))
            for part, column, kind in zip(parts, columns, kinds, strict=True):
                part.append(column.astype(kind, copy=False))
    read: dict[str, NDArray[Any]] = {name: np.concatenate(part) for name, part in zip(names, parts, strict=True)}
    return _StoredAnswers(**read, texts=list(texts), extraction_names=list(extractions))


def _numbered(column: Any, known: dict[str, int]) -> NDArray[np.int32]:
    """Return the index of each text, ``(n,)``, among the known ones, to which new ones are appended."""
    codes, words = word_column(column)
    return np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int32)[codes]
