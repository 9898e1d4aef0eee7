"""A real HTTP server that speaks OpenAI's protocol: answers are a function of the text, faults come by schedule."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "parrot"
LISTED_TOKENS = (*(f"{space}{label}" for label in "ABCDE" for space in ("", " ")), " The", "\n")
EVERYTHING = frozenset({"completions", "logprobs", "echo", "chat", "chat_logprobs", "max_tokens"})


def tokens(text: str) -> list[str]:
    """Words with the space before them, marks, spaces."""
    return re.findall(r" ?\w+| ?[^\w\s]|\s", text)


def drawn(*place: object) -> float:
    """A number in [0, 1) that depends on nothing but what is given."""
    return int.from_bytes(hashlib.blake2b("\x1f".join(map(str, place)).encode(), digest_size=6).digest()) / 2**48


def token_logprob(before: str, token: str) -> float:
    return -0.01 - 5.0 * drawn("token", before, token)


def first_tokens(text: str) -> dict[str, float]:
    """Log-probabilities of all the tokens that may come next; they add up to one."""
    weights = {token: math.exp(4.0 * drawn("first", text, token)) for token in LISTED_TOKENS}
    total = sum(weights.values())
    return {token: math.log(weight / total) for token, weight in weights.items()}


def label_logprob(text: str, label: str) -> float:
    """What a perfect reader finds for a label: both of its spellings."""
    first = first_tokens(text)
    return math.log(sum(math.exp(first[token]) for token in (label, f" {label}")))


def continuation_logprob(text: str, continuation: str) -> float:
    """The slow, obvious sum over tokens that begin behind the text."""
    before, total = "", 0.0
    for token in tokens(text + continuation):
        if len(before) >= len(text):
            total += token_logprob(before, token)
        before += token
    return total


def generate(text: str, seed: object = None) -> str:
    """What it writes, before the limit and the stops."""
    return "".join(f" w{int(1000 * drawn('said', text, seed, n))}" for n in range(12))


@dataclass(frozen=True)
class Faults:
    """A share of requests that go wrong, each in one of several ways."""

    share: float = 0.0
    kinds: tuple[str, ...] = ("429", "500", "503", "stall", "cut", "closed", "broken", "empty")
    seed: int = 0
    retry_after: str = "0"

    def kind(self, n: int) -> str:
        draws = random.Random(f"{self.seed}:{n}")
        return draws.choice(self.kinds) if draws.random() < self.share else ""


@dataclass
class Request:
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    fault: str = ""


@dataclass
class ProtocolServer:
    """The server, in a thread, while it is entered."""

    offers: frozenset[str] = EVERYTHING
    model: str = MODEL
    faults: Faults = field(default_factory=Faults)
    key: str = ""
    delay_s: float = 0.0
    stall_s: float = 0.3
    counts: bool = True
    most_top: int = 20
    context: int = 10**9
    reject: Callable[[Request], tuple[int, Any] | None] = lambda request: None
    extra_headers: dict[str, str] = field(default_factory=dict)
    first_marks: tuple[str, ...] = ()
    spell: Callable[[str], str] = str
    write: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    first: Callable[[str], dict[str, float]] = first_tokens
    echoed: Callable[[str], Callable[[str, str], float]] = lambda text: token_logprob
    requests: list[Request] = field(default_factory=list)
    coming: Request | None = None
    n_active: int = 0
    most_active: int = 0

    def __enter__(self) -> ProtocolServer:
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.http = _Http(("127.0.0.1", 0), _handler(self))
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.http.shutdown()
        self.http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def prompt_requests(self) -> list[Request]:
        """All requests but the probe."""
        return [request for request in self.requests if "capital of France" not in json.dumps(request.body)]

    def response(self, request: Request) -> tuple[int, Any]:
        rejection = self.reject(request)
        if rejection is not None:
            return rejection
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {request.headers.get('authorization')}"}}
        if request.path == "/v1/models":
            return 200, {"data": [{"id": self.model}]}
        kind = {"/v1/completions": "completions", "/v1/chat/completions": "chat"}.get(request.path)
        if kind not in self.offers:
            return 404, {"error": {"message": "Not Found"}}
        body = request.body
        if body["model"] != self.model:
            return 404, {
                "error": {"message": f"The model `{body['model']}` does not exist.", "code": "model_not_found"}
            }
        if kind == "chat" and "max_tokens" in body and "max_tokens" not in self.offers:
            return 400, {
                "error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
            }
        text = body["prompt"] if kind == "completions" else json.dumps(body["messages"])
        if len(tokens(text)) > self.context:
            return 400, {"error": {"message": f"This model's maximum context length is {self.context} tokens."}}
        requested_top = body.get("top_logprobs" if kind == "chat" else "logprobs") or 0
        if requested_top > self.most_top:
            return 400, {"error": {"message": f"logprobs must be at most {self.most_top}"}}
        return 200, (self._completed if kind == "completions" else self._conversed)(text, body, requested_top)

    def _completed(self, text: str, body: dict[str, Any], n_top: int) -> dict[str, Any]:
        n = body["max_tokens"]
        written = self._written(text, body, n)
        out = written.pop("content")
        choice: dict[str, Any] = {"index": 0, "text": out, "logprobs": None, **written}
        if body.get("echo") and "echo" in self.offers:
            choice["text"] = text + out
            choice["logprobs"] = self._echoed(text + out)
        elif n_top and "logprobs" in self.offers:
            top = sorted(self.first(text).items(), key=lambda item: -item[1])[:n_top]
            tokens_listed, values = zip(*top[:1], strict=True) if top else ((), ())
            choice["logprobs"] = {
                "tokens": [*tokens_listed], "token_logprobs": [*values], "top_logprobs": [dict(top)]
            }  # fmt: skip
        return self._counted({"choices": [choice]}, text, out)

    def _conversed(self, text: str, body: dict[str, Any], n_top: int) -> dict[str, Any]:
        written = self._written(text, body, body.get("max_tokens", body.get("max_completion_tokens")))
        out, finish_reason = written["content"], written.pop("finish_reason")
        choice: dict[str, Any] = {"message": {"role": "assistant", **written}, "finish_reason": finish_reason}
        if body.get("logprobs") and "chat_logprobs" in self.offers:
            top = sorted(self.first(text).items(), key=lambda item: -item[1])[:n_top]
            entries = [{"token": token, "logprob": logprob} for token, logprob in top]
            choice["logprobs"] = {"content": [{**entries[0], "top_logprobs": entries}]}
        return self._counted({"choices": [choice]}, text, out)

    def _echoed(self, text: str) -> dict[str, Any]:
        before, tokens_found, logprob = "", [], self.echoed(text)
        for token in tokens(text):
            tokens_found.append((self.spell(token), logprob(before, token) if before or self.first_marks else None))
            before += token
        marks = [(mark, None) for mark in self.first_marks]
        spelt, values = zip(*(marks + tokens_found), strict=True)
        return {"tokens": list(spelt), "token_logprobs": list(values), "top_logprobs": None}

    def _written(self, text: str, body: dict[str, Any], n: int | None) -> dict[str, Any]:
        """Content, finish reason, and what else `write` puts into the message."""
        written = {"content": generate(text, body.get("seed"))}
        if self.write is not None and "capital of France" not in text:
            written = self.write(text, body)
        if not isinstance(written["content"], str):
            return {"finish_reason": "stop", **written}
        parts = tokens(written["content"])
        out = "".join(parts[:n])
        finish_reason = "stop" if len(parts) <= (n or len(parts)) else "length"
        for stop in body.get("stop", ()):
            if stop in out:
                out, finish_reason = out.split(stop)[0], "stop"
        return {"finish_reason": finish_reason, **written, "content": out}

    def _counted(self, response: dict[str, Any], text: str, out: str) -> dict[str, Any]:
        if self.counts:
            n_written = len(tokens(out)) if isinstance(out, str) else 1
            response["usage"] = {"prompt_tokens": len(tokens(text)), "completion_tokens": n_written}
        return response


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Cut connections are meant."""


