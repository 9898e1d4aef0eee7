"""Reports of SWE-bench: <model>.<run id>.json, with the resolved instances.

Resolved is 1, unresolved 0. An empty patch is 0, or missing with ``--empty missing``. A failed evaluation is missing,
or 0 with ``--errored wrong``. An instance that was not submitted is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, describe_policy
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import count, first_bytes, version_warning
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.measurement import (
    Measurement,
    MetricDescription,
    ReadOptions,
    RunDescription,
)

SPECIFICITY = 30
RECOGNIZED_BY = "<model>.<run id>.json with counts of instances"
NAMESPACE = "swe_bench"
BENCHMARK = "swe-bench"
VERSIONS = (2,)
START = re.compile(rb'\s*\{\s*"(?:total|submitted|completed|resolved|unresolved|empty_patch|error)_(?:instances|ids)"')
INSTANCE_START = re.compile(rb'\s*\{\s*"[^"]{1,200}"\s*:\s*\{\s*"(?:patch_is_None|patch_exists)"')
SUBMISSION = re.compile(r"\d{8}_(?P<name>.+)")
"""Folder of a submission, with the report results/results.json."""
INSTANCE = re.compile(r"(?P<owner>.+?)__(?P<repository>.+)-[^-]+")
OUTCOMES = ("resolved", "unresolved", "empty_patch", "error", "incomplete")
"""Outcomes of an instance; `completed` and `submitted` are sums of them."""


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a report of SWE-bench."""
    if not re.search(r"\.json(\.gz)?$", path.name):
        return "the name does not end in .json"
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    if INSTANCE_START.match(data):
        return Mismatch("it reports a single instance; ingest the report on all of them, <model>.<run id>.json", 0.9)
    return None if START.match(data) else "it does not start with SWE-bench's counts of instances"


def harness_name(path: Path) -> str | None:
    """Return the program; its reports do not contain the version."""
    return "swebench"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield one score per instance.

    Raises:
        BadInputError: the file is not a report, or its counts contradict its lists.
    """
    report = read_json(path)
    if not isinstance(report, dict) or not any(f"{outcome}_ids" in report for outcome in OUTCOMES[:2]):
        raise BadInputError(path, "lists no resolved or unresolved instances, so it is not a report of SWE-bench.")
    if warning := version_warning("schema_version", report.get("schema_version"), VERSIONS):
        yield warning
    instances, differing = _instances(path, report)
    model, run_id = _names(path, options)
    run = RunDescription(model=model, benchmark=options.benchmark or BENCHMARK, label=run_id)
    metric = MetricDescription(name=options.metric or "resolved", higher_is_better=True, lower=0.0, upper=1.0)
    errored, empty = options.errored or "missing", options.empty or "wrong"
    values = {"resolved": 1.0, "unresolved": 0.0}
    values |= {name: 0.0 for name, policy in (("error", errored), ("empty_patch", empty)) if policy == "wrong"}
    builder = BlockBuilder(run, NAMESPACE, path.name)
    for instance, outcome in instances.items():
        row = builder.row(repository(instance), instance)
        if outcome in values:
            builder.score(row, metric, values[outcome])
        if outcome in ("error", "empty_patch"):
            builder.answer(row, None, status="error" if outcome == "error" else "empty")
        if builder.is_full:
            yield from builder.blocks()
    yield from builder.blocks()
    yield from differing
    counts = {outcome: sum(instance == outcome for instance in instances.values()) for outcome in OUTCOMES}
    yield ", ".join(f"{counts[outcome]:,} {outcome.replace('_', ' ')}" for outcome in OUTCOMES) + " instances"
    if counts["error"]:
        yield describe_policy(counts["error"], ERRORED, errored, "evaluation failed|evaluations failed")
    if counts["empty_patch"]:
        yield describe_policy(counts["empty_patch"], EMPTY, empty, "patch is empty|patches are empty")
    if not options.benchmark:
        yield f"the report does not name its SWE-bench subset; stored as {BENCHMARK} (change with --benchmark)"


def _instances(path: Path, report: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the outcome of each instance, and warnings about contradictory totals."""
    problems: list[str] = []
    outcomes: dict[str, str] = {}
    ids_by_list: dict[str, set[str]] = {}
    if "resolved_ids" not in report and isinstance(report.get("resolved"), list):
        report = {**report, "resolved_ids": report["resolved"]}  # reports of Multi-SWE-bench
    for name in (*OUTCOMES, "completed", "submitted"):
        ids = report.get(f"{name}_ids", [])
        if not isinstance(ids, list) or not all(isinstance(instance, str) and instance.strip() for instance in ids):
            problems.append(f"{name}_ids is not a list of names")
            continue
        ids_by_list[name] = set(ids)
        if len(ids_by_list[name]) != len(ids):
            problems.append(f"{name}_ids lists an instance twice")
        count_field = report.get(f"{name}_instances")
        if count_field is not None and f"{name}_ids" in report and count(count_field) != len(ids):
            problems.append(f"{name}_instances is {str(count_field)[:40]}, but {name}_ids lists {len(ids):,}")
        for instance in ids if name in OUTCOMES else ():
            if instance in outcomes and outcomes[instance] != name:
                problems.append(
                    f"{instance} is listed as {outcomes[instance].replace('_', ' ')} and as {name.replace('_', ' ')}"
                )
            outcomes.setdefault(instance, name)
    if problems:
        raise BadInputError(path, problems, advice="Create the report again with SWE-bench.")
    if lost := sorted(ids_by_list["completed"] - outcomes.keys()):
        raise BadInputError(path, f"{lost[0]} is completed but neither resolved nor unresolved.")
    # Submitted, but neither completed nor failed: the evaluation was interrupted.
    outcomes.update(dict.fromkeys(sorted(ids_by_list["submitted"] - outcomes.keys()), "incomplete"))
    total = report.get("total_instances")
    differing = []
    if total is not None and count(total) != len(outcomes):
        differing = [f"total_instances is {str(total)[:40]}, but the lists name {len(outcomes):,} instances"]
    return outcomes, differing


def _names(path: Path, options: ReadOptions) -> tuple[str, str]:
    """Return model and run from the folder of a submission, or from the file name <model>.<run id>.json.

    The file name has two underscores for a slash.
    """
    stem = re.sub(r"\.json(\.gz)?$", "", path.name)
    model, dot, run_id = stem.rpartition(".")
    submission = SUBMISSION.fullmatch(path.absolute().parent.parent.name) if stem == "results" else None
    model = options.model or (submission["name"] if submission else model.replace("__", "/"))
    if submission:
        return model, submission[0]
    if not model.strip():
        problem = f"the file name {path.name!r} is not <model>.<run id>.json, so the model is unknown"
        raise BadInputError(path, problem, advice="Name the model with --model NAME.")
    return model, run_id if dot else ""


def repository(instance: str) -> str:
    """Return the repository of an instance: django/django for django__django-11099; '' if it has none."""
    match = INSTANCE.fullmatch(instance)
    return f"{match['owner']}/{match['repository']}" if match else ""
