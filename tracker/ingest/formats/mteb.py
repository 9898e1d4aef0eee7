"""Results of MTEB: <model>/<revision>/<task>.json, with the main score of each split and language subset.

The score of a task is the mean of its subsets, as in MTEB. Split test counts, else the only one; --split selects
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import count, first_bytes, mapping, text
from tracker.ingest.files.json_values import score as parse_score
from tracker.ingest.files.mismatch import first_missing
from tracker.ingest.measurement import Measurement, MetricDescription, ReadOptions, RunDescription, TaskScores

SPECIFICITY = 30
RECOGNIZED_BY = ".json with scores, mteb_version, dataset_revision and hf_subset"
SUPPORTS_SPLITS = True
BENCHMARK = "mteb"
META = "model_meta.json"
FIELDS = (b'"scores"', b'"mteb_version"', b'"dataset_revision"', b'"hf_subset"')
"""Fields at the start of a file; the long list of scores may stand before task_name."""
MAIN_SCORE = MetricDescription(name="main_score", higher_is_better=True)


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file does not hold results of MTEB."""
    data = first_bytes(path)
    if isinstance(data, str):
        return data
    is_object = data.lstrip().startswith(b"{")
    return first_missing([(is_object and field in data, f"no field {field.decode()} at its start") for field in FIELDS])


def companion_files(path: Path) -> Sequence[Path]:
    """Return the description of the model, which is in the same folder."""
    meta = path.parent / META
    return (meta,) if meta.is_file() else ()


def harness_name(path: Path) -> str | None:
    """Return the program with its version."""
    try:
        version = text(mapping(read_json(path)).get("mteb_version"))
    except BadInputError:
        version = None
    return f"mteb {version}" if version else "mteb"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield the score of the task.

    Raises:
        BadInputError: the file is not of MTEB, or has no main score.
    """
    data = mapping(read_json(path))
    task, by_split = text(data.get("task_name")), mapping(data.get("scores"))
    if task is None or not by_split:
        raise BadInputError(path, "has no task_name or no scores, so it is not a result of MTEB.")
    splits = _splits(path, by_split, options)
    values = [_main_score(path, split, subset) for split in splits for subset in _subsets(path, split, by_split[split])]
    yield TaskScores(
        run=_run(path, splits, options),
        metric=MAIN_SCORE,
        tasks=[task],
        values=np.array([math.fsum(values) / len(values)]),
    )
    if skipped := [split for split in by_split if split not in splits]:
        yield f"read the split {', '.join(splits)}, not {', '.join(skipped)}; select with --split"
    if len(values) > 1:
        yield f"{task}: the mean of {len(values):,} language subsets"


def _splits(path: Path, by_split: Mapping[str, Any], options: ReadOptions) -> list[str]:
    if options.splits:
        splits = [split for split in by_split if split in options.splits]
        if not splits:
            problem = f"has no split {', '.join(options.splits)}; its splits: {', '.join(by_split)}."
            raise BadInputError(path, problem)
        return splits
    if "test" in by_split or len(by_split) == 1:
        return ["test"] if "test" in by_split else list(by_split)
    advice = "Select one with --split NAME."
    raise BadInputError(path, f"has the splits {', '.join(by_split)}, none of which is test.", advice=advice)


def _subsets(path: Path, split: str, subsets: Any) -> list[Any]:
    if not isinstance(subsets, list) or not subsets:
        raise BadInputError(path, f"scores.{split} is not a list of results.")
    return subsets


def _main_score(path: Path, split: str, subset: Any) -> float:
    try:
        value = parse_score(mapping(subset).get("main_score"))
    except ValueError as error:
        raise BadInputError(path, f"scores.{split}: main_score is {error}.") from error
    if math.isnan(value):
        raise BadInputError(path, f"scores.{split}: a result has no main_score.")
    return value


def _run(path: Path, splits: Sequence[str], options: ReadOptions) -> RunDescription:
    """Return the run: the model of model_meta.json, else the folder <organization>__<model>/<revision>."""
    meta = mapping(read_json(files[0])) if (files := companion_files(path)) else {}
    folder = path.absolute().parent
    name = options.model or text(meta.get("name")) or folder.parent.name.replace("__", "/", 1)
    if not name.strip("/"):
        raise BadInputError(path, "is in no folder named after the model.", advice="Name the model with --model NAME.")
    facts: dict[str, Any] = {}
    if (parameters := count(meta.get("n_parameters"))) is not None and parameters >= 1000:
        facts["parameters"] = parameters
    if isinstance(meta.get("open_weights"), bool):
        facts["open_weights"] = meta["open_weights"]
    return RunDescription(
        model=name,
        benchmark=options.benchmark or BENCHMARK,
        label=text(meta.get("revision")) or folder.name,
        # No mean mixes scores on other splits with those on test.
        variant=f"split {'+'.join(sorted(splits))}" if options.splits and list(splits) != ["test"] else "",
        model_facts=facts,
    )
