"""Graded samples of LiveCodeBench."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def problem(key: str, graded: list[bool], **fields: Any) -> dict[str, Any]:
    return {
        "question_title": "Sum",
        "question_content": f"Print the sum {key}.",
        "platform": "leetcode",
        "question_id": key,
        "contest_id": "weekly-contest-1",
        "contest_date": "2024-01-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "output_list": [f"print({n})" for n in range(len(graded))],
        "code_list": ["print()"] * len(graded),
        "graded_list": graded,
        "pass@1": sum(graded) / len(graded),
        "metadata": ["{}"] * len(graded),
    } | fields


PROBLEMS = [problem("2727", [True, False, False]), problem("2728", [True] * 3), problem("abc_a", [False] * 3)]
TESTS = [problem("1", [True], test_id=0), problem("1", [False], test_id=1)]
FILES = {
    "output/Model-9B/Scenario.codegeneration_3_0.2_eval_all.json": json.dumps(PROBLEMS, indent=4).encode(),
    "output/Model-9B/testoutputprediction_1_0.0_cot_eval_all.json": json.dumps(TESTS).encode(),
}
OPTIONS = [ReadOptions(), ReadOptions(model="m")]
