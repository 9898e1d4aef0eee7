"""The key to a server is sent to that server and appears nowhere else."""

from __future__ import annotations

import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest
from protocol_server import MODEL, Faults, ProtocolServer, every

from tracker.errors import SelectionError, ServerError
from tracker.evaluating.plan_settings import ServerSettings
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.servers.address import ApiKey, list_address_warnings, read_address, read_key
from tracker.evaluating.servers.key_redaction import LOGGERS
from tracker.evaluating.servers.server_model import ServerModel, open_server

Open = Callable[..., ServerModel]
SECRET = "sk-Zq7-not_to_be_seen-9fX2"


def nothing_stored(prompt_id: int) -> bool:
    return False


@pytest.fixture(autouse=True)
def key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", SECRET)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """All that is logged, on every level.

    Levels are set with `setLevel`: a logger remembers which levels are enabled, and only that makes it forget.
    """
    text = io.StringIO()
    monkeypatch.setattr(logging.root, "handlers", [logging.StreamHandler(text)])
    loggers = [logging.root, *map(logging.getLogger, LOGGERS)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    yield text
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def everything_of(error: BaseException) -> str:
    """All that a crash report could show: messages, causes, and the local variables of each frame of the tracker."""
    text = "".join(traceback.format_exception(error))
    seen: BaseException | None = error
    while seen is not None:
        text += repr(seen) + repr(vars(seen)) + repr(seen.args)
        for frame, _ in traceback.walk_tb(seen.__traceback__):
            if "tests" not in Path(frame.f_code.co_filename).parts:
                text += "".join(
                    f"{name}={value!r}{getattr(value, '__dict__', '')}" for name, value in frame.f_locals.items()
                )
        seen = seen.__cause__ or seen.__context__
    return text


class TestNowhere:
    @pytest.mark.parametrize("method", ["letters", "generation"])
    def test_not_in_replies_settings_warnings_or_output_even_if_the_server_repeats_it(
        self, prompts: list[RenderedPrompt], opened: Open, method: str, logged: io.StringIO
    ) -> None:
        def echo_headers(request: Any) -> tuple[int, Any] | None:
            if "Number 3?" in str(request.body):
                return 400, {
                    "error": {"message": f"{request.headers['authorization']} in {json.dumps(request.headers)}"}
                }
            if "Number 4?" in str(request.body):
                return 200, {"choices": [{"text": f"you are {request.headers['authorization']}"}]}
            return None

        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out), ProtocolServer(key=SECRET, reject=echo_headers) as server:
            backend = opened(server, method, key_env="THEIR_KEY")
            server.faults = Faults(share=0.4, kinds=("500", "429", "broken", "cut"))
            responses = every(backend.respond(prompts, nothing_stored))
            assert all(request.headers["authorization"] == f"Bearer {SECRET}" for request in server.requests)
        assert len(responses) == 60
        outputs = [
            responses,
            backend,
            vars(backend),
            backend.as_settings(),
            backend.list_warnings(),
            backend.initial_warnings,
        ]
        outputs += [vars(backend._client), logged.getvalue(), out.getvalue()]
        assert SECRET not in repr(outputs)
        assert SECRET[3:-3] not in repr(outputs)
        assert any("***" in response.error for response in responses)

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 429, 500, 302])
    def test_not_in_any_error_nor_its_causes_nor_their_variables(self, opened: Open, status: int) -> None:
        def echo_headers(request: Any) -> tuple[int, Any]:
            return status, {"error": {"message": f"{request.headers['authorization'][7:20]}... {request.headers}"}}

        with ProtocolServer(reject=echo_headers) as server, pytest.raises(ServerError) as caught:
            opened(server, key_env="THEIR_KEY")
        printed = everything_of(caught.value)
        assert SECRET not in printed
        assert SECRET[:11] not in str(caught.value)

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
    def test_not_in_the_variables_of_an_interrupted_request(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
    ) -> None:
        sent_headers: list[str] = []

        def interrupt(_: Any, request: httpx.Request) -> None:
            headers = dict(request.headers)
            sent_headers.append(headers["authorization"])
            raise kind

        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", interrupt)
        with ProtocolServer() as server, pytest.raises(kind) as caught:
            opened(server, key_env="THEIR_KEY")
        assert sent_headers == [f"Bearer {SECRET}"]
        assert SECRET not in everything_of(caught.value)

    def test_not_in_logs_of_the_library_even_if_a_header_of_the_server_repeats_it(
        self, opened: Open, logged: io.StringIO
    ) -> None:
        with ProtocolServer(extra_headers={"X-Key": SECRET, "X-Part": SECRET[4:16]}) as server:
            opened(server, key_env="THEIR_KEY")
        assert "b'X-Key', b'***'" in logged.getvalue()
        assert SECRET[4:16] not in logged.getvalue()

    def test_not_where_the_server_cannot_be_reached(self) -> None:
        with pytest.raises(ServerError, match="cannot be reached") as caught:
            open_server(MODEL, ServerSettings(api_base="http://127.0.0.1:9/v1", key_env="THEIR_KEY"), method="letters")
        assert SECRET not in everything_of(caught.value)
        assert "object at 0x" not in str(caught.value)

    def test_not_in_the_address_which_is_stored(self) -> None:
        settings = ServerSettings(api_base=f"http://127.0.0.1:9/{SECRET}/v1", key_env="THEIR_KEY")
        with pytest.raises(SelectionError, match="The server address contains the API key") as caught:
            open_server(MODEL, settings, method="letters")
        assert SECRET not in str(caught.value)

    def test_not_in_what_is_pickled_or_printed(self) -> None:
        key = ApiKey(SECRET)
        assert SECRET not in repr(key) + str(key) + f"{key}"
        assert SECRET.encode() not in pickle.dumps(key)
        assert repr(ApiKey("")) == "Key()"

    def test_parts_of_it_are_not_shown_either(self) -> None:
        key = ApiKey(SECRET)
        assert key.redact(f"the key {SECRET[:12]}... is wrong") == "the key ***... is wrong"
        assert key.redact("nothing of it") == "nothing of it"
        assert ApiKey("").redact("a text") == "a text"


class TestWhereItGoes:
    def test_a_redirect_is_not_followed(self, opened: Open) -> None:
        with (
            ProtocolServer() as second,
            ProtocolServer(
                reject=lambda request: (307, {}), extra_headers={"Location": f"{second.url}/completions?token=abc"}
            ) as server,
            pytest.raises(ServerError, match=r"redirects \(HTTP 307, to http://127.*/v1/completions\)") as caught_error,
        ):
            opened(server, key_env="THEIR_KEY")
        assert second.requests == []
        assert "abc" not in str(caught_error.value)

    def test_without_a_key_nothing_is_sent_not_even_from_netrc(
        self, opened: Open, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password hidden\n")
        netrc.chmod(0o600)
        monkeypatch.setenv("NETRC", str(netrc))
        with ProtocolServer() as server:
            opened(server)
        assert "authorization" not in server.requests[0].headers

    def test_a_missing_or_wrong_key_is_an_error_with_the_variable_to_set(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTHER_KEY", "a-key-entirely-wrong")
        with ProtocolServer(key=SECRET) as server:
            with pytest.raises(ServerError, match="The variable MISSING_KEY holds no key"):
                opened(server, key_env="MISSING_KEY")
            with pytest.raises(ServerError, match="The environment variable OTHER_KEY holds a key") as caught_error:
                opened(server, key_env="OTHER_KEY")
        assert "entirely" not in str(caught_error.value)

    def test_spaces_and_line_ends_around_it_are_no_part_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTHER_KEY", f" {SECRET}\n")
        assert read_key("OTHER_KEY").headers() == {"Authorization": f"Bearer {SECRET}"}

    def test_what_cannot_be_a_key_is_refused_unseen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OTHER_KEY", f"{SECRET}\nX-Other: 1")
        with pytest.raises(ServerError, match="OTHER_KEY does not hold a valid key") as caught_error:
            read_key("OTHER_KEY")
        assert SECRET not in everything_of(caught_error.value)


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "base"),
        [
            ("http://localhost:8000/v1", "http://localhost:8000/v1"),
            ("https://api.example.org/v1/", "https://api.example.org/v1"),
            ("http://localhost:8000/v1/chat/completions", "http://localhost:8000/v1"),
            ("http://localhost:8000/v1/completions", "http://localhost:8000/v1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ],
    )
    def test_it_is_read_up_to_where_the_endpoints_begin(self, url: str, base: str) -> None:
        assert read_address(url).base == base

    @pytest.mark.parametrize("url", ["https://me:hidden@host/v1", "https://hidden@host/v1", "https://h/v1?key=hidden"])
    def test_credentials_in_it_are_refused_and_not_repeated(self, url: str) -> None:
        with pytest.raises(ServerError) as caught_error:
            read_address(url)
        assert "hidden" not in str(caught_error.value)

    @pytest.mark.parametrize(
        "url", ["", "localhost:8000", "ftp://host", "http://", "http://host:port/v1", "http://[::1"]
    )
    def test_what_is_none_is_refused_with_an_example(self, url: str) -> None:
        with pytest.raises(ServerError, match="http://localhost:8000/v1"):
            read_address(url)

    @pytest.mark.parametrize(
        ("url", "is_warned"),
        [
            ("http://10.0.0.5:8000/v1", True),
            ("http://host.example/v1", True),
            ("https://host.example/v1", False),
            ("http://127.0.0.2:8000/v1", False),
            ("http://[::1]/v1", False),
            ("http://localhost/v1", False),
        ],
    )
    def test_an_unencrypted_key_is_warned_of(self, url: str, is_warned: bool) -> None:
        assert bool(list_address_warnings(read_address(url), ApiKey(SECRET))) == is_warned
        assert list_address_warnings(read_address(url), ApiKey("")) == []


class TestOpening:
    def test_a_wrong_model_is_an_error_with_those_there_are(self, opened: Open) -> None:
        with (
            ProtocolServer() as server,
            pytest.raises(ServerError, match=r"'parot'.*Available models: parrot.*--model"),
        ):
            opened(server, model="parot")

    @pytest.mark.parametrize(
        "options",
        [
            {"method": "guessing"},
            {"method": "letters", "concurrency": 0},
            {"method": "letters", "tries": 0},
            {"method": "letters", "requests_per_minute": 0},
            {"method": "letters", "timeout": -1},
            {"method": "letters", "api": "completions", "chat": True},
            {"method": "letters", "api": "chat", "chat": False},
            {"method": "letters", "api": "telepathy"},
        ],
    )
    def test_options_that_make_no_sense_are_refused_before_anything_is_sent(
        self, opened: Open, options: dict[str, Any]
    ) -> None:
        with ProtocolServer() as server:
            with pytest.raises(ValueError, match=r"\."):
                opened(server, **options)
            assert server.requests == []

    def test_settings_hold_what_decides_the_answers(self, opened: Open) -> None:
        with ProtocolServer() as server:
            letters, written = opened(server).as_settings(), opened(server, "generation").as_settings()
        assert letters == {
            "server": server.url,
            "server_model": MODEL,
            "way": "label probabilities from /completions, among the 20 likeliest tokens",
            "endpoint": "/completions",
            "n_top": 20,
        }
        assert written["max_tokens"] == 256
        assert json.loads(json.dumps(written)) == written
