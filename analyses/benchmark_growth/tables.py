"""Means and rankings of a growing benchmark as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analyses.benchmark_growth.method import BenchmarkGrowth
from analyses.numerics.growth.prediction_errors import PredictionErrors


def list_tables(finding: BenchmarkGrowth, models: Sequence[str]) -> Mapping[str, pa.Table]:
    """All tables of the finding; that of predictions only where item response predicts means."""
    tables = {"growth": list_growth(finding, models), "distance": list_distances(finding)}
    if finding.predictions is not None:
        tables["prediction"] = list_predictions(finding.predictions)
    return tables


def list_predictions(errors: PredictionErrors) -> pa.Table:
    """List one row for each number of prompts: mean absolute errors of predicted and of plain means."""
    columns = ("informative", "informative_plain", "random", "random_plain")
    return pa.table({"n_prompts": errors.sizes, **{name: getattr(errors, name) for name in columns}})


def list_growth(finding: BenchmarkGrowth, models: Sequence[str]) -> pa.Table:
    """List one row for each size and model: means in informative order, in random orders, on shuffled tables."""
    n_sizes, k = finding.informative.means.shape
    columns: dict[str, Any] = {
        "size": np.repeat(finding.sizes, k),
        "model": pa.array([*models] * n_sizes, pa.string()),
        "informative": finding.informative.means.ravel(),
    }
    for name, orders in (("random", finding.random), ("permuted", finding.permuted)):
        if orders:
            low, middle, high = (band.ravel() for band in orders.band(orders.means))
            columns |= {f"{name}_low": low, f"{name}_median": middle, f"{name}_high": high}
    return pa.table(columns)


def list_distances(finding: BenchmarkGrowth) -> pa.Table:
    """List one row for each size: Kendall distance from the final ranking, and the share of random orders within."""
    sizes = finding.sizes
    columns: dict[str, Any] = {"size": sizes, "informative": finding.informative.distances[sizes - 1]}
    for name, orders in (("random", finding.random), ("permuted", finding.permuted)):
        if orders:
            low, middle, high = orders.band(orders.distances)
            columns |= {f"{name}_low": low, f"{name}_median": middle, f"{name}_high": high}
    return pa.table(columns | {"random_share_within": finding.random.share_within(finding.within)})
