"""How stable a filter is, as tables: by size, by subset, by encoder, by two encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.stability import SubsetDecisions, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import EncoderOverlap, EncoderResult

BETWEEN = "; "
"""Between the models of a subset."""


def shares(decided: SubsetDecisions) -> Mapping[str, NDArray[np.float64]]:
    """What is told of every subset, as shares of all prompts."""
    return {
        "removed": decided.share_removed,
        "changed": decided.share_changed,
        "easy": decided.n_easy / decided.n_prompts,
        "contaminated": decided.n_contaminated / decided.n_prompts,
    }


def by_size(decided: SubsetDecisions) -> pa.Table:
    """One row for each size, the largest last; that of all models has one subset."""
    sizes = np.unique(decided.sizes)
    columns: dict[str, Any] = {
        "n_models": sizes,
        "n_subsets": [int((decided.sizes == size).sum()) for size in sizes],
    }
    for name, values in shares(decided).items():
        told = [summarize_population(values[decided.sizes == size]) for size in sizes]
        columns |= {f"{name}_{what}": [getattr(one, what) for one in told] for what in ("mean", "sd", "min", "max")}
    return pa.table(columns)


def by_subset(decided: SubsetDecisions, models: Sequence[str]) -> pa.Table:
    """One row for each subset, that of all models last."""
    out = [[j for j in range(len(models)) if j not in subset] for subset in decided.subsets]
    return pa.table(
        {
            "n_models": decided.sizes,
            "models": [BETWEEN.join(models[j] for j in subset) for subset in decided.subsets],
            "left_out": [BETWEEN.join(models[j] for j in left) for left in out],
            "n_removed": decided.n_removed,
            "n_easy": decided.n_easy,
            "n_retained": decided.n_retained,
            "n_contaminated": decided.n_contaminated,
            "n_changed": decided.n_changed,
            **{f"share_{name}": values for name, values in shares(decided).items()},
        }
    )


def by_encoder(steps: Sequence[EncoderResult], keys: Sequence[int], recorded: NDArray[np.bool_]) -> pa.Table:
    """One row for each encoder.

    Args:
        steps: the similar step with each.
        keys: of the encoders.
        recorded: ``(n_prompts,)`` what the filter recorded as similar.
    """
    rows = [
        {
            "key": key,
            "encoder": one.encoder,
            "threshold": one.found.threshold if one.found else None,
            "chosen_by": one.found.chosen_by if one.found and one.found.threshold is not None else None,
            "n_maxima": len(one.found.density.maxima) if one.found else None,
            "n_pairs": one.found.n_pairs if one.found else None,
            "largest_group": one.found.largest_group if one.found else None,
            "n_flagged": int(one.found.step.flagged.sum()) if one.found and not one.found.reason else None,
            "n_removed": int(one.found.step.removed.sum()) if one.found and not one.found.reason else None,
            "is_recorded": bool(one.found and recorded.any() and np.array_equal(one.found.step.flagged, recorded)),
            "reason": one.reason,
        }
        for key, one in zip(keys, steps, strict=True)
    ]
    counts = ("n_maxima", "n_pairs", "largest_group", "n_flagged", "n_removed")
    kinds = {"key": pa.int64(), "encoder": pa.string(), "threshold": pa.float64(), "chosen_by": pa.string()}
    kinds |= dict.fromkeys(counts, pa.int64()) | {"is_recorded": pa.bool_(), "reason": pa.string()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def by_pair(steps: Sequence[EncoderResult], shared: Sequence[EncoderOverlap]) -> pa.Table:
    """Two rows for every two encoders: of the prompts flagged, and of the pairs that are near."""
    rows = []
    for pair in shared:
        for of in ("prompts", "pairs"):
            found = getattr(pair, of)
            row = {
                "first": steps[pair.first].encoder,
                "second": steps[pair.second].encoder,
                "of": of,
                "reason": pair.reason,
            }
            if found is not None:
                row |= {name: getattr(found, name) for name in ("n", "n_first", "n_second", "n_both", "expected")}
                row |= {"overlap": found.coefficient, "expected_overlap": found.expected_coefficient}
                row |= {"jaccard": found.jaccard}
            rows.append(row)
    kinds = {"first": pa.string(), "second": pa.string(), "of": pa.string()}
    kinds |= dict.fromkeys(("n", "n_first", "n_second", "n_both"), pa.int64())
    kinds |= dict.fromkeys(("expected", "overlap", "expected_overlap", "jaccard"), pa.float64())
    return pa.Table.from_pylist(rows, schema=pa.schema([*kinds.items(), ("reason", pa.string())]))
