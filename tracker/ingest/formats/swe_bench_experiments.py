"""Submissions of SWE-bench/experiments: results/results.json or per_instance_details.json, with the resolved instances.

The file lists no unresolved instances: all_preds.jsonl or preds.json of the submission names them. Without it, the
resolved share of the split is a task score. As on the leaderboard, instances without a patch or without logs are 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, describe_policy
from tracker.ingest.files.file_contents import check_text, read_bytes
from tracker.ingest.files.json_files import iterate_json_lines, read_json
from tracker.ingest.files.json_values import first_bytes, mapping, text
from tracker.ingest.files.mismatch import Mismatch, first_missing
from tracker.ingest.files.yaml_text import parse_yaml
from tracker.ingest.formats.swe_bench import BENCHMARK, NAMESPACE, repository
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, RunDescription, TaskScores

SPECIFICITY = 30
RECOGNIZED_BY = "results.json with lists resolved, no_generation and no_logs; per_instance_details.json"
TOTALS = {"lite": 300, "verified": 500, "test": 2294, "multimodal": 517, "bash-only": 500}
"""Number of instances of each split, which is the folder of the submission."""
PREDICTIONS = ("all_preds.jsonl", "preds.json", "preds.jsonl")
METADATA = ("metadata.yaml", "metadata.yml")
FIELDS = (b'"resolved"', b'"no_generation"', b'"no_logs"')
BY_REPOSITORY = re.compile(rb'\s*\{\s*"[^"]+/[^"]+"\s*:\s*\{\s*"(?:resolved|total)"\s*:\s*\d')
EMPTY_LISTS, FAILED_LISTS = ("no_generation",), ("no_logs", "install_fail", "reset_failed", "no_apply", "test_errored",
                                                  "test_timeout")  # fmt: skip
DETAILS = re.compile(rb'\s*\{\s*"[^\s"/]+__[^\s"]+"\s*:\s*\{[^{}]*"resolved"\s*:\s*(?:true|false)')
DETAILS_FILE = "per_instance_details.json"
LISTS = ("resolved", *EMPTY_LISTS, *FAILED_LISTS, "generated", "with_logs", "applied")
INSTANCE = re.compile(r"[^\s/]+__[^\s/]+-[^-\s/]+")
DATE = re.compile(r"(?P<date>\d{8})_(?P<name>.+)")
RESOLVED = MetricDescription(name="resolved", higher_is_better=True, lower=0.0, upper=1.0)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold the results of a submission."""
    data = first_bytes(path, 1 << 20)
    if isinstance(data, str):
        return data
    if BY_REPOSITORY.match(data):
        return Mismatch("it counts instances by repository; ingest results.json beside it", 0.9)
    if path.name == DETAILS_FILE and DETAILS.match(data):
        return None
    is_object = data.lstrip().startswith(b"{")
    return first_missing([(is_object and field in data, f"no list {field.decode()}") for field in FIELDS])


def companion_files(path: Path) -> Sequence[Path]:
    """Return the predictions and the metadata of the submission."""
    folder = _submission(path)
    first = [[folder / name for name in names if (folder / name).is_file()][:1] for names in (PREDICTIONS, METADATA)]
    return tuple(file for files in first for file in files)


