"""Time and size from a Parquet file to committed scores.

Suffrage reads the file, detects its format, resolves every prompt, checks bounds, reference answers and duplicates, and
commits. The peers write the same rows into the same tables, with the same keys and constraints. They leave out the file
and these checks: their rows are in memory, with keys resolved. ADBC's ingest of an Arrow table stores all rows; the
other peers store a part of them, and their time is scaled. DuckDB reads the Parquet file into a DuckDB database with
the same keys and constraints on scores. It detects no format and makes no other check.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from numpy.typing import NDArray

from benchmarks._peers import peer
from benchmarks._stores import ENGINES, connect_adbc, empty_store
from tracker.database import transaction
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.bulk_rows import ROWS_PER_COPY, driver_cursor
from tracker.ingest.write.writer import StoreChanges, store_file
from tracker.queries.sql.arrow import read_arrow
from tracker.schema import Model, Run, Score

N_PROMPTS, N_MODELS = 14_000, 400
N_PEER_RUNS = 4
N_MORE = 5
OPTIONS = ReadOptions(benchmark="large", metric="accuracy")
ARROW_SCHEMA = pa.schema(
    [(name, pa.int32()) for name in ("run_id", "metric_id", "prompt_id", "trial")] + [("value", pa.float64())]
)
DUCKDB = """
CREATE TABLE metric (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE);
CREATE TABLE task (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE);
CREATE TABLE prompt (id INTEGER PRIMARY KEY, task_id INTEGER REFERENCES task, name VARCHAR, UNIQUE (task_id, name));
CREATE TABLE run (id INTEGER PRIMARY KEY, model VARCHAR UNIQUE);
CREATE TABLE score (
    run_id INTEGER REFERENCES run, metric_id INTEGER REFERENCES metric, prompt_id INTEGER REFERENCES prompt,
    trial INTEGER, value DOUBLE NOT NULL CHECK (isfinite(value)), PRIMARY KEY (run_id, metric_id, prompt_id, trial)
);
BEGIN;
INSERT INTO metric VALUES (1, 'accuracy');
INSERT INTO task SELECT row_number() OVER (), task FROM (SELECT DISTINCT task FROM '{path}');
INSERT INTO prompt SELECT row_number() OVER (), task.id, prompt_id
    FROM '{path}' AS file JOIN task ON task.name = file.task;
CREATE TEMP TABLE cell AS UNPIVOT '{path}' ON COLUMNS(* EXCLUDE (task, prompt_id)) INTO NAME model VALUE value;
INSERT INTO run SELECT row_number() OVER (), model FROM (SELECT DISTINCT model FROM cell);
INSERT INTO score SELECT run.id, 1, prompt.id, 0, cell.value
    FROM cell JOIN run USING (model) JOIN task ON task.name = cell.task
    JOIN prompt ON prompt.task_id = task.id AND prompt.name = cell.prompt_id ORDER BY 1, 3;
COMMIT;
"""
"""The same tables, keys and checks in DuckDB's dialect."""


def measurements() -> Iterator[dict[str, Any]]:
    """One line per engine and question."""
    with tempfile.TemporaryDirectory() as folder:
        for engine in ENGINES:
            yield from _measured(engine, "binary", Path(folder))
        yield from _measured("sqlite", "continuous", Path(folder))


