"""Where a server is and the key to it; the key is shown to nobody else."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tracker.errors import ServerError

FRAGMENT = 8
"""Characters in a row of a key that are never printed."""
ENDPOINTS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a server is.

    Attributes:
        base: scheme, host and path, to which ``/completions`` is added.
        host: name and port as given.
        is_local: whether it is this machine.
        is_encrypted: whether it is spoken to by https.
    """

    base: str
    host: str
    is_local: bool
    is_encrypted: bool


class ApiKey:
    """The key to a server. Neither ``repr`` nor ``str`` shows it, and it is no part of a pickle.

    Args:
        secret: as the server wants it; '' where it wants none.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Key(***)" if self else "Key()"

    def __bool__(self) -> bool:
        return bool(self._secret)

    def __reduce__(self) -> tuple[type[ApiKey], tuple[str]]:
        return ApiKey, ("",)

    def is_part_of(self, text: str) -> bool:
        """Whether a text would give it away."""
        return bool(self._secret) and self._secret in text

    def is_possible(self) -> bool:
        """Whether it can be sent: letters, digits and marks of ASCII alone."""
        return all("!" <= letter <= "~" for letter in self._secret)

    def headers(self) -> dict[str, str]:
        """HTTP headers that hold the key."""
        return {"Authorization": f"Bearer {self._secret}"} if self else {}

    def redact(self, text: str) -> str:
        """The text with *** wherever the key stands, or eight and more of its characters in a row."""
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
        """A server's response in which the whole key is not repeated; words such as EMPTY are no keys."""
        return body.replace(self._secret, "***") if len(self._secret) >= FRAGMENT else body


def read_key(name: str) -> ApiKey:
    """The key in an environment variable; none where it is not set or empty.

    Raises:
        ServerError: what the variable holds cannot be a key.
    """
    key = ApiKey(os.environ.get(name, "").strip())
    if not key.is_possible():
        raise ServerError(
            f"The environment variable {name} holds no key: no key has such spaces, line ends or letters in it."
        )
    return key


def read_address(api_base: str) -> Address:
    """The address of a server as a user writes it: ``http://localhost:8000/v1``.

    Raises:
        ServerError: it is no address, or there are credentials in it; they are not repeated.
    """
    example = "Give it as http://localhost:8000/v1."
    try:
        parts = urlsplit(api_base.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ServerError(f"The address of the server cannot be read. {example}") from None
    if "@" in parts.netloc:
        raise ServerError(
            "The address of the server holds a user or password, which would be stored with the run. Leave them out, "
            "and put the key into the environment variable OPENAI_API_KEY (or the one that --key-env names)."
        )
    if parts.query or parts.fragment:
        raise ServerError(f"The address of the server has more after its path ('?' or '#'). {example}")
    if parts.scheme not in ("http", "https") or not host:
        raise ServerError(f"{api_base!r} is no address of a server. {example}")
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
    """Warnings about an address, before the first request."""
    if key and not address.is_encrypted and not address.is_local:
        return [
            f"The key is sent to {address.host} unencrypted, and so are the prompts: use https where it is offered."
        ]
    return []


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
