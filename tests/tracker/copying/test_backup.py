"""Backups: everything in them, while others write; restored completely or not at all."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from example_stores import AWKWARD, Rows, empty, fill, packed, stores
from hypothesis import HealthCheck, given, settings
from store_rows import rows_of

from tracker import schema
from tracker.cli import suffrage
from tracker.connections.schema_versions import current_version, downgrade, upgrade
from tracker.copying import backup as backups
from tracker.copying.backup import back_up, restore
from tracker.copying.comparison import compare_stores
from tracker.copying.downgrade import list_losses
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import BadInputError, DatabaseError
from tracker.schema import metadata

SEALED = ("sealed_run", "sealed_metric")
OLD = Path(__file__).parents[2] / "old_databases"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """An empty store on each engine in turn."""
    engine = connect(request.getfixturevalue(f"{request.param}_url"))
    yield engine
    engine.dispose()


@pytest.fixture
def everything(tmp_path: Path) -> sa.Engine:
    """A store with rows in every table."""
    path = tmp_path / "everything.db"
    raw = sqlite3.connect(path)
    raw.executescript(max(OLD.glob("*.sql")).read_text())
    raw.close()
    engine = create_unchecked_engine(f"sqlite:///{path}")
    upgrade(engine)
    return engine


def dump(engine: sa.Engine) -> list[str]:
    """Every row of every table as SQL, from a copy on SQLite; without the checksum of its definitions of tables."""
    skipped = ("prompt_search", """INTO "checksum" VALUES('sqlite_master'""")
    with closing(sqlite3.connect(str(engine.url.database))) as raw:
        lines = [line for line in raw.iterdump() if line.startswith("INSERT")]
    return sorted(line for line in lines if not any(part in line for part in skipped))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(suffrage, [str(argument) for argument in arguments])


class TestBackup:
    def test_a_restored_backup_is_the_same_store(self, store: sa.Engine, everything: sa.Engine, tmp_path: Path) -> None:
        back_up(everything, tmp_path / "first.db")
        restore(tmp_path / "first.db", store)
        assert compare_stores(everything, store) == []
        back_up(store, tmp_path / "second.db")
        restore(tmp_path / "second.db", connect(f"sqlite:///{tmp_path / 'back.db'}"))
        assert dump(connect(f"sqlite:///{tmp_path / 'back.db'}")) == dump(everything)
        assert {path.name for path in tmp_path.iterdir() if path.name.startswith(("first", "second"))} == {
            "first.db",
            "second.db",
        }

    @settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(rows=stores())
    def test_any_store_comes_back(self, sqlite_url: str, tmp_path: Path, rows: Rows) -> None:
        engine = connect(sqlite_url)
        fill(engine, rows)
        before = rows_of(engine)
        (tmp_path / "b.db").unlink(missing_ok=True)
        back_up(engine, tmp_path / "b.db")
        empty(engine)
        restore(tmp_path / "b.db", engine, replace=True)
        assert rows_of(engine) == before
        empty(engine)
        engine.dispose()

    def test_what_others_write_meanwhile_is_in_it_whole_or_not_at_all(self, store: sa.Engine, tmp_path: Path) -> None:
        fill(store, AWKWARD)
        stop = threading.Event()

        def write() -> None:
            place = 0
            while not stop.is_set():
                place += 1
                with transaction(store) as session:
                    benchmark = schema.Benchmark(name=f"new {place}")
                    session.add(benchmark)
                    session.flush()
                    session.add_all(schema.Task(benchmark_id=benchmark.id, name=str(n)) for n in range(3))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for place in range(3):
                back_up(store, tmp_path / f"{place}.db")
        finally:
            stop.set()
            writer.join()
        for place in range(3):
            with closing(sqlite3.connect(tmp_path / f"{place}.db")) as raw:
                of_new = "FROM task JOIN benchmark b ON b.id = benchmark_id WHERE b.name LIKE 'new %'"
                query = f"SELECT count(*) {of_new} GROUP BY b.id"
                assert {n for (n,) in raw.execute(query)} <= {3}

    def test_an_interrupted_backup_leaves_nothing(
        self, store: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(store, AWKWARD)
        url = store.url.render_as_string(hide_password=False)
        before = sorted(path.name for path in tmp_path.iterdir())

        def fail(path: Path) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(backups, "_find_faults", fail)
        with suppress(KeyboardInterrupt):
            run("db", "backup", tmp_path / "b.db", "--database", url)
        after = [path.name for path in tmp_path.iterdir() if not path.name.startswith("store.db-")]
        assert sorted(after) == [name for name in before if not name.startswith("store.db-")]

    def test_it_overwrites_only_on_request(self, sqlite_url: str, tmp_path: Path) -> None:
        connect(sqlite_url)
        (tmp_path / "b.db").write_text("mine")
        refused = run("db", "backup", tmp_path / "b.db", "--database", sqlite_url)
        assert refused.exit_code == 1
        assert (tmp_path / "b.db").read_text() == "mine"
        done = run("db", "backup", tmp_path / "b.db", "--force", "--database", sqlite_url)
        assert "Backed up and verified" in done.stderr


class TestRestore:
    def test_a_store_with_data_is_replaced_only_on_request(
        self, store: sa.Engine, everything: sa.Engine, tmp_path: Path
    ) -> None:
        fill(store, AWKWARD)
        before = rows_of(store)
        back_up(everything, tmp_path / "b.db")
        with pytest.raises(DatabaseError, match=r"is not empty.*--replace"):
            restore(tmp_path / "b.db", store)
        assert rows_of(store) == before
        restore(tmp_path / "b.db", store, replace=True)
        assert compare_stores(everything, store) == []

    def test_a_failure_leaves_the_store_as_it_was(
        self, store: sa.Engine, everything: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(store, AWKWARD)
        before = rows_of(store)
        back_up(everything, tmp_path / "b.db")
        n_rows = restore(tmp_path / "b.db", connect(f"sqlite:///{tmp_path / 'free.db'}")).n_rows
        for stop in (1, n_rows // 2, n_rows, 2 * n_rows):

            def fail(done: int, total: int, stop: int = stop) -> None:
                if done >= stop:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                restore(tmp_path / "b.db", store, replace=True, progress=fail)
            assert rows_of(store) == before

    def test_a_damaged_backup_is_refused(self, store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "b.db"
        halved = "UPDATE score SET value = value / 2 WHERE value = 1.0"
        path.write_bytes(packed(AWKWARD, lambda raw: raw.execute(halved)))
        with pytest.raises(BadInputError, match="do not match their checksum"):
            restore(path, store)
        path.write_bytes(packed(AWKWARD, lambda raw: raw.execute("UPDATE prompt SET text = 'x' WHERE id = 2")))
        with pytest.raises(BadInputError, match="is damaged: prompt 2 differs from what was stored"):
            restore(path, store)
        path.write_bytes(packed(AWKWARD)[:200_000])
        with pytest.raises(BadInputError, match="is damaged"):
            restore(path, store)
        with pytest.raises(BadInputError, match="no such file"):
            restore(tmp_path / "none.db", store)

    @pytest.mark.tampers
    def test_a_damaged_store_has_no_backup(self, store: sa.Engine, tmp_path: Path) -> None:
        with store.begin() as connection:
            connection.execute(sa.text("UPDATE database SET id = 'changed'"))
        with pytest.raises(DatabaseError, match=r"database .*differs from what was stored. No backup was written"):
            back_up(store, tmp_path / "b.db")

    def test_a_backup_of_the_first_version_is_upgraded(self, store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "b.db"
        raw = sqlite3.connect(path)
        raw.executescript(min(OLD.glob("*.sql")).read_text())
        raw.close()
        restore(path, store)
        with transaction(store, write=False) as session:
            assert session.scalar(sa.select(sa.func.count()).select_from(metadata.tables["score"]))

    def test_without_confirmation_nothing_changes(self, sqlite_url: str, tmp_path: Path) -> None:
        back_up(connect(sqlite_url), tmp_path / "b.db")
        refused = run("db", "restore", tmp_path / "b.db", "--replace", "--database", sqlite_url)
        assert refused.exit_code == 2
        assert "Nothing was changed" in refused.stderr
        done = run("db", "restore", tmp_path / "b.db", "--replace", "--yes", "--database", sqlite_url)
        assert done.exit_code == 0


class TestVerify:
    def test_every_changed_row_is_listed(self, store: sa.Engine, everything: sa.Engine) -> None:
        """One row of each table is changed, one after the other."""
        from tracker.copying.store_copy import copy_store

        copy_store(everything, store, replace=True)
        changes = {
            "prompt": ("split", "x"), "answer": ("text", "x"), "score": ("value", 0.125),
            "finding_metric": ("reason", "x"), "embedding": ("vector", b"1234"), "run": ("reason", "x"),
            "filter_decision": ("kept", False), "prompt_value": ("value", 77.5), "ranking": ("rank", 9.5),
            "finding_artifact": ("content", b"x"),
        }  # fmt: skip
        for name, (column, value) in changes.items():
            table = metadata.tables[name]
            keys = list(table.primary_key.columns)
            values: dict[str, Any] = {column: value}
            if name == "finding_metric":
                values["value"] = None
            with transaction(store) as session:
                first = session.execute(sa.select(table).order_by(*keys)).mappings().first()
                assert first is not None
                row = [key == first[key.name] for key in keys]
                session.execute(sa.update(table).where(*row).values(**values))
            (difference,) = compare_stores(everything, store)
            assert (difference.table, difference.difference) == (name, "differs")
            with transaction(store) as session:
                session.execute(sa.update(table).where(*row).values({key: first[key] for key in values}))
        assert compare_stores(everything, store) == []

    def test_rows_in_one_store_only(self, store: sa.Engine, everything: sa.Engine) -> None:
        from tracker.copying.store_copy import copy_store

        copy_store(everything, store)
        with transaction(store) as session:
            session.add(schema.Metric(name="new"))
        (more,) = compare_stores(everything, store)
        assert (more.table, more.difference) == ("metric", "only in the second")
        (less,) = compare_stores(store, everything)
        assert (less.part, less.difference) == (more.part, "only in the first")

    @pytest.mark.tampers
    def test_the_command_exits_with_1(self, everything: sa.Engine, tmp_path: Path) -> None:
        back_up(everything, tmp_path / "b.db")
        paths = str(everything.url.database), str(tmp_path / "b.db")
        equal = run("db", "verify", *paths)
        assert (equal.exit_code, equal.stderr) == (0, "Equal: every row of both stores.\n")
        with closing(sqlite3.connect(paths[1])) as raw, raw:
            raw.execute("UPDATE prompt SET text = 'changed' WHERE id = 2")
        different = run("db", "verify", *paths, "--format", "csv")
        assert different.exit_code == 1
        assert different.stdout == "table,part,difference\nprompt,prompt 2,differs\n"


class TestDowngrade:
    def test_losses_are_those_of_the_downgrade(self, store: sa.Engine, everything: sa.Engine) -> None:
        from tracker.copying.store_copy import copy_store

        copy_store(everything, store, replace=True)
        with transaction(store) as session:
            session.execute(sa.text("UPDATE answer SET status = 'truncated' WHERE trial = 0"))
            n_truncated = session.scalar(sa.text("SELECT count(*) FROM answer WHERE status = 'truncated'"))
            n_leaders = session.scalar(sa.text("SELECT count(leader) FROM finding"))
            n_leases = session.scalar(sa.text("SELECT count(*) FROM evaluation_lease"))
            n_checksums = session.scalar(sa.text("SELECT count(*) FROM checksum"))
            n_sealed = [session.scalar(sa.text(f"SELECT count(*) FROM {name}")) for name in SEALED]
        before = rows_of(store)
        losses = {(loss.table, loss.column): loss.n for loss in list_losses(store, "0009")}
        expected = {("answer", "status=truncated"): n_truncated, ("finding", "leader"): n_leaders,
                    ("evaluation_lease", ""): n_leases, ("checksum", ""): n_checksums,
                    **{(name, ""): n for name, n in zip(SEALED, n_sealed, strict=True)}}  # fmt: skip
        assert losses == {place: n for place, n in expected.items() if n}
        assert rows_of(store) == before
        downgrade(store, "0009")
        assert current_version(store) == "0009"

    def test_the_command_lists_losses_before_it_changes_anything(self, everything: sa.Engine) -> None:
        url = everything.url.render_as_string(hide_password=False)
        refused = run("db", "downgrade", "0004", "--database", url, "--format", "csv")
        assert refused.exit_code == 2
        assert "undo_record,,1,the table is removed" in refused.stdout
        assert current_version(everything) > "0004"
        done = run("db", "downgrade", "0004", "--yes", "--database", url)
        assert done.exit_code == 0
        assert current_version(everything) == "0004"
        assert run("db", "downgrade", "0001", "--database", url).exit_code == 1
