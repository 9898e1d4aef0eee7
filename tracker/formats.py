"""Public helpers for file formats of other packages, and the checks that such a format passes.

A format is a module with ``mismatch_reason(path, options)`` and ``read(path, options)``; see docs/how-to/extending.md.
Names of this module stay; the modules behind it may move.
"""

from __future__ import annotations

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import BlockBuilder, PromptContent, RunBuilders, describe_policy
from tracker.ingest.files.file_contents import open_file
from tracker.ingest.files.file_summary import first_keys
from tracker.ingest.files.json_files import iterate_json_lines, read_json, read_lines
from tracker.ingest.files.json_values import first_bytes, mapping, number, score, text
from tracker.ingest.files.mismatch import Mismatch, first_missing, first_missing_key
from tracker.ingest.measurement import (
    PROMPTS_PER_BLOCK,
    Answers,
    Measurement,
    MetricDescription,
    ParsedFile,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    TaskScores,
    metric_description,
)
from tracker.ingest.parsing.format_checks import check_format
from tracker.ingest.reported_score import ReportedCount, ReportedScore

__all__ = [
    "PROMPTS_PER_BLOCK",
    "Answers",
    "BadInputError",
    "BlockBuilder",
    "Measurement",
    "MetricDescription",
    "Mismatch",
    "ParsedFile",
    "PromptContent",
    "Prompts",
    "ReadOptions",
    "ReportedCount",
    "ReportedScore",
    "RunBuilders",
    "RunDescription",
    "Scores",
    "TaskScores",
    "check_format",
    "describe_policy",
    "first_bytes",
    "first_keys",
    "first_missing",
    "first_missing_key",
    "iterate_json_lines",
    "mapping",
    "metric_description",
    "number",
    "open_file",
    "read_json",
    "read_lines",
    "score",
    "text",
]