def _measured(engine_name: str, values: str, folder: Path) -> Iterator[dict[str, Any]]:
    path = _table(folder / f"{engine_name}-{values}.parquet", values, "model", N_MODELS)
    n_scores = N_PROMPTS * N_MODELS
    name = f"{engine_name}, {values} scores"
    with empty_store(engine_name) as engine:
        own_seconds, stored = _ingested(engine, path)
        assert stored.n_scores == n_scores
        size = _size(engine)
        more = []
        for n in range(N_MORE):
            seconds, stored = _ingested(engine, _table(folder / f"more{n}.parquet", values, f"more{n}", 1))
            assert (stored.n_scores, stored.n_prompts_new) == (N_PROMPTS, 0)
            more.append(seconds)
        added, by_adbc = _add_all(engine), [_add_by_adbc(engine, n) for n in range(N_MORE)]
        whole = _store_by_other_means(engine, added)
    if engine_name == "sqlite":
        whole["DuckDB, from the file, into a DuckDB database with the same keys and checks"] = _by_duckdb(path, folder)
    for name_of_peer, seconds in whole.items():
        yield {
            "name": f"Parquet file to committed scores, {name}",
            "n_scores": n_scores,
            "ours_s": round(own_seconds, 3),
            "scores_per_s": round(n_scores / own_seconds),
            "peer": name_of_peer,
            "peer_s": round(seconds, 3),
            "ratio": round(seconds / own_seconds, 1),
        }
    for name_of_peer, seconds in (
        ("SQLModel add_all, from memory", added),
        ("ADBC ingest, from memory", median(by_adbc)),
    ):
        yield {
            "name": f"one more run of {N_PROMPTS} into {n_scores}, {name}",
            "ours_s": round(median(more), 4),
            "worst_s": round(max(more), 4),
            "peer": name_of_peer,
            "peer_s": round(seconds, 4),
            "ratio": round(seconds / median(more), 1),
        }
    yield {
        "name": f"size, {name}",
        "unit": "bytes per score; the whole store with its indexes, prompts and their names included",
        "value": round(size / n_scores, 2),
    }


def _store_by_other_means(engine: sa.Engine, added: float) -> dict[str, float]:
    """Seconds of each peer for all scores."""
    n_scores = N_PROMPTS * N_MODELS

    def scaled(seconds: float, n_rows: int) -> tuple[str, float]:
        return f"from memory, {n_rows} rows scaled to {n_scores}", seconds * n_scores / n_rows

    rows = {
        "SQLModel add_all": scaled(added, N_PROMPTS),
        "pandas to_sql": scaled(_to_sql(engine), N_PROMPTS * N_PEER_RUNS),
        "sqlite3 executemany" if engine.dialect.name == "sqlite" else "psycopg COPY of rows": scaled(
            _by_driver(engine), N_PROMPTS * N_PEER_RUNS
        ),
    }
    return {
        **{f"{name}, {details}": seconds for name, (details, seconds) in rows.items()},
        "ADBC ingest of an Arrow table, from memory": _restore_by_adbc(engine),
    }


def _table(path: Path, values: str, model: str, n_models: int) -> Path:
    random = np.random.default_rng(n_models)
    columns: dict[str, Any] = {
        "task": [f"task {n % 14}" for n in range(N_PROMPTS)],
        "prompt_id": [f"q{n}" for n in range(N_PROMPTS)],
    }
    for n in range(n_models):
        drawn: NDArray[np.float64] = random.random(N_PROMPTS)
        columns[f"{model}-{n}"] = drawn if values == "continuous" else (drawn < 0.6).astype(np.float64)
    pq.write_table(pa.table(columns), path)
    return path


def _ingested(engine: sa.Engine, path: Path) -> tuple[float, StoreChanges]:
    begun = time.perf_counter()
    reading = parse_file(path, OPTIONS)
    with transaction(engine, exclusive=True) as session:
        stored = store_file(session, reading, OPTIONS)
    return time.perf_counter() - begun, stored


