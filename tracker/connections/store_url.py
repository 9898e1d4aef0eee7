"""The URL of the store: from an option, the environment, the file of settings, or the current folder."""

from __future__ import annotations

import os
import re
import unicodedata
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
PACK_SUFFIX = ".packed"
"""Ending of the folder with packed scores beside a SQLite file, after the name of the file."""


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
    _check_characters(text)
    if "://" not in text and (text.endswith(FILE_SUFFIXES) or os.path.exists(os.path.expanduser(text))):
        url = sa.URL.create("sqlite", database=os.path.expanduser(text))
        _check_address(url)
        return url.render_as_string()
    try:
        url = sa.make_url(text)
    except ValueError:  # SQLAlchemy converts the port without a check
        raise DatabaseError(
            "The port in the database URL is not a number. Use postgresql://USER@HOST:5432/NAME, "
            "with an @, : or / in a password written as %40, %3A or %2F."
        ) from None
    except exc.ArgumentError:
        is_name = re.fullmatch(r"[\w./~-]+", text) is not None  # anything else may hold a password
        example = f"sqlite:///{text}.db" if is_name else "sqlite:///FILE.db"
        problem = f"{text!r} is not a database URL." if is_name else "That is not a database URL."
        raise DatabaseError(f"{problem} Use {example} or postgresql://USER@HOST/NAME.") from None
    if "@" in (url.host or "") or (url.get_backend_name() != "sqlite" and "@" in (url.database or "")):
        raise DatabaseError("The database URL has an @ or / in its password: write them as %40 and %2F.")
    if url.get_backend_name() in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
        _check_address(url)
        return url.render_as_string(hide_password=False)
    if url.get_backend_name() != "sqlite":
        raise DatabaseError(
            f"{url.get_backend_name()} is not supported. Use sqlite:///FILE.db or postgresql://USER@HOST/NAME."
        )
    if url.host:
        raise DatabaseError(f"sqlite://{url.host} has two slashes. Use sqlite:///{url.host}{_path_after(url)}")
    if url.database in (None, "", ":memory:"):
        raise DatabaseError("The store must be a file. Use sqlite:///FILE.db.")
    url = url.set(drivername="sqlite", database=os.path.expanduser(str(url.database)))
    _check_address(url)
    return url.render_as_string(hide_password=False)


def _check_characters(text: str) -> None:
    """Reject characters that no address has.

    Raises:
        DatabaseError: with the code of the first one, and nothing of the text, which may hold a password.
    """
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise DatabaseError(
                f"The database URL holds the character U+{ord(character):04X}. Type the URL anew, without it."
            )


def _check_address(url: sa.URL) -> None:
    """Reject an address that the driver cannot use.

    Raises:
        DatabaseError: its port, host, options or path are not valid.
    """
    if url.port is not None and not 0 < url.port < 65536:
        raise DatabaseError(f"The port {url.port} in the database URL is not within 1 to 65535.")
    try:
        (url.host or "").encode("idna")
        url.get_dialect()().create_connect_args(url)
        if url.get_backend_name() == "sqlite":
            Path(str(url.database)).exists()
    except OSError as error:
        raise DatabaseError(f"The path of the store cannot be used: {error.strerror}. Choose another one.") from None
    except UnicodeError:
        raise DatabaseError("The host in the database URL is not a valid name. Check its spelling.") from None
    except (ValueError, exc.ArgumentError):
        raise DatabaseError(
            "The options after ? in the database URL are not valid; ports are numbers, one for each host. Correct them."
        ) from None


def _path_after(url: sa.URL) -> str:
    return f"/{url.database}" if url.database else ""


def store_file(engine: sa.Engine) -> Path | None:
    """Return the path of a SQLite store; None for a store on a server."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def format_url(url: sa.URL) -> str:
    """Return a store's URL for printing: without driver and passwords."""
    secret = {name: "hidden" for name in url.query if "password" in name.lower()}
    return url.set(drivername=url.get_backend_name()).update_query_dict(secret).render_as_string(hide_password=True)
