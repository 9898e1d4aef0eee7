"""Packed scores are those of the store, whatever has changed in it and whoever has built them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from filled_stores import add_scores
from forked_process import fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tracker import schema
from tracker.api.store import Store
from tracker.database import connect, transaction
from tracker.errors import SuffrageError
from tracker.queries.packed import gathered_scores, ordered_scores, packed_scores, stored_scores
from tracker.queries.packed.pack_folder import VARIABLE, find_pack_folder
from tracker.queries.packed.stored_scores import read_stored
from tracker.queries.resolution import find_benchmark
from tracker.queries.scores import read_averages
from tracker.recording.metric_changes import delete_metric, rename_metric
from tracker.recording.model_merges import merge_models
from tracker.recording.run_status import delete, hide
from tracker.recording.undo.imports import find_import
from tracker.recording.undo.removal import undo_import

NAN = float("nan")
Edit = tuple[str, int, tuple[tuple[float, ...], ...]]


@pytest.fixture(autouse=True)
def _pack_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_scores, "MIN_CELLS", 1)
    monkeypatch.setattr(gathered_scores, "MIN_GATHERED", 1)
    monkeypatch.setattr(ordered_scores, "MIN_ORDERED", 1)


def list_packs(engine: sa.Engine) -> list[Path]:
    folder = find_pack_folder(engine)
    return sorted(folder.path.glob("*-*")) if folder else []


def read_directly(engine: sa.Engine, metric: int, runs: list[int], prompts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The slow way: a dictionary of all rows."""
    cells: dict[tuple[int, int], list[float]] = {}
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT run_id, prompt_id, value, metric_id FROM score ORDER BY trial").all()
    for run, prompt, value, of_metric in rows:
        if of_metric == metric:
            cells.setdefault((run, prompt), []).append(value)
    return np.array([[np.mean(cells.get((run, prompt), [NAN])) for run in runs] for prompt in prompts.tolist()])


def check_every_read(engine: sa.Engine, choose: Callable[[list[int]], list[int]] = lambda keys: keys) -> None:
    """Compare the scores of some runs of each benchmark, under each metric, with the rows of the store."""
    with engine.connect() as connection:
        keys = [connection.scalars(sa.select(table.id)).all() for table in (schema.Metric, schema.Benchmark)]
        runs = connection.execute(sa.select(schema.Run.id, schema.Run.benchmark_id)).all()
        prompts = np.array(sorted(connection.scalars(sa.select(schema.Prompt.id))), dtype=np.int64)[::-1]
    for metric in keys[0]:
        for benchmark in keys[1]:
            chosen = choose([run for run, owner in runs if owner == benchmark])
            if chosen and len(prompts):
                with transaction(engine, write=False) as session:
                    Q, _ = read_averages(session, metric, chosen, prompts)
                np.testing.assert_array_equal(Q, read_directly(engine, metric, chosen, prompts))


def table_of(values: tuple[tuple[float, ...], ...], first_prompt: int) -> pd.DataFrame:
    columns = {"prompt_id": [f"p{first_prompt + row}" for row in range(len(values))]}
    return pd.DataFrame({**columns, **{f"m{n}": column for n, column in enumerate(zip(*values, strict=True))}})


