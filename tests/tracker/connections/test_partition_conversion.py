"""A PostgreSQL store of version 0014 gets its partitions in steps; whatever interrupts them, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from answer_tables import write_answers
from click.testing import CliRunner
from forked_process import fork
from store_rows import Rows, rows_of

from tracker.api.store import Store
from tracker.cli import suffrage
from tracker.connections import partition_conversion
from tracker.connections.schema_versions import current_version, downgrade, known_versions, schema_differences, upgrade
from tracker.copying.store_faults import find_store_faults
from tracker.database import connect, create_unchecked_engine
from tracker.errors import DatabaseError

BEFORE, HALFWAY = "0014", "0015"


@pytest.fixture
def former(postgres_url: str, tmp_path: Path) -> Iterator[tuple[sa.Engine, Rows]]:
    """A store of the version before, with three benchmarks, and its rows."""
    with Store(connect(postgres_url)) as store:
        for number, name in enumerate(("first", "second", "third")):
            store.ingest(write_answers(tmp_path / f"{name}.csv", number), benchmark=name)
    engine = connect(postgres_url)
    rows = rows_of(engine)
    downgrade(engine, BEFORE)
    yield engine, rows
    engine.dispose()


def assert_sound(engine: sa.Engine, rows: Rows) -> None:
    assert current_version(engine) == known_versions()[-1]
    assert schema_differences(engine) == []
    with engine.connect() as connection:
        assert list(find_store_faults(connection)) == []
        partitions = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relname LIKE '%%_unpartitioned%%'")
        assert partitions.all() == []
    assert rows_of(engine) == rows


def test_the_rows_and_the_rights_are_the_same_after_an_upgrade_and_a_downgrade(
    former: tuple[sa.Engine, Rows],
) -> None:
    engine, rows = former
    role = f"reader_{engine.url.database}"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role}")
        connection.exec_driver_sql(f"GRANT SELECT ON score, answer TO {role}")
    for _ in range(2):
        upgrade(engine)
        assert_sound(engine, rows)
        with engine.begin() as connection:
            for table in ("score", "answer"):
                assert connection.scalar(sa.select(sa.func.has_table_privilege(role, table, "SELECT")))
        downgrade(engine, BEFORE)
    upgrade(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")


def test_a_store_in_the_middle_of_its_upgrade_is_rejected_with_the_command_that_continues(
    former: tuple[sa.Engine, Rows],
) -> None:
    engine, rows = former
    upgrade(engine, HALFWAY)
    with pytest.raises(DatabaseError, match="suffrage db upgrade"):
        connect(engine.url.render_as_string(hide_password=False))
    upgrade(engine)
    assert_sound(engine, rows)


class StopError(Exception):
    """Interrupts a conversion."""


@pytest.mark.parametrize("n", range(1, 26, 3))
def test_an_upgrade_that_stops_at_any_step_is_continued(
    former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    engine, rows = former
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 40)  # a run or two
    steps = 0

    def count_step(connection: sa.Connection) -> None:
        nonlocal steps
        steps += 1
        if steps == n:
            raise StopError

    with monkeypatch.context() as patch:
        original = partition_conversion.convert_in_steps

        def convert(of: sa.Engine, progress: partition_conversion.Progress | None = None) -> None:
            disturbed = create_unchecked_engine(of.url.render_as_string(hide_password=False))
            sa.event.listen(disturbed, "commit", count_step)
            try:
                original(disturbed, progress)
            finally:
                disturbed.dispose()

        patch.setattr("tracker.connections.schema_versions.convert_in_steps", convert)
        with suppress(StopError):
            upgrade(engine)
    assert steps >= n
    assert current_version(engine) == HALFWAY
    upgrade(engine)
    assert_sound(engine, rows)


def test_the_number_of_moved_rows_only_grows(former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rows = former
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 40)
    seen: list[tuple[int, int]] = []
    upgrade(engine, progress=lambda done, total: seen.append((done, total)))
    total = len(rows["score"]) + len(rows["answer"])
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {n for _, n in seen} == {total}
    assert seen[-1] == (total, total)


def test_the_command_says_what_it_did(former: tuple[sa.Engine, Rows]) -> None:
    engine, rows = former
    address = engine.url.render_as_string(hide_password=False)
    result = CliRunner().invoke(suffrage, ["db", "upgrade", "--database", address])
    assert result.exit_code == 0
    assert f"Upgraded from {BEFORE} to {known_versions()[-1]}." in result.stderr
    assert_sound(engine, rows)


def test_a_killed_upgrade_is_continued_by_the_next_one(
    former: tuple[sa.Engine, Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, rows = former
    address = engine.url.render_as_string(hide_password=False)
    engine.dispose()
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 40)

    def work() -> None:
        upgrade(create_unchecked_engine(address), progress=lambda *_: time.sleep(60))

    for number in range(3):
        moved, deadline = count_rows(engine), time.monotonic() + 60
        engine.dispose()
        process = fork(work, tmp_path / f"{number}.txt")
        while count_rows(engine) == moved and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.wait()
        engine.dispose()
    assert current_version(engine) == HALFWAY
    upgrade(engine)
    assert_sound(engine, rows)


def count_rows(engine: sa.Engine) -> int:
    """The rows of answers that are in partitions, attached or not."""
    with engine.connect() as connection:
        names = connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relname ~ '^answer_[0-9]+$'").scalars()
        return sum(int(connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one()) for name in names.all())
