"""Performance matrices of analyses that treat missing scores in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.missing import MissingPolicy, no_participant, select_participants
from tracker.queries.selection import Selection


class StoredScores(PerformanceMatrix):
    """The performance matrix for analyses that estimate missing scores themselves: ``impute`` leaves them missing."""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> StoredScores:
        """Load the matrix of a selection; under ``impute`` only models below the least coverage are left out."""
        is_left = selection.missing == "impute"
        return cls(
            **(_load_stored(session, selection) if is_left else vars(load_performance_matrix(session, selection)))
        )


class ScoresOfPairs(PerformanceMatrix):
    """The performance matrix for analyses of two of its models: ``common`` and ``fail`` leave missing scores missing.

    The analysis applies these policies to the two models that it compares, whatever scores other models lack.
    """

    @classmethod
    def load(cls, session: Session, selection: Selection) -> ScoresOfPairs:
        """Load the matrix of a selection; under these policies only models below the least coverage are left out."""
        is_left = selection.missing in ("common", "fail")
        return cls(
            **(_load_stored(session, selection) if is_left else vars(load_performance_matrix(session, selection)))
        )


def _load_stored(session: Session, selection: Selection) -> dict[str, Any]:
    """Load the fields of a matrix whose missing scores are left missing."""
    stored = load_performance_matrix(session, replace(selection, missing=None))
    rule = MissingPolicy(name="impute", min_coverage=selection.least_coverage, metric=stored.metric)
    every = np.ones(stored.n_models, dtype=np.bool_)
    chosen = select_participants(stored.Q, rule, models=stored.models, is_ranked=every)
    if not chosen.columns.any():
        raise no_participant(chosen.excluded, rule)
    kept = stored if chosen.columns.all() else stored.columns(chosen.columns)
    known = {"missing": selection.missing, "excluded": chosen.excluded, "missing_warnings": chosen.warnings}
    return {**vars(kept), **known}


class WholeScores(PerformanceMatrix):
    """The performance matrix for analyses of scores of 0 and 1: ``impute`` rounds, if all measured scores are such."""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> WholeScores:
        """Load the matrix of a selection; an imputed score of one half or more is 1 where scores are 0 or 1."""
        scores = load_performance_matrix(session, selection)
        if scores.measured is None or not np.isin(scores.Q[scores.measured], (0.0, 1.0)).all():
            return cls(**vars(scores))
        rounded = np.where(scores.measured, scores.Q, (scores.Q >= 0.5).astype(np.float64))
        warnings = (*scores.missing_warnings, "Imputed scores are rounded to 0 and 1.")
        return cls(**{**vars(scores), "Q": rounded, "missing_warnings": warnings})
