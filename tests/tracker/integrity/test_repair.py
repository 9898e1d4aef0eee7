"""What was changed behind the back of the program comes back from a copy, with the recorded checksum or not at all.

The commands of docs/reference/integrity.md are tested too.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from full_stores import copy_to, list_faults, make_full_store, read_content
from hypothesis import given
from hypothesis import strategies as st
from test_damage import content_columns, edit

from tracker.api.store import Store
from tracker.cli import suffrage
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import BadInputError
from tracker.integrity.stored_checksums import replace_checksums
from tracker.recording.repair.damage import hash_each_row
from tracker.recording.repair.repair import RepairResult, plan_repair, repair
from tracker.recording.repair.row_choice import choose_rows, drop_stray_row
from tracker.schema import metadata

N_EDITS = 12
CSV = "prompt_id,question,answer,model a,model b\n" + "".join(
    f"p{n},Is {n} even?,{'no' if n % 2 else 'yes'},{n % 2},{n % 3 % 2}\n" for n in range(20)
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "full.db"
    make_full_store(path)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def full_url(request: pytest.FixtureRequest, full: Path, tmp_path: Path) -> str:
    """A store with rows in every table, on each engine in turn."""
    if request.param == "sqlite":
        shutil.copy(full, tmp_path / "store.db")
        return f"sqlite:///{tmp_path / 'store.db'}"
    url: str = request.getfixturevalue("postgres_url")
    copy_to(f"sqlite:///{full}", url)
    return url


def tamper(url: str, change: Callable[[sa.Connection], object]) -> None:
    """Change a store with the driver alone, without checks of references."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET session_replication_role = replica")
        change(connection)
    engine.dispose()


