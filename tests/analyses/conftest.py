"""Real score tables for the analyses' tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pandas as pd
import pytest
from performance_matrices import matrix

from tracker.queries.performance import PerformanceMatrix


def _read(path: Path) -> PerformanceMatrix:
    frame = pd.read_csv(path, index_col=0)
    return matrix(frame.to_numpy(dtype=np.float64), tuple(frame.columns))


@pytest.fixture(scope="session")
def mmlu_pro(shared: Path) -> PerformanceMatrix:
    """1,200 prompts by 12 models, 0 and 1, complete."""
    return _read(shared / "data/mmlu_pro/scores_1200x12.csv")


@pytest.fixture(scope="session")
def mmlu_pro_full(shared: Path) -> PerformanceMatrix:
    """12,032 prompts by 29 models, 0 and 1, 1,713 missing."""
    return _read(shared / "data/mmlu_pro/scores_wide.csv.gz")


@pytest.fixture(scope="session")
def alpaca_eval(shared: Path) -> PerformanceMatrix:
    """797 prompts by 57 models in [0, 1]: complete rows, without the model that always scores 0.5."""
    frame = pd.read_csv(shared / "data/alpaca_eval/scores_wide.csv.gz", index_col=0)
    frame = frame.drop(columns="gpt4_1106_preview").dropna()
    return matrix(frame.to_numpy(dtype=np.float64), tuple(frame.columns))


@pytest.fixture(scope="session")
def expected(shared: Path) -> dict:
    """Reference values on these tables."""
    return orjson.loads((shared / "reference/prompt_level.json").read_bytes())
