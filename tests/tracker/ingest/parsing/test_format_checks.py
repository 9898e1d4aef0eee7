"""The checks of formats of other packages: a sound one passes, and each broken promise is named."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from sound import live_bench, mteb

from tracker.formats import check_format
from tracker.ingest.format_registry import GROUP
from tracker.ingest.formats import live_bench as live_bench_format
from tracker.ingest.formats import mteb as mteb_format

FORMAT = '''
"""Lines of key=score."""
import numpy as np
from tracker.formats import BadInputError, MetricDescription, Prompts, RunDescription, Scores, read_lines

def mismatch_reason(path, options):
    return None if path.suffix == ".scores" else "the name does not end in .scores"

def read(path, options):
    pairs = [line.decode(errors="replace").split("=") for _, line in read_lines(path)]
    try:
        values = np.array([float(value) for _, value in pairs])
    except ValueError as error:
        raise BadInputError(path, str(error)) from error
    prompts = Prompts(keys=[key for key, _ in pairs])
    yield Scores(run=RunDescription(model="m"), metric=MetricDescription(name="score"), prompts=prompts, values=values)
'''
FILES = {"one.scores": b"q1=1\nq2=0\n"}
BROKEN = [
    ('"""Lines of key=score."""', "", "no docstring"),
    ("path.suffix ==", "path.suffix !=", "rejects all files"),
    ("raise BadInputError(path, str(error)) from error", "raise", "raises ValueError"),
    ("values=values", "values=values[:1]", "1 values for 2 prompts"),
    ('else "the name does not end in .scores"', 'else ""', "must have a reason"),
    ("    yield Scores", "    yield 1\n    yield Scores", "read yields int"),
]


@pytest.fixture
def installed(install: Callable[..., None]) -> Callable[[str, str], ModuleType]:
    def add(name: str, code: str) -> ModuleType:
        install(name, code, group=GROUP)
        return import_module(name)

    return add


def test_a_sound_format_passes_and_its_files_are_returned(installed, tmp_path: Path) -> None:
    parsed = check_format(installed("sound_scores", FORMAT), FILES, tmp_path)
    assert parsed["one.scores"].format == "sound-scores"


@pytest.mark.parametrize(("written", "instead", "message"), BROKEN, ids=[message for _, _, message in BROKEN])
def test_a_broken_promise_is_named(installed, tmp_path: Path, written: str, instead: str, message: str) -> None:
    assert written in FORMAT
    module = installed(f"broken_{BROKEN.index((written, instead, message))}", FORMAT.replace(written, instead))
    with pytest.raises(AssertionError, match=message):
        check_format(module, FILES, tmp_path)


def test_a_rival_is_named(installed, tmp_path: Path) -> None:
    installed("rival_scores", FORMAT)
    with pytest.raises(AssertionError, match="rival-scores match it too"):
        check_format(installed("mine_scores", FORMAT), FILES, tmp_path)


@pytest.mark.parametrize(("module", "files"), [(live_bench_format, live_bench.FILES), (mteb_format, mteb.FILES)])
def test_formats_of_this_package_pass(module: ModuleType, files: dict[str, bytes], tmp_path: Path) -> None:
    assert check_format(module, files, tmp_path)
