"""What every format promises, held against files that were broken on purpose, read and taken into a store."""

from __future__ import annotations

import importlib.util
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated

from tracker.database import connect, find_file_damage, find_stray_rows, transaction
from tracker.errors import BadInputError, SuffrageError
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.format_checks import check_blocks
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.schema.search_index import find_search_faults

SOUND = Path(__file__).parent / "sound"
FORMATS = [pytest.param(name, module, id=name) for name, module in load_formats().items()]
STRANGE = ("x.csv", "x.tsv", "x.pq", "x", "x.json", "results.json", "samples_t.jsonl", "x.eval", "x.jsonl.gz")


def sound(module: ModuleType) -> ModuleType:
    """The sound files of a format, in `FILES`, and the options they are read with, in `OPTIONS`."""
    name = module.__name__.rpartition(".")[2]
    path = SOUND / f"{name}.py"
    assert path.is_file(), f"{path.name} is missing: FILES of this format, for the tests of what all formats promise"
    spec = importlib.util.spec_from_file_location(f"sound_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


def laid_out(files: dict[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class Shop:
    """A store that is put back, after each file, to what it was: empty, or with the sound files of the format."""

    def __init__(self, template: Path, folder: Path) -> None:
        self.empty, self.filled = template, folder / "filled.db"
        self.path = folder / "store.db"
        self.current: Path | None = None
        shutil.copy(template, self.path)
        self.engine = connect(f"sqlite:///{self.path}")  # one for all, since it remembers what it has compiled
        sa.event.listen(self.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))

    def show(self, selected: Path) -> sa.Engine:
        """The store in one of its two states."""
        if self.current != selected:
            self.engine.dispose()
            for end in ("", "-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
            shutil.copy(selected, self.path)
            self.current = selected
        return self.engine

    def keep(self) -> None:
        """Take the store as it is for the filled one."""
        self.engine.dispose()
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(self.path, self.filled)
        self.current = self.filled

    def everything(self) -> list[Any]:
        """Every row of every table."""
        with closing(sqlite3.connect(self.path)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [(name, connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in names]


def read_as_text(module: ModuleType, path: Path, options: ReadOptions) -> None:
    """Read a file; anything but blocks, notes and BadInputError fails."""
    reason = module.mismatch_reason(path, options)
    assert reason is None or (isinstance(reason, str) and reason)
    with suppress(BadInputError):
        check_blocks(module, path, options)


def hold_to_promise(name: str, module: ModuleType, folder: Path, template: Path, n_mutations: int) -> None:
    """Take in mutated files: all of them as far as is asked for, or nothing, and never anything but words."""
    files, chance = sound(module).FILES, random.Random(name)
    options = getattr(sound(module), "OPTIONS", None) or [ReadOptions(benchmark="b", model="m")]
    results = folder / "results"
    laid_out(files, results)
    local = [file for file in files if module.mismatch_reason(results / file, options[0]) is None]
    shop = Shop(template, folder)
    for item in local:
        with suppress(SuffrageError):  # one of them may contradict another
            ingest_file(shop.show(shop.filled if shop.current else shop.empty), results / item, options[0], format=name)
        shop.keep()
    for number in range(n_mutations):
        changed = chance.choice(list(files))
        (results / changed).write_bytes(mutated(changed, files[changed], chance))
        path = results / (changed if changed in local and chance.random() < 0.9 else chance.choice(local))
        outcome = chance.choice(options)
        requested = {
            "format": name if chance.random() < 0.8 else None,
            "partial": chance.random() < 0.4,
            "on_conflict": chance.choice(("rerun", "rerun", "skip", "update", "error")),
        }
        try:
            read_as_text(module, path, outcome)
            engine = shop.show(chance.choice((shop.empty, shop.filled)))
            before = shop.everything()
            try:
                result = ingest_file(engine, path, outcome, **requested)
            except SuffrageError:
                assert shop.everything() == before
            else:
                with transaction(engine, write=False) as session:
                    assert verify_checksums(session) == []
                    assert [*find_file_damage(session), *find_stray_rows(session)] == []
                    assert find_search_faults(session.connection()) == []
                    statuses = {row for (row,) in session.execute(sa.text("SELECT DISTINCT status FROM run"))}
                    assert statuses <= {"complete", "partial"}
                assert requested["partial"] or not result.changes.damage
                shop.current = None
        except BaseException as error:
            kept = folder / "broken"
            laid_out({file: (results / file).read_bytes() for file in files}, kept)
            error.add_note(
                f"mutation {number} of {changed}, taken in as {path}, {outcome}, {requested}; kept in {kept}"
            )
            raise
        (results / changed).write_bytes(files[changed])


@pytest.mark.parametrize(("name", "module"), FORMATS)
def test_every_format_takes_broken_files_as_text_and_leaves_nothing_behind(
    name: str, module: ModuleType, tmp_path: Path, sqlite_template: Path
) -> None:
    hold_to_promise(name, module, tmp_path, sqlite_template, 30)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "module"), FORMATS)
def test_every_format_takes_thousands_of_broken_files_as_text_and_leaves_nothing_behind(
    name: str, module: ModuleType, tmp_path: Path, sqlite_template: Path
) -> None:
    hold_to_promise(name, module, tmp_path, sqlite_template, 2000)


@pytest.mark.parametrize(("name", "module"), FORMATS)
def test_every_format_ingests_its_sound_files_and_no_other_claims_them(
    name: str, module: ModuleType, tmp_path: Path, sqlite_template: Path
) -> None:
    laid_out(sound(module).FILES, tmp_path / "results")
    options = getattr(sound(module), "OPTIONS", None) or [ReadOptions(benchmark="b", model="m")]
    local = [
        item for item in sound(module).FILES if module.mismatch_reason(tmp_path / "results" / item, options[0]) is None
    ]
    assert local
    shop = Shop(sqlite_template, tmp_path)
    for entry in local:
        path = tmp_path / "results" / entry
        errors = []
        for outcome in options:
            try:
                result = ingest_file(shop.show(shop.empty), path, outcome)
                shop.current = None
                assert result.format == name
                break
            except SuffrageError as error:
                errors.append(str(error))
        assert len(errors) < len(options), errors


@pytest.mark.parametrize(("name", "module"), FORMATS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), labelled=st.sampled_from(STRANGE))
def test_every_format_reports_of_any_bytes_whether_they_are_its_own(
    name: str, module: ModuleType, tmp_path: Path, data: bytes, labelled: str
) -> None:
    for place in (labelled, *list(sound(module).FILES)[:1]):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        reason = module.mismatch_reason(path, ReadOptions())
        assert reason is None or (isinstance(reason, str) and reason)


@pytest.mark.parametrize(("name", "module"), FORMATS)
def test_every_format_declines_folders_and_files_that_are_not_there(
    name: str, module: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path in (tmp_path, tmp_path / "folder.csv", tmp_path / "nowhere.csv", tmp_path / "nowhere.jsonl"):
        assert module.mismatch_reason(path, ReadOptions())
