"""A small benchmark, and answers to it as an evaluation gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from measurement_blocks import prompts, store_blocks

from tracker.database import transaction
from tracker.ingest.write.live.live_runs import (
    LiveRun,
    ScoredResponse,
    add_responses,
    complete_run,
    count_stored_trials,
    open_run,
)
from tracker.queries.sql import tables
from tracker.run_fields import RUN_FIELDS, RunFields

IDENTITY = "0123456789abcdef" * 4
OTHER_IDENTITY = "f" * 64


def n_stored(engine: sa.Engine, run: LiveRun) -> int:
    """How many prompts of a run have scores."""
    with transaction(engine, write=False) as session:
        return len(count_stored_trials(session, run.id))


def add_prompts(engine: sa.Engine, n_prompts: int, benchmark: str = "b") -> None:
    """A benchmark of multiple-choice prompts."""
    keys = [f"q{n}" for n in range(n_prompts)]
    texts = [f"What is {n} + 1?" for n in range(n_prompts)]
    options = [[str(n + 1), str(n + 2)] for n in range(n_prompts)]
    store_blocks(engine, prompts(keys, text=texts, choices=options, answer=["A"] * n_prompts))


def prompt_ids(engine: sa.Engine) -> list[int]:
    """The keys of all prompts."""
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(tables.prompt.c.id).order_by(tables.prompt.c.id)))


def numbered(prompt: int, chance: float) -> ScoredResponse:
    """An answer with a probability."""
    return ScoredResponse(
        prompt_id=prompt,
        scores={"accuracy": 1.0, "gold_probability_letters": chance},
        answers=(("", "A", chance, "ok"),),
        usage={"tokens_read": 10 * prompt},
    )


def portion(*prompt_ids: int) -> list[ScoredResponse]:
    """Right answers with probabilities, the same each time."""
    return [numbered(prompt, 1 / (1 + prompt)) for prompt in prompt_ids]


def make_run(engine: sa.Engine, *portions: Sequence[ScoredResponse], end: bool = False, **more: Any) -> LiveRun:
    """A run of the first benchmark with some portions, each in a transaction of its own."""
    fields = RunFields(**{name: more.pop(name) for name in RUN_FIELDS if name in more})
    arguments: dict[str, Any] = {"benchmark_id": 1, "model": "org/m", "fields": fields, "identity": IDENTITY, **more}
    with transaction(engine, exclusive=True) as session:
        run = open_run(session, **arguments)
    for rows in portions:
        with transaction(engine, exclusive=True) as session:
            add_responses(session, run.id, rows)
    if end:
        with transaction(engine, exclusive=True) as session:
            complete_run(session, run.id)
    return run
