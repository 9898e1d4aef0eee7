"""A report of SWE-bench, of made-up instances."""

from __future__ import annotations

import json

from tracker.ingest.measurement import ReadOptions

RESOLVED, UNRESOLVED = ["org__tool-1", "org__tool-2"], ["org__tool-3", "a__b__c-4"]
EMPTY, ERROR, INCOMPLETE = ["other__lib-x-5"], ["other__lib-x-6"], ["org__tool-7"]
REPORT = {
    "total_instances": 7,
    "submitted_instances": 6,
    "completed_instances": 4,
    "resolved_instances": 2,
    "unresolved_instances": 2,
    "empty_patch_instances": 1,
    "error_instances": 1,
    "completed_ids": RESOLVED + UNRESOLVED,
    "incomplete_ids": INCOMPLETE,
    "empty_patch_ids": EMPTY,
    "submitted_ids": RESOLVED + UNRESOLVED + EMPTY + ERROR,
    "resolved_ids": RESOLVED,
    "unresolved_ids": UNRESOLVED,
    "error_ids": ERROR,
    "schema_version": 2,
}
FILES = {"org__model-1.5.run7.json": json.dumps(REPORT, indent=4).encode()}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", empty="missing", model="m")]
