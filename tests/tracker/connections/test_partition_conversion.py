"""A PostgreSQL store of version 0014 gets its partitions in steps; whatever interrupts them, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
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


def test_a_program_that_was_connected_before_can_read_and_write_nothing_meanwhile(
    former: tuple[sa.Engine, Rows],
) -> None:
    engine, rows = former
    upgrade(engine, HALFWAY)
    for statement in (
        "SELECT count(*) FROM score",
        "INSERT INTO answer SELECT * FROM answer",
        "DELETE FROM run",
        "UPDATE run SET label = 'x'",
        "INSERT INTO benchmark (name, revision) VALUES ('new', '')",
    ):
        with pytest.raises((sa.exc.ProgrammingError, sa.exc.OperationalError), match=r"does not exist|being upgraded"):
            execute(engine, statement)
    upgrade(engine)
    assert_sound(engine, rows)


def execute(engine: sa.Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize(
    ("create", "drop", "name"),
    [
        ("CREATE VIEW mine AS SELECT * FROM score", "DROP VIEW mine", "view mine of score"),
        ("CREATE INDEX mine ON answer (prompt_id)", "DROP INDEX mine", "index mine of answer"),
        ("GRANT SELECT (value) ON score TO PUBLIC", "REVOKE SELECT (value) ON score FROM PUBLIC", "the column value"),
        (
            "ALTER TABLE score ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE score DISABLE ROW LEVEL SECURITY",
            "row security of score",
        ),
        (
            "CREATE STATISTICS mine ON run_id, prompt_id FROM answer",
            "DROP STATISTICS mine",
            "statistics mine of answer",
        ),
        (
            "CREATE RULE mine AS ON DELETE TO score DO ALSO NOTHING",
            "DROP RULE mine ON score",
            "rule mine of score",
        ),
        (
            "CREATE FUNCTION mine() RETURNS bigint LANGUAGE SQL BEGIN ATOMIC SELECT count(*) FROM score; END",
            "DROP FUNCTION mine()",
            r"function mine\(\) of score",
        ),
    ],
)
def test_what_users_have_put_on_the_tables_is_named_instead_of_lost(
    former: tuple[sa.Engine, Rows], create: str, drop: str, name: str
) -> None:
    engine, rows = former
    execute(engine, create)
    with pytest.raises(DatabaseError, match=name):
        upgrade(engine)
    assert current_version(engine) == BEFORE
    execute(engine, drop)
    upgrade(engine)
    assert_sound(engine, rows)
    execute(engine, create)
    with pytest.raises(DatabaseError, match=name):
        downgrade(engine, BEFORE)
    assert current_version(engine) == known_versions()[-1]
    execute(engine, drop)


def test_a_downgrade_leaves_tables_of_users_with_names_like_partitions(former: tuple[sa.Engine, Rows]) -> None:
    engine, _ = former
    upgrade(engine)
    execute(engine, "CREATE TABLE answer_2023 AS SELECT 7 AS number", "CREATE VIEW score_77 AS SELECT 8 AS number")
    downgrade(engine, BEFORE)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT number FROM answer_2023").scalar_one() == 7
        assert connection.exec_driver_sql("SELECT number FROM score_77").scalar_one() == 8


def test_a_table_of_another_program_with_the_name_of_a_partition_stops_the_upgrade_before_it_begins(
    former: tuple[sa.Engine, Rows],
) -> None:
    engine, rows = former
    with engine.connect() as connection:
        key = connection.exec_driver_sql("SELECT min(id) FROM benchmark").scalar_one()
    execute(engine, f"CREATE TABLE score_{key} (number integer)", "CREATE TABLE score_2023 (number integer)")
    with pytest.raises(DatabaseError, match=f"the upgrade needs: score_{key}. Rename"):
        upgrade(engine)
    assert current_version(engine) == BEFORE
    execute(engine, f"DROP TABLE score_{key}")
    upgrade(engine)
    execute(engine, "DROP TABLE score_2023")
    assert_sound(engine, rows)


def test_a_downgrade_names_views_on_partitions_instead_of_dropping_them(former: tuple[sa.Engine, Rows]) -> None:
    engine, rows = former
    upgrade(engine)
    with engine.connect() as connection:
        key = connection.exec_driver_sql("SELECT min(id) FROM benchmark").scalar_one()
    execute(engine, f"CREATE VIEW mine AS SELECT value FROM score_{key}")
    with pytest.raises(DatabaseError, match=f"with them views: mine on score_{key}."):
        downgrade(engine, BEFORE)
    execute(engine, "DROP VIEW mine")
    assert_sound(engine, rows)


def test_an_upgrade_gives_back_no_privilege_that_was_revoked(former: tuple[sa.Engine, Rows]) -> None:
    engine, rows = former
    role = f"reader_{engine.url.database}"
    execute(
        engine,
        f"CREATE ROLE {role}",
        f"GRANT SELECT ON score TO {role}",
        f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {role}",
    )
    upgrade(engine)
    assert_sound(engine, rows)
    with engine.begin() as connection:
        for table, expected in (("score", True), ("answer", False)):
            assert connection.scalar(sa.select(sa.func.has_table_privilege(role, table, "SELECT"))) == expected
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")


def test_a_store_without_comments_can_be_upgraded(former: tuple[sa.Engine, Rows]) -> None:
    engine, rows = former
    execute(engine, "COMMENT ON TABLE score IS NULL")
    upgrade(engine)
    assert rows_of(engine) == rows


def test_the_owner_of_the_store_remains_its_owner_when_an_administrator_upgrades_it(
    former: tuple[sa.Engine, Rows],
) -> None:
    engine, rows = former
    owner = f"owner_{engine.url.database}"
    tables = sa.inspect(engine).get_table_names()
    execute(engine, f"CREATE ROLE {owner}", *(f'ALTER TABLE "{table}" OWNER TO {owner}' for table in tables))
    upgrade(engine)
    with engine.connect() as connection:
        wrongly_owned = connection.exec_driver_sql(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') "
            "AND relname !~ '^(suffrage_version|search_)' AND pg_get_userbyid(relowner) = current_user UNION "
            "SELECT proname FROM pg_proc WHERE proname ~ 'partition|^record_' "
            "AND pg_get_userbyid(proowner) = current_user AND pronamespace = 'public'::regnamespace"
        )
        assert wrongly_owned.scalars().all() == []
    assert_sound(engine, rows)
    execute(engine, f"REASSIGN OWNED BY {owner} TO CURRENT_USER", f"DROP OWNED BY {owner}", f"DROP ROLE {owner}")


class StopError(Exception):
    """Interrupts a conversion."""


def stop_at(n: int, patch: pytest.MonkeyPatch, engine: sa.Engine) -> None:
    """Upgrade a store until the n-th step is about to commit."""
    patch.setattr(partition_conversion, "ROWS_PER_STEP", 1)  # a run
    original, steps = partition_conversion.convert_in_steps, 0

    def convert(step: partition_conversion.Step, progress: partition_conversion.Progress | None = None) -> None:
        @contextmanager
        def disturbed() -> Iterator[sa.Connection]:
            nonlocal steps
            with step() as connection:
                yield connection
                steps += 1
                if steps == n:
                    raise StopError

        original(disturbed, progress)

    with patch.context() as inner:
        inner.setattr("tracker.connections.schema_versions.convert_in_steps", convert)
        with suppress(StopError):
            upgrade(engine)
    assert steps == n
    assert current_version(engine) == HALFWAY


@pytest.mark.parametrize("n", range(1, 31, 4))
def test_an_upgrade_that_stops_at_any_step_is_continued(
    former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    engine, rows = former
    stop_at(n, monkeypatch, engine)
    upgrade(engine)
    assert_sound(engine, rows)


def test_a_downgrade_of_an_interrupted_upgrade_leaves_nothing_for_the_next_one(
    former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, rows = former
    stop_at(9, monkeypatch, engine)
    downgrade(engine, BEFORE)
    execute(engine, "UPDATE score SET value = 0.25")
    upgrade(engine)
    with engine.connect() as connection:
        values = connection.exec_driver_sql("SELECT DISTINCT value FROM score").scalars().all()
        n_rows = connection.exec_driver_sql("SELECT count(*) FROM score").scalar_one()
    assert (values, n_rows) == ([0.25], len(rows["score"]))


def test_two_upgrades_at_once_are_one(
    former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine, rows = former
    address = engine.url.render_as_string(hide_password=False)
    engine.dispose()
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 1)
    work = partial(_upgrade, address)
    processes = [fork(work, tmp_path / f"{number}.txt") for number in range(2)]
    outputs = [process.wait() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert_sound(engine, rows)


def _upgrade(address: str) -> None:
    upgrade(create_unchecked_engine(address))


def test_the_number_of_moved_runs_only_grows(former: tuple[sa.Engine, Rows], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rows = former
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 1)
    seen: list[tuple[int, int]] = []
    upgrade(engine, progress=lambda done, total: seen.append((done, total)))
    total = 2 * len(rows["run"])
    assert seen == [(done, total) for done in range(1, total + 1)]


def test_the_command_prints_the_versions(former: tuple[sa.Engine, Rows]) -> None:
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
    monkeypatch.setattr(partition_conversion, "ROWS_PER_STEP", 1)

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
