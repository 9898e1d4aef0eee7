"""Linear programs with whole numbers, solved by HiGHS: a solution, and a bound that holds when time runs out."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

INTEGRALITY_TOLERANCE = 1e-3
"""A bound this little below a whole number may be that number."""
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2
_STDOUT_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class IntegerSolution:
    """What was found. It is HiGHS's word, in floats: evaluate ``x`` exactly, take bounds from ``integer_bound``.

    Attributes:
        x: ``(n,)`` the best point found, whole variables rounded to whole numbers; None where none was found.
        value: of ``x``; -inf where none was found.
        upper_bound: no point has a larger value; -inf where no point is feasible, inf where nothing is known.
        is_optimal: ``value`` is proven to be the largest.
        is_infeasible: there is proven to be no point.
    """

    x: NDArray[np.float64] | None
    value: float
    upper_bound: float
    is_optimal: bool
    is_infeasible: bool

    @property
    def integer_bound(self) -> int:
        """The bound where all values are whole numbers and ``upper_bound`` is finite."""
        return int(np.floor(self.upper_bound + INTEGRALITY_TOLERANCE))


def maximize(
    objective: ArrayLike,
    matrix: Any,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    bounds: tuple[ArrayLike, ArrayLike] = (0, 1),
    integrality: ArrayLike = 1,
    time_limit: float,
) -> IntegerSolution:
    """Maximise ``objective @ x`` where ``lower <= matrix @ x <= upper``; nothing is printed.

    Args:
        objective: ``(n,)``.
        matrix: ``(n_rows, n)`` dense or sparse; coefficients should be at most about 1, as tolerances are absolute.
        lower, upper: ``(n_rows,)`` or numbers; infinite where there is no limit.
        bounds: least and largest ``x``, each ``(n,)`` or a number.
        integrality: ``(n,)`` or a number: 1 = whole, 0 = any.
        time_limit: seconds; nothing is tried where it is not positive.
    """
    gains = np.asarray(objective, dtype=np.float64)
    if time_limit <= 0:
        return IntegerSolution(x=None, value=-np.inf, upper_bound=np.inf, is_optimal=False, is_infeasible=False)
    whole = np.broadcast_to(np.asarray(integrality), gains.shape)
    with _silence():
        result = milp(
            -gains,
            constraints=LinearConstraint(matrix, lower, upper) if matrix.shape[0] else None,
            bounds=Bounds(*bounds),
            integrality=whole,
            options={"time_limit": float(time_limit), "mip_rel_gap": 0.0},
        )
    if result.status == _INFEASIBLE:
        return IntegerSolution(x=None, value=-np.inf, upper_bound=-np.inf, is_optimal=False, is_infeasible=True)
    x = None if result.x is None else np.where(whole == 1, np.round(result.x), result.x)
    value = -np.inf if x is None else float(gains @ x)
    dual = result.mip_dual_bound if whole.any() else result.fun
    upper_bound = -float(dual) if dual is not None and result.status in (_OPTIMAL, _LIMIT) else np.inf
    return IntegerSolution(
        x=x,
        value=value,
        upper_bound=upper_bound,
        is_optimal=result.status == _OPTIMAL and x is not None,
        is_infeasible=False,
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Send file descriptor 1 away: HiGHS prints to it from C++, past ``sys.stdout``, whatever its options say."""
    with _STDOUT_LOCK:
        try:
            saved_stdout = os.dup(1)
        except OSError:  # there is no standard output to keep clean
            yield
            return
        null_device = os.open(os.devnull, os.O_WRONLY)
        try:
            _flush()
            os.dup2(null_device, 1)
            yield
        finally:
            _flush()
            os.dup2(saved_stdout, 1)
            os.close(saved_stdout)
            os.close(null_device)


def _flush() -> None:
    """Empty the buffers of Python and of C, so that each line goes where it was written to."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)
