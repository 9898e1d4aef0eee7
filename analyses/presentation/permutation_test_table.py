"""The table of the statistics of a permutation test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from tracker.statistics.resampling import PermutationTest


def list_statistics(
    comparisons: Mapping[str, PermutationTest],
    keys: Sequence[str],
    pvalues: Sequence[str],
    reported: Mapping[str, Collection[str]] | None = None,
) -> pa.Table:
    """List each statistic with its null mean, null standard deviation and p-values.

    Args:
        comparisons: by name, which has as many words with dots between them as there are keys.
        keys: columns of the words of the name.
        pvalues: columns of p-values.
        reported: p-values of each statistic; None for all.
    """
    rows = [
        {
            **dict(zip(keys, name.split(".") if len(keys) > 1 else [name], strict=True)),
            "observed": c.observed,
            "null_mean": c.null_mean,
            "null_sd": c.null_sd,
            **{p: None if c.reason or (reported and p not in reported[name]) else getattr(c, p) for p in pvalues},
            "discrete": c.is_discrete,
            "reason": c.reason or None,
        }
        for name, c in comparisons.items()
    ]
    numbers = ("observed", "null_mean", "null_sd", *pvalues)
    fields = [*((key, pa.string()) for key in keys), *((number, pa.float64()) for number in numbers)]
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, ("discrete", pa.bool_()), ("reason", pa.string())]))
