"""The address of a server and its API key; the key is never sent elsewhere or printed."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tracker.errors import ServerError

FRAGMENT = 8
"""Maximum number of consecutive characters of a key that may be printed."""
ENDPOINTS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The address of a server.

    Attributes:
        base: scheme, host and path, to which ``/completions`` is appended.
        host: name and port as written by the user.
        is_local: whether it is this machine.
        is_encrypted: whether it uses https.
    """

    base: str
    host: str
    is_local: bool
    is_encrypted: bool


class ApiKey:
    """An API key. Neither ``repr`` nor ``str`` shows it, and it cannot be pickled.

    Args:
        secret: the key; '' if the server needs none.
    """

    __slots__ = ("__weakref__", "_secret")

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Key(***)" if self else "Key()"

    def __bool__(self) -> bool:
        return bool(self._secret)

    def __reduce__(self) -> tuple[type[ApiKey], tuple[str]]:
        return ApiKey, ("",)

    def is_part_of(self, text: str) -> bool:
        """Return whether a text contains the key."""
        return bool(self._secret) and self._secret in text

    def is_possible(self) -> bool:
        """Return whether the key can be sent: letters, digits and marks of ASCII only."""
        return all("!" <= letter <= "~" for letter in self._secret)

    def headers(self) -> dict[str, str]:
        """Return the HTTP headers with the key."""
        return {"Authorization": f"Bearer {self._secret}"} if self else {}

    def redact(self, text: str) -> str:
        """Return the text with *** in place of the key, and of eight or more consecutive characters of it."""
        secret = self._secret
        if not secret or not text:
            return text
        text = text.replace(secret, "***")
        width = min(FRAGMENT, len(secret))
        parts = {secret[at : at + width] for at in range(len(secret) - width + 1)}
        hidden = [False] * len(text)
        for at in range(len(text) - width + 1):
            if text[at : at + width] in parts:
                hidden[at : at + width] = [True] * width
        masked = "".join("\0" if covered else letter for letter, covered in zip(text, hidden, strict=True))
        return re.sub("\0+", "***", masked)

    def remove_key(self, body: str) -> str:
        """Return a server's response without the whole key; placeholders such as EMPTY are not masked."""
        return body.replace(self._secret, "***") if len(self._secret) >= FRAGMENT else body


def read_key(name: str) -> ApiKey:
    """Return the key in an environment variable; an empty key if it is not set or empty.

    Raises:
        ServerError: the variable's value cannot be a key.
    """
    key = ApiKey(os.environ.get(name, "").strip())
    if not key.is_possible():
        raise ServerError(
            f"The environment variable {name} does not hold a valid key: it contains spaces, line ends or non-ASCII "
            "letters."
        )
    return key


def read_address(api_base: str) -> Address:
    """Parse a server address: ``http://localhost:8000/v1``.

    Raises:
        ServerError: the address is invalid, or contains credentials, which the message does not repeat.
    """
    example = "Use an address such as http://localhost:8000/v1."
    try:
        parts = urlsplit(api_base.strip())
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:  # that of a host is a UnicodeError
        raise ServerError(f"The server address cannot be parsed. {example}") from None
    if "@" in parts.netloc:
        raise ServerError(
            "The server address contains a user or password, which would be stored with the run. Remove them, and "
            "put the key into the environment variable OPENAI_API_KEY, or the one named by --key-env."
        )
    if parts.query or parts.fragment:
        raise ServerError(f"The server address continues after its path ('?' or '#'). {example}")
    if parts.scheme not in ("http", "https") or not host:
        subject = "That" if "@" in api_base else repr(api_base)  # what is before it may be a password
        raise ServerError(f"{subject} is not a server address. {example}")
    path = parts.path.rstrip("/")
    for ending in ENDPOINTS:
        path = path.removesuffix(ending)
    name = f"[{host}]" if ":" in host else host
    where = name if port is None else f"{name}:{port}"
    return Address(
        base=f"{parts.scheme}://{where}{path}",
        host=where,
        is_local=_is_local(host),
        is_encrypted=parts.scheme == "https",
    )


def list_address_warnings(address: Address, key: ApiKey) -> list[str]:
    """Return warnings about an address, before the first request."""
    if key and not address.is_encrypted and not address.is_local:
        return [f"The key and the prompts are sent to {address.host} unencrypted. Use https if the server offers it."]
    return []


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
