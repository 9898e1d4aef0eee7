"""Who may read the pages: hosts, a token, and the headers that keep data from acting as scripts."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Hosts that name this machine alone."""
METHODS = ("GET", "HEAD")
COOKIE = "suffrage_token"
PARAMETER = "token"
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
            return PlainTextResponse("This server only reads: use GET.", 405, {"allow": ", ".join(METHODS)})
        host = headers.get("host", "")
        if self.access.hosts and _host_name(host) not in self.access.hosts:
            return PlainTextResponse(
                f"This server is not addressed as {_host_name(host) or 'an empty host'}. Open it under one of: "
                f"{', '.join(sorted(self.access.hosts))}; or start it with --behind-proxy.",
                421,
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return PlainTextResponse("Pages of other sites may not read this server.", 403)
        return self._check_token(scope, headers) if self.access.token else None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        supplied = dict(query).get(PARAMETER)
        if supplied is not None and self._is_token(supplied):
            rest = urlencode([(name, value) for name, value in query if name != PARAMETER])
            path = "/" + scope["path"].lstrip("/")  # a path such as //host would lead to another site
            response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            response.set_cookie(COOKIE, self.access.token, httponly=True, samesite="strict")
            return response
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if (scheme.lower() == "bearer" and self._is_token(bearer)) or self._is_token(_read_cookie(headers)):
            return None
        return PlainTextResponse(
            "This server needs its token: add ?token=TOKEN to the first address, or send the header "
            "Authorization: Bearer TOKEN.",
            401,
            {"www-authenticate": "Bearer"},
        )

    def _is_token(self, supplied: str) -> bool:
        return hmac.compare_digest(supplied.encode(), self.access.token.encode())


def _host_name(host: str) -> str:
    """Return a host without its port; that of an IPv6 address without brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _read_cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
