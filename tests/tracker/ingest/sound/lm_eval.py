"""Output of lm-evaluation-harness: options and written answers, of this year and of 2023; results with and without."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tracker.ingest.measurement import ReadOptions

STAMP, OLD = "2026-01-02T03-04-05", "2023-05-06T07-08-09.101112"


def chosen(number: int, **changes: Any) -> dict[str, Any]:
    """A sample with options."""
    return {
        "doc_id": number,
        "doc": {"question": f"Why {number}?", "choices": ["a", "b"], "level": 3},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}},
        "resps": [[["-1.0", "False"]], [["-2.0", "False"]]],
        "filtered_resps": [["-1.0", "False"], ["-2.0", "False"]],
        "filter": "none",
        "metrics": ["acc", "f1"],
        "doc_hash": f"hash{number % 2}",
        "acc": 1.0,
        "f1": [0, 1],
    } | changes


def written(number: int, filter_name: str, output: str, right: float) -> dict[str, Any]:
    """A sample for which the model was to write, as one filter reads it."""
    return {
        "doc_id": number,
        "doc": {"problem": f"1 + {number}"},
        "target": str(1 + number),
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["\\n"]}}},
        "resps": [[f"It is {output}."]],
        "filtered_resps": [output],
        "filter": filter_name,
        "metrics": ["exact_match"],
        "exact_match": right,
    }


def first_version(number: int) -> dict[str, Any]:
    """A sample as it was logged at first: lists, numbers, no hash, no names of metrics."""
    return {
        "doc_id": number,
        "doc": {"goal": f"To do {number}", "endings": ["x", "y"]},
        "target": 0,
        "arguments": [["Q", " x"], ["Q", " y"]],
        "resps": [[[-1.5, True]], [[-2.5, False]]],
        "filtered_resps": [[-1.5, True], [-2.5, False]],
        "acc": 1,
        "acc_norm": True,
    }


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


RESULTS = {
    "results": {"t": {"acc,none": 1.0}, "w": {}, "u": {"acc,none": 0.5, "acc_stderr,none": 0.1, "alias": "u"}},
    "group_subtasks": {"g": ["t", "u"], "w": []},
    "configs": {"t": {"test_split": "test", "doc_to_text": "{{question}}"}},
    "versions": {"t": 1.0},
    "n-shot": {"t": 0, "u": 0, "w": 5},
    "higher_is_better": {"t": {"acc": True}},
    "n-samples": {"u": {"original": 3, "effective": 3}},
    "config": {"model": "hf", "model_args": "pretrained=org/model", "limit": None, "model_num_parameters": 7},
    "date": 1767323045.5,
    "lm_eval_version": "0.4.9",
}
FILES = {
    f"org__model/results_{STAMP}.json": json.dumps(RESULTS, indent=2).encode(),
    f"org__model/samples_t_{STAMP}.jsonl": lines(*(chosen(number) for number in range(4)), chosen(1)),
    f"org__model/samples_w_{STAMP}.jsonl": lines(
        *(written(number, "strict", str(1 + number), 1.0) for number in range(3)),
        *(written(number, "flexible", "[invalid]", 0.0) for number in range(3)),
    ),
    f"samples_old_{OLD}.jsonl.gz": gzip.compress(lines(*map(first_version, range(3))), mtime=0),
}
OPTIONS = [ReadOptions(model="org/model"), ReadOptions(model="other", benchmark="b")]