def harness_name(path: Path) -> str | None:
    """Return the program; results do not contain its version."""
    return "swebench"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield a score for each instance, or the resolved share as a task score.

    Raises:
        BadInputError: a file is invalid, or the number of instances is unknown.
    """
    lists = _lists(path)
    split = _submission(path).parent.name
    total = TOTALS.get(split)
    resolved = lists["resolved"]
    instances = set().union(*lists.values()) | _predicted(path)
    run = _run(path, split if total else None, options)
    if total is not None and len(instances) > total:
        raise BadInputError(path, f"names {len(instances):,} instances, but the split {split} has {total:,}.")
    # Older submissions list the generated patches; later ones only have them in the predictions.
    if lists.get("generated") or _predictions(path):
        yield from _scores(path, run, lists, instances, options)
        if total is not None and len(instances) < total:
            yield f"{total - len(instances):,} of {total:,} instances are in no list and have no prediction: missing"
        return
    if total is None:
        problem = "lists the resolved instances only, so the number of instances is unknown"
        raise BadInputError(
            path, problem, advice=f"Add {PREDICTIONS[0]} of the submission to the folder {_submission(path)}"
        )
    value = np.array([len(resolved) / total])
    yield TaskScores(run=run, metric=RESOLVED, tasks=[run.benchmark or split], values=value, n_prompts=[total])
    yield (
        f"the submission has no {PREDICTIONS[0]}, so unresolved instances are unknown: stored {len(resolved):,} of "
        f"{total:,} as a task score"
    )


def _scores(
    path: Path, run: RunDescription, lists: Mapping[str, set[str]], instances: set[str], options: ReadOptions
) -> Iterator[Measurement | str]:
    empty = set().union(*(lists.get(name, set()) for name in EMPTY_LISTS))
    failed = set().union(*(lists.get(name, set()) for name in FAILED_LISTS)) - empty
    if both := sorted(lists["resolved"] & (empty | failed)):
        raise BadInputError(path, f"{both[0]} is listed as resolved and as failed.")
    missing = (empty if options.empty == "missing" else set()) | (failed if options.errored == "missing" else set())
    builder = BlockBuilder(run, NAMESPACE, path.name)
    for instance in sorted(instances):
        row = builder.row(repository(instance), instance)
        if instance not in missing:
            builder.score(row, RESOLVED, float(instance in lists["resolved"]))
        if instance in empty | failed:
            builder.answer(row, None, status="empty" if instance in empty else "error")
        if builder.is_full:
            yield from builder.blocks()
    yield from builder.blocks()
    if empty:
        yield describe_policy(
            len(empty), EMPTY, options.empty or "wrong", "instance has no patch|instances have no patch"
        )
    if failed:
        noun = "evaluation failed|evaluations failed"
        yield describe_policy(len(failed), ERRORED, options.errored or "wrong", noun)


def _lists(path: Path) -> dict[str, set[str]]:
    data = mapping(read_json(path))
    if path.name == DETAILS_FILE:
        return _read_details(path, data)
    lists: dict[str, set[str]] = {}
    for name in LISTS:
        ids = data.get(name)
        if ids is None and name != "resolved":
            continue
        if not isinstance(ids, list) or not all(isinstance(name, str) and INSTANCE.fullmatch(name) for name in ids):
            raise BadInputError(path, f"{name} is not a list of instances, such as django__django-11099.")
        lists[name] = set(ids)
    return lists


def _read_details(path: Path, data: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return all instances and the resolved ones, of a file with an object for each instance."""
    flags = {name: mapping(details).get("resolved") for name, details in data.items()}
    if wrong := [name for name, flag in flags.items() if not isinstance(flag, bool) or not INSTANCE.fullmatch(name)]:
        raise BadInputError(path, f"{wrong[0]!r} is not an instance with a field resolved, true or false.")
    return {"resolved": {name for name, flag in flags.items() if flag}, "generated": set(flags)}


def _submission(path: Path) -> Path:
    """Return the folder of the submission: that of the file, or its parent if the file is in ``results``."""
    folder = path.absolute().parent
    return folder.parent if folder.name == "results" else folder


def _predictions(path: Path) -> Path | None:
    return next((file for file in companion_files(path) if file.name in PREDICTIONS), None)


def _predicted(path: Path) -> set[str]:
    """Return the instances with a prediction."""
    file = _predictions(path)
    if file is None:
        return set()
    if file.suffix == ".jsonl":
        names = [text(mapping(row).get("instance_id")) or "" for _, row in iterate_json_lines(file)]
    else:
        names = list(mapping(read_json(file)))
    if not names or not all(INSTANCE.fullmatch(name) for name in names):
        raise BadInputError(file, "is not a list of predictions with an instance_id.")
    return set(names)


def _run(path: Path, split: str | None, options: ReadOptions) -> RunDescription:
    """Return the run; the model has the name in metadata.yaml, else that of the folder <date>_<name>."""
    folder = _submission(path).name
    match = DATE.fullmatch(folder)
    metadata = _metadata(path)
    info = mapping(metadata.get("info")) or metadata
    model = options.model or text(info.get("name")) or (match["name"] if match else folder)
    if not model.strip("/"):
        raise BadInputError(path, "is in no folder named after the submission.", advice="Name it with --model NAME.")
    started = None
    if match:
        try:
            started = datetime.strptime(match["date"], "%Y%m%d").replace(tzinfo=UTC)
        except ValueError:
            started = None
    tags = mapping(metadata.get("tags"))
    settings = {"site": text(info.get("site")), "models": _texts(tags.get("model"))}
    return RunDescription(
        model=model,
        benchmark=options.benchmark or (f"{BENCHMARK}-{split}" if split else BENCHMARK),
        label=folder,
        started=started,
        settings={name: value for name, value in settings.items() if value},
    )


def _texts(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _metadata(path: Path) -> dict[str, Any]:
    file = next((file for file in companion_files(path) if file.name in METADATA), None)
    if file is None:
        return {}
    data = read_bytes(file)
    check_text(file, data)
    return mapping(parse_yaml(file, data))
