"""Judgments of Arena-Hard, of versions 0.1 and 2, with the questions beside them."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def judgment(uid: str, first: str | None, second: str | None, **fields: Any) -> dict[str, Any]:
    games = [{"score": verdict, "judgment": {"answer": "text"}, "prompt": []} for verdict in (first, second)]
    row = {"uid": uid, "category": "hard_prompt", "judge": "judge-1", "model": "model-9b", "baseline": "o3"}
    return {**row, "games": games, **fields}


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


JUDGMENTS = [
    judgment("u1", "A>>B", "A>B"),  # three losses, one win
    judgment("u2", "B>A", "A=B"),
    judgment("u3", "B>>A", "A>>B"),
    judgment("u4", None, "A>B"),
]
GAMES = [{"user_prompt": "", "judgment": "", "score": "A>B"}] * 2
OLD = [{"question_id": "q1", "model": "old-model", "judge": "judge-1", "games": GAMES}]
FILES = {
    "arena-hard-v2.0/question.jsonl": lines([{"uid": "u1", "category": "hard_prompt", "prompt": "Prove it."}]),
    "arena-hard-v2.0/model_judgment/judge-1/model-9b.jsonl": lines(JUDGMENTS),
    "arena-hard-v0.1/question.jsonl": lines([{"question_id": "q1", "turns": [{"content": "Write it."}]}]),
    "arena-hard-v0.1/model_judgment/judge-1/old-model.jsonl": lines(OLD),
}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", model="m")]
