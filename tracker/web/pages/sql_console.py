"""A read-only console: one statement, its rows, and the schema."""

from __future__ import annotations

import threading
import time
from typing import Any

import sqlalchemy as sa

from tracker.errors import SqlError
from tracker.queries.sql.read_only import read_only_sql
from tracker.schema.search_index import TABLE as SEARCH_INDEX
from tracker.web.page import Page
from tracker.web.query import Query

LIMIT_SECONDS = 10.0
MAX_ROWS = 1_000
MAX_CHARACTERS = 5_000_000
"""Maximum size of the texts in all rows."""
ROWS_AT_ONCE = 20
MAX_STATEMENTS = 4
"""Maximum number of statements that run at once."""
PATIENCE = 1.0
"""Seconds that a further statement waits for one of them to end."""
_SLOTS = threading.BoundedSemaphore(MAX_STATEMENTS)
EXAMPLES = (
    ("The leaderboard", "SELECT * FROM leaderboard ORDER BY benchmark, rank"),
    (
        "Scores of a model over time",
        "SELECT model, ingested, metric, mean FROM run_history ORDER BY model, ingested",
    ),
    (
        "The prompts with the lowest mean score",
        "SELECT prompt.id, prompt.text, avg(score.value) AS mean, count(*) AS n\n"
        "FROM score JOIN prompt ON prompt.id = score.prompt_id\n"
        "GROUP BY prompt.id, prompt.text ORDER BY mean LIMIT 20",
    ),
    ("Findings", "SELECT id, analysis, headline, recorded FROM finding ORDER BY id DESC"),
)


def show_console(query: Query) -> Page:
    """Return the console, with the rows of its statement."""
    statement = query.text("statement").strip()
    data: dict[str, Any] = {
        "statement": statement,
        "columns": [],
        "rows": [],
        "problem": "",
        "warnings": [],
        "is_cut": False,
        "seconds": None,
        "max_rows": MAX_ROWS,
        "limit_seconds": LIMIT_SECONDS,
        "examples": [{"title": title, "statement": text} for title, text in EXAMPLES],
        "schema": query.cache.get("schema", lambda: _describe_schema(query.engine)),
    }
    if statement:
        data |= _run(query.engine, statement)
    return Page(title="SQL", template="sql.html", data=data, table="rows", status=400 if data["problem"] else 200)


def _run(engine: sa.Engine, statement: str) -> dict[str, Any]:
    if not _SLOTS.acquire(timeout=PATIENCE):
        return {"problem": f"{MAX_STATEMENTS} statements are running already. Load the page again in a moment."}
    start, rows, size = time.monotonic(), [], 0
    try:
        with read_only_sql(
            engine, statement, limit_seconds=LIMIT_SECONDS, max_rows=MAX_ROWS + 1, rows_at_once=ROWS_AT_ONCE
        ) as result:
            columns, warnings = list(result.columns), list(result.warnings)
            for row in result.rows:
                rows.append(dict(zip(columns, map(_to_text, row), strict=True)))
                size += sum(len(value) for value in row if isinstance(value, str))
                if size > MAX_CHARACTERS:
                    break
    except SqlError as error:
        return {"problem": str(error)}
    finally:
        _SLOTS.release()
    return {
        "columns": columns,
        "rows": rows[:MAX_ROWS],
        "is_cut": len(rows) > MAX_ROWS or size > MAX_CHARACTERS,
        "warnings": warnings,
        "seconds": round(time.monotonic() - start, 3),
    }


def _to_text(value: Any) -> Any:
    """Return a value of the database as a number or a text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"{len(value):,} bytes" if isinstance(value, bytes | memoryview) else str(value)


def _describe_schema(engine: sa.Engine) -> list[dict[str, Any]]:
    """Return the columns of every table and view, by name."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        names = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
        names = [name for name in names if not name.startswith(SEARCH_INDEX)]  # FTS5 has tables of its own
        return [{"name": name, "columns": [column["name"] for column in inspector.get_columns(name)]} for name in names]