def _handler(server: ProtocolServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.path, body, headers, time.monotonic())
            with server.lock:
                server.coming = request
                request.fault = server.faults.kind(len(server.requests))
                server.requests.append(request)
                server.n_active += 1
                server.most_active = max(server.most_active, server.n_active)
            try:
                server.over.wait(server.delay_s)
                self._send(request)
            finally:
                with server.lock:
                    server.n_active -= 1

        def _send(self, request: Request) -> None:
            fault = request.fault
            if fault == "stall":
                server.over.wait(server.stall_s)
            if fault in ("stall", "closed"):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            extra = dict(server.extra_headers)
            if fault in ("429", "500", "503"):
                status, response = (
                    int(fault),
                    {"error": {"message": f"overloaded, {request.headers.get('authorization')}"}},
                )
                if fault == "429":
                    extra["Retry-After"] = server.faults.retry_after
            else:
                status, response = server.response(request)
            sent = json.dumps({"choices": []} if fault == "empty" else response).encode()
            if fault == "broken":
                sent = sent[: len(sent) // 2]
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            if fault == "cut":
                self.wfile.write(sent[: len(sent) // 2])
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.wfile.write(sent)

    return Handler


def every(portions: Iterable[list[Any]]) -> list[Any]:
    """All responses, one after the other."""
    return [response for portion in portions for response in portion]
