"""Judgments of LiveBench, of two models, with the questions beside them."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def judgment(question: str, model: str, score: Any, time: float = 1.0) -> dict[str, Any]:
    return {
        "question_id": question, "task": "math_comp", "model": model, "score": score, "tstamp": time,
        "category": "math", "answer_id": "a", "subtask": "aime",
    }  # fmt: skip


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


JUDGMENTS = [
    judgment("q1", "model-1", 1),
    judgment("q1", "model-2", 0.25),
    judgment("q2", "model-1", 0),
    judgment("q2", "model-2", 1),
    judgment("q2", "model-1", 1, 2.0),
]
QUESTIONS = [{"question_id": "q1", "category": "math", "task": "math_comp", "turns": ["1 + 1?"]}]
FILES = {
    "math/math_comp/question.jsonl": lines(QUESTIONS),
    "math/math_comp/model_judgment/ground_truth_judgment.jsonl": lines(JUDGMENTS),
}
OPTIONS = [ReadOptions()]
