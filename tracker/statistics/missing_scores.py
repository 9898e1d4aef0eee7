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
    shares, matrix = _column_equations(measured)
    target = scores.sum(axis=0) - shares.T @ scores.sum(axis=1)
    column = np.where(n_column > 0, np.linalg.lstsq(matrix, target, rcond=None)[0], np.nan)
    rest = scores.sum(axis=1) - measured @ np.nan_to_num(column)
    row = np.divide(rest, n_row, out=np.full(len(Q), np.nan), where=n_row > 0)
    return np.asarray(row[:, None] + column)


def linearize_imputed(
    Q: NDArray[np.float64],
    filled: NDArray[np.float64],
    columns: NDArray[np.bool_],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return scores with the means of the imputed ones, whose errors include those of the imputation.

    An imputed score depends on all scores of its row and of its column. The effect of each row on a column's mean, to
    first order, is the row's score plus what its residuals change in the imputed scores. Sample variances of these
    values, plain, clustered or stratified, are those of the means and of their differences. Columns without a missing
    score are returned as they are.

    Args:
        Q: ``(n, k)`` scores, NaN = missing; `impute` has a value for each of ``columns``.
        filled: ``(n, c)`` the chosen columns, with imputed scores that may be cut to bounds.
        columns: ``(k,)`` the c columns.
        weights: ``(n,)`` positive weights of the rows in the means; None for equal weights.

    Source: Deville 1999, "Variance estimation for complex statistics and estimators: linearization and residual
    techniques".
    """
    measured, fitted = ~np.isnan(Q), impute(Q)
    if measured[:, columns].all():
        return filled
    weights = np.ones(len(Q)) if weights is None else weights
    shares, matrix = _column_equations(measured)
    residuals = np.where(measured, Q - np.nan_to_num(fitted), 0.0)
    # A score that is cut to a bound does not follow the fit.
    follows = ~measured[:, columns] & np.isclose(filled, fitted[:, columns], rtol=1e-12, atol=0.0)
    weighted = follows * weights[:, None]
    slopes = np.eye(Q.shape[1])[columns] * weighted.sum(axis=0)[:, None] - weighted.T @ shares
    influence = residuals @ np.linalg.pinv(matrix, hermitian=True) @ slopes.T
    return np.asarray(filled + influence / weights[:, None])


def _column_equations(measured: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each score's share of its row, ``(n, k)``, and the normal equations of the columns, ``(k, k)``.

    The rows' effects are eliminated from the normal equations, which leaves one equation per column.
    """
    n_row = measured.sum(axis=1)[:, None]
    shares = np.divide(measured, n_row, out=np.zeros(measured.shape), where=n_row > 0)
    return shares, np.diag(measured.sum(axis=0).astype(np.float64)) - measured.T.astype(np.float64) @ shares
