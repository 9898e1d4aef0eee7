"""Who may read the pages: hosts, a token, and the headers that keep data from acting as scripts."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that name this machine alone."""
METHODS = ("GET", "HEAD")
PARAMETER = "token"
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.IGNORECASE)
"""The header Host: a name or an address, and maybe a port."""
STATIC_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
"""The policy of a page without a server behind it."""
POLICY = f"{STATIC_POLICY}; frame-ancestors 'none'"  # browsers ignore the last directive in a page
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True)
class Access:
    """The rules of access.

    Attributes:
        hosts: names under which the server may be addressed, without ports; empty for any.
        token: what a reader has to present; '' for none.
    """

    hosts: Collection[str] = LOOPBACK
    token: str = ""

    @cached_property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie of readers who presented the token, which neither reveals.

        Cookies are sent to every port of a host, so servers with different tokens have cookies of different names.
        """
        value = hmac.new(self.token.encode(), b"cookie of suffrage serve", hashlib.sha256).hexdigest()
        return f"suffrage_{hashlib.sha256(value.encode()).hexdigest()[:8]}", value


class AccessControl:
    """Rejects requests that the rules do not allow, and adds the headers of security to every response.

    A page of another site can neither address this server under its own name (DNS rebinding) nor read its responses.

    Args:
        app: the application.
        access: the rules.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "private, no-cache")
            await send(message)

        rejection = self._reject(scope)
        await (rejection or self.app)(scope, receive, send_with_headers)

    def _reject(self, scope: Scope) -> Response | None:
        """Return the response to a request that is not allowed; None for one that is."""
        headers = Headers(scope=scope)
        if scope["method"] not in METHODS:
            return _reply("This server only reads: use GET.", 405, allow=", ".join(METHODS))
        host = _read_host(headers)
        if self.access.hosts and host not in self.access.hosts:
            return _reply(
                f"This server is not addressed as {host or 'an empty host'}. Open it under one of: "
                f"{', '.join(sorted(self.access.hosts))}; or start it with --behind-proxy.",
                421,
            )
        if _is_of_another_site(headers):
            return _reply("Pages of other sites may not read this server.", 403)
        return self._check_token(scope, headers) if self.access.token else None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        supplied = dict(query).get(PARAMETER)
        cookie, value = self.access.cookie
        if supplied is not None and _is_equal(supplied, self.access.token):
            rest = urlencode([(name, value) for name, value in query if name != PARAMETER])
            path = "/" + quote(scope["path"].lstrip("/\\"))  # a path such as //host would lead to another site
            response = RedirectResponse(f"{path}?{rest}" if rest else path, 303, {"cache-control": "no-store"})
            is_secure = scope.get("scheme") == "https"
            response.set_cookie(cookie, value, httponly=True, samesite="strict", secure=is_secure)
            return response
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_equal(bearer.strip(), self.access.token):
            return None
        if any(_is_equal(part, value) for part in _read_cookies(headers, cookie)):
            return None
        message = (
            "This server needs its token: add ?token=TOKEN to the first address, or send the header "
            "Authorization: Bearer TOKEN."
        )
        return _reply(message, 401, **{"www-authenticate": "Bearer"})


def _reply(text: str, status: int, **headers: str) -> Response:
    return PlainTextResponse(text, status, {"cache-control": "no-store", **headers})


def _is_equal(supplied: str, expected: str) -> bool:
    """Compare texts in a time that does not depend on where they differ."""
    return hmac.compare_digest(supplied.encode("utf-8", "replace"), expected.encode())


def _read_host(headers: Headers) -> str:
    """Return the name under which the server is addressed, in lower case, without port and brackets; '' for none."""
    values = headers.getlist("host")
    match = HOST.fullmatch(values[0]) if len(values) == 1 else None
    return (match[1] or match[2]).lower() if match else ""


def _is_of_another_site(headers: Headers) -> bool:
    """Whether a page of another site makes the request, other than by a link that the reader follows.

    Browsers send ``Origin`` with few requests that read, and ``Sec-Fetch-Site`` with all; programs send neither.
    """
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers.get("host", "").lower():
        return True
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not is_link


def _read_cookies(headers: Headers, name: str) -> list[str]:
    """Return the values of the cookies of a name."""
    pairs = [part.strip().partition("=") for line in headers.getlist("cookie") for part in line.split(";")]
    return [value for key, _, value in pairs if key == name]
