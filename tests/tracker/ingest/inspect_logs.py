"""Logs of Inspect AI written for a test, and what was read of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sound.inspect_ai import ZSTD, archive, header, whole

from tracker.errors import BadInputError
from tracker.ingest.formats import inspect_ai
from tracker.ingest.measurement import Answers, Measurement, ParsedFile, Prompts, ReadOptions, Scores
from tracker.ingest.parsing.detection import parse_file


def write(path: Path, samples: Sequence[Mapping[str, Any]], *scores: Mapping[str, Any], **log_fields: Any) -> Path:
    """A log in the shape that the name of the file says."""
    head = header(*scores, **log_fields)
    last = {(sample["id"], sample["epoch"]): sample for sample in samples}
    n_errors = sum(bool(sample.get("error")) for sample in last.values())
    head["results"] |= {"total_samples": len(last), "completed_samples": len(last) - n_errors}
    if path.suffix == ".json":
        path.write_text(json.dumps({**head, "samples": [whole(sample) for sample in samples]}))
    else:
        path.write_bytes(archive({"summaries.json": list(samples), "header.json": head}, ZSTD))
    return path


def read(path: Path, **options: Any) -> ParsedFile:
    return parse_file(path, ReadOptions(**options))


def until_damage(path: Path, **options: Any) -> tuple[list[Measurement | str], str]:
    """What a reading yields, and what is wrong with the file."""
    blocks: list[Measurement | str] = []
    try:
        for block in inspect_ai.read(path, ReadOptions(**options)):
            blocks.append(block)
    except BadInputError as error:
        return blocks, str(error)
    return blocks, ""


def scores(reading: ParsedFile | Sequence[Measurement | str]) -> dict[str, dict[tuple[str, int], float]]:
    """Scores by metric, prompt and trial; those that are missing are left out."""
    scores_found: dict[str, dict[tuple[str, int], float]] = {}
    for block in reading.measurements if isinstance(reading, ParsedFile) else reading:
        if isinstance(block, Scores):
            trials = np.broadcast_to(block.trials, block.values.shape)
            for key, trial, value in zip(block.prompts.keys, trials.tolist(), block.values.tolist(), strict=True):
                if not math.isnan(value):
                    scores_found.setdefault(block.metric.name, {})[key, trial] = value
    return scores_found


def prompts(reading: ParsedFile) -> Prompts:
    block = reading.measurements[0]
    assert isinstance(block, (Scores, Answers))
    return block.prompts
