"""Servers and hubs that stand in for those that pages name, while their commands run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from unittest.mock import patch

from doc_programs import ROOT

sys.path += [str(ROOT / "tests/tracker" / name) for name in ("", "ingest/published")]

from protocol_server import ProtocolServer
from published_files import flat_question, stem_and_options

KEY = "sk-your-key"
"""The key that `docs/how-to/servers.md` shows."""
MODELS = {"http://localhost:8000/v1": "meta-llama/Llama-3.1-8B", "https://api.openai.com/v1": "gpt-4o-mini"}


@contextmanager
def _model_servers() -> Iterator[Mapping[str, str]]:
    """A local server, and a hosted one that needs a key and has chat alone."""
    with ExitStack() as stack:
        local, hosted = MODELS.values()
        servers = (
            ProtocolServer(model=local),
            ProtocolServer(model=hosted, key=KEY, offers=frozenset({"chat", "chat_logprobs", "max_tokens"})),
        )
        yield {address: stack.enter_context(server).url for address, server in zip(MODELS, servers, strict=True)}


@contextmanager
def _data_hub() -> Iterator[Mapping[str, str]]:
    """The rows of ARC as the hub has them, without a network."""

    def load(name: str, configs: tuple[str, ...]) -> dict[str, object]:
        assert name == "allenai/ai2_arc"
        return {
            config: {"test": [flat_question(stem_and_options(n, "A", "ABCD")) | {"id": f"{config}-{n}"} for n in rows]}
            for config, rows in zip(configs, (range(5), range(5, 9)), strict=True)
        }

    with patch("tracker.ingest.datasets.hub.load", load):
        yield {}


STAND_INS: Mapping[str, Callable[[], AbstractContextManager[Mapping[str, str]]]] = MappingProxyType(
    {"server": _model_servers, "datasets": _data_hub}
)
"""By folder: what runs meanwhile; it yields the addresses to use, by those that the page shows."""
