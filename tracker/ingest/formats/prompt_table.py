"""CSV, Parquet or JSON Lines with one row per prompt: text, choices, reference answer, task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracker.ingest.files.tabular.json_lines import read_rows
from tracker.ingest.files.tabular.prompt_columns import parse_prompts
from tracker.ingest.files.tabular.table import TableProblems
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.tables import find_layout
from tracker.ingest.tables.read_layout import describe_layout, require_layout
from tracker.ingest.tables.table_rows import select_splits

NAME = "prompt-table"
SPECIFICITY = 20
RECOGNIZED_BY = "a column that names prompts, and text, choices, reference answer, task or split; no model, no score"
PROMPTS_ONLY = True
SUPPORTS_SPLITS = True
READS_COLUMNS = True
REPORTS_SCORES = False


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a prompt table."""
    return find_layout.mismatch_reason(path, options, NAME)


def describe_reading(path: Path, options: ReadOptions) -> str | None:
    """Return what the columns of the file are."""
    return describe_layout(path, options, NAME)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield the prompts, one block per benchmark."""
    layout = require_layout(path, options, NAME)
    table = select_splits(read_rows(path), layout.roles, options, is_single=False)
    problems = TableProblems(table)
    prompts = parse_prompts(table, layout.roles, options, problems, further=layout.details)
    problems.check()
    yield from prompts.blocks
