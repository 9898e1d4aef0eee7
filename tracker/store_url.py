"""The URL of the store: from an option, the environment, the file of settings, or the current folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from tracker.errors import DatabaseError
from tracker.settings.known_settings import SETTINGS
from tracker.settings.resolution import resolve_setting

DEFAULT_URL = "sqlite:///suffrage.db"
URL_VARIABLES = SETTINGS["database"].variables
"""Environment variables that name the store, the first one first."""
MISTAKEN_VARIABLES = ("SUFFRAGE_DATABASE", "SUFFRAGE_DB", "SUFFRAGE_URL", "SUFFRAGE_DB_URL")
"""Names that users set instead."""
FILE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def database_url(explicit: str | None = None) -> str:
    """Return the store's URL: the explicit one, else that of the settings, else a file in the current folder.

    A path is a SQLite file if it ends in .db, .sqlite or .sqlite3, or exists.

    Args:
        explicit: a URL such as ``sqlite:///results.db`` or ``postgresql://user@host/name``, or a path.

    Raises:
        DatabaseError: the URL names no engine that is supported.
        SettingsError: the file of settings is not valid.
    """
    if explicit:
        return _resolve_url(explicit)
    setting = resolve_setting("database")
    if setting is None:
        return DEFAULT_URL
    try:
        return _resolve_url(str(setting.value))
    except DatabaseError as error:
        raise DatabaseError(f"The {setting.origin} is wrong. {error}") from None


def _resolve_url(text: str) -> str:
    if "://" not in text and (text.endswith(FILE_SUFFIXES) or Path(text).expanduser().exists()):
        return sa.URL.create("sqlite", database=str(Path(text).expanduser())).render_as_string()
    try:
        url = sa.make_url(text)
    except exc.ArgumentError:
        is_name = re.fullmatch(r"[\w./~-]+", text) is not None  # anything else may hold a password
        example = f"sqlite:///{text}.db" if is_name else "sqlite:///FILE.db"
        problem = f"{text!r} is not a database URL." if is_name else "That is not a database URL."
        raise DatabaseError(f"{problem} Use {example} or postgresql://USER@HOST/NAME.") from None
    if "@" in (url.host or ""):
        raise DatabaseError("The database URL holds more than one @: write an @ in a password as %40.")
    if url.get_backend_name() in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    if url.get_backend_name() != "sqlite":
        raise DatabaseError(
            f"{url.get_backend_name()} is not supported. Use sqlite:///FILE.db or postgresql://USER@HOST/NAME."
        )
    if url.host:
        raise DatabaseError(f"sqlite://{url.host} has two slashes. Use sqlite:///{url.host}{_path_after(url)}")
    if url.database in (None, "", ":memory:"):
        raise DatabaseError("The store must be a file. Use sqlite:///FILE.db.")
    return url.set(database=os.path.expanduser(str(url.database))).render_as_string(hide_password=False)


def _path_after(url: sa.URL) -> str:
    return f"/{url.database}" if url.database else ""
