"""Questions for the server that speaks the protocol, and waits that are short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from protocol_server import MODEL, ProtocolServer

from tracker.evaluating.prompt_templates.rendered_prompt import Question, Shot
from tracker.evaluating.servers.rate_limiter import BackOff
from tracker.evaluating.servers.server_model import ServerAnswerer, open_server

QUICK = BackOff(tries=12, first_s=0.001, most_s=0.01)


@pytest.fixture
def questions() -> list[Question]:
    shots = (Shot(question="Which is a fish?\nAnswer:", answer="B"), Shot(question="Which flies?\nAnswer:", answer="A"))
    return [
        Question(prompt_id=3 * n + 1, shots=shots, question=f"Number {n}?\nAnswer:", options=tuple("ABCD"), gold=n % 4)
        for n in range(60)
    ]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServerAnswerer]:
    """Opens a server with short waits and no key of the machine."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def answerer(server: ProtocolServer, method: str = "letters", **options: Any) -> ServerAnswerer:
        options = {"back_off": QUICK, "timeout_s": 5.0, **options}
        return open_server(server.url, options.pop("model", MODEL), method=method, **options)

    return answerer
