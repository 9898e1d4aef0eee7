"""Stability of a filter as tables: by size, by subset, by encoder and by pair of encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.filter_stability.method import FilterStability
from analyses.numerics.filtering.effects.stability import summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import EncoderOverlap, EncoderResult

BETWEEN = "; "
"""Between the models of a subset."""


def list_by_size(finding: FilterStability) -> pa.Table:
    """List one row for each size, the largest last; that of all models has one subset."""
    decided = finding.decisions
    sizes = np.unique(decided.sizes)
    columns: dict[str, Any] = {
        "n_models": sizes,
        "n_subsets": [int((decided.sizes == size).sum()) for size in sizes],
    }
    for name, values in decided.shares.items():
        populations = [summarize_population(values[decided.sizes == size]) for size in sizes]
        columns |= {
            f"{name}_{statistic}": [getattr(population, statistic) for population in populations]
            for statistic in ("mean", "sd", "min", "max")
        }
    return _leave_undefined(pa.table(columns), finding)


def list_by_subset(finding: FilterStability) -> pa.Table:
    """List one row for each subset, that of all models last."""
    decided, models = finding.decisions, finding.filter_models
    out = [[j for j in range(len(models)) if j not in subset] for subset in decided.subsets]
    table = pa.table(
        {
            "n_models": decided.sizes,
            "models": [BETWEEN.join(models[j] for j in subset) for subset in decided.subsets],
            "left_out": [BETWEEN.join(models[j] for j in left) for left in out],
            "n_removed": decided.n_removed,
            "n_easy": decided.n_easy,
            "n_retained": decided.n_retained,
            "n_contaminated": decided.n_contaminated,
            "n_changed": decided.n_changed,
            **{f"share_{name}": values for name, values in decided.shares.items()},
        }
    )
    return _leave_undefined(table, finding)


def _leave_undefined(table: pa.Table, finding: FilterStability) -> pa.Table:
    """Return a table without numbers of contaminated prompts if no subset flags any."""
    for place, field in enumerate(table.schema):
        if finding.not_contaminated and "contaminated" in field.name:
            table = table.set_column(place, field, pa.nulls(table.num_rows, field.type))
    return table


def list_by_encoder(finding: FilterStability) -> pa.Table:
    """List one row for each encoder."""
    rows = [
        _encoder_row(key, encoder, finding.recorded_similar)
        for key, encoder in zip(finding.encoder_ids, finding.encoders, strict=True)
    ]
    counts = ("n_maxima", "n_pairs", "largest_group", "n_flagged", "n_removed")
    types = {"key": pa.int64(), "encoder": pa.string(), "threshold": pa.float64(), "chosen_by": pa.string()}
    types |= dict.fromkeys(counts, pa.int64()) | {"is_recorded": pa.bool_(), "reason": pa.string()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def _encoder_row(key: int, encoder: EncoderResult, recorded: NDArray[np.bool_]) -> dict[str, Any]:
    similar = encoder.similar
    row: dict[str, Any] = {"key": key, "encoder": encoder.encoder, "is_recorded": False, "reason": encoder.reason}
    if similar is None:
        return row
    row |= {
        "threshold": similar.threshold,
        "chosen_by": similar.chosen_by if similar.threshold is not None else None,
        "n_maxima": len(similar.density.maxima),
        "n_pairs": similar.n_pairs,
        "largest_group": similar.largest_group,
        "is_recorded": bool(recorded.any() and np.array_equal(similar.flags.flagged, recorded)),
    }
    if not similar.reason:
        row |= {"n_flagged": int(similar.flags.flagged.sum()), "n_removed": int(similar.flags.removed.sum())}
    return row


def list_by_pair(steps: Sequence[EncoderResult], shared: Sequence[EncoderOverlap]) -> pa.Table:
    """List two rows for every two encoders: of the prompts flagged, and of the pairs that are near."""
    rows = []
    for pair in shared:
        for of in ("prompts", "pairs"):
            overlap = getattr(pair, of)
            row = {
                "first": steps[pair.first].encoder,
                "second": steps[pair.second].encoder,
                "of": of,
                "reason": pair.reason,
            }
            if overlap is not None:
                row |= {name: getattr(overlap, name) for name in ("n", "n_first", "n_second", "n_both", "expected")}
                row |= {"overlap": overlap.coefficient, "expected_overlap": overlap.expected_coefficient}
                row |= {"jaccard": overlap.jaccard}
            rows.append(row)
    kinds = {"first": pa.string(), "second": pa.string(), "of": pa.string()}
    kinds |= dict.fromkeys(("n", "n_first", "n_second", "n_both"), pa.int64())
    kinds |= dict.fromkeys(("expected", "overlap", "expected_overlap", "jaccard"), pa.float64())
    return pa.Table.from_pylist(rows, schema=pa.schema([*kinds.items(), ("reason", pa.string())]))
