"""A thread's connection to a server, which another thread can close."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from tracker.errors import ServerError
from tracker.evaluating.servers.address import Address, ApiKey
from tracker.evaluating.servers.key_redaction import redact_logs

ADDRESS_OF_OBJECT = re.compile(r"^<?[\w.]*\w+( object at 0x\w+>|\([^)]*\)): ")
CERTIFICATE_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Environment variables of a file with certificates to trust; the first that is set counts."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""Environment variables of proxies."""
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

    Raises:
        ServerError: the environment names certificates that cannot be read, or a proxy that cannot be used.
    """

    def __init__(self, address: Address, key: ApiKey, timeout_s: float) -> None:
        self._address, self._key, self._timeout_s = address, key, timeout_s
        self._sockets: list[socket.socket] = []
        self._is_cut = False
        certificates = _make_ssl_context()
        try:
            self._client = httpx.Client(
                auth=_Bearer(key), timeout=timeout_s, follow_redirects=False, verify=certificates
            )
        except (httpx.InvalidURL, ValueError, ImportError):  # the text may hold the proxy's password
            raise ServerError(
                f"The address of a proxy in the environment cannot be used. Correct {', '.join(PROXIES)}: "
                "http://HOST:PORT, or unset them."
            ) from None
        redact_logs(key)

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
        self._client.close()

    def _send(self, verb: str, path: str, body: Mapping[str, Any] | None) -> HttpResponse:
        if self._is_cut:
            return HttpResponse(trouble="cut", message="the connection was closed")
        trouble: Trouble = ""
        try:
            response = self._client.request(
                verb, self._address.base + path, json=body, extensions={"trace": self._keep_socket}
            )
            text = response.content.decode("utf-8", errors="replace")  # a JSON body is always complete
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpResponse(status=response.status_code, headers=headers, body=self._key.remove_key(text))
        except httpx.TimeoutException:
            trouble, message = "timeout", f"no response within {self._timeout_s:g} s"
        except (httpx.ConnectError, httpx.ProxyError) as error:
            trouble, message = "unreachable", self._key.redact(_innermost(error))
        except (httpx.HTTPError, httpx.InvalidURL, LookupError, ValueError, OSError) as error:
            trouble, message = "cut", self._key.redact(_innermost(error))
        except BaseException as error:  # noqa: BLE001 - raised without the frames of the HTTP library, which hold the key
            raise error.with_traceback(None) from None
        return HttpResponse(trouble=trouble, message=message)

    def _keep_socket(self, event: str, details: Mapping[str, Any]) -> None:
        """Record the socket when it is opened, and again when it is encrypted."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets[:] = [details["return_value"].get_extra_info("socket")]
            if self._is_cut:  # closed while it was opened
                self.cut()


class _Bearer(httpx.Auth):
    """Sets the key on each request; the client does not hold it."""

    def __init__(self, key: ApiKey) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers.update(self._key.headers())
        yield request


def _make_ssl_context() -> ssl.SSLContext:
    """Return the certificates to trust: those of the user, else those of certifi."""
    variable = next((name for name in CERTIFICATE_FILES if os.environ.get(name)), None)
    if variable is None:
        return httpx.create_ssl_context()
    chosen = os.environ[variable]
    is_folder = os.path.isdir(chosen)
    try:
        return ssl.create_default_context(cafile=None if is_folder else chosen, capath=chosen if is_folder else None)
    except OSError as error:
        reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise ServerError(f"{variable} names {chosen}, which cannot be read ({reason}). Correct or unset it.") from None


def _innermost(error: BaseException) -> str:
    """Return the root cause of an error in one line without object addresses."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    message = (isinstance(error, OSError) and error.strerror) or str(error).strip() or type(error).__name__
    return ADDRESS_OF_OBJECT.sub("", message.splitlines()[0]).rstrip(".")


def format_redirect_target(location: str) -> str:
    """Return the target of a redirect, without parts that may be secret."""
    try:
        parts = urlsplit(location)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return "an address that cannot be parsed"
