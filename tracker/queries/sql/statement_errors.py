"""What is wrong with a SQL statement, and what to write instead."""

from __future__ import annotations

import re

import sqlalchemy as sa

from tracker.errors import SqlError
from tracker.name_lists import join_names
from tracker.suggestions import find_similar, format_guess

READING_ONLY = "This command reads only: SELECT, VALUES or WITH … SELECT, one statement at a time."
DOCS = "Tables, columns and examples: docs/how-to/sql.md."
MAX_NAMES = 5


def as_sentence(message: str) -> str:
    """Return an engine's message with a capital letter and a full stop."""
    return message[:1].upper() + message[1:].rstrip(".") + "."


def explain_denied(message: str, statement: str) -> SqlError:
    """Return the error of a statement that does more than read."""
    fixes = {
        ("delete", "drop", "truncate"): "Delete runs with `suffrage runs delete ID`.",
        ("insert", "update", "replace"): "Add or correct results with `suffrage ingest RESULTS`.",
    }
    word = _first_word(statement)
    fix = next((fix for words, fix in fixes.items() if word in words), "")
    return SqlError("\n".join(filter(None, (f"{as_sentence(message)} {READING_ONLY}", fix))))


def explain_missing_name(message: str, kind: str, name: str, statement: str, engine: sa.Engine) -> SqlError:
    """Return the error of an unknown table or column, with similar names.

    Args:
        message: from the engine.
        kind: ``table`` or ``column``.
        name: what the statement names.
        statement: the whole of it.
        engine: the store.
    """
    inspector = sa.inspect(engine)
    known = [*inspector.get_table_names(), *inspector.get_view_names()]
    if kind == "column":
        used = [relation for relation in known if re.search(rf"\b{re.escape(relation)}\b", statement, re.IGNORECASE)]
        known = sorted({str(column["name"]) for relation in used for column in inspector.get_columns(relation)})
        name = name.rpartition(".")[2]
    hint = format_guess(find_similar(name, known, n=2))
    if not hint and known:
        hint = f"Known: {join_names(sorted(known), MAX_NAMES)}."
    return SqlError(" ".join(filter(None, (as_sentence(message), hint, DOCS))))


def explain_syntax(message: str, statement: str, engine: sa.Engine) -> SqlError:
    """Return the error of a statement that is not SQL, with the query that shows the same."""
    word, rest = _first_word(statement), statement.strip().partition(" ")[2].strip(" ;")
    if word in ("show", ".tables", "\\dt"):
        is_sqlite = engine.dialect.name == "sqlite"
        tables = "sqlite_master" if is_sqlite else "information_schema.tables"
        query = f"select {'name' if is_sqlite else 'table_name'} from {tables}"
        return SqlError(f'{as_sentence(message)} List the tables: suffrage sql "{query}"')
    if word in ("describe", "desc", ".schema", "\\d"):
        query = f"select * from {rest or 'TABLE'} limit 1"
        return SqlError(f'{as_sentence(message)} Show the columns: suffrage sql "{query}"')
    return SqlError(f"{as_sentence(message)} {DOCS}")


def _first_word(statement: str) -> str:
    return (statement.lower().split() or [""])[0].strip(";")
