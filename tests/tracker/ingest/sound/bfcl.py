"""Score files of BFCL, with and without the result file that names all test cases."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


FAILED = {"id": "simple_1", "model_name": "model-9b-FC", "test_category": "simple", "valid": False, "error": ["x"]}
FILES = {
    "score/model-9b-FC/non_live/BFCL_v4_simple_score.json": lines(
        [{"accuracy": 0.75, "correct_count": 3, "total_count": 4}, FAILED]
    ),
    "result/model-9b-FC/non_live/BFCL_v4_simple_result.json": lines(
        [{"id": f"simple_{n}", "result": [{"f": "{}"}], "latency": 1.0} for n in range(4)]
    ),
    "score/model-9b-FC/BFCL_v3_live_multiple_score.json": lines(
        [{"accuracy": 0.5, "correct_count": 1, "total_count": 2}, {**FAILED, "id": "live_multiple_0-0-0"}]
    ),
}
OPTIONS = [ReadOptions(), ReadOptions(model="m")]
