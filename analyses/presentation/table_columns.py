"""Columns that several tables share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def number_column(values: Any) -> pa.Array:
    """Return a column of floats; NaN and None become null."""
    return pa.array(np.asarray(values, dtype=np.float64), pa.float64(), from_pandas=True)
