"""Methods of filtering side by side, and what each does to every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.filter_baselines.method import PARAMETERS, FilterBaselines
from analyses.numerics.filtering.effects.random_comparison import SelectionComparison
from analyses.numerics.filtering.effects.spread import summarize_spread
from analyses.presentation.table_columns import number_column
from tracker.recording.finding import PromptValues, RankedModels
from tracker.statistics.ranking import mean_ranks

Mask = NDArray[np.bool_]


def list_tables(finding: FilterBaselines, *, higher_is_better: bool) -> dict[str, pa.Table]:
    """All tables, by their names."""
    sign = 1 if higher_is_better else -1
    return {
        "methods": list_methods(finding.methods, finding.full, finding.statistics),
        "models": list_models(finding.models, finding.is_filter_model, finding.means, finding.methods, sign=sign),
    }


def list_prompt_values(finding: FilterBaselines, prompt_ids: NDArray[np.int64]) -> dict[str, PromptValues]:
    """Difficulty and discrimination of every prompt with their standard errors, where item response was fitted."""
    if finding.response is None:
        return {}
    names = (*PARAMETERS, *(f"{name}_stderr" for name in PARAMETERS))
    return {name: PromptValues(prompt_ids=prompt_ids, values=getattr(finding.response, name)) for name in names}


def list_rankings(finding: FilterBaselines, names: Sequence[str]) -> dict[str, RankedModels]:
    """Models by their ability, which allows for prompts that discriminate more and less.

    Args:
        finding: with the fit.
        names: of all models that it was made from.
    """
    if finding.response is None:
        return {}
    known = np.flatnonzero(~np.isnan(finding.response.ability))
    ability = finding.response.ability[known]
    ranked = tuple(names[place] for place in known.tolist())
    return {"ability": RankedModels(models=ranked, score=ability, rank=mean_ranks(ability))}


def list_methods(
    comparisons: Mapping[str, SelectionComparison], full: Mapping[str, float], statistics: Sequence[str]
) -> pa.Table:
    """List one row for all prompts, then for each method a row and one of the random subsets of its size.

    Beside every statistic of a method stands its position among the random subsets, and beside their mean the 2.5 %
    and 97.5 % quantiles.

    Args:
        comparisons: by the method's name.
        full: statistics of all prompts, as far as they are defined.
        statistics: names of those wanted.
    """
    rows: list[dict[str, Any]] = []
    n = len(next(iter(comparisons.values())).kept)
    rows.append({"method": "all prompts", "n_prompts": n, "share_removed": 0.0, **full})
    for method, comparison in comparisons.items():
        size = {"n_prompts": int(comparison.kept.sum()), "share_removed": comparison.share_removed}
        row, drawn = {"method": method, **size}, {"method": f"random, as many as {method}", **size}
        for name in statistics:
            row |= {name: comparison.values[name], f"{name}_position": comparison.position(name)}
            over = comparison.spread(name)
            drawn |= {name: over.mean, f"{name}_low": over.low, f"{name}_high": over.high}
        rows += [row, drawn]
    columns = [f"{name}{end}" for name in statistics for end in ("", "_low", "_high", "_position")]
    return pa.table(
        {
            "method": pa.array([row["method"] for row in rows], pa.string()),
            "n_prompts": pa.array([row["n_prompts"] for row in rows], pa.int64()),
            "share_removed": pa.array([row["share_removed"] for row in rows], pa.float64()),
        }
        | {name: number_column([row.get(name, np.nan) for row in rows]) for name in columns}
    )


def list_models(
    names: Sequence[str],
    is_filter_model: Mask,
    means: NDArray[np.float64],
    comparisons: Mapping[str, SelectionComparison],
    *,
    sign: int = 1,
) -> pa.Table:
    """List one row for each model, the best first: its score and rank on all prompts and by each method.

    Args:
        names: of the models.
        is_filter_model: ``(n_models,)``.
        means: ``(n_models,)`` on all prompts, larger is better.
        comparisons: by the method's name, over the same models.
        sign: -1 where scores were turned round so that larger is better; they are written as they were.
    """
    ranks = mean_ranks(means)
    order = np.lexsort((np.array(names), ranks))
    columns: dict[str, Any] = {
        "model": pa.array([names[place] for place in order.tolist()], pa.string()),
        "is_filter_model": is_filter_model[order],
        "score": sign * means[order],
        "rank": ranks[order],
    }
    for method, comparison in comparisons.items():
        known = not np.isnan(comparison.means).any()
        ranks_of_method = mean_ranks(comparison.means) if known else np.full(len(names), np.nan)
        drawn = [summarize_spread(sign * column) for column in comparison.random_means.T[order]]
        columns |= {
            f"{method}_score": number_column(sign * comparison.means[order]),
            f"{method}_rank": number_column(ranks_of_method[order]),
            f"{method}_random_low": number_column([over.low for over in drawn]),
            f"{method}_random_high": number_column([over.high for over in drawn]),
        }
    return pa.table(columns)
