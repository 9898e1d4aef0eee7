"""Policies for missing scores; nothing is left out silently.

Policies:

bounds: a missing score can have any value that the metric allows; intervals and ranks hold for all of them.

common: use only the rows with a score for every model that takes part.

worst: replace a missing score by the worst possible score of the metric.

impute: estimate a missing score from the other scores of the model and the row; errors of means and of their
differences include the uncertainty of these estimates.

fail: raise an error if any score is missing.

Under each of them, a model with scores for less than the least coverage takes no part; it is listed apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SelectionError
from tracker.name_lists import join_names
from tracker.queries.selection import MIN_COVERAGE, Policy
from tracker.statistics.missing_scores import complete_rows, fill_missing, impute

MAX_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class MissingPolicy:
    """How to treat missing scores.

    Attributes:
        name: name of the policy.
        min_coverage: share of the rows that a model must have scores for, in [0, 1].
        unit: unit of the rows, ``prompt`` or ``task``.
        worst, best: the metric's bounds in the order of merit; None without bounds.
        metric: its name.
        favoured: names of models whose missing scores are the best ones under ``worst``; None unless the table is to
            be completed.
    """

    name: Policy = "bounds"
    min_coverage: float = MIN_COVERAGE
    unit: str = "prompt"
    worst: float | None = None
    best: float | None = None
    metric: str = ""
    favoured: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ExcludedModel:
    """A model that takes no part, because too many of its scores are missing.

    Attributes:
        model: its name.
        n: rows with a score.
        n_expected: all rows.
        unit: of the rows.
    """

    model: str
    n: int
    n_expected: int
    unit: str = "prompt"

    @property
    def coverage(self) -> float:
        """Share of the rows with a score."""
        return self.n / self.n_expected

    @property
    def reason(self) -> str:
        """Why it takes no part."""
        return f"{self.n_expected - self.n:,} of {self.n_expected:,} {self.unit}s are missing"


@dataclass(frozen=True, kw_only=True)
class Participants:
    """The models with enough scores.

    Attributes:
        columns: ``(k,)`` whether a column takes part.
        excluded: the models that take no part.
        warnings: names them.
    """

    columns: NDArray[np.bool_]
    excluded: tuple[ExcludedModel, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TreatedScores:
    """A matrix after the policy.

    Attributes:
        Q: ``(n_kept, k_kept)`` scores; NaN only under ``bounds``.
        rows: ``(n,)`` whether a row stays.
        columns: ``(k,)`` whether a column takes part.
        excluded: the models that take no part.
        warnings: what was left out, filled in or left open, and the consequences.
    """

    Q: NDArray[np.float64]
    rows: NDArray[np.bool_]
    columns: NDArray[np.bool_]
    excluded: tuple[ExcludedModel, ...] = ()
    warnings: tuple[str, ...] = ()


def apply_missing_policy(
    Q: NDArray[np.float64],
    policy: MissingPolicy,
    *,
    models: Sequence[str],
    is_ranked: NDArray[np.bool_] | None = None,
) -> TreatedScores:
    """Apply a policy.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        policy: the policy.
        models: name of each column.
        is_ranked: ``(k,)`` columns to rank; None means all. The others help to impute.

    Raises:
        SelectionError: scores are missing under ``fail``; no row is complete; the metric has no bounds.
    """
    is_ranked = np.ones(Q.shape[1], dtype=np.bool_) if is_ranked is None else is_ranked
    participants = select_participants(Q, policy, models=models, is_ranked=is_ranked)
    columns = participants.columns
    rows, treated, warnings = treat_rows(Q, policy, columns, models)
    return TreatedScores(
        Q=treated if columns.all() else treated[:, columns],
        rows=rows,
        columns=columns,
        excluded=participants.excluded,
        warnings=(*participants.warnings, *warnings),
    )


def select_participants(
    Q: NDArray[np.float64], policy: MissingPolicy, *, models: Sequence[str], is_ranked: NDArray[np.bool_]
) -> Participants:
    """Select the models with enough scores.

    Args:
        Q, policy, models, is_ranked: as for `apply_missing_policy`.

    Raises:
        SelectionError: scores are missing under ``fail``.
    """
    n_missing = np.isnan(Q).sum(axis=0)
    if not n_missing[is_ranked].any():
        return Participants(columns=is_ranked)
    if policy.name == "fail":
        raise SelectionError(
            f"Scores are missing, of {len(Q):,} {policy.unit}s: {_describe(models, n_missing, is_ranked)}. Leave those "
            "models out with --models, or choose a policy: --missing bounds, common, worst or impute."
        )
    n = len(Q) - n_missing
    columns = np.asarray(is_ranked & (n > 0) & (n >= policy.min_coverage * len(Q) - 1e-9))
    excluded = tuple(
        ExcludedModel(model=models[j], n=int(n[j]), n_expected=len(Q), unit=policy.unit)
        for j in np.flatnonzero(is_ranked & ~columns).tolist()
    )
    return Participants(
        columns=columns, excluded=excluded, warnings=(_describe_excluded(excluded, policy),) if excluded else ()
    )


def treat_rows(
    Q: NDArray[np.float64], policy: MissingPolicy, columns: NDArray[np.bool_], models: Sequence[str]
) -> tuple[NDArray[np.bool_], NDArray[np.float64], tuple[str, ...]]:
    """Apply a policy to some columns, whatever their coverage.

    Args:
        Q, policy, models: as for `apply_missing_policy`.
        columns: ``(k,)`` columns that take part; the others help to impute.

    Returns:
        ``(n,)`` the rows that stay; ``(n_kept, k)`` their scores; warnings.

    Raises:
        SelectionError: no row is complete; the metric has no bounds.
    """
    rows, n_missing = np.ones(len(Q), dtype=np.bool_), np.isnan(Q).sum(axis=0)
    if not n_missing[columns].any():
        return rows, Q, ()
    names = _describe(models, n_missing, columns)
    if policy.name == "common":
        rows, warning = _find_common(Q, policy, columns, names)
        return rows, Q[rows], (warning,)
    if policy.name == "impute":
        treated, warning = _fill_imputed(Q, policy, columns, names)
        return rows, treated, (warning,)
    if policy.worst is None or policy.best is None:
        raise without_bounds(policy.metric)
    if policy.name == "bounds":
        low, high = sorted((policy.worst, policy.best))
        warning = f"Missing scores can have any value from {low:g} to {high:g}: {names}."
        return rows, Q, (warning,)
    bound = "lower" if policy.worst < policy.best else "upper"
    warning = (
        f"Missing scores are replaced by {policy.worst:g}, the worst possible score: {names}. The means of these "
        f"models are {bound} bounds. Errors and intervals treat the replaced scores as measured."
    )
    values = np.where(np.isin(np.asarray(models), policy.favoured or ()), policy.best, policy.worst)
    return rows, fill_missing(Q, columns, values), (warning,)


def without_bounds(metric: str) -> SelectionError:
    """Return the error of a policy that needs bounds of the metric."""
    return SelectionError(
        f"The metric {metric} has no bounds, so missing scores have no worst value. Declare its bounds when you ingest "
        "(--bounds LOW HIGH), or choose --missing common, impute or fail."
    )


def no_participant(excluded: Sequence[ExcludedModel], policy: MissingPolicy) -> SelectionError:
    """Return the error of an analysis that no model has enough scores for."""
    best = max(excluded, key=lambda model: model.n)
    if best.n == 0:
        return SelectionError(f"No selected model has a score for any {policy.unit}. Select other models or runs.")
    return SelectionError(
        f"No model has scores for {policy.min_coverage:.4g} of the {best.n_expected:,} {policy.unit}s. The most "
        f"complete is {best.model}, with {best.n:,}. Choose other --tasks or --runs, or a lower --min-coverage, such "
        f"as {np.floor(100 * best.coverage) / 100:g}."
    )


def _find_common(
    Q: NDArray[np.float64], policy: MissingPolicy, columns: NDArray[np.bool_], names: str
) -> tuple[NDArray[np.bool_], str]:
    rows, unit = complete_rows(Q, columns), policy.unit
    if not rows.any():
        raise SelectionError(
            f"No {unit} has a score for every model. Most are missing for: {names}. Leave those models out with "
            "--models or a higher --min-coverage."
        )
    warning = (
        f"Only the {rows.sum():,} of {len(Q):,} {unit}s with a score for every model are used. Missing scores: {names}."
    )
    if policy.metric and (policy.worst is None or policy.best is None):
        warning += f" To use all, declare the bounds of {policy.metric}: ingest a file again with --bounds LOW HIGH."
    return rows, warning


def _fill_imputed(
    Q: NDArray[np.float64], policy: MissingPolicy, columns: NDArray[np.bool_], names: str
) -> tuple[NDArray[np.float64], str]:
    values = impute(Q)
    if policy.worst is not None and policy.best is not None:
        values = np.clip(values, min(policy.worst, policy.best), max(policy.worst, policy.best))
    if (np.isnan(values) & np.isnan(Q))[:, columns].any():
        raise SelectionError(
            f"Too many scores are missing to impute them: {names}. Choose --missing common, or other models."
        )
    return fill_missing(Q, columns, values), (
        f"Missing scores are imputed from the other scores of the model and of the {policy.unit}: {names}. Errors of "
        "means and differences include the imputation; permutation tests treat imputed scores as measured."
    )


def _describe_excluded(excluded: Sequence[ExcludedModel], policy: MissingPolicy) -> str:
    names = sorted(excluded, key=lambda model: (model.n, model.model))
    models = join_names((f"{model.model} ({model.coverage:.1%})" for model in names), MAX_NAMES, noun="more models")
    return (
        f"Listed apart, with scores for less than {policy.min_coverage:.4g} (--min-coverage) of the "
        f"{excluded[0].n_expected:,} {policy.unit}s: {models}."
    )


def _describe(models: Sequence[str], n_missing: NDArray[np.int64], columns: NDArray[np.bool_]) -> str:
    incomplete = [(models[j], int(n_missing[j])) for j in np.flatnonzero(columns & (n_missing > 0)).tolist()]
    ordered = sorted(incomplete, key=lambda model: (-model[1], model[0]))
    return join_names((f"{name} {n:,}" for name, n in ordered), MAX_NAMES, noun="more models")
