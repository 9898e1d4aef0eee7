"""The MLflow store that is published to: its address and its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import sqlalchemy as sa

from tracker.errors import PublishingError

DATABASES = ("sqlite", "postgresql", "postgres", "mysql", "mssql")
SERVERS = ("http", "https", "databricks")
ARTIFACT_FOLDER = "mlartifacts"
SECRET = re.compile(r"pass|pwd|secret|token|key|sig", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class MlflowStore:
    """An MLflow store.

    Attributes:
        uri: its tracking URI; that of a file is absolute.
        display_uri: the same without passwords, as printed and stored in `publication`.
        file: its SQLite file; None for a server.
        artifacts: folder for the files of MLflow runs; None if a server decides.
    """

    uri: str
    display_uri: str
    file: Path | None = None
    artifacts: Path | None = None

    @property
    def is_server(self) -> bool:
        """Whether it is a server, with its own web interface."""
        return self.uri.startswith(SERVERS)


def mlflow_store(tracking_uri: str, engine: sa.Engine | None = None) -> MlflowStore:
    """Return the MLflow store at a tracking URI.

    Args:
        tracking_uri: as written by the user.
        engine: the Suffrage store, which must be another file.

    Raises:
        PublishingError: MLflow cannot use the URI.
    """
    scheme, separator, rest = tracking_uri.partition(":")
    scheme = scheme.lower().partition("+")[0]
    advice = "Use sqlite:///FILE.db, or the address of a server such as http://127.0.0.1:5000."
    if not separator and scheme != "databricks":
        if tracking_uri.endswith(".db"):
            advice = f"Use sqlite:///{tracking_uri}"
        raise PublishingError(f"{hide_passwords(tracking_uri)!r} is not an MLflow tracking URI. {advice}")
    if scheme == "file":
        raise PublishingError(f"MLflow no longer supports plain folders ({tracking_uri}). {advice}")
    if scheme not in ("sqlite", "databricks"):
        _check_host(tracking_uri)
    if scheme in SERVERS:
        return MlflowStore(uri=tracking_uri.rstrip("/"), display_uri=hide_passwords(tracking_uri).rstrip("/"))
    if scheme not in DATABASES:
        raise PublishingError(f"MLflow cannot use a tracking URI that begins with {scheme}:. {advice}")
    if scheme != "sqlite":
        uri = re.sub("^postgres(ql)?:", "postgresql+psycopg:", tracking_uri)  # the driver that Suffrage depends on
        return MlflowStore(uri=uri, display_uri=hide_passwords(tracking_uri), artifacts=Path.cwd() / ARTIFACT_FOLDER)
    name, _, options = rest.removeprefix("///").partition("?")
    if not rest.startswith("///") or not name or name == ":memory:":
        raise PublishingError(f"{tracking_uri} does not name a file. {advice}")
    file = Path(unquote(name)).absolute()
    if engine is not None and engine.dialect.name == "sqlite" and file == Path(engine.url.database or "").absolute():
        raise PublishingError(
            f"{file} is the Suffrage store itself. Use a separate file for MLflow: sqlite:///mlflow.db."
        )
    if not file.parent.is_dir():
        raise PublishingError(
            f"The folder {file.parent} for MLflow's file does not exist. Create it, or use another URI."
        )
    uri = f"sqlite:///{file}{'?' + options if options else ''}"
    return MlflowStore(uri=uri, display_uri=uri, file=file, artifacts=file.parent / ARTIFACT_FOLDER)


def _check_host(uri: str) -> None:
    """Reject an address without a valid host or port.

    Raises:
        PublishingError: the message omits the text, which may hold a password.
    """
    try:
        parts = urlsplit(uri)
        is_valid = parts.port != 0 and parts.netloc.count("@") <= 1
    except ValueError:  # no number, too large, or half an IPv6 address
        is_valid = False
    if not is_valid:
        raise PublishingError(
            "The host or port in the MLflow tracking URI is not valid. Use SCHEME://USER@HOST:PORT/NAME with a port "
            "from 1 to 65535, and with an @, : or / in a password written as %40, %3A or %2F."
        )


def hide_passwords(uri: str) -> str:
    """Return the URI with *** for every password in it."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return re.sub(r"//[^/]*@", "//***@", uri)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    netloc = f"{name}{colon and ':***'}{at}{host}"
    query = [(key, "***" if SECRET.search(key) else value) for key, value in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, safe="*/")))
