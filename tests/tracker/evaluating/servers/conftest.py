"""Questions for the server that speaks the protocol, and waits that are short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from protocol_server import MODEL, ProtocolServer

from tracker.evaluating.plan_settings import ServerSettings
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt
from tracker.evaluating.servers.rate_limiter import BackOff
from tracker.evaluating.servers.server_model import ServerModel, open_server

QUICK = BackOff(tries=12, first_s=0.001, max_s=0.01)


@pytest.fixture
def prompts() -> list[RenderedPrompt]:
    examples = (
        FewShotExample(question="Which is a fish?\nAnswer:", answer="B"),
        FewShotExample(question="Which flies?\nAnswer:", answer="A"),
    )
    return [
        RenderedPrompt(
            prompt_id=3 * n + 1,
            examples=examples,
            question=f"Number {n}?\nAnswer:",
            options=tuple("ABCD"),
            correct_option=n % 4,
        )
        for n in range(60)
    ]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServerModel]:
    """Opens a server with short waits and no key of the machine."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def open_model(
        server: ProtocolServer, method: str = "letters", *, model: str = MODEL, **options: Any
    ) -> ServerModel:
        options = {"back_off": QUICK, "timeout": 5.0, **options}
        names = {field.name for field in fields(ServerSettings)}
        settings = {name: options.pop(name) for name in names & set(options)}
        return open_server(model, ServerSettings(api_base=server.url, **settings), method=method, **options)

    return open_model