def _size(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            return Path(str(engine.url.database)).stat().st_size
        size: int = connection.scalar(sa.text("SELECT pg_database_size(current_database())"))
        return size


def _peer_rows(engine: sa.Engine, prefix: str, n_runs: int = N_PEER_RUNS) -> pd.DataFrame:
    """Rows of a few runs that exist, with keys resolved already."""
    with transaction(engine) as session:
        models = [Model(name=f"{prefix} {n}") for n in range(n_runs)]
        session.add_all(models)
        session.flush()
        runs = [Run(benchmark_id=1, model_id=model.id) for model in models]
        session.add_all(runs)
        session.flush()
        prompts = session.scalars(sa.text("SELECT id FROM prompt ORDER BY id")).all()
        keys = [run.id for run in runs]
    values = (np.random.default_rng(0).random(len(prompts) * len(keys)) < 0.6).astype(float)
    return pd.DataFrame(
        {
            "run_id": np.repeat(keys, len(prompts)),
            "metric_id": 1,
            "prompt_id": np.tile(prompts, len(keys)),
            "trial": 0,
            "value": values,
        }
    )


def _add_all(engine: sa.Engine) -> float:
    rows = _peer_rows(engine, "add_all", 1).to_dict("records")
    begun = time.perf_counter()
    with transaction(engine) as session:
        session.add_all(Score(**row) for row in rows)
    return time.perf_counter() - begun


def _to_sql(engine: sa.Engine) -> float:
    rows = _peer_rows(engine, "to_sql")
    begun = time.perf_counter()
    with engine.begin() as connection:
        rows.to_sql("score", connection, if_exists="append", index=False)
    return time.perf_counter() - begun


def _by_driver(engine: sa.Engine) -> float:
    """Seconds of plain tuples through the driver, inside a transaction with the settings of the store."""
    rows = _peer_rows(engine, "driver")
    begun = time.perf_counter()
    tuples = zip(*(rows[name].tolist() for name in rows), strict=True)
    with transaction(engine) as session, driver_cursor(session) as cursor:
        if engine.dialect.name == "sqlite":
            cursor.executemany("INSERT INTO score VALUES (?, ?, ?, ?, ?)", tuples)
        else:
            with cursor.copy("COPY score FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["int4"] * 4 + ["float8"])
                for row in tuples:
                    copy.write_row(row)
    return time.perf_counter() - begun


def _add_by_adbc(engine: sa.Engine, n: int) -> float:
    rows = _peer_rows(engine, f"ADBC {n}", 1)
    return _ingest_by_adbc(engine, pa.Table.from_pandas(rows, preserve_index=False).cast(ARROW_SCHEMA))


def _restore_by_adbc(engine: sa.Engine) -> float:
    """Seconds to store the scores of the file again in the emptied table."""
    columns = ", ".join(ARROW_SCHEMA.names)
    with transaction(engine, write=False) as session:
        last = session.scalar(sa.text(f"SELECT id FROM run ORDER BY id LIMIT 1 OFFSET {N_MODELS - 1}"))
    order = "ORDER BY run_id, metric_id, prompt_id, trial"
    table = read_arrow(engine, f"SELECT {columns} FROM score WHERE run_id <= {last} {order}").cast(ARROW_SCHEMA)
    assert len(table) == N_PROMPTS * N_MODELS
    with transaction(engine) as session:
        session.execute(sa.text("DELETE FROM score" if engine.dialect.name == "sqlite" else "TRUNCATE score"))
    if engine.dialect.name == "sqlite":
        with closing(sqlite3.connect(str(engine.url.database), isolation_level=None)) as connection:
            connection.execute("VACUUM")
    seconds = _ingest_by_adbc(engine, table)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM score")) == len(table)
    return seconds


def _ingest_by_adbc(engine: sa.Engine, table: pa.Table) -> float:
    """Seconds of one transaction with the settings of the store; PostgreSQL gets a million rows at once, as ours."""
    begun = time.perf_counter()
    with connect_adbc(engine, writes=True) as connection, connection.cursor() as cursor:
        for start in range(0, len(table), ROWS_PER_COPY):
            cursor.adbc_ingest("score", table.slice(start, ROWS_PER_COPY), mode="append")
    return time.perf_counter() - begun


def _by_duckdb(path: Path, folder: Path) -> float:
    """Seconds from the Parquet file to the same tables, keys and checks in DuckDB; it detects and validates nothing."""
    duckdb = peer("duckdb")
    database = folder / f"{path.stem}.duckdb"
    begun = time.perf_counter()
    with duckdb.connect(str(database)) as connection:
        for statement in filter(str.strip, DUCKDB.format(path=path).split(";")):
            connection.execute(statement)
    seconds = time.perf_counter() - begun
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("SELECT count(*) FROM score").fetchone() == (N_PROMPTS * N_MODELS,)
    database.unlink()
    return seconds


if __name__ == "__main__":
    for line in measurements():
        print(json.dumps(line), flush=True)
