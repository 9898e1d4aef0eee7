"""A thread's connection to a server, which another thread can close."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tracker.evaluating.servers.address import Address, ApiKey

ADDRESS_OF_OBJECT = re.compile(r"^<?[\w.]*\w+( object at 0x\w+>|\([^)]*\)): ")
Trouble = Literal["", "unreachable", "timeout", "cut"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """The result of a request.

    Attributes:
        status: HTTP status; 0 without a response.
        trouble: ``unreachable`` (no connection), ``timeout``, ``cut`` (the response is incomplete), or ''.
        message: the problem as text.
        headers: by lower-case name.
        body: the response.
    """

    status: int = 0
    trouble: Trouble = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


class Connection:
    """A thread's connection.

    Redirects are not followed, so that the key is sent only to the given address. Passwords from a .netrc file are not
    used.

    Args:
        address: the server.
        key: the API key.
        timeout_s: seconds of silence after which a request fails.
    """

    def __init__(self, address: Address, key: ApiKey, timeout_s: float) -> None:
        self._address, self._key, self._timeout_s = address, key, timeout_s
        self._sockets: list[socket.socket] = []
        self._is_cut = False
        self._session = requests.Session()
        self._session.auth = _Bearer(key)
        adapter = _adapter(self._keep)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def post(self, path: str, body: Mapping[str, Any]) -> HttpResponse:
        """Send one request, once. No exception is raised that could contain the key."""
        return self._send("POST", path, body)

    def get(self, path: str) -> HttpResponse:
        """Request a path with GET, in the same way."""
        return self._send("GET", path, None)

    def cut(self) -> None:
        """Close the connection from another thread, ending the current request."""
        self._is_cut = True
        for open_one in self._sockets:
            with contextlib.suppress(OSError):
                open_one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _send(self, verb: str, path: str, body: Mapping[str, Any] | None) -> HttpResponse:
        if self._is_cut:
            return HttpResponse(trouble="cut", message="the connection was closed")
        trouble: Trouble = ""
        try:
            response = self._session.request(
                verb, self._address.base + path, json=body, timeout=self._timeout_s, allow_redirects=False
            )
            text = response.content.decode("utf-8", errors="replace")  # a JSON body is always complete
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpResponse(status=response.status_code, headers=headers, body=self._key.remove_key(text))
        except requests.Timeout:
            trouble, message = "timeout", f"no response within {self._timeout_s:g} s"
        except requests.ConnectionError as error:
            reason = _innermost(error)
            trouble = "unreachable" if _never_connected(error) else "cut"
            message = self._key.redact(reason)
        except (requests.RequestException, LookupError, OSError) as error:
            trouble, message = "cut", self._key.redact(_innermost(error))
        return HttpResponse(trouble=trouble, message=message)

    def _keep(self, opened: socket.socket) -> None:
        self._sockets[:] = [opened]
        if self._is_cut:  # closed while it was opened
            self.cut()


class _Bearer(AuthBase):
    """Sets the key. It is an object, because without one requests reads passwords from a .netrc file."""

    def __init__(self, key: ApiKey) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(self._key.headers())
        return request


def _adapter(keep: Callable[[socket.socket], None]) -> HTTPAdapter:
    """An adapter that records the socket it has opened."""

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            keep(self.sock)

    class Encrypted(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            keep(self.sock)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1)
    adapter.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}
    return adapter


def _innermost(error: BaseException) -> str:
    """Return the root cause of an error in one line without object addresses."""
    while cause := getattr(error, "reason", None) or error.__cause__ or error.__context__:
        if not isinstance(cause, BaseException):
            break
        error = cause
    message = (isinstance(error, OSError) and error.strerror) or str(error).strip() or type(error).__name__
    return ADDRESS_OF_OBJECT.sub("", message.splitlines()[0]).rstrip(".")


def _never_connected(error: BaseException) -> bool:
    from urllib3.exceptions import NameResolutionError, NewConnectionError, SSLError

    chain: BaseException | None = error
    while isinstance(chain, BaseException):
        reason = getattr(chain, "reason", None)
        inner = [arg for arg in chain.args if isinstance(arg, BaseException)]
        for cause in (chain, reason, *inner):
            if isinstance(cause, NewConnectionError | NameResolutionError | SSLError):
                return True
        chain = reason if isinstance(reason, BaseException) else inner[0] if inner else None
    return isinstance(error, requests.exceptions.SSLError)


def format_redirect_target(location: str) -> str:
    """Return the target of a redirect, without parts that may be secret."""
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
