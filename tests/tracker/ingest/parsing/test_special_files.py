"""Pipes and sockets are never opened: reading one could wait for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracker.errors import BadInputError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.parsing.recognition import check_formats

OPTIONS = ReadOptions(benchmark="b", metric="accuracy")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe beside a file of scores."""
    (tmp_path / "scores.csv").write_text("prompt_id,m\nq1,1\n")
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path / "pipe.csv"


def test_a_pipe_in_a_folder_is_no_file_of_results(pipe: Path) -> None:
    assert find_files([pipe.parent], OPTIONS) == [pipe.parent / "scores.csv"]


def test_a_pipe_by_name_is_refused(pipe: Path) -> None:
    for read in (
        lambda: find_files([pipe, pipe.parent], OPTIONS),
        lambda: parse_file(pipe, OPTIONS),
        lambda: check_formats(pipe, OPTIONS),
    ):
        with pytest.raises(BadInputError, match="is not a regular file"):
            read()
