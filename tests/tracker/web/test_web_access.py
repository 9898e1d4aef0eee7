"""Who may read the pages."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa
from click.testing import CliRunner
from web_server import Get, serving

from tracker.cli import suffrage

TOKEN = "a-token-of-24-characters"


@pytest.fixture(scope="module")
def guarded(hostile_store: sa.Engine) -> Iterator[str]:
    """The address of a server that needs a token."""
    with serving(hostile_store, hosts=(), token=TOKEN) as address:
        yield address


class TestHosts:
    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost.evil:80"])
    def test_other_names_are_rejected(self, get: Get, host: str) -> None:
        assert get("/", headers={"host": host}).status_code in (400, 421)

    @pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
    def test_names_of_this_machine_are_accepted(self, get: Get, host: str) -> None:
        assert get("/", headers={"host": host}).status_code == 200

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:1"])
    def test_pages_of_other_sites_may_not_read(self, get: Get, origin: str) -> None:
        assert get("/index.json", headers={"origin": origin}).status_code == 403

    def test_its_own_pages_may_read(self, get: Get, site: str) -> None:
        assert get("/index.json", headers={"origin": site}).status_code == 200

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
    def test_only_reading_methods_are_accepted(self, site: str, method: str) -> None:
        assert requests.request(method, f"{site}/sql", timeout=30).status_code == 405

    @pytest.mark.parametrize(
        "path", ["/", "/static/site.css", "/nothing", "/benchmark/1.json", "/static/../application.py"]
    )
    def test_every_response_has_the_headers_of_security(self, get: Get, path: str) -> None:
        headers = get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


class TestToken:
    def test_without_it_nothing_is_shown(self, guarded: str) -> None:
        for path in ("/", "/index.json", "/static/site.css", "/?token=wrong", "/sql"):
            response = requests.get(guarded + path, timeout=30)
            assert response.status_code == 401
            assert TOKEN not in response.text

    def test_it_is_accepted_as_header_and_as_cookie_of_the_first_address(self, guarded: str) -> None:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert requests.get(guarded, headers=bearer, timeout=30).status_code == 200
        with requests.Session() as session:
            first = session.get(f"{guarded}/search?q=x&token={TOKEN}", timeout=30)
            assert (first.status_code, TOKEN in first.url, first.url.endswith("/search?q=x")) == (200, False, True)
            assert session.get(guarded, timeout=30).status_code == 200
        [redirect] = first.history
        assert {"httponly", "samesite=strict"} <= set(redirect.headers["set-cookie"].lower().split("; "))

    def test_its_address_never_leads_to_another_site(self, guarded: str) -> None:
        response = requests.get(f"{guarded}//evil.example/?token={TOKEN}", allow_redirects=False, timeout=30)
        assert response.headers["location"] == "/evil.example/"


class TestCommand:
    @pytest.mark.parametrize(
        ("options", "environment", "message"),
        [
            (("--host", "0.0.0.0"), {}, "SUFFRAGE_TOKEN"),
            (("--host", "0.0.0.0"), {"SUFFRAGE_TOKEN": "short"}, "at least 16"),
            ((), {"SUFFRAGE_TOKEN": "short"}, "at least 16"),
        ],
    )
    def test_other_machines_need_a_token(
        self, hostile_store: sa.Engine, options: tuple[str, ...], environment: dict[str, str], message: str
    ) -> None:
        url = hostile_store.url.render_as_string(hide_password=False)
        result = CliRunner().invoke(suffrage, ["serve", *options, "--database", url], env=environment)
        assert (result.exit_code, message in result.output) == (2, True), result.output

    def test_a_port_in_use_is_an_error_that_names_another(self, hostile_store: sa.Engine, site: str) -> None:
        url, port = hostile_store.url.render_as_string(hide_password=False), site.rpartition(":")[2]
        result = CliRunner().invoke(suffrage, ["serve", "--port", port, "--database", url])
        assert (result.exit_code, f"--port {int(port) + 1}" in result.output) == (2, True), result.output

    def test_it_serves_until_ctrl_c(self, hostile_store: sa.Engine, tmp_path: Path) -> None:
        """As docs/how-to/browser.md shows."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (tmp_path / "token.txt").write_text(f"{TOKEN}\n")
        url = hostile_store.url.render_as_string(hide_password=False)
        words = ["serve", "--port", str(port), "--token-file", str(tmp_path / "token.txt"), "--database", url]
        command = [sys.executable, "-m", "tracker.cli", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address == f"http://127.0.0.1:{port}/"
            deadline = time.monotonic() + 60
            while True:
                try:
                    statuses = [
                        requests.get(f"{address}{query}", timeout=30).status_code for query in ("", f"?token={TOKEN}")
                    ]
                    break
                except requests.ConnectionError:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=60)
        assert statuses == [401, 200]
        assert "Stop with Ctrl-C" in messages
        assert TOKEN not in messages
        assert "Traceback" not in messages
        assert process.returncode in (0, 130)