def edit_store(url: str, edit: Edit) -> None:
    """Change a store as a command does; an edit that the store rejects changes nothing."""
    kind, place, values = edit
    engine = connect(url)
    try:
        if kind in ("rerun", "update", "skip"):
            options = {"benchmark": "bc"[place % 2], "metric": "xy"[place // 2 % 2], "new_metric": True}
            Store(engine).ingest(table_of(values, place % 3), name=f"{place}", on_conflict=kind, **options)
            return
        with transaction(engine) as session:
            runs = sorted(session.scalars(sa.select(schema.Run.id)))
            metrics = sorted(session.scalars(sa.select(schema.Metric.name)))
            if kind == "undo":
                undo_import(session, find_import(session))
            elif kind == "delete run" and runs:
                delete(session, [runs[place % len(runs)]])
            elif kind == "hide run" and runs:
                hide(session, [runs[place % len(runs)]])
            elif kind == "merge models":
                merge_models(session, f"m{place % 2}", f"m{place % 2 + 1}")
            elif kind == "rename metric" and metrics:
                rename_metric(session, metrics[place % len(metrics)], f"z{place}")
            elif kind == "delete metric" and metrics:
                delete_metric(session, find_benchmark(session, "b"), metrics[place % len(metrics)])
            elif kind == "edit prompt":
                session.execute(sa.update(schema.Prompt).values(split=f"split {place}"))
    except SuffrageError:
        pass
    finally:
        engine.dispose()


KINDS = ["rerun", "update", "skip", "undo", "delete run", "hide run", "merge models"]
KINDS += ["rename metric", "delete metric", "edit prompt", "rerun", "update"]
SCORES = st.sampled_from([0.0, 1.0, -0.0, 0.1, 300.0, 0.5])
TABLES = st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[SCORES] * n), min_size=1, max_size=4).map(tuple))
EDITS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 7), TABLES), min_size=3, max_size=6)


def check_edits(engine: sa.Engine, url: str, edits: list[Edit], places: list[int]) -> None:
    for edit, place in zip(edits, places * len(edits), strict=False):
        edit_store(url, edit)
        check_every_read(engine, lambda keys, place=place: [*keys[place:], *keys[:place]][: 1 + place])
        check_every_read(engine)


PLACES = st.lists(st.integers(0, 2), min_size=1, max_size=3)


class TestLaws:
    @settings(max_examples=2, suppress_health_check=list(HealthCheck))
    @given(edits=EDITS, places=PLACES)
    def test_no_edit_leaves_them_stale(
        self, store: sa.Engine, store_url: str, edits: list[Edit], places: list[int]
    ) -> None:
        check_edits(store, store_url, edits, places)

    @pytest.mark.soak
    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(edits=EDITS, places=PLACES)
    def test_no_edit_of_many_leaves_them_stale(
        self, store: sa.Engine, store_url: str, edits: list[Edit], places: list[int]
    ) -> None:
        check_edits(store, store_url, edits, places)


Q = np.array([[1.0, 0.0, 1.0], [0.0, NAN, 1.0], [1.0, 1.0, NAN], [1.0, 0.0, 0.0]])


