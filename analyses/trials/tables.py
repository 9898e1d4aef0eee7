"""Trials of models, standard errors by number of trials, and pass rates, as tables and rankings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from analyses.presentation.table_columns import number_column
from analyses.trials.method import PassRate, Trials
from tracker.recording.finding import RankedModels
from tracker.statistics.ranking import mean_ranks

MULTIPLES = (1, 2, 4, 8, 16, 32)
"""Numbers of trials for which standard errors are listed."""


def list_by_model(finding: Trials) -> pa.Table:
    """One row for each model, the best mean first; nulls where a model has one trial of each prompt."""
    items = finding.models
    return pa.table(
        {
            "model": pa.array([item.model for item in items], pa.string()),
            "n": pa.array([item.variance.n for item in items], pa.int64()),
            "fewest_trials": pa.array([item.fewest for item in items], pa.int64()),
            "most_trials": pa.array([item.most for item in items], pa.int64()),
            "mean_trials": number_column([item.n_trials for item in items]),
            "mean": number_column([item.mean.mean for item in items]),
            "stderr": number_column([item.mean.stderr for item in items]),
            "low": number_column([item.mean.low for item in items]),
            "high": number_column([item.mean.high for item in items]),
            "within": number_column([item.variance.in_units(item.variance.within, 2) for item in items]),
            "within_low": number_column([item.within[0] for item in items]),
            "within_high": number_column([item.within[1] for item in items]),
            "between": number_column([item.variance.in_units(item.variance.between, 2) for item in items]),
            "between_low": number_column([item.between[0] for item in items]),
            "between_high": number_column([item.between[1] for item in items]),
            "trial_share": number_column([item.variance.trial_share for item in items]),
            "sufficient_trials": number_column(
                [item.sufficient if np.isfinite(item.sufficient) else np.nan for item in items]
            ),
        }
    )


def list_errors(finding: Trials) -> pa.Table:
    """One row for each model with several trials and each number of trials: its error, and that of as many responses to
    new prompts.
    """
    rows = [(item, n_trials) for item in finding.repeated for n_trials in MULTIPLES]
    return pa.table(
        {
            "model": pa.array([item.model for item, _ in rows], pa.string()),
            "n_trials": pa.array([n_trials for _, n_trials in rows], pa.int64()),
            "stderr": number_column([item.variance.stderr_with(n_trials) for item, n_trials in rows]),
            "stderr_new_prompts": number_column(
                [item.variance.stderr_with(1, item.variance.n * n_trials) for item, n_trials in rows]
            ),
        }
    )


def list_rates(finding: Trials) -> pa.Table:
    """One row for each measure, k and model, the best first."""
    rates = finding.rates
    return pa.table(
        {
            "measure": pa.array([rate.measure for rate in rates], pa.string()),
            "k": pa.array([rate.k for rate in rates], pa.int64()),
            "model": pa.array([rate.model for rate in rates], pa.string()),
            "n": pa.array([rate.n for rate in rates], pa.int64()),
            "rate": number_column([rate.estimate.mean for rate in rates]),
            "stderr": number_column([rate.estimate.stderr for rate in rates]),
            "low": number_column([rate.estimate.low for rate in rates]),
            "high": number_column([rate.estimate.high for rate in rates]),
        }
    )


def list_rankings(finding: Trials) -> dict[str, RankedModels]:
    """Rank the models by pass@k and pass^k for the largest k that all models with several trials have."""
    rankings, k = {}, finding.shared_k
    chosen = [rate for rate in finding.rates if rate.k == k]
    for measure in dict.fromkeys(rate.measure for rate in chosen):
        rates = [rate for rate in chosen if rate.measure == measure]
        rankings[measure.replace("k", str(k))] = _ranked(rates)
    return rankings


def _ranked(rates: list[PassRate]) -> RankedModels:
    means = np.array([rate.estimate.mean for rate in rates])
    return RankedModels(
        models=tuple(rate.model for rate in rates),
        score=means,
        rank=mean_ranks(means),
        low=np.array([rate.estimate.low for rate in rates]),
        high=np.array([rate.estimate.high for rate in rates]),
    )
