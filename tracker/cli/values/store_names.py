"""Complete names of benchmarks and models in the shell, from the store."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from tracker.errors import SuffrageError

STATEMENTS: Mapping[str, str] = {
    "benchmark": "select name from benchmark order by name",
    "model": "select name from model order by name",
}
KINDS: Mapping[str, Sequence[str]] = {
    "benchmark": ("benchmark",),
    "MODEL|BENCHMARK": ("benchmark", "model"),
    "[BENCHMARK] MODEL_A MODEL_B": ("benchmark", "model"),
    "model": ("model",),
    "models": ("model",),
    "merged": ("model",),
}
"""What a parameter names, by its metavar, else by its name."""
NOT_STORED = ("NAME_OR_FOLDER",)
"""Metavars of parameters that also take what is not in the store."""
SECONDS = 1
"""Time limit of the connection: a key press must not hang."""


class StoreName(click.types.StringParamType):
    """A text that the shell completes with names in the store; lists continue after a comma."""

    def __init__(self, kinds: Sequence[str], *, is_list: bool) -> None:
        self.kinds = kinds
        self.is_list = is_list

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with the text; those that the shell would split are left out."""
        head, comma, last = incomplete.rpartition(",") if self.is_list else ("", "", incomplete)
        chosen = set(head.split(","))
        return [
            CompletionItem(f"{head}{comma}{name}")
            for name in list_names(ctx.params.get("database"), self.kinds)
            if name.startswith(last) and shlex.quote(name) == name and name not in chosen
        ]


def complete_names(parameters: Iterable[click.Parameter]) -> None:
    """Let the shell complete the parameters that name benchmarks or models."""
    for parameter in parameters:
        kinds = KINDS.get(parameter.metavar or "", KINDS.get(parameter.name or "", ()))
        if kinds and type(parameter.type) is click.types.StringParamType and parameter.metavar not in NOT_STORED:
            parameter.type = StoreName(kinds, is_list=parameter.multiple)


def list_names(database: str | None, kinds: Sequence[str]) -> list[str]:
    """Return the names in the store; none if it does not exist or cannot be read.

    Args:
        database: URL of the store; None for that of the settings.
        kinds: keys of `STATEMENTS`.
    """
    import sqlalchemy as sa

    from tracker.connections.store_url import database_url

    try:
        url = sa.make_url(database_url(database))
        statements = [STATEMENTS[kind] for kind in kinds]
        if url.get_backend_name() == "sqlite":
            return _read_sqlite(Path(str(url.database)), statements)
        return _read_postgresql(url.set(drivername="postgresql").render_as_string(hide_password=False), statements)
    except (SuffrageError, sqlite3.Error, UnicodeDecodeError, OSError):
        return []


def _read_sqlite(path: Path, statements: Sequence[str]) -> list[str]:
    from contextlib import closing

    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=SECONDS)) as connection:
        return [name for statement in statements for (name,) in connection.execute(statement)]


def _read_postgresql(url: str, statements: Sequence[str]) -> list[str]:
    import psycopg

    options = f"-c statement_timeout={SECONDS}s"
    try:
        with psycopg.connect(url, connect_timeout=2, options=options) as connection:  # it waits for at least two
            return [name for statement in statements for (name,) in connection.execute(statement.encode())]
    except psycopg.Error:
        return []
