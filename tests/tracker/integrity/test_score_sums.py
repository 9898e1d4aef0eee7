"""The compiled comparison of scores with checksums equals the checksums that imports write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.ingest.write.checksums import compute_checksum
from tracker.ingest.write.score_columns import TRIAL_BITS, ScoreColumn
from tracker.recording.checks.score_sums import match_checksums

N_RUNS, N_METRICS, N_PROMPTS = 4, 3, 5
KEYS = st.tuples(
    st.integers(1, N_RUNS), st.integers(1, N_METRICS), st.integers(1, N_PROMPTS), st.integers(0, (1 << TRIAL_BITS) - 1)
)
SCORES = st.dictionaries(KEYS, st.floats(allow_nan=False), max_size=30)
PARENTS = {
    "run_id": np.arange(N_RUNS + 1) > 0,
    "metric_id": np.arange(N_METRICS + 1) > 0,
    "prompt_id": np.arange(N_PROMPTS + 1) > 0,
}
NONE = np.zeros(5, dtype=bool)
FOURTH = np.arange(5) == 4


def list_runs(scores: dict[Any, float]) -> list[dict[str, Any]]:
    """The runs as an import stores them, with the checksum of their columns."""
    runs = []
    for run in range(1, N_RUNS + 1):
        columns = []
        for metric in range(1, N_METRICS + 1):
            rows = {key: score for key, score in scores.items() if key[:2] == (run, metric)}
            keys = np.array([prompt << TRIAL_BITS | trial for *_, prompt, trial in rows], dtype=np.int64)
            columns.append(ScoreColumn(metric_id=metric, keys=keys, values=np.array(list(rows.values()), dtype=float)))
        n_scores = sum(key[0] == run for key in scores)
        runs.append({"id": run, "n_scores": n_scores, "checksum": compute_checksum(columns)})
    return runs


def batches(scores: dict[Any, float], size: int) -> Iterator[Any]:
    rows = list(scores.items())
    for start in range(0, len(rows), size):
        keys = np.array([key for key, _ in rows[start : start + size]], dtype=np.int64).T
        values = np.array([value for _, value in rows[start : start + size]], dtype=float)
        yield keys[0], keys[1], keys[2] << TRIAL_BITS | keys[3], values


def changed(score: float) -> float:
    """The score with its last bit changed."""
    return float((np.array([score]).view(np.int64) ^ 1).view(float)[0])


@settings(max_examples=60, deadline=None)
@given(SCORES, st.integers(1, 8), st.data())
def test_scores_match_as_stored_and_not_after_any_change(scores: dict[Any, float], size: int, data: Any) -> None:
    runs = list_runs(scores)
    assert match_checksums(runs, PARENTS, batches(scores, size))

    if scores:
        key = data.draw(st.sampled_from(sorted(scores)))
        assert not match_checksums(runs, PARENTS, batches({**scores, key: changed(scores[key])}, size))
        assert not match_checksums(runs, PARENTS, batches({k: v for k, v in scores.items() if k != key}, size))
    key = data.draw(KEYS.filter(lambda key: key not in scores))
    assert not match_checksums(runs, PARENTS, batches({**scores, key: 0.0}, size))


@pytest.mark.parametrize(("place", "name"), list(enumerate(PARENTS)))
@pytest.mark.parametrize("key", [-1, 0, 4, 99])
def test_scores_match_only_if_their_rows_exist(place: int, name: str, key: int) -> None:
    # Arrange: one score, whose checksum is right whether its run, metric or prompt exists or not.
    row = [1, 1, 1]
    row[place] = key
    columns = [ScoreColumn(metric_id=row[1], keys=np.array([row[2] << TRIAL_BITS]), values=np.array([0.5]))]
    runs = [{"id": row[0], "n_scores": 1, "checksum": compute_checksum(columns)}] if 0 <= row[0] < 5 else []
    scores = {(*row, 0): 0.5}

    # Act
    matches = [match_checksums(runs, {**PARENTS, name: exists}, batches(scores, 1)) for exists in (NONE, FOURTH)]

    # Assert
    assert matches == [False, key == 4]
