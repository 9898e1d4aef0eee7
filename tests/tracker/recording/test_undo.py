"""Undoing an import leaves the store as it was before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tracker import schema
from tracker.database import connect, transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import find_files
from tracker.ingest.pipeline import ingest_file
from tracker.recording.undo.imports import find_import
from tracker.recording.undo.removal import undo_import

SAMPLES = (
    "every_eval_ever", "evalplus", "helm", "inspect", "lighteval", "lm_eval", "openai_evals", "opencompass", "swebench",
    "tabular",
)  # fmt: skip


def rows_of(engine: sa.Engine) -> dict[str, list[Any]]:
    """Every row of every table."""
    with transaction(engine, write=False) as session:
        return {
            table.name: sorted(map(repr, session.execute(sa.select(table)))) for table in schema.metadata.sorted_tables
        }


def undo(engine: sa.Engine) -> None:
    with transaction(engine, exclusive=True) as session:
        undo_import(session, find_import(session))


@pytest.mark.parametrize("folder", SAMPLES)
def test_undo_after_any_import_of_the_samples(shared: Path, sqlite_url: str, folder: str) -> None:
    if not (shared / "samples" / folder).is_dir():
        pytest.skip(f"no samples of {folder}")
    check_undo(connect(sqlite_url), shared / "samples" / folder)


def check_undo(engine: sa.Engine, folder: Path) -> None:
    """Import all files of a folder, and undo them in the opposite order."""
    options = ReadOptions(
        model="org/model" if folder.name == "lm_eval" else None, benchmark="small" if folder.name == "tabular" else None
    )
    before = [rows_of(engine)]
    for path in find_files([folder], options):
        ingest_file(engine, path, options)
        before.append(rows_of(engine))
    assert len(before) > 1
    before.pop()
    while before:
        undo(engine)
        assert rows_of(engine) == before.pop()
