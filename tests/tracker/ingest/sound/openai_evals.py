"""Logs of openai/evals: with matches, with metrics, and broken off."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions

RUN = "260102030405ABCD"


def spec(**changes: Any) -> dict[str, Any]:
    result = {
        "completion_fns": ["org/model", "org/grader"],
        "eval_name": "capitals.test.v1",
        "base_eval": "capitals",
        "split": "test",
        "run_config": {"seed": 7, "eval_spec": {"cls": "a:B"}},
        "created_by": "",
        "run_id": RUN,
        "created_at": "2026-01-02 03:04:05.5",
    }
    return {"spec": {**result, **changes}}


def event(sample: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"run_id": RUN, "event_id": 1, "sample_id": sample, "type": kind, "data": data, "created_at": "2026"}


def requested(sample: str, question: str, output: Any) -> dict[str, Any]:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    return event(sample, "sampling", prompt=chat, sampled=output)


def lines(*events: Any) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


MATCHES = (
    spec(),
    requested("capitals.0", "Capital of Peru?", ["Lima"]),
    requested("capitals.1", "Capital of Chad?", ["Cairo"]),  # events of several samples stand among each other
    event("capitals.0", "match", correct=True, expected="Lima", picked="Lima", sampled="Lima"),
    event("capitals.1", "match", correct=False, expected=["N'Djamena", "Ndjamena"], picked=None, sampled="Cairo"),
    requested("capitals.0", "Capital of Peru?", ["Quito"]),
    event("capitals.0", "match", correct=False, expected="Lima", picked="Quito", sampled="Quito"),
    event("capitals.2", "raw_sample", input="Capital of Fiji?", ideal="Suva"),
    event("capitals.2", "error", type="Timeout", message="too slow"),
    event("capitals.3", "match", correct=False, expected="Oslo", picked=None, sampled=""),
    {"final_report": {"accuracy": 0.25, "boostrap_std": 0.1}, "run_id": RUN},
)
METRICS = (
    spec(base_eval=None, eval_name="essays", completion_fns=["m"]),
    event("e.0", "sampling", prompt="Write.", sampled="Once upon a time"),
    event("e.0", "metrics", choice="Y", f1=0.5, length=4, kept=True),
    event("e.1", "sampling", prompt="Write more.", sampled=["Then"]),
    event("e.1", "metrics", f1=1.0, length=1, kept=False),
    {"final_report": {"f1": 0.75}},
)
FILES = {"matches.jsonl": lines(*MATCHES), "metrics.jsonl": lines(*METRICS), "crashed.jsonl": lines(*MATCHES[:5])}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", empty="missing", metric="accuracy")]
