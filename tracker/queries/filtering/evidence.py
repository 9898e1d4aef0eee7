"""Per-prompt evidence of models: correct or wrong, with which probability, and with or without the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.answers import AnswerMatrix
from tracker.queries.filtering.reference_probabilities import KINDS, AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix

MIN_KNOWN_SHARE = 0.5
"""Minimum share of the prompts with stored values for a value to count as known for a model."""

MAX_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Evidence with the rows and columns of the scores.

    Attributes:
        right, wrong: ``(n_prompts, n_models)`` bool; both false if a score is missing.
        gold: by kind of probability, ``(n_prompts, n_models)`` probability of the reference answer; NaN if unknown.
        blind_right: ``(n_prompts, n_models)`` bool, correct without the question.
        blind_measured: ``(n_prompts, n_models)`` bool, whether a score without the question is stored.
        blind_gold: as ``gold``, of the runs without the question.
    """

    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    gold: Mapping[str, NDArray[np.float64]]
    blind_right: NDArray[np.bool_]
    blind_measured: NDArray[np.bool_]
    blind_gold: Mapping[str, NDArray[np.float64]]

    def kind(self, columns: NDArray[np.intp], names: Sequence[str], required_kind: str | None = None) -> str:
        """Return the kind of probability that is stored for all of some models; letters, as in the paper, if both are.

        Args:
            columns: columns of the filter models.
            names: names of all models.
            required_kind: ``letters`` or ``likelihoods``; None for either.

        Raises:
            SelectionError: some of these models have no stored probability of that kind, or of a common kind.
        """
        lacking = {
            kind: _lacking(known, columns, names)
            for kind in KINDS
            for known in [~np.isnan(self.gold[kind]) if kind in self.gold else np.zeros(self.right.shape, np.bool_)]
        }
        for kind in [required_kind] if required_kind else KINDS:
            if not lacking[kind]:
                return kind
        kind = required_kind or min(KINDS, key=lambda kind: len(lacking[kind]))
        option = f" of the option {kind}" if required_kind or kind in self.gold else ""
        raise SelectionError(
            f"No probability of the gold answer{option} is stored for {join_names(lacking[kind], MAX_NAMES)}, so the "
            "confidence of the filter models is unknown. Import such probabilities "
            "(docs/reference/formats.md), choose models that have them with --models, or use --without-confidence."
        )

    def is_known(self, kind: str, *, with_blind: bool) -> NDArray[np.bool_]:
        """Return whether everything that a filter needs is stored for a model, ``(n_models,)``.

        Args:
            kind: kind of probability; '' needs none.
            with_blind: whether a run without the question is needed too.
        """
        known = np.ones(self.right.shape[1], dtype=np.bool_)
        matrices = [self.gold, *([self.blind_gold] if with_blind else [])] if kind else []
        for stored in matrices:
            known &= (~np.isnan(stored[kind])).mean(axis=0) >= MIN_KNOWN_SHARE if kind in stored else False
        return known & (self.blind_measured.mean(axis=0) >= MIN_KNOWN_SHARE) if with_blind else known

    def unblinded(self, columns: NDArray[np.intp], names: Sequence[str], kind: str | None) -> str:
        """Return why the answers without the question cannot be used; '' if they can.

        Args:
            columns: columns of the filter models.
            names: names of all models.
            kind: kind of probability; None needs none.
        """
        if not self.blind_measured.any():
            return "no answer-only run is stored"
        if lacking := _lacking(self.blind_measured, columns, names):
            return f"no answer-only run is stored for {join_names(lacking, MAX_NAMES)}"
        if not kind:
            return ""
        sure = ~np.isnan(self.blind_gold[kind]) if kind in self.blind_gold else np.zeros(self.right.shape, np.bool_)
        if lacking := _lacking(sure, columns, names):
            names_lacking = join_names(lacking, MAX_NAMES)
            return f"no probability of the option {kind} is stored for the answer-only runs of {names_lacking}"
        return ""


def _lacking(known: NDArray[np.bool_], columns: NDArray[np.intp], names: Sequence[str]) -> list[str]:
    """Return the names of those models with too few stored values."""
    return [names[column] for column in columns.tolist() if known[:, column].mean() < MIN_KNOWN_SHARE]


def combine_evidence(
    scores: PerformanceMatrix, probabilities: ReferenceProbabilities, answer_only: AnswerOnlyRuns
) -> Evidence:
    """Align scores of 0 and 1 with probabilities and answer-only runs.

    Args:
        scores: 0, 1 or NaN; a fraction (of several trials) is neither correct nor wrong.
        probabilities: of the runs behind the scores.
        answer_only: runs of the same models without the question, matched by the model's name.
    """
    blind, sure_blind = answer_only.scores, answer_only.probabilities
    answers = _missing(scores) if blind is None else _aligned(blind, scores, by_run=False)
    return Evidence(
        right=scores.Q == 1,
        wrong=scores.Q == 0,
        gold={kind: _aligned(probabilities.kinds[kind], scores) for kind in KINDS if kind in probabilities.kinds},
        blind_right=answers == 1,
        blind_measured=~np.isnan(answers),
        blind_gold={
            kind: _aligned(sure_blind.kinds[kind], scores, by_run=False) for kind in KINDS if kind in sure_blind.kinds
        },
    )


def answers_or_outcomes(
    answers: AnswerMatrix, scores: PerformanceMatrix, columns: NDArray[np.intp]
) -> tuple[NDArray[np.int32] | None, str]:
    """Return what agreement of models is computed from: their answers if most are stored for all, else the outcomes.

    Args:
        answers: answers to the prompts of the scores, in their order.
        scores: of the same runs.
        columns: models without missing scores.

    Returns:
        ``(n_prompts, len(columns))`` answer codes, -1 = no answer, and ``answers``; or scores of 0 and 1 and ``right or
        wrong``; None and '' for other scores.
    """
    codes = answers.codes[:, columns]
    if ((codes >= 0).mean(axis=0) >= MIN_KNOWN_SHARE).all():
        return np.ascontiguousarray(codes), "answers"
    if not scores.is_binary:
        return None, ""
    return np.ascontiguousarray(scores.Q[:, columns]).astype(np.int32), "right or wrong"


def _missing(scores: PerformanceMatrix) -> NDArray[np.float64]:
    return np.full(scores.Q.shape, np.nan)


def _aligned(matrix: PerformanceMatrix, scores: PerformanceMatrix, *, by_run: bool = True) -> NDArray[np.float64]:
    """Return the values of another matrix at the rows and columns of this one; NaN where it has none."""
    names: tuple[object, ...] = tuple(matrix.run_ids.tolist()) if by_run else matrix.models
    column = {name: place for place, name in enumerate(names)}
    keys: tuple[object, ...] = tuple(scores.run_ids.tolist()) if by_run else scores.models
    row = {key: place for place, key in enumerate(matrix.prompt_ids.tolist())}
    places = np.array([row.get(key, -1) for key in scores.prompt_ids.tolist()], dtype=np.intp)
    values = _missing(scores)
    known = places >= 0
    for j, name in enumerate(keys):
        if (position := column.get(name)) is not None:
            values[known, j] = matrix.Q[places[known], position]
    return values
