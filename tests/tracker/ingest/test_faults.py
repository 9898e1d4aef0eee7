"""What an ingest leaves behind when it is killed, crowded, out of disk, or cut off."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from forked_process import ForkedProcess, fork
from measurement_blocks import all_rows, prompts, scores, store_blocks

from tracker.cli import main
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import DatabaseError
from tracker.ingest.write.checksums import verify_checksums

N_PROMPTS, N_MODELS = 3000, 24


def table(folder: Path, name: str, n_prompts: int = N_PROMPTS, n_models: int = N_MODELS) -> Path:
    """A file of scores of models of its own, on prompts that all such files share."""
    random_scores = np.random.default_rng(sum(map(ord, name))).integers(0, 2, (n_prompts, n_models))
    path = folder / f"{name}.csv"
    with path.open("w") as file:
        file.write("task,prompt_id," + ",".join(f"{name}-{j}" for j in range(n_models)) + "\n")
        for i, row in enumerate(random_scores):
            file.write(f"t{i % 7},q{i}," + ",".join(map(str, row)) + "\n")
    return path


def ingest(url: str, *paths: Path) -> None:
    main(["ingest", *map(str, paths), "--benchmark", "b", "--database", url, "--no-mlflow"])


def started(url: str, *paths: Path) -> ForkedProcess:
    """That command in a process of its own."""
    return fork(lambda: ingest(url, *paths), paths[0].with_suffix(".output"))


def counts(engine: sa.Engine) -> dict[str, int]:
    """Scores by the file whose models they are of."""
    query = "SELECT model.name, count(*) FROM score JOIN run ON run.id = run_id JOIN model ON model.id = model_id"
    counts: dict[str, int] = {}
    with engine.connect() as connection:
        for model, n in connection.execute(sa.text(f"{query} GROUP BY model.name")):
            name = model.rsplit("-", 1)[0]
            counts[name] = counts.get(name, 0) + n
    return counts


def assert_sound(engine: sa.Engine) -> None:
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        if engine.dialect.name == "sqlite":
            assert session.execute(sa.text("PRAGMA integrity_check")).scalar_one() == "ok"
            assert session.execute(sa.text("PRAGMA foreign_key_check")).all() == []


class TestKilled:
    def all_or_nothing(self, store: sa.Engine, url: str, folder: Path, n_kills: int) -> None:
        whole = N_PROMPTS * N_MODELS
        path = table(folder, "undisturbed")
        store.dispose()
        begun = time.monotonic()
        process = started(url, path)
        output = process.wait()
        lasts = time.monotonic() - begun
        assert process.returncode == 0, output
        chance = random.Random(n_kills)
        outcomes = []
        for n in range(n_kills):
            path = table(folder, f"file{n}")
            store.dispose()
            process = started(url, path)
            time.sleep(chance.uniform(0.1, 1.0) * lasts)
            process.kill()
            process.wait()
            outcomes.append(counts(store).get(path.stem, 0))
            assert outcomes[-1] in (0, whole)
            assert_sound(store)
        paths = [folder / f"file{n}.csv" for n in range(n_kills)]
        store.dispose()
        again = started(url, *paths)
        output = again.wait()
        assert again.returncode == 0, output
        assert output.count("nothing changed") == outcomes.count(whole)
        assert_sound(store)
        assert counts(store) == dict.fromkeys(["undisturbed", *(path.stem for path in paths)], whole)
        with store.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM source")) == n_kills + 1
            assert connection.scalar(sa.text("SELECT count(*) FROM prompt")) == N_PROMPTS

    def test_a_killed_ingest_stored_all_or_nothing(self, store: sa.Engine, store_url: str, tmp_path: Path) -> None:
        self.all_or_nothing(store, store_url, tmp_path, 3)

    @pytest.mark.soak
    def test_twenty_killed_ingests_stored_all_or_nothing(
        self, store: sa.Engine, store_url: str, tmp_path: Path
    ) -> None:
        self.all_or_nothing(store, store_url, tmp_path, 20)


MANY = pytest.mark.parametrize("n", [4, pytest.param(8, marks=pytest.mark.soak)])


class TestCrowded:
    def many_at_once(self, url: str, folder: Path, n: int) -> None:
        paths = [table(folder, f"file{i}", n_prompts=500, n_models=10) for i in range(n)]
        processes = [started(url, path) for path in paths]
        for process in processes:
            output = process.wait()
            assert process.returncode == 0, output
            assert "Error" not in output
            assert "locked" not in output
        engine = connect(url)
        assert counts(engine) == {path.stem: 5000 for path in paths}
        assert_sound(engine)
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM prompt")) == 500
            assert connection.scalar(sa.text("SELECT count(*) FROM benchmark")) == 1
            assert connection.scalar(sa.text("SELECT count(*) FROM run")) == 10 * n
        engine.dispose()

    @MANY
    def test_processes_at_once_fill_one_sqlite_file_that_did_not_exist(self, tmp_path: Path, n: int) -> None:
        self.many_at_once(f"sqlite:///{tmp_path}/new.db", tmp_path, n)

    @MANY
    def test_processes_at_once_fill_one_postgresql(self, postgres_url: str, tmp_path: Path, n: int) -> None:
        self.many_at_once(postgres_url, tmp_path, n)


class TestDiskFull:
    def test_a_full_disk_is_one_sentence_and_leaves_the_store_as_it_was(self, sqlite_url: str, tmp_path: Path) -> None:
        engine = connect(sqlite_url)
        store_blocks(engine, scores({("t0", "q0"): 1, ("t1", "q1"): 0}))
        before = all_rows(engine)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        size = (tmp_path / "store.db").stat().st_size
        path = table(tmp_path, "big")

        def ingest_with_limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, size + 100_000))
            ingest(sqlite_url, path)

        engine.dispose()
        process = fork(ingest_with_limit, tmp_path / "limited.output")
        output = process.wait()
        assert process.returncode == 1
        assert "Traceback" not in output
        assert "the disk is full" in output
        assert "Free some space, or check the disk, and run it again" in output
        assert all_rows(engine) == before
        assert_sound(engine)
        engine.dispose()
        process = started(sqlite_url, path)
        output = process.wait()
        assert process.returncode == 0, output
        assert counts(engine)["big"] == N_PROMPTS * N_MODELS
        engine.dispose()


class TestServerGone:
    @pytest.fixture
    def cut(self, postgres_server: sa.URL, postgres_url: str) -> Iterator[Callable[[], int]]:
        """Ends every connection to the test's database, and says how many there were."""
        administrator = create_unchecked_engine(postgres_server.render_as_string(hide_password=False))

        def end() -> int:
            query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = :name"
            with administrator.connect() as connection:
                n: int = connection.scalar(sa.text(query), {"name": sa.make_url(postgres_url).database})
            return n

        yield end
        administrator.dispose()

    @pytest.mark.parametrize("n_statements", [2, 8, 16])
    def test_a_connection_that_ends_midway_is_one_sentence(
        self, postgres_url: str, cut: Callable[[], int], n_statements: int
    ) -> None:
        engine = connect(postgres_url)
        before = all_rows(engine)
        left = n_statements

        def count(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                cut()

        sa.event.listen(engine, "before_cursor_execute", count)
        with pytest.raises(DatabaseError, match="Check that the server runs"):
            store_blocks(
                engine, scores({("t", f"q{n}"): 1 for n in range(50)}, of=prompts([("t", f"q{n}") for n in range(50)]))
            )
        sa.event.remove(engine, "before_cursor_execute", count)
        assert left <= 0
        engine.dispose()
        fresh = connect(postgres_url)
        assert all_rows(fresh) == before
        fresh.dispose()

    def test_a_connection_that_is_lost_while_a_commit_is_prepared_is_reported_once(
        self, postgres_url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def lose(connection: sa.Connection) -> None:
            raw: Any = connection.connection
            raw.pgconn.finish()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        engine = connect(postgres_url)
        sa.event.listen(engine, "commit", lose)
        with pytest.raises(DatabaseError, match="Check that the server runs"):
            store_blocks(engine, scores({("t", "q"): 1}, of=prompts([("t", "q")])))
        assert capsys.readouterr().err == ""
        engine.dispose()

    def test_a_command_that_is_interrupted_reports_it_and_stores_nothing(
        self, postgres_url: str, cut: Callable[[], int], tmp_path: Path
    ) -> None:
        process = started(postgres_url, table(tmp_path, "big", n_prompts=5_000, n_models=100))
        n_cut = 0
        while process.poll() is None:
            n_cut += cut()
            time.sleep(0.02)
        output = process.wait()
        assert n_cut > 0
        assert process.returncode == 1
        assert "Traceback" not in output
        assert "Check that the server runs" in output
        engine = connect(postgres_url)
        assert counts(engine) == {}
        engine.dispose()
