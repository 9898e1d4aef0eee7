"""A store whose every name tries to act as a script, and a server of its pages."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import numpy as np
import requests
import sqlalchemy as sa
import uvicorn

from tracker.database import transaction
from tracker.queries.sql import tables
from tracker.web.access import Access
from tracker.web.application import create_application
from tracker.web.connections import SERVER_OPTIONS

HOSTILE = (
    "<script>document.title='acted'</script>",
    '"><img src=x onerror="document.title=\'acted\'">',
    "a/../b?c=1&d=2#e.json",
    "{{ 7 * 7 }} ${7 * 7} %s",
    "\u202eright to left\u202c",
    "'; DROP TABLE model; --",
)
"""Names of models; the first ones are used for tasks, texts and answers too."""
N_PROMPTS = 120
MAX_OF_A_KIND = 2
"""Addresses that a crawl opens of those which differ only in keys and in values of parameters."""

Get = Callable[..., requests.Response]


def fill_hostile(engine: sa.Engine) -> None:
    """Store a benchmark of 120 prompts in two tasks, with scores and answers of six models."""
    rng = np.random.default_rng(3)
    with transaction(engine) as session:

        def key(table: sa.TableClause, **values: object) -> int:
            return int(session.execute(sa.insert(table).values(**values).returning(table.c.id)).scalar_one())

        owner = key(tables.benchmark, name=HOSTILE[0], revision="1")
        tasks = [key(tables.task, benchmark_id=owner, name=name) for name in HOSTILE[:2]]
        metric = key(tables.metric, name="accuracy<b>", higher_is_better=True, lower=0.0, upper=1.0)
        prompts = [
            key(
                tables.prompt, task_id=tasks[i % 2], occurrence=0, content_hash=f"h{i}",
                text=f"Question {i}: {HOSTILE[i % 6]} 100% of_it", choices=[HOSTILE[0], "no"], answer=HOSTILE[1],
                details={HOSTILE[1]: HOSTILE[0]},
            )
            for i in range(N_PROMPTS)
        ]  # fmt: skip
        encoder = key(tables.encoder, name=HOSTILE[0], revision="", template="question", dimensions=4)
        vectors = rng.normal(size=(N_PROMPTS, 4)).astype("<f4")
        session.execute(
            sa.insert(tables.embedding),
            [
                {"encoder_id": encoder, "prompt_id": prompt, "vector": vector.tobytes()}
                for prompt, vector in zip(prompts, vectors, strict=True)
            ],
        )
        for number, name in enumerate(HOSTILE):
            model = key(tables.model, name=name, family="<i>family")
            run = key(
                tables.run, benchmark_id=owner, model_id=model, condition="full", variant="", label="",
                settings={HOSTILE[0]: HOSTILE[1]}, limited=False, status="complete", n_scores=N_PROMPTS,
                checksum="0" * 32, unverified=HOSTILE[0] if number == 1 else None,
                ingested=sa.func.current_timestamp(),
            )  # fmt: skip
            scores = (rng.random(N_PROMPTS) < 0.2 + 0.12 * number).astype(float).tolist()
            common = [{"run_id": run, "prompt_id": prompt, "trial": 0} for prompt in prompts]
            session.execute(
                sa.insert(tables.score),
                [{**row, "metric_id": metric, "value": value} for row, value in zip(common, scores, strict=True)],
            )
            session.execute(
                sa.insert(tables.answer),
                [{**row, "extraction": "", "text": HOSTILE[1], "probability": 0.5, "status": "ok"} for row in common],
            )


def read(get: Get, path: str, **parameters: str) -> Any:
    """The data of a page, when nothing of it is being computed any more."""
    deadline = time.monotonic() + 300
    while True:
        data = get(path, params=parameters).json()
        if "computing" not in (part.get("state") for part in (data, *data.get("states", ()))):
            return data
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


@contextmanager
def serving(engine: sa.Engine, **rules: object) -> Iterator[str]:
    """Serve the pages of a store; yield the address of the server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    application = create_application(engine, Access(**rules))  # type: ignore[arg-type]
    server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="critical", **SERVER_OPTIONS))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def crawl(get: Get, start: str, limit: int) -> dict[str, requests.Response]:
    """Follow the links within the site from a page on, up to two of each kind; the responses by address."""
    from html.parser import HTMLParser

    links: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            for name, value in attributes:
                if name in ("href", "src", "action", "hx-get") and value and not value.startswith(("#", "data:")):
                    links.append(value)

    responses: dict[str, requests.Response] = {}
    n_by_kind: Counter[tuple[str, ...]] = Counter()
    queue = [start]
    while queue and len(responses) < limit:
        address = queue.pop(0)
        path, _, query = address.partition("?")
        kind = (re.sub(r"\d+", "1", path), *sorted(part.partition("=")[0] for part in query.split("&")))
        n_by_kind[kind] += 1
        if address in responses or n_by_kind[kind] > MAX_OF_A_KIND:
            continue
        responses[address] = get(address)
        links.clear()
        if responses[address].headers["content-type"].startswith("text/html"):
            Links().feed(responses[address].text)
        queue += [place for place in dict.fromkeys(links) if unquote(place) not in map(unquote, responses)]
    return responses
