"""Proxies and certificates that the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker.errors import ServerError
from tracker.evaluating.servers.address import ApiKey, read_address
from tracker.evaluating.servers.connection import CERTIFICATE_FILES, PROXIES, Connection, format_redirect_target


def open_connection() -> None:
    Connection(read_address("https://127.0.0.1:9/v1"), ApiKey(""), 1.0).close()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *CERTIFICATE_FILES):
        for spelling in (name, name.lower()):
            monkeypatch.delenv(spelling, raising=False)


def test_a_plain_environment_works() -> None:
    connection = Connection(read_address("https://127.0.0.1:9/v1"), ApiKey(""), 1.0)
    assert connection.get("/models").trouble == "unreachable"
    connection.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://me:hunter2@proxy:abc"), ("ALL_PROXY", "me:hunter2@proxy:abc"),
        ("ALL_PROXY", "gopher://me:hunter2@proxy:1"), ("https_proxy", "http://[::1"), ("NO_PROXY", "[::"),
    ],
)  # fmt: skip
def test_a_wrong_proxy_is_one_sentence_without_its_password(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ServerError, match="proxy in the environment cannot be used") as caught:
        open_connection()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_certificates_that_cannot_be_read_name_their_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ServerError, match=r"SSL_CERT_FILE names .*none\.pem, which cannot be read \(No such file"):
        open_connection()
    (tmp_path / "none.pem").write_text("no certificate")
    with pytest.raises(ServerError, match="it holds no certificate"):
        open_connection()


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("https://me:hunter2@host:8000/v1/?key=hunter2", "https://host:8000/v1/"),
        ("http://host:abc/", "an address that cannot be parsed"),
        ("http://[::1/", "an address that cannot be parsed"),
    ],
)
def test_the_target_of_a_redirect_has_no_secret_and_may_be_nonsense(location: str, text: str) -> None:
    assert format_redirect_target(location) == text
