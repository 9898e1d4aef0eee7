"""Pairs of models that carry the excess variance of the similarity of prompts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from analyses.presentation.table_columns import number_column
from tracker.queries.related_models.related import RelatedModels
from tracker.queries.related_models.related_pairs import describe_pair

MAX_PAIRS = 3
MOST = 0.5
"""Pairs are named until they carry this share of the excess."""


def list_model_pairs(related: RelatedModels) -> pa.Table | None:
    """List all pairs of models, those that add most to the excess first; None where pairs are not compared."""
    errors = related.errors
    if errors is None:
        return None
    order, share = _order_by_share(related)
    i, j = order[:, 0], order[:, 1]
    columns = {"n": errors.n, "agreement": errors.agreement, "expected": errors.expected_agreement}
    columns |= {"excess": errors.excess, "z": errors.z, "pvalue": errors.holm}
    return pa.table(
        {
            "model": pa.array([related.models[column] for column in i.tolist()], pa.string()),
            "other": pa.array([related.models[column] for column in j.tolist()], pa.string()),
        }
        | {name: number_column(values[i, j]) for name, values in columns.items()}
        | {"share_of_excess": number_column(share), "near_copy": related.near_copies[i, j]}
    )


def _order_by_share(related: RelatedModels) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of columns, and the share of the excess of each, the largest first; NaN without an excess."""
    assert related.errors is not None
    i, j = np.triu_indices(len(related.models), 1)
    part = related.errors.excess_variance[i, j]
    order = np.argsort(-part, kind="stable")
    total = part.sum()
    share = part / total if total > 0 else np.full(part.size, np.nan)
    return np.column_stack([i, j])[order], share[order]


def describe_model_pairs(related: RelatedModels) -> str:
    """Return a sentence that names the pairs that carry most of the excess; '' without an excess."""
    if related.errors is None:
        return ""
    parts = list(_list_largest(related))
    return f"Pairs of models with the largest shares of the excess: {'; '.join(parts)}." if parts else ""


def _list_largest(related: RelatedModels) -> Iterator[str]:
    pairs, shares = _order_by_share(related)
    carried = 0.0
    for number, ((i, j), share) in enumerate(zip(pairs.tolist(), shares.tolist(), strict=True)):
        if np.isnan(share) or number == MAX_PAIRS or carried >= MOST:
            return
        agreement = f"; {describe_pair(related, i, j)}" if number == 0 else ""
        yield f"{related.models[i]} and {related.models[j]} ({min(share, 1):.0%}{agreement})"
        carried += share