def execute(url: str, *statements: str) -> None:
    def change(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    tamper(url, change)


def edit_at_random(url: str, n_edits: int, draw: random.Random) -> None:
    columns, done = content_columns(), 0
    while done < n_edits:
        table, column = draw.choice(columns)
        try:
            tamper(url, lambda connection, at=(table, column): edit(connection, *at, draw))  # type: ignore[misc]
        except (sa.exc.IntegrityError, sa.exc.DataError, IndexError):
            continue
        done += 1


def repaired(url: str, *files: Path, remove_unknown: bool = True) -> RepairResult:
    engine = create_unchecked_engine(url)
    try:
        return repair(engine, files, remove_unknown=remove_unknown)
    finally:
        engine.dispose()


def planned(url: str, *files: Path) -> list[str]:
    engine = create_unchecked_engine(url)
    try:
        return [remedy.origin for remedy in plan_repair(engine, files)]
    finally:
        engine.dispose()


def problems(result: RepairResult) -> list[str]:
    return [f"{remedy.damage.name}: {remedy.problem}" for remedy in result.remedies if remedy.problem]


class TestBackup:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_random_edits_are_undone(self, full: Path, full_url: str, seed: int) -> None:
        before = read_content(full_url)
        edit_at_random(full_url, N_EDITS, random.Random(seed))
        assert read_content(full_url) != before
        n_planned = len(planned(full_url, full))
        result = repaired(full_url, full)
        assert problems(result) == []
        assert result.n_restored == len(result.remedies) == n_planned > 0
        assert read_content(full_url) == before
        assert list_faults(full_url) == []

    @pytest.mark.tampers
    def test_a_plan_changes_nothing(self, full: Path, full_url: str) -> None:
        edit_at_random(full_url, 3, random.Random(2))
        before = read_content(full_url)
        assert set(planned(full_url, full)) <= {str(full), ""}
        assert read_content(full_url) == before

    @pytest.mark.tampers
    @pytest.mark.parametrize("tables", [("run", "finding"), ("prompt",), ("run",), ()])
    def test_lost_checksums_cost_no_row(self, full: Path, full_url: str, tables: Sequence[str]) -> None:
        names = ", ".join(f"'{name}'" for name in tables)
        execute(full_url, f"DELETE FROM checksum WHERE table_name IN ({names})" if tables else "DELETE FROM checksum")
        before = read_content(full_url)
        result = repaired(full_url, remove_unknown=False)
        assert read_content(full_url) == before
        assert any("no copy has the same content" in problem for problem in problems(result))
        result = repaired(full_url, full, remove_unknown=False)
        assert problems(result) == []
        assert read_content(full_url) == before
        assert {
            fault for fault in list_faults(full_url) if "the definition" not in fault and "a counter" not in fault
        } == set()

    def test_a_row_that_was_added_is_removed_only_on_request(self, full: Path, full_url: str) -> None:
        before = read_content(full_url)
        execute(full_url, "INSERT INTO model (id, name) VALUES (99, 'added')")
        assert problems(repaired(full_url, full, remove_unknown=False)) != []
        assert read_content(full_url) != before
        repaired(full_url, full)
        assert read_content(full_url) == before

    @pytest.mark.tampers
    def test_content_with_another_checksum_is_never_accepted(self, full: Path, full_url: str, tmp_path: Path) -> None:
        """The copy is a sound store, but holds a later text than the one that was recorded."""
        copy = tmp_path / "copy.db"
        shutil.copy(full, copy)
        execute(f"sqlite:///{copy}", "UPDATE prompt SET text = 'another' WHERE id = 1")
        engine = create_unchecked_engine(f"sqlite:///{copy}")
        with engine.begin() as connection:
            replace_checksums(connection)
        engine.dispose()
        execute(full_url, "UPDATE prompt SET text = 'changed' WHERE id = 1")
        result = repaired(full_url, copy)
        assert (result.n_restored, len(result.remedies)) == (0, 1)
        assert problems(result) == ["prompt 1: no copy has content with the recorded checksum"]
        assert [fault.sentence for fault in result.remaining] == ["prompt 1 differs from what was stored"]
        assert "changed" in str((read_content(full_url) or {})["prompt"])

    def test_later_changes_by_the_program_stay(self, full: Path, full_url: str) -> None:
        """Only the damaged column comes from the backup."""
        engine = connect(full_url)
        with transaction(engine) as session:
            session.execute(sa.text("UPDATE run SET reason = 'hidden later' WHERE id = 1"))
        engine.dispose()
        before = read_content(full_url)
        execute(full_url, "UPDATE run SET variant = 'damaged' WHERE id = 1")
        assert problems(repaired(full_url, full)) == []
        assert read_content(full_url) == before

    @pytest.mark.tampers
    def test_a_changed_checksum_is_distinguished_from_a_changed_row(self, full: Path, full_url: str) -> None:
        execute(full_url, "UPDATE checksum SET low = low + 1 WHERE table_name = 'prompt' AND key = 1")
        result = repaired(full_url, full)
        assert "has the same content: its checksum may be what was changed" in problems(result)[0]


class TestWithoutCopies:
    def test_rows_that_suffrage_did_not_store_are_removed(self, full_url: str) -> None:
        before = read_content(full_url)
        execute(
            full_url,
            "INSERT INTO model (id, name) VALUES (77, 'stray')",
            "INSERT INTO score SELECT run_id, metric_id, prompt_id, trial + 9, value FROM score "
            "WHERE run_id = 1 AND prompt_id = (SELECT min(prompt_id) FROM score WHERE run_id = 1)",
        )
        result = repaired(full_url)
        assert (problems(result), result.n_restored) == ([], 2)
        assert read_content(full_url) == before
        assert list_faults(full_url) == []


class TestSourceFile:
    @pytest.fixture
    def quiz(self, store_url: str, tmp_path: Path) -> tuple[str, Path]:
        """A store with the scores of a file, on each engine in turn."""
        path = tmp_path / "quiz.csv"
        path.write_text(CSV)
        with Store(connect(store_url)) as store:
            store.ingest(path, benchmark="quiz", metric="accuracy", orient="prompts")
        return store_url, path

    EDITS = (
        "UPDATE prompt SET text = 'changed' WHERE id = 3",
        "DELETE FROM prompt WHERE id = 5",
        "UPDATE score SET value = 0.5 WHERE run_id = 1",
        "DELETE FROM score WHERE run_id = 2 AND prompt_id = 7",
        "UPDATE model SET name = 'renamed' WHERE id = 2",
        "UPDATE run SET n_scores = 3 WHERE id = 2",
        "UPDATE prompt_alias SET key = 'p99' WHERE key = 'p9'",
        "UPDATE metric SET higher_is_better = NOT higher_is_better",
    )

    def test_rows_come_back_from_the_imported_file(self, quiz: tuple[str, Path]) -> None:
        url, path = quiz
        before = read_content(url)
        execute(url, *self.EDITS)
        assert set(planned(url)) == {str(path)}
        result = repaired(url)
        assert problems(result) == []
        assert read_content(url) == before
        assert list_faults(url) == []

    @pytest.mark.tampers
    def test_a_file_that_moved_is_named_and_one_that_changed_is_not_used(
        self, quiz: tuple[str, Path], tmp_path: Path
    ) -> None:
        url, path = quiz
        before = read_content(url)
        moved = path.rename(tmp_path / "moved.csv")
        execute(url, *self.EDITS[:3])
        assert set(planned(url)) == {""}
        changed = tmp_path / "changed.csv"
        changed.write_text(CSV.replace("even", "odd"))
        with pytest.raises(BadInputError, match="no file with the hash of an imported file"):
            repaired(url, changed)
        assert problems(repaired(url, moved)) == []
        assert read_content(url) == before


class TestRerun:
    def test_a_finding_comes_back_from_a_rerun(self, store_url: str, tmp_path: Path) -> None:
        path = tmp_path / "quiz.csv"
        path.write_text(CSV)
        with Store(connect(store_url)) as store:
            store.ingest(path, benchmark="quiz", metric="accuracy", orient="prompts")
            store.analyze("rank-intervals", "quiz", n_resamples=20, seed=3)
        before = read_content(store_url)
        execute(
            store_url,
            "UPDATE finding SET headline = 'changed'",
            "UPDATE finding_metric SET value = 7 WHERE name = 'n_models'",
            "DELETE FROM finding_artifact",
            "DELETE FROM ranking",
            "UPDATE score SET value = 0.5 WHERE run_id = 1 AND prompt_id = 1",
        )
        assert sorted(planned(store_url)) == sorted([*["a rerun of its analysis"] * 4, str(path)])
        result = repaired(store_url)
        assert problems(result) == []
        assert read_content(store_url) == before
        assert list_faults(store_url) == []


class TestCommand:
    def check(self, url: str, *options: object) -> Result:
        return CliRunner().invoke(suffrage, ["db", "check", "--database", url, *map(str, options)])

    def test_the_command_lists_what_can_be_restored_and_restores_it(self, full: Path, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        shutil.copy(full, path)
        url = f"sqlite:///{path}"
        assert self.check(url, "--repair").stderr == "Sound: there is nothing to repair.\n"
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("UPDATE prompt SET text = 'changed' WHERE id = 1")
        alone = self.check(url)
        assert (alone.exit_code, alone.stdout) == (
            1,
            "content: prompt 1 differs from what was stored\n"
            "  cannot be restored: no copy has content with the recorded checksum\n",
        )
        assert "Name a backup: suffrage db check --from FILE" in alone.stderr
        helped = self.check(url, "--from", full)
        assert helped.stdout.splitlines()[1] == f"  can be restored: {full}"
        assert f"1 of 1 damaged parts can be restored: suffrage db check --repair --from {full}" in helped.stderr
        refused = self.check(url, "--repair")
        assert refused.exit_code == 1
        assert refused.stderr.startswith("0 of 1 damaged parts restored; 1 cannot be: prompt 1 (no copy has content")
        done = self.check(url, "--repair", "--from", full)
        assert (done.exit_code, done.stdout) == (0, f"restored prompt 1: {full}\n")
        assert done.stderr.startswith("1 of 1 damaged parts restored.\nThe store is sound.")
        assert self.check(url).exit_code == 0


class TestLaws:
    TABLE = metadata.tables["task_value"]

    @given(
        before=st.dictionaries(st.integers(1, 9), st.floats(0, 1)),
        after=st.dictionaries(st.integers(1, 9), st.floats(0, 1)),
        chosen_tasks=st.sets(st.integers(1, 9)),
    )
    def test_any_mixture_of_two_copies_is_restored(
        self, before: dict[int, float], after: dict[int, float], chosen_tasks: set[int]
    ) -> None:
        def rows(values: dict[int, float]) -> list[tuple[object, ...]]:
            return [(1, "n", task, value) for task, value in values.items()]

        sources = {task: after if task in chosen_tasks else before for task in {**before, **after}}
        mixture = {task: source[task] for task, source in sources.items() if task in source}
        chosen = choose_rows(self.TABLE, rows(before), rows(after), self.sum(rows(mixture)))
        assert chosen is not None
        assert sorted(chosen) == sorted(rows(mixture))

    def test_content_of_neither_copy_is_not_made_up(self) -> None:
        rows = [(1, "n", task, 0.5) for task in range(4)]
        assert choose_rows(self.TABLE, rows[:2], rows[1:], self.sum([(1, "n", 1, 0.25)])) is None
        assert drop_stray_row(self.TABLE, rows, self.sum(rows[:2])) is None
        assert drop_stray_row(self.TABLE, rows, self.sum(rows[1:])) == rows[1:]

    def sum(self, rows: Sequence[Sequence[object]]) -> np.ndarray:
        return hash_each_row(self.TABLE, rows).sum(axis=0, dtype=np.uint64)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_two_hundred_random_edits_are_undone(full: Path, full_url: str, seed: int) -> None:
    before = read_content(full_url)
    edit_at_random(full_url, 10, random.Random(seed))
    result = repaired(full_url, full)
    assert problems(result) == []
    assert read_content(full_url) == before
    assert list_faults(full_url) == []
