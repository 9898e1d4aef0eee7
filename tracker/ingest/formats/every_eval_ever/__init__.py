"""Every Eval Ever: an aggregate file, and the file of its instances if there is one.

Results without instances become task scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.files.json_values import count, first_bytes, mapping, text, version_warning
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.ingest.formats.every_eval_ever.aggregate import READ_VERSIONS, Aggregate
from tracker.ingest.formats.every_eval_ever.instances import Instances, find_checksum_problem
from tracker.ingest.formats.every_eval_ever.results import EvaluationResult
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "<uuid>.json with schema_version and evaluation_id, <uuid>_samples.jsonl"
SUPPORTS_SPLITS = True
SAMPLES_NAME = re.compile(r"(?P<stem>.*)_samples\.jsonl(?:\.gz)?")
AGGREGATE_NAME = re.compile(r"(?P<stem>.*)\.json(?:\.gz)?")
START = re.compile(rb'\s*\{\s*"')
SCHEMA_START = re.compile(rb'\s*\{\s*"\$schema"')
FIELDS = (b'"schema_version"', b'"evaluation_id"', b'"source_metadata"', b'"model_info"', b'"evaluation_results"')
INSTANCE_FIELDS = (b'"schema_version"', b'"evaluation_id"', b'"evaluation_name"', b'"sample_id"')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is neither an aggregate nor an instance file of Every Eval Ever."""
    of_instances = SAMPLES_NAME.fullmatch(path.name)
    if not of_instances and not AGGREGATE_NAME.fullmatch(path.name):
        return "the name does not end in .json or _samples.jsonl"
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    if SCHEMA_START.match(data):
        return "it is a JSON schema, not results"
    if of_instances:
        line = data.lstrip().partition(b"\n")[0]
        missing = [field for field in INSTANCE_FIELDS if field not in line]
        return _explain_missing(missing, len(INSTANCE_FIELDS)) if missing or not START.match(data) else None
    # The fields come in any order, and a long one may push others beyond the first bytes.
    missing = [field for field in FIELDS if field not in data]
    return _explain_missing(missing, len(FIELDS)) if len(missing) > 2 or not START.match(data) else None


def _explain_missing(missing: Sequence[bytes], n_fields: int) -> Mismatch:
    """Return that fields are missing at the start of a file."""
    names = ", ".join(field.decode().strip('"') for field in missing)
    text = f"no field {names} at its start" if missing else "it does not start with a JSON object"
    return Mismatch(text, (n_fields - len(missing)) / (n_fields + 1))


def companion_files(path: Path) -> Sequence[Path]:
    """Return the instance file of an aggregate, or the aggregate of an instance file."""
    name = SAMPLES_NAME.fullmatch(path.name)
    if name is not None:
        beside = (path.with_name(name["stem"] + end) for end in (".json", ".json.gz"))
        return tuple(candidate for candidate in beside if mismatch_reason(candidate, ReadOptions()) is None)[:1]
    stem = AGGREGATE_NAME.fullmatch(path.name)
    names = [f"{stem['stem']}_samples.jsonl{end}" for end in ("", ".gz")] if stem else []
    try:
        reference = mapping(Aggregate.read(path, ReadOptions()).data.get("detailed_evaluation_results"))
        if file_name := text(reference.get("file_path")):
            names.append(re.split(r"[/\\]", file_name)[-1])
    except BadInputError:
        pass
    candidates = (path.parent / name for name in dict.fromkeys(names) if name not in ("", ".", ".."))
    return tuple(candidate for candidate in candidates if candidate != path and _is_file(candidate))[:1]


def harness_name(path: Path) -> str | None:
    """Return the evaluation library with its version, if the aggregate names it."""
    try:
        aggregate = _aggregate(path, ReadOptions())
    except BadInputError:
        return None
    library = mapping(aggregate.data.get("eval_library")) if aggregate else {}
    parts = [part for name in ("name", "version") if (part := text(library.get(name))) and part != vocabulary.UNKNOWN]
    return " ".join(parts) or None


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield scores and answers of instances, and task scores of results without instances.

    Raises:
        BadInputError: a file is invalid, or the instances do not belong to the aggregate.
    """
    aggregate = _aggregate(path, options)
    samples = path if SAMPLES_NAME.fullmatch(path.name) else next(iter(companion_files(path)), None)
    if aggregate is None:
        assert samples is not None
        yield from Instances(samples, None, options).blocks()
        yield "the aggregate file is missing: bounds and directions of the metrics are unknown"
        return
    version = aggregate.data.get("schema_version")
    if warning := version_warning("schema_version", "nothing" if version is None else version, READ_VERSIONS):
        yield warning
    results = aggregate.results
    reference = mapping(aggregate.data.get("detailed_evaluation_results"))
    sampled, is_part = list[EvaluationResult](), False
    if samples is not None:
        instances = Instances(samples, aggregate, options)
        wrong = find_checksum_problem(samples, reference)
        yield from instances.blocks()
        if wrong is not None:
            raise BadInputError(samples, wrong, advice="Download both files again.")
        total = count(reference.get("total_rows"))
        if total is not None and total != instances.n_rows:
            problem = f"holds {instances.n_rows:,} rows, but {aggregate.path.name} reports {total:,}."
            raise BadInputError(samples, problem, advice="Download both files again.")
        sampled, is_part = instances.sampled, instances.is_part
    elif name := text(reference.get("file_path")):
        yield f"the instance file {name[:200]} is missing: only task scores were read"
    yield from aggregate.reported_scores(sampled, is_part=is_part)
    yield from aggregate.warnings
    if percent := sorted({result.metric.name for result in results if result.scale != 1}):
        yield f"{', '.join(percent)}: percentages converted to proportions"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


def _aggregate(path: Path, options: ReadOptions) -> Aggregate | None:
    if not SAMPLES_NAME.fullmatch(path.name):
        return Aggregate.read(path, options)
    beside = companion_files(path)
    return Aggregate.read(beside[0], options) if beside else None
