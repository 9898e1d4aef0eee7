"""A store that is sealed and loaded between random changes ends as one that never was."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sealed_stores import load_benchmark, seal_benchmark, unseal_benchmark, write_results
from stored_contents import contents

from tracker.api.store import Store
from tracker.cli import main
from tracker.cli.process.sealed_rows import run_with_sealed_rows
from tracker.connections.schema_versions import downgrade, upgrade
from tracker.database import connect, transaction
from tracker.errors import NotFoundError
from tracker.integrity.sealed_rows import list_moved
from tracker.integrity.stored_checksums import replace_checksums
from tracker.integrity.verification import snapshot
from tracker.recording.doctor import find_faults

N_STEPS = 6
BENCHMARKS = ("one", "other")
OPTIONS = ("--metric", "accuracy", "--no-mlflow")


def run(url: str, *words: str) -> None:
    """Run a command; errors that a user can cause are part of the history."""
    runner = CliRunner()

    def invoke() -> None:
        with pytest.raises(SystemExit):
            main([*words, "--database", url])

    with runner.isolation():
        invoke()


def change(random_: random.Random, folder: Path, step: int) -> tuple[str, ...]:
    """A command that changes a store."""
    benchmark = random_.choice(BENCHMARKS)
    models = random_.choice(["a", "bc", "fgh", "abcdefgh"])
    path = write_results(folder / f"{step}.csv", seed=random_.randrange(4), models=models, n_prompts=6)
    return random_.choice(
        [
            ("ingest", str(path), "--benchmark", benchmark, *OPTIONS),
            ("ingest", str(path), "--benchmark", benchmark, "--on-conflict", "update", *OPTIONS),
            ("runs", "delete", str(random_.randrange(1, 9)), "--yes", "--no-mlflow"),
            ("runs", "hide", str(random_.randrange(1, 9)), "--reason", "odd", "--no-mlflow"),
            ("responses", "erase", benchmark, "--models", models[:1], "--yes"),
            ("undo", "--yes", "--no-mlflow"),
            ("models", "merge", "a", "b", "--yes", "--no-mlflow"),
            ("metrics", "delete", benchmark, "accuracy", "--yes", "--no-mlflow"),
        ]
    )  # fmt: skip


def move_rows(random_: random.Random, engine: sa.Engine, folder: Path) -> None:
    """Seal, load or unseal a benchmark, if the store has it."""
    steps: list[Callable[[str], object]] = [
        lambda name: seal_benchmark(engine, name, folder / "sealed"),
        lambda name: load_benchmark(engine, name),
        lambda name: unseal_benchmark(engine, name),
    ]
    chosen = random_.choices(steps, weights=[3, 1, 1])[0]
    try:
        chosen(random_.choice(BENCHMARKS))
    except NotFoundError:
        return


BY_NAME = """
SELECT benchmark.name, model.name, run.label, run.status, run.n_scores, task.name, prompt_alias.key, {columns}
FROM {table} AS measured JOIN run ON run.id = measured.run_id JOIN benchmark ON benchmark.id = run.benchmark_id
JOIN model ON model.id = run.model_id JOIN prompt_alias ON prompt_alias.prompt_id = measured.prompt_id
JOIN task ON task.id = prompt_alias.task_id
"""
"""Scores and answers by names: sequences of PostgreSQL do not issue the keys again that a rolled back command took."""


def named_rows(engine: sa.Engine) -> dict[str, list[str]]:
    columns = {"score": "trial, measured.value", "answer": "extraction, measured.trial, measured.text"}
    with engine.connect() as connection:
        queries = {table: BY_NAME.format(table=table, columns=f"measured.{names}") for table, names in columns.items()}
        return {
            table: sorted(repr(tuple(row)) for row in connection.exec_driver_sql(query))
            for table, query in queries.items()
        }


def check_history(url: str, twin_url: str, folder: Path, seed: int) -> None:
    random_ = random.Random(seed)
    engine, twin = connect(url), connect(twin_url)
    for step in range(N_STEPS):
        words = (
            change(random_, folder, step) if step else ("ingest", str(start(folder)), "--benchmark", "one", *OPTIONS)
        )
        run(url, *words)
        run(twin_url, *words)
        move_rows(random_, engine, folder)
        assert [fault.sentence for fault in find_faults(engine)] == [], words
    for name in BENCHMARKS:
        try:
            unseal_benchmark(engine, name)
        except NotFoundError:
            continue
    assert named_rows(engine) == named_rows(twin)
    if engine.dialect.name == "sqlite":
        assert contents(url) == contents(twin_url)
    engine.dispose()
    twin.dispose()


def start(folder: Path) -> Path:
    return write_results(folder / "start.csv", seed=9, models="abcd", n_prompts=6)


@given(seed=st.integers(0, 2**32))
def test_a_history_with_sealing_ends_as_one_without(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("history")
    check_history(f"sqlite:///{folder}/sealed.db", f"sqlite:///{folder}/twin.db", folder, seed)
    shutil.rmtree(folder)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 20))])
def test_a_history_on_postgresql(postgres_url: str, tmp_path: Path, seed: int) -> None:
    check_history(postgres_url, f"sqlite:///{tmp_path}/twin.db", tmp_path, seed)


def test_checksums_that_are_computed_anew_keep_those_of_sealed_answers(store: sa.Engine, tmp_path: Path) -> None:
    Store(store).ingest(start(tmp_path), benchmark="one", metric="accuracy")
    seal_benchmark(store, "one", tmp_path / "sealed")
    with transaction(store) as session:
        replace_checksums(session.connection())
    assert [fault.sentence for fault in find_faults(store)] == []
    assert load_benchmark(store, "one") == 4
    with snapshot(store) as connection:
        assert list_moved(connection) == {}


def test_a_command_is_begun_again_until_its_rows_are_there(store: sa.Engine, tmp_path: Path) -> None:
    api = Store(store)
    api.ingest(start(tmp_path), benchmark="one", metric="accuracy")
    api.ingest(
        write_results(tmp_path / "b.csv", seed=3, models="abcd", n_prompts=6), benchmark="other", metric="accuracy"
    )
    for name in BENCHMARKS:
        seal_benchmark(store, name, tmp_path / "sealed")
    begun = []

    def read() -> int:
        begun.append(1)
        with transaction(store, write=False) as session:
            return int(session.scalar(sa.text("SELECT count(*) FROM score")) or 0)

    assert run_with_sealed_rows(read) == 2 * 4 * 6 * 2
    assert len(begun) == 2


def test_an_upgrade_gives_those_who_read_runs_the_right_to_read_what_is_sealed(postgres_url: str) -> None:
    engine = connect(postgres_url)
    downgrade(engine, "0016")
    role = f"reader_{engine.url.database}"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role}")
        connection.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    upgrade(engine)
    rights = "SELECT has_table_privilege('{}', '{}', '{}')"
    with engine.begin() as connection:
        for table in ("sealed_run", "sealed_metric"):
            assert connection.exec_driver_sql(rights.format(role, table, "SELECT")).scalar() is True
            assert connection.exec_driver_sql(rights.format(role, table, "INSERT")).scalar() is False
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")
    engine.dispose()
