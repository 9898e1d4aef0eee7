"""Files of Every Eval Ever: aggregates with instances, without, of the version before, and instances alone."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tracker.ingest.measurement import ReadOptions

ID = "capitals/org_model/1750000000.5"
FOLDER = "data/capitals/org/model"
STEM = "11111111-2222-4333-8444-555555555555"
AGGREGATE, SAMPLES = f"{FOLDER}/{STEM}.json", f"{FOLDER}/{STEM}_samples.jsonl"


def result(name: str, value: Any, metric: str | None = "accuracy", **changes: Any) -> dict[str, Any]:
    """A result; what is given as ``config``, ``details`` or ``source`` is added there."""
    config = {"lower_is_better": False, "score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    config |= {} if metric is None else {"metric_id": metric}
    source = {"dataset_name": name, "source_type": "hf_dataset"} | changes.pop("source", {})
    details = {"score": value} | changes.pop("details", {})
    return {
        "evaluation_result_id": f"{name}/{metric}",
        "evaluation_name": name,
        "source_data": source,
        "metric_config": config | changes.pop("config", {}),
        "score_details": details,
        **changes,
    }


def aggregate(*results: Any, **changes: Any) -> dict[str, Any]:
    result = {
        "schema_version": "0.3.0",
        "evaluation_id": ID,
        "evaluation_timestamp": "1750000000",
        "retrieved_timestamp": "1750000001",
        "source_metadata": {
            "source_name": "Capitals",
            "source_type": "evaluation_run",
            "source_organization_name": "Somebody",
            "evaluator_relationship": "third_party",
        },
        "eval_library": {"name": "asker", "version": "1.2"},
        "model_info": {
            "name": "model",
            "id": "org/model",
            "developer": "Organization",
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "open_weights",
                "params_billions": 7.5,
            },
        },
        "evaluation_results": list(results),
    }
    return {**result, **changes}


def instance(number: int, name: str, value: Any, metric: str = "accuracy", **changes: Any) -> dict[str, Any]:
    output = changes.pop("answer", "B")
    requested = {"raw": f"Which is right, {number}?", "reference": ["yes"], "choices": ["no", "yes"]}
    result = {
        "schema_version": "0.3.0",
        "evaluation_id": ID,
        "model_id": "org/model",
        "evaluation_name": name,
        "evaluation_result_id": f"{name}/{metric}",
        "sample_id": f"q{number}",
        "sample_hash": f"{number:064x}",
        "interaction_type": "single_turn",
        "input": requested | changes.pop("input", {}),
        "output": {"raw": [f"It is {output}."]},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": output,
                "extraction_method": "regex",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": value, "is_correct": value == 1},
        "metadata": {"subject": "geography"},
    }
    return {**result, **changes}


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def with_instances(rows: bytes, *results: Any, path: str = SAMPLES, **changes: Any) -> dict[str, bytes]:
    """An aggregate and its instances, by path."""
    result = {
        "format": "jsonl",
        "file_path": path,
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(rows).hexdigest(),
        "total_rows": rows.count(b"\n"),
    }
    main = aggregate(*results, **{"detailed_evaluation_results": result, **changes})
    return {path.replace("_samples.jsonl", ".json"): json.dumps(main, indent=2).encode(), path: rows}


ROWS = (
    instance(0, "capitals.europe", 1.0),
    instance(0, "capitals.europe", 0.25, "f1"),
    instance(1, "capitals.europe", 0.0, answer="A"),
    instance(1, "capitals.europe", 0.75, "f1", answer="A"),
    instance(1, "capitals.europe", 1.0),  # again: a second trial
    instance(2, "capitals.asia", 0.0, error="timeout", answer=""),
    instance(3, "capitals.asia", 0.0, answer="", output={"raw": [""]}),
)
RESULTS = (
    result("capitals.europe", 0.75),
    result("capitals.europe", 0.5, "f1"),
    result("capitals.asia", 0.0, details={"uncertainty": {"num_samples": 2, "standard_error": {"value": 0.0}}}),
    result("capitals.africa", 71.5, "acc", config={"max_score": 100.0, "metric_unit": "percent"},
           details={"uncertainty": {"num_samples": 200, "standard_error": {"value": 3.2}}}),
)  # fmt: skip
OLD = aggregate(
    result("IFEval", 0.4486, None, source={"hf_split": "test", "samples_number": 541}),
    result("BBH", 0.4224, None),
    schema_version="0.2.0",
    evaluation_id="board/org_model/1750000000.25",
)
ALONE = "data/x/org/other/99999999-2222-4333-8444-555555555555_samples.jsonl"
FILES = {
    **with_instances(lines(*ROWS), *RESULTS),
    "old.json": json.dumps(OLD).encode(),
    ALONE: lines(instance(0, "sums", 1), instance(1, "sums", 0.5, metadata=None, answer_attribution=[])),
}
OPTIONS = [
    ReadOptions(),
    ReadOptions(errored="wrong", empty="missing", metric="quality"),
    ReadOptions(splits=("test",)),
]


def resign(folder: Any, name: str) -> None:
    """Give a changed file of instances the checksum by which its aggregate knows it."""
    if name == SAMPLES:
        path, rows = folder / AGGREGATE, (folder / SAMPLES).read_bytes()
        result = json.loads(path.read_bytes())
        count = sum(bool(line.strip()) for line in rows.split(b"\n"))
        result["detailed_evaluation_results"] |= {"checksum": hashlib.sha256(rows).hexdigest(), "total_rows": count}
        path.write_text(json.dumps(result))
