"""Columns that several tables are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def number_column(values: Any) -> pa.Array:
    """Floats; null where there is no number (NaN or None)."""
    return pa.array(np.asarray(values, dtype=np.float64), pa.float64(), from_pandas=True)
