"""Fill missing scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def complete_rows(Q: NDArray[np.float64], columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether a row has a score in each of some columns, ``(n,)``.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        columns: ``(k,)`` columns to check.
    """
    return np.asarray(~np.isnan(Q)[:, columns].any(axis=1))


def fill_missing(
    Q: NDArray[np.float64], columns: NDArray[np.bool_], values: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return the scores, with ``values`` in place of missing ones in some columns.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.
        columns: ``(k,)`` columns to fill.
        values: a number, or ``(n, k)``.
    """
    return np.where(np.isnan(Q) & columns, values, Q)


def impute(Q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit row effect plus column effect to the existing scores by least squares, for every cell.

    Args:
        Q: ``(n, k)`` scores, NaN = missing.

    Returns:
        ``(n, k)`` fitted values; NaN throughout for a row or column without a score. If the scores fall into parts that
        share neither rows nor columns, the best fit with the smallest column effects is returned.
    """
    measured = ~np.isnan(Q)
    scores = np.where(measured, Q, 0.0)
    n_row, n_column = measured.sum(axis=1), measured.sum(axis=0)
    shares = np.divide(measured, n_row[:, None], out=np.zeros(Q.shape), where=n_row[:, None] > 0)
    # The rows' effects are eliminated from the normal equations, which leaves one equation per column.
    matrix = np.diag(n_column.astype(np.float64)) - measured.T.astype(np.float64) @ shares
    target = scores.sum(axis=0) - shares.T @ scores.sum(axis=1)
    column = np.where(n_column > 0, np.linalg.lstsq(matrix, target, rcond=None)[0], np.nan)
    rest = scores.sum(axis=1) - measured @ np.nan_to_num(column)
    row = np.divide(rest, n_row, out=np.full(len(Q), np.nan), where=n_row > 0)
    return np.asarray(row[:, None] + column)