@pytest.fixture
def no_store_reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make every later read of rows of scores fail."""

    def forbid() -> None:
        for module in ("packed.packed_scores", "scores"):
            monkeypatch.setattr(
                f"tracker.queries.{module}.read_stored", lambda *_: pytest.fail("rows of scores were read")
            )

    return forbid


def test_a_second_reader_reads_no_rows(store: sa.Engine, no_store_reads: Callable[[], None]) -> None:
    add_scores(store, Q)
    add_scores(store, 0.1 * Q, condition="answer_only")
    check_every_read(store)
    assert len(list_packs(store)) == 2
    no_store_reads()
    check_every_read(store)
    check_every_read(store, lambda keys: keys[:1])


def test_only_changed_runs_are_read_again(store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    add_scores(store, Q)
    check_every_read(store)
    [run] = add_scores(store, Q[:, :1], models=["late"])
    read: list[list[int]] = []

    def record(source: object, metric: int, runs: list[int], prompts: NDArray[np.int64]) -> object:
        read.append(list(runs))
        return read_stored(source, metric, runs, prompts)  # type: ignore[arg-type]

    monkeypatch.setattr(packed_scores, "read_stored", record)
    check_every_read(store)
    assert read == [[run]]
    assert len(list_packs(store)) == 1


def test_the_trials_of_a_prompt_are_averaged(store: sa.Engine) -> None:
    for trial in range(3):
        runs = add_scores(store, 0.1 * np.roll(Q, trial, axis=0)[:, : 3 - trial], trial=trial)
    for _ in range(2):
        check_every_read(store)
        with transaction(store, write=False) as session:
            for run in range(3):
                _, n_trials = read_averages(session, 1, [run + 1], np.arange(1, 5))
                assert n_trials == 3 - run
    assert runs == [1]


def test_gathered_scores_are_those_of_the_rows(store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    monkeypatch.setattr(gathered_scores, "SCORES_PER_QUERY", 2 * len(Q))
    add_scores(store, np.where(Q == 0, -0.0, Q / 3))
    add_scores(store, 1e300 * Q[:, :2], trial=1)
    add_scores(store, Q, condition="answer_only")
    loaded = []
    limits = [
        (gathered_scores, "MIN_GATHERED", 1),
        (gathered_scores, "MAX_GATHERED", 0),
        (gathered_scores, "MIN_GATHERED", 1_000),
    ]
    for module, name, value in [*limits, (stored_scores, "MIN_PAIRED", 1)]:
        monkeypatch.setattr(module, name, value)
        check_every_read(store)
        check_every_read(store, lambda keys: keys[1::2])
        with transaction(store, write=False) as session:
            averages, n_trials = read_averages(session, 1, [3, 1, 2], np.array([4, 2, 1]))
        loaded.append((averages.tobytes(), n_trials))
    assert loaded[1:] == loaded[:1] * 3
    assert not np.signbit(averages).any()
    assert n_trials == 2


@pytest.mark.parametrize(
    "stored", [Q, np.where(Q == 0, -0.0, Q), Q * [1, 1, 0.5], Q * [0.5, 1, 1], 0 * Q, np.where(Q == 0, NAN, Q)]
)
def test_scores_of_zero_and_one_are_gathered_by_value(
    store: sa.Engine, stored: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_scores(store, stored)
    monkeypatch.setenv(VARIABLE, "off")
    check_every_read(store)
    check_every_read(store, lambda keys: keys[::-1])
    with transaction(store, write=False) as session:
        averages, _ = read_averages(session, 1, [1, 2, 3], np.arange(1, 5))
    np.testing.assert_array_equal(averages, stored)
    assert not np.signbit(averages).any()


def test_uncommitted_scores_are_not_packed(store: sa.Engine) -> None:
    add_scores(store, Q)
    with transaction(store) as session:
        session.execute(sa.text("UPDATE run SET checksum = '11111111111111111111111111111111'"))
        session.execute(sa.text("DELETE FROM score WHERE prompt_id = 1"))
        loaded, _ = read_averages(session, 1, [1, 2, 3], np.arange(1, 5))
        np.testing.assert_array_equal(loaded, Q)
        session.rollback()
    check_every_read(store)


@pytest.mark.tampers
@pytest.mark.parametrize("values", ["n_scores = 0", "checksum = '0'", f"checksum = '{'0' * 32}'"])
def test_runs_that_another_program_stored_are_read_row_by_row(store: sa.Engine, values: str) -> None:
    add_scores(store, Q)
    with store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE run SET {values}")
    for value in (1.0, 0.25):
        with store.begin() as connection:
            connection.exec_driver_sql(f"UPDATE score SET value = {value} WHERE run_id = 1")
        check_every_read(store)
        check_every_read(store, lambda keys: keys[:1])


def test_another_process_edits_and_packs(store: sa.Engine, store_url: str, tmp_path: Path) -> None:
    Store(store).ingest(table_of(((1.0, 0.0), (0.0, 1.0)), 0), benchmark="b", metric="x")
    check_every_read(store)
    store.dispose()

    def work() -> None:
        edit_store(store_url, ("rerun", 0, ((0.5, 0.1), (0.1, 1.0), (1.0, 1.0))))
        engine = connect(store_url)
        check_every_read(engine)
        engine.dispose()

    process = fork(work, tmp_path / "output.txt")
    printed = process.wait()
    assert process.returncode == 0, printed
    check_every_read(store)


def test_packs_of_a_server_are_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    server = sa.create_engine("postgresql+psycopg://reader@db.example/team")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = find_pack_folder(server)
    assert folder is not None
    assert folder.path.parent == tmp_path / "suffrage" / "packed"
    assert (folder.file_mode, folder.folder_mode, folder.owner) == (0o600, 0o700, None)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = find_pack_folder(server)
    assert folder is not None
    assert tmp_path in folder.path.parents
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert find_pack_folder(server) is None


class TestFiles:
    @pytest.fixture
    def packed(self, sqlite_store: sa.Engine) -> sa.Engine:
        add_scores(sqlite_store, Q)
        check_every_read(sqlite_store)
        return sqlite_store

    def test_they_are_as_private_as_the_store(self, sqlite_store: sa.Engine) -> None:
        path = Path(str(sqlite_store.url.database))
        add_scores(sqlite_store, Q)
        for mode in (0o600, 0o640):
            path.chmod(mode)
            shutil.rmtree(f"{path}.packed", ignore_errors=True)
            check_every_read(sqlite_store)
            [pack] = list_packs(sqlite_store)
            modes = {file.name: file.stat().st_mode & 0o777 for file in [pack.parent, pack, *pack.iterdir()]}
            folders = {pack.parent.name: mode | (mode & 0o444) >> 2, pack.name: mode | (mode & 0o444) >> 2}
            assert modes == {name: folders.get(name, mode) for name in modes}

    def test_a_damaged_pack_is_built_anew(self, packed: sa.Engine) -> None:
        [pack] = list_packs(packed)
        for damage in (b"", b"\x93NUMPY", (pack / "values.npy").read_bytes()[:-1] + b"\x07"):
            (pack / "values.npy").write_bytes(damage)
            check_every_read(packed)
            assert list_packs(packed) == [pack]
            assert (pack / "values.npy").read_bytes() != damage

    def test_a_pack_may_be_deleted_at_any_time(self, packed: sa.Engine) -> None:
        with transaction(packed, write=False) as session:
            before, _ = read_averages(session, 1, [1, 2, 3], np.arange(1, 5))
            shutil.rmtree(list_packs(packed)[0].parent)
            after, _ = read_averages(session, 1, [1, 2, 3], np.arange(1, 5))
        assert before.tobytes() == after.tobytes()

    def test_a_folder_of_another_user_is_not_read(self, packed: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = find_pack_folder(packed)
        assert folder is not None
        assert folder.is_trusted()
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert folder.is_trusted()
        monkeypatch.setattr("tracker.queries.packed.pack_folder.find_owner", lambda _: 12345)
        moved = find_pack_folder(packed)
        assert moved is not None
        assert not moved.is_trusted()

    def test_a_folder_that_cannot_be_written_changes_no_result(
        self, sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_scores(sqlite_store, Q)

        def fail(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr(packed_scores, "save_pack", fail)
        check_every_read(sqlite_store)
        assert list_packs(sqlite_store) == []

    @pytest.mark.parametrize("value", ["off", "0", "No"])
    def test_the_variable_switches_them_off(
        self, sqlite_store: sa.Engine, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, value)
        add_scores(sqlite_store, Q)
        check_every_read(sqlite_store)
        assert not list(Path(str(sqlite_store.url.database)).parent.glob("*.packed"))

    def test_the_variable_names_a_folder_for_all_stores(
        self, store: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, str(tmp_path / "packs"))
        add_scores(store, Q)
        check_every_read(store)
        [folder] = (tmp_path / "packs").iterdir()
        assert [folder] == [pack.parent for pack in list_packs(store)]

    def test_small_matrices_are_not_packed(self, sqlite_store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        add_scores(sqlite_store, Q)
        check_every_read(sqlite_store)
        assert list_packs(sqlite_store) == []
