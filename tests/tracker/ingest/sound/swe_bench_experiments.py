"""Submissions of SWE-bench/experiments, with and without predictions."""

from __future__ import annotations

import json

from tracker.ingest.measurement import ReadOptions

RESOLVED, NO_PATCH, NO_LOGS = ["org__tool-1", "org__tool-2"], ["a__b__c-4"], ["other__lib-x-5"]
UNRESOLVED = ["org__tool-3"]
RESULTS = {"no_generation": NO_PATCH, "no_logs": NO_LOGS, "resolved": RESOLVED}
METADATA = """
assets: {logs: "s3://logs"}
info: {name: "Agent 1.0 (Model 4)", site: "https://example.org"}
tags: {checked: false, model: [model-4], org: [Org]}
"""
PREDICTIONS = "".join(
    json.dumps({"instance_id": name, "model_name_or_path": "agent", "model_patch": "diff"}) + "\n"
    for name in RESOLVED + UNRESOLVED + NO_LOGS
)
FIRST, SECOND = "verified/20250227_agent_model4", "lite/20231010_rag_model2"
FILES = {
    f"{FIRST}/results/results.json": json.dumps(RESULTS, indent=2).encode(),
    f"{FIRST}/metadata.yaml": METADATA.encode(),
    f"{FIRST}/all_preds.jsonl": PREDICTIONS.encode(),
    f"{SECOND}/results/results.json": json.dumps(RESULTS).encode(),
    f"{SECOND}/metadata.yaml": b"name: RAG + Model 2\noss: true\nverified: true\n",
}
OPTIONS = [ReadOptions(), ReadOptions(errored="missing", empty="missing", model="m")]
