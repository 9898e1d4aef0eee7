"""Results of EvalPlus, of this year and of its first versions."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def solution(task: str, base: str | None, plus: str | None, code: str = "return 1") -> dict[str, Any]:
    return {
        "task_id": task,
        "solution": code,
        "base_status": base,
        "plus_status": plus,
        "base_fail_tests": [],
        "plus_fail_tests": [[1, "x"]] if plus == "fail" else [],
    }


CODE = {
    "date": "2026-05-06 07:08",
    "hash": "0123abcd",
    "eval": {
        "HumanEval/0": [solution("HumanEval/0", "pass", "pass"), solution("HumanEval/0", "pass", "fail", "return 2")],
        "HumanEval/1": [solution("HumanEval/1", "timeout", "timeout"), solution("HumanEval/1", "fail", "pass")],
        "HumanEval/2": [solution("HumanEval/2", None, None), solution("HumanEval/2", "fail", "fail", " \n")],
    },
    "pass_at_k": {"base": {"pass@1": 1 / 3}, "plus": {"pass@1": 1 / 6}},
}
OLD = {
    "date": "2023-05-06 07:08",
    "hash": "0123abcd",
    "eval": {"Mbpp/2": {"nfiles": 2, "base": [["success", [True]], ["failed", []]], "plus": [["timeout", []], None]}},
}
FILES = {
    "org--model_vllm_temp_0.8.eval_results.json": json.dumps(CODE).encode(),
    "model-2_eval_results.json": json.dumps(OLD, indent=1).encode(),
}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", empty="missing")]
