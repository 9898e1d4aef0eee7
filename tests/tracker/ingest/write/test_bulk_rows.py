"""Rows that are inserted in bulk."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tracker.database import connect, transaction
from tracker.ingest.write.bulk_rows import ROWS_PER_PLAN, insert_records
from tracker.schema import Benchmark, Prompt, Task


def test_postgresql_plans_statements_of_a_session_anew_once_a_table_has_grown(postgres_url: str) -> None:
    store = connect(postgres_url)

    def prompt(key: int) -> dict[str, Any]:
        columns = dict.fromkeys(Prompt.__table__.columns.keys())  # type: ignore[attr-defined]
        return columns | {"id": key, "task_id": 1, "occurrence": 0, "content_hash": f"{key}", "text": f"question {key}"}

    with transaction(store) as session:
        connection = session.connection()

        def plan() -> str:
            return str(connection.exec_driver_sql("EXPLAIN EXECUTE by_key (1)").scalars().all())

        session.add(Benchmark(id=1, name="b", revision=""))
        session.flush()
        session.add(Task(id=1, benchmark_id=1, name="t"))
        session.flush()
        insert_records(session, Prompt, [prompt(key) for key in (1, 2)])
        connection.exec_driver_sql("ANALYZE prompt")
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
        connection.exec_driver_sql("PREPARE by_key (integer) AS SELECT FROM prompt WHERE id = $1")
        assert "Seq Scan on prompt" in plan()
        insert_records(session, Prompt, [prompt(key) for key in range(3, 3 + ROWS_PER_PLAN)])
        assert "Index" in plan()
        connection.execute(sa.text("DEALLOCATE by_key"))
    store.dispose()
