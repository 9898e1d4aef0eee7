"""The schema: models equal migrations, up and down with data, comments, constraints."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from tracker import schema
from tracker.connections.schema_versions import current_version, downgrade, known_versions, schema_differences, upgrade
from tracker.database import (
    connect,
    create_unchecked_engine,
    ensure_current,
    find_file_damage,
    find_stray_rows,
    transaction,
)
from tracker.errors import DatabaseError
from tracker.schema.search_index import find_search_faults
from tracker.schema.views import VIEWS

OLD_DATABASES = sorted((Path(__file__).parents[1] / "old_databases").glob("*.sql"))


NEW_ROWS = {
    "run": "INSERT INTO run (benchmark_id, model_id, condition, variant, label, limited, status, n_scores, "
    "checksum, ingested) VALUES (1, 1, 'full', '', 'later', false, 'complete', 0, '', CURRENT_TIMESTAMP)",
    "finding": "INSERT INTO finding (analysis, parameters, selection, input_digest, code_version, status, "
    "recorded) VALUES ('a', '{}', '{}', '', '', 'complete', CURRENT_TIMESTAMP)",
}
NAMES_BEFORE_0005 = {
    "finding": ("analysis", NEW_ROWS["finding"].replace("finding", "analysis").replace("(analysis,", "(name,")),
    "run": ("run", NEW_ROWS["run"]),
}


def fill(engine: sa.Engine, name: str = "b") -> dict[str, int]:
    """One row of everything a score needs; returns the keys."""
    with transaction(engine) as session:
        benchmark = schema.Benchmark(name=name)
        model, metric = schema.Model(name=f"m-{name}"), schema.Metric(name=f"accuracy-{name}")
        session.add_all([benchmark, model, metric])
        session.flush()
        task = schema.Task(benchmark_id=benchmark.id, name="t")
        run = schema.Run(benchmark_id=benchmark.id, model_id=model.id)
        session.add_all([task, run])
        session.flush()
        prompt = schema.Prompt(task_id=task.id, text="?", content_hash="h", choices=["a", "b"])
        session.add(prompt)
        session.flush()
        session.add(schema.Score(run_id=run.id, metric_id=metric.id, prompt_id=prompt.id, trial=0, value=0.5))
        return {"run": run.id, "metric": metric.id, "prompt": prompt.id, "benchmark": benchmark.id}


class TestMigrations:
    def test_models_equal_migrations(self, store: sa.Engine) -> None:
        assert schema_differences(store) == []
        assert current_version(store) == known_versions()[-1]

    def test_up_down_up_leaves_an_empty_store_of_the_same_shape(self, store: sa.Engine) -> None:
        before = sorted(sa.inspect(store).get_table_names())
        fill(store)
        downgrade(store, "base")
        assert set(sa.inspect(store).get_table_names()) <= {"suffrage_version"}
        assert sa.inspect(store).get_view_names() == []
        upgrade(store)
        assert sorted(sa.inspect(store).get_table_names()) == before
        fill(store)

    def test_upgrading_a_store_with_data_keeps_the_data(self, store: sa.Engine) -> None:
        keys = fill(store)
        upgrade(store)
        with transaction(store, write=False) as session:
            assert session.get(schema.Prompt, keys["prompt"]).choices == ["a", "b"]

    def test_revision_numbers_are_those_of_the_file_names(self) -> None:
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        from tracker.connections.schema_versions import migrations_folder

        config = Config()
        config.set_main_option("script_location", str(migrations_folder()))
        script = ScriptDirectory.from_config(config)
        assert sorted(r.revision for r in script.walk_revisions()) == known_versions()

    @pytest.mark.parametrize("dump", OLD_DATABASES, ids=lambda p: p.stem)
    def test_every_old_database_upgrades_with_its_data(self, dump: Path, tmp_path: Path) -> None:
        path = tmp_path / "old.db"
        with sqlite3.connect(path) as raw:
            raw.executescript(dump.read_text())
        raw.close()
        engine = create_unchecked_engine(f"sqlite:///{path}")
        upgrade(engine)
        ensure_current(engine)
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT count(*) FROM leaderboard")) > 0
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []
            assert find_search_faults(connection) == []

    def test_there_is_an_old_database_of_every_version(self) -> None:
        assert {p.stem[:4] for p in OLD_DATABASES} >= set(known_versions())


@pytest.mark.tampers
class TestKeys:
    """On SQLite, a table copied by a migration loses AUTOINCREMENT and its last key unless the migration keeps them."""

    def test_every_table_whose_keys_only_grow_is_looked_at(self) -> None:
        growing = {t.name for t in schema.metadata.sorted_tables if t.kwargs.get("sqlite_autoincrement")}
        assert set(NEW_ROWS) == growing

    @pytest.mark.parametrize("table", sorted(NEW_ROWS))
    @pytest.mark.parametrize("version", known_versions()[:-1])
    def test_no_migration_makes_the_key_of_a_deleted_row_usable_again(
        self, store: sa.Engine, version: str, table: str
    ) -> None:
        fill(store)
        old_name, old_row = NAMES_BEFORE_0005[table] if version < "0005" else (table, NEW_ROWS[table])
        last = self._use_and_delete_a_key(store, table, NEW_ROWS[table])
        downgrade(store, version)
        self._check_autoincrement(store, {old_name})
        below = self._use_and_delete_a_key(store, old_name, old_row)
        upgrade(store)
        self._check_autoincrement(store, {table})
        above = self._use_and_delete_a_key(store, table, NEW_ROWS[table])
        assert last < below < above

    @staticmethod
    def _use_and_delete_a_key(store: sa.Engine, table: str, statement: str) -> int:
        """The largest key of the table after the statement; its row is deleted again."""
        with store.begin() as connection:
            connection.execute(sa.text(statement))
            key = connection.scalar(sa.text(f"SELECT max(id) FROM {table}"))
            connection.execute(sa.text(f"DELETE FROM {table} WHERE id = :key"), {"key": key})
        return int(key)

    @staticmethod
    def _check_autoincrement(store: sa.Engine, tables: set[str]) -> None:
        if store.dialect.name == "sqlite":
            with store.connect() as connection:
                known = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
                assert tables <= set(connection.scalars(sa.text(known)))
                assert tables <= set(connection.scalars(sa.text("SELECT name FROM sqlite_sequence")))


class TestFindingTables:
    """Version 0005: `analysis` becomes `finding`."""

    def test_what_is_named_after_a_table_follows_the_convention(self, store: sa.Engine) -> None:
        def names() -> dict[str, set[str | None]]:
            looked = sa.inspect(store)
            return {
                table.name: {
                    *(key["name"] for key in looked.get_foreign_keys(table.name)),
                    *(index["name"] for index in looked.get_indexes(table.name)),
                    *(constraint["name"] for constraint in looked.get_check_constraints(table.name)),
                }
                for table in schema.metadata.sorted_tables
                if "finding" in table.name or "finding_id" in table.c
            }

        before = names()
        stray = [name for group in before.values() for name in group if "analysis" in str(name)]
        assert stray == ["ix_finding_analysis"]
        downgrade(store, "0004")
        upgrade(store)
        assert names() == before

    @pytest.mark.parametrize("dump", OLD_DATABASES, ids=lambda p: p.stem)
    def test_findings_survive_going_up_and_back(self, dump: Path, tmp_path: Path) -> None:
        path = tmp_path / "old.db"
        with sqlite3.connect(path) as raw:
            raw.executescript(dump.read_text())
        raw.close()
        engine = create_unchecked_engine(f"sqlite:///{path}")
        upgrade(engine)

        def content(names: tuple[str, str, str]) -> list[list[tuple[object, ...]]]:
            table, label, key = names
            statements = (
                f"SELECT id, {label}, filter_id, weights_id, stale FROM {table} ORDER BY id",
                f"SELECT * FROM {table}_run",
                f"SELECT {key}, prompt_id, kept FROM filter_decision ORDER BY 1, 2",
                f"SELECT {key}, name, value, reason FROM finding_metric ORDER BY 1, 2",
            )
            with engine.connect() as connection:
                return [[tuple(row) for row in connection.execute(sa.text(sql))] for sql in statements]

        now = content(("finding", "analysis", "finding_id"))
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT kind FROM publication")) == "finding"
        downgrade(engine, "0004")
        assert content(("analysis", "name", "analysis_id")) == now
        with engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT kind FROM publication")) == "analysis"
        upgrade(engine)
        assert content(("finding", "analysis", "finding_id")) == now
        assert schema_differences(engine) == []


class TestSummaries:
    """Version 0006: `summary` becomes headline, evidence and caveats."""

    ROW = (
        "INSERT INTO finding (analysis, parameters, selection, input_digest, code_version, status, recorded, summary) "
        "VALUES ('a', '{}', '{}', '', '', :status, CURRENT_TIMESTAMP, :summary)"
    )
    COLUMNS = sa.select(
        schema.StoredFinding.headline, schema.StoredFinding.evidence, schema.StoredFinding.caveats
    ).order_by(schema.StoredFinding.id)

    def test_the_first_sentence_becomes_the_headline_and_the_rest_evidence(self, store: sa.Engine) -> None:
        downgrade(store, "0005")
        texts = ["p = .03, so B leads. A has 0.5 of them. No test.", "One sentence.", None]
        with store.begin() as connection:
            for text in texts:
                row = {"status": "complete" if text else "failed", "summary": text}
                connection.execute(sa.text(self.ROW), row)
        upgrade(store)
        with transaction(store, write=False) as session:
            assert [tuple(row) for row in session.execute(self.COLUMNS)] == [
                ("p = .03, so B leads.", ["A has 0.5 of them. No test."], []),
                ("One sentence.", [], []),
                (None, None, None),
            ]
        downgrade(store, "0005")
        with store.connect() as connection:
            assert connection.scalars(sa.text("SELECT summary FROM finding ORDER BY id")).all() == texts

    def test_the_parts_are_joined_by_a_downgrade(self, store: sa.Engine) -> None:
        finding = schema.StoredFinding(
            analysis="a", parameters={}, selection={}, input_digest="", code_version="", headline="A leads.",
            evidence=["By 0.1.", "On 9 prompts."], caveats=["Few prompts."], warnings=["Not kept."],
        )  # fmt: skip
        with transaction(store) as session:
            session.add(finding)
        downgrade(store, "0005")
        with store.connect() as connection:
            summary = connection.scalar(sa.text("SELECT summary FROM finding"))
        assert summary == "A leads. By 0.1. On 9 prompts. Few prompts."


class TestRunStatus:
    """Version 0003: runs that are hidden or superseded."""

    def test_downgrade_leaves_out_hidden_runs_and_keeps_the_rest(self, store: sa.Engine) -> None:
        keys = fill(store)
        with transaction(store) as session:
            again = schema.Run(benchmark_id=1, model_id=1, label="#2", status="superseded", superseded_by=keys["run"])
            session.add_all([again, schema.Run(benchmark_id=1, model_id=1, label="#3", status="hidden", reason="odd")])
        downgrade(store, "0002")
        with store.connect() as connection:
            statuses = connection.execute(sa.text("SELECT status FROM run ORDER BY id")).scalars().all()
            assert connection.scalar(sa.text("SELECT count(*) FROM score")) == 1
        assert statuses == ["complete", "partial", "partial"]
        upgrade(store)
        assert schema_differences(store) == []
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(sa.text("UPDATE run SET superseded_by = 999"))

    def test_the_key_of_a_deleted_run_is_never_used_again(self, store: sa.Engine) -> None:
        keys = fill(store)
        with transaction(store) as session:
            session.add(schema.Run(id=None, benchmark_id=1, model_id=1, label="#2"))
        with transaction(store) as session:
            session.execute(sa.text("DELETE FROM run"))
        downgrade(store, "0002")
        upgrade(store)
        with transaction(store) as session:
            run = schema.Run(benchmark_id=1, model_id=1)
            session.add(run)
            session.flush()
            assert run.id == keys["run"] + 2


class TestVersions:
    def test_an_empty_store_is_upgraded_by_itself(self, tmp_path: Path) -> None:
        engine = connect(f"sqlite:///{tmp_path}/new.db")
        assert current_version(engine) == known_versions()[-1]

    def test_a_newer_store_is_refused_with_the_remedy(self, store: sa.Engine) -> None:
        with store.begin() as connection:
            connection.execute(sa.text("UPDATE suffrage_version SET version_num = '9999'"))
        with pytest.raises(DatabaseError, match="git pull && pip install"):
            ensure_current(store)

    def test_an_older_store_is_refused_with_the_remedy(self, store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        versions = [*known_versions(), "9999"]
        monkeypatch.setattr("tracker.database.known_versions", lambda: versions)
        with pytest.raises(DatabaseError, match="Run: suffrage db upgrade --database "):
            ensure_current(store)

    def test_a_file_that_is_no_database_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "x.db").write_text("this is a text file, long enough to be read as a header " * 20)
        with pytest.raises(DatabaseError, match="not a SQLite file"):
            connect(f"sqlite:///{tmp_path}/x.db")

    def test_a_failed_migration_is_undone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = create_unchecked_engine(f"sqlite:///{tmp_path}/new.db")
        monkeypatch.setattr("uuid.uuid4", lambda: (_ for _ in ()).throw(RuntimeError("boom")))
        with pytest.raises(RuntimeError, match="boom"):
            upgrade(engine)
        assert sa.inspect(engine).get_table_names() == []


class TestSoundness:
    @pytest.mark.tampers
    def test_a_changed_table_is_noticed(self, store: sa.Engine) -> None:
        with store.begin() as connection:
            connection.execute(sa.text("ALTER TABLE model ADD COLUMN extra INTEGER"))
        assert any("extra" in difference for difference in schema_differences(store))

    @pytest.mark.tampers
    def test_a_score_without_prompt_is_noticed(self, store: sa.Engine) -> None:
        keys = fill(store)
        with transaction(store, write=False) as session:
            assert [*find_file_damage(session), *find_stray_rows(session)] == []
        with store.connect() as connection:
            raw = connection.connection.dbapi_connection
            if store.dialect.name == "sqlite":
                raw.execute("PRAGMA foreign_keys=OFF")
                connection.execute(sa.text("DELETE FROM prompt"))
            else:
                connection.execute(sa.text("SET session_replication_role = replica"))
                connection.execute(sa.text("DELETE FROM prompt WHERE id = :id"), {"id": keys["prompt"]})
            connection.commit()
        with transaction(store, write=False) as session:
            assert len(find_stray_rows(session)) == 1


class TestTables:
    def test_every_table_and_column_has_a_comment(self) -> None:
        silent = [t.name for t in schema.metadata.sorted_tables if not t.comment]
        silent += [str(c) for t in schema.metadata.sorted_tables for c in t.columns if not c.comment]
        assert silent == []

    def test_the_views_are_those_of_the_module(self, store: sa.Engine) -> None:
        assert set(sa.inspect(store).get_view_names()) == set(VIEWS)

    @pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), None])
    def test_a_score_that_is_no_number_is_refused(self, store: sa.Engine, value: float | None) -> None:
        keys = fill(store)
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(
                sa.insert(schema.Score).values(
                    run_id=keys["run"], metric_id=keys["metric"], prompt_id=keys["prompt"], trial=1, value=value
                )
            )

    @pytest.mark.parametrize("parent", ["run", "metric", "prompt"])
    def test_a_score_without_parent_is_refused(self, store: sa.Engine, parent: str) -> None:
        keys = fill(store) | {parent: 999}
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(
                sa.insert(schema.Score).values(
                    run_id=keys["run"], metric_id=keys["metric"], prompt_id=keys["prompt"], trial=1, value=1.0
                )
            )

    @pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET id = id + 1000"])
    @pytest.mark.parametrize("parent", ["prompt", "metric"])
    def test_what_has_scores_cannot_go_away(self, store: sa.Engine, parent: str, statement: str) -> None:
        fill(store)
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(sa.text(statement.format(parent)))

    @pytest.mark.parametrize("statement", ["UPDATE score SET prompt_id = 999", "UPDATE score SET metric_id = 999"])
    def test_a_score_cannot_be_moved_to_nowhere(self, store: sa.Engine, statement: str) -> None:
        fill(store)
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(sa.text(statement))

    def test_prompts_without_scores_can_be_deleted(self, store: sa.Engine) -> None:
        fill(store)
        with transaction(store) as session:
            session.execute(sa.text("DELETE FROM score"))
            session.execute(sa.text("DELETE FROM prompt"))
        with transaction(store, write=False) as session:
            assert session.scalar(sa.text("SELECT count(*) FROM prompt")) == 0

    def test_scores_go_with_their_run(self, store: sa.Engine) -> None:
        keys = fill(store)
        with transaction(store) as session:
            session.execute(sa.text("DELETE FROM run WHERE id = :run"), {"run": keys["run"]})
        with transaction(store, write=False) as session:
            assert session.scalar(sa.text("SELECT count(*) FROM score")) == 0

    def test_a_number_of_a_finding_has_a_value_or_a_reason(self, store: sa.Engine) -> None:
        fill(store)
        with transaction(store) as session:
            session.add(
                schema.StoredFinding(analysis="a", parameters={}, selection={}, input_digest="", code_version="")
            )
        for value, reason in ((None, None), (1.0, "why")):
            with pytest.raises(exc.IntegrityError), transaction(store) as session:
                session.add(schema.FindingMetric(finding_id=1, name="x", value=value, reason=reason))

    @pytest.mark.parametrize(
        ("table", "columns", "word"),
        [(schema.Run, "condition", "half"), (schema.Run, "status", "odd")],
    )
    def test_a_word_outside_its_list_is_refused(self, store: sa.Engine, table: type, columns: str, word: str) -> None:
        fill(store)
        with pytest.raises(exc.IntegrityError), transaction(store) as session:
            session.execute(sa.text(f"UPDATE run SET {columns} = '{word}'"))


class TestPostgresTriggers:
    """The two foreign keys that triggers stand in for hold against concurrency too."""

    def test_a_prompt_cannot_be_deleted_while_its_scores_are_being_stored(self, postgres_url: str) -> None:
        import threading

        engine = connect(postgres_url)
        keys = fill(engine)
        with transaction(engine) as session:
            spare = schema.Prompt(task_id=1, text="spare", content_hash=uuid.uuid4().hex)
            session.add(spare)
            session.flush()
            spare_id = spare.id
        errors: list[BaseException] = []

        def delete() -> None:
            try:
                with transaction(engine) as session:
                    session.execute(sa.text("DELETE FROM prompt WHERE id = :id"), {"id": spare_id})
            except exc.IntegrityError as error:
                errors.append(error)

        with transaction(engine) as session:
            session.add(
                schema.Score(run_id=keys["run"], metric_id=keys["metric"], prompt_id=spare_id, trial=0, value=1.0)
            )
            session.flush()
            thread = threading.Thread(target=delete)
            thread.start()
            thread.join(0.5)
            assert thread.is_alive(), "the delete waits for the scores"
        thread.join(10)
        assert len(errors) == 1

    def test_deletes_above_read_committed_are_refused(self, postgres_url: str) -> None:
        engine = connect(postgres_url)
        fill(engine)
        with (
            pytest.raises(exc.DBAPIError, match="READ COMMITTED"),
            engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        ):
            connection.execute(sa.text("DELETE FROM prompt WHERE id = 999"))

    def test_prompts_with_scores_cannot_be_truncated(self, postgres_url: str) -> None:
        engine = connect(postgres_url)
        fill(engine)
        with pytest.raises(exc.IntegrityError), transaction(engine) as session:
            session.execute(sa.text("TRUNCATE prompt CASCADE"))
