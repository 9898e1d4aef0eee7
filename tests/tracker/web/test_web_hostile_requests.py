"""Requests that no browser would send, byte by byte: each gets a plain response, and the server goes on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests
import sqlalchemy as sa
from web_server import serving

from tracker.web import connections

TOKEN = "a-token-of-24-characters"
BROWSER = {"sec-fetch-site": "cross-site"}
LINK = {**BROWSER, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def send(address: str, head: bytes, *, ended: bool = True) -> tuple[int, str]:
    """Send bytes; return the status of the response and all of its text, 0 and '' if there is none."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        try:
            connection.sendall(head + b"Connection: close\r\n\r\n" * ended)
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8", "replace")
        except ConnectionError:
            return 0, ""
    return int(text.split(" ", 2)[1]) if text else 0, text


def request(address: str, target: str, *lines: str, host: str = "localhost") -> tuple[int, str]:
    """Request a target as it is written."""
    return send(address, "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *lines, ""]).encode("latin-1"))


@pytest.fixture(scope="module")
def guarded(hostile_store: sa.Engine) -> Iterator[str]:
    """The address of a server behind a proxy, which needs a token as well."""
    with serving(hostile_store, hosts=(), token=TOKEN) as address:
        yield address


class TestHost:
    @pytest.mark.parametrize(
        "host",
        ["evil@localhost", "localhost/evil", "localhost?x", "localhost#x", "localhost.", "localhost:x", "::1", "[::1]x",
         "local\xadhost", "localhost\r\nHost: evil.example", "[::1%eth0]", "0x7f.1", "localhost,localhost"],
    )  # fmt: skip
    def test_only_a_name_of_this_machine_with_a_port_is_accepted(self, site: str, host: str) -> None:
        assert request(site, "/", host=host)[0] in (400, 421)

    def test_a_missing_one_is_rejected(self, site: str) -> None:
        assert send(site, b"GET / HTTP/1.1\r\n")[0] == 400
        assert send(site, b"GET / HTTP/1.0\r\n")[0] == 421

    def test_an_absolute_target_does_not_replace_it(self, site: str) -> None:
        assert request(site, "http://localhost/", host="evil.example")[0] == 421

    @pytest.mark.parametrize("origin", ["http://[::1", "://", "http://localhost:1", "file://", "localhost"])
    def test_an_invalid_origin_is_rejected(self, site: str, origin: str) -> None:
        assert request(site, "/", f"Origin: {origin}")[0] == 403

    def test_a_proxy_speaks_for_no_reader(self, site: str) -> None:
        """The headers that proxies add change nothing but the scheme."""
        lines = ("X-Forwarded-Host: localhost", "Forwarded: host=localhost", "X-Original-URL: /sql")
        assert request(site, "/", *lines, host="evil.example")[0] == 421
        assert "<title>Suffrage</title>" in request(site, "/", *lines)[1]


class TestOtherSites:
    @pytest.mark.parametrize("mode", [{}, {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
                                      {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}])  # fmt: skip
    def test_their_pages_start_no_query(self, site: str, mode: dict[str, str]) -> None:
        for place in ("cross-site", "same-site"):
            headers = {**mode, "sec-fetch-site": place}
            assert requests.get(f"{site}/sql?statement=select+1", headers=headers, timeout=30).status_code == 403

    def test_their_links_lead_here(self, site: str) -> None:
        assert requests.get(f"{site}/findings", headers=LINK, timeout=30).status_code == 200


class TestToken:
    @pytest.mark.parametrize(
        "line",
        [
            f"Cookie: suffrage_token={TOKEN}", 'Cookie: "' + "\\" * 60_000, "Cookie: =;;=;\xff\xfe", "Cookie: a" * 2000,
            "Authorization: Bearer", "Authorization: Bearer \xff\xfe", f"Authorization: Basic {TOKEN}",
            f"Authorization: Bearer {TOKEN[:-1]}", f"Authorization: Bearer {TOKEN}x", f"Referer: /?token={TOKEN}",
        ],
    )  # fmt: skip
    def test_only_the_token_is_accepted(self, guarded: str, line: str) -> None:
        status, text = request(guarded, "/", line)
        assert status == 401
        assert "benchmark" not in text.lower()

    def test_a_cookie_does_not_reveal_it(self, guarded: str) -> None:
        response = requests.get(f"{guarded}/?token={TOKEN}", allow_redirects=False, timeout=30)
        assert TOKEN not in str(response.headers)
        assert response.headers["cache-control"] == "no-store"
        assert "secure" not in response.headers["set-cookie"].lower()

    def test_a_cookie_of_a_proxy_with_tls_is_never_sent_without(self, guarded: str) -> None:
        response = requests.get(
            f"{guarded}/?token={TOKEN}", headers={"x-forwarded-proto": "https"}, allow_redirects=False, timeout=30
        )
        assert "secure" in response.headers["set-cookie"].lower().split("; ")

    @pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "/%5cevil.example", "/%2f%2fevil.example"])
    def test_its_address_leads_to_no_other_site(self, guarded: str, path: str) -> None:
        status, text = request(guarded, f"{path}?token={TOKEN}")
        [place] = [line.partition(" ")[2] for line in text.splitlines() if line.startswith("location:")]
        assert (status, place) == (303, "/evil.example")

    def test_headers_of_responses_take_nothing_from_an_address(self, guarded: str) -> None:
        _, text = request(guarded, f"/%0d%0aset-cookie:%20x=y?token={TOKEN}&a=%0d%0ax-evil:%201")
        names = [line.partition(":")[0] for line in text.partition("\r\n\r\n")[0].splitlines()[1:]]
        assert names.count("set-cookie") == 1
        assert "x-evil" not in names


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/static/../application.py", "/static/..%2fapplication.py", "/static/%2e%2e/application.py",
            "/static/....//application.py", "/static//etc/hostname", "/static/%00", "/static/", "/static",
            "/static/site.css%00.png", "/static/..%5capplication.py", "/finding/1/figure/..%2f..%2fx.png",
            "/finding/1/figure/%00.png", "/finding/1/table/%2e%2e", "/finding/1/table/models%0d%0a", "/%", "/%zz",
            "/%ff%fe", "/benchmark/%D9%A1", "/prompt/" + "9" * 5000, "/model/" + "9" * 19, "/run/-1", "/benchmark/1.0",
            "//benchmark/1", "/findings/", "/" + "x/" * 20_000, "/benchmark/1/../../sql",
        ],
    )  # fmt: skip
    def test_what_is_no_page_is_not_found(self, site: str, path: str) -> None:
        status, text = request(site, path)
        assert status in (400, 404), text[:300]
        assert "def create_application" not in text
        assert "content-security-policy" in text

    @pytest.mark.parametrize("query", ["%00", "%ff", "%", "%zz", "%ud800", "%ED%A0%80", "a" * 50_000, "%25" * 10_000])
    @pytest.mark.parametrize(
        "path",
        [
            "/search?q=", "/benchmark/1/prompts?q=", "/benchmark/1?metric=", "/benchmark/1?split=",
            "/benchmark/1?page=",
            "/benchmark/1/compare?a=", "/benchmark/1/prompts?task=", "/benchmark/1/prompts?from=", "/sql?statement=",
            "/finding/1/table/models?sort=",
        ],
    )  # fmt: skip
    def test_no_value_of_a_parameter_breaks_a_page(self, site: str, path: str, query: str) -> None:
        status, text = request(site, path + query)
        assert status in (200, 400, 404), text[:500]
        assert "\0" not in text


class TestSize:
    def test_headers_of_ten_megabytes_are_cut_off(self, site: str) -> None:
        assert send(site, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 10_000_000)[0] in (0, 400)
        assert send(site, b"GET /?" + b"x" * 10_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n")[0] in (0, 400)
        assert request(site, "/findings")[0] == 200

    def test_a_request_that_does_not_end_is(self, hostile_store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
        with serving(hostile_store) as address:
            for head in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n"):
                assert send(address, head, ended=False) == (0, "")
            assert request(address, "/findings")[0] == 200

    @pytest.mark.parametrize("head", [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n", b"\0\0\0\0", b"GET / HTTP/9.9\r\n"])
    def test_what_is_not_http_is_rejected(self, site: str, head: bytes) -> None:
        assert send(site, head)[0] in (0, 400, 421)

    def test_web_sockets_are_not_accepted_without_it(self, guarded: str) -> None:
        lines = ("Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
        assert request(guarded, "/", *lines)[0] == 401
