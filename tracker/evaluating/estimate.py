"""How many tokens an evaluation takes, how long, and what it costs: before any of it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tracker.evaluating.model_under_test import respondent
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import Prepared, prepare
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Answerer
from tracker.evaluating.warnings import price

SECONDS_TRIED = 5.0
N_TRIED = 64
LETTERS_PER_TOKEN = 4
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What asking under one condition takes.

    Attributes:
        benchmark, model, condition: who is asked what.
        n_prompts: to be asked, those that are stored already included.
        n_tokens_read: of all prompts, with their examples and options; an estimate where a server reads them.
        n_tokens_written: at most.
        seconds: as the speed of some prompts foretells; None where a server is asked.
        n_tried: prompts that were asked to find that out.
        cost: in the currency of the prices, if every answer is as long as it may be; as good an estimate as that of the
            tokens. None where no prices are known.
    """

    benchmark: str
    model: str
    condition: str
    n_prompts: int
    n_tokens_read: int
    n_tokens_written: int
    seconds: float | None
    n_tried: int
    cost: float | None

    def summary(self) -> str:
        """All of it, in one line."""
        about = "" if self.n_tried else "about "
        written = f", {self.n_tokens_written:,} to write at most" if self.n_tokens_written else ""
        said = (
            f"{self.benchmark}, {self.model} ({self.condition.replace('_', '-')}): {self.n_prompts:,} prompts, "
            f"{about}{self.n_tokens_read:,} tokens to read{written}"
        )
        if self.seconds is not None:
            said += f"; about {_duration(self.seconds)}, as {self.n_tried:,} of the prompts foretell"
        if self.cost is not None:
            said += f"; {'at most' if self.n_tried else 'about'} {price(self.cost)} by the prices given"
        return said


def estimate(engine: sa.Engine, plan: Plan, *, told: Callable[[str], None] = lambda _: None) -> tuple[Estimate, ...]:
    """What each condition of a plan takes.

    A model in this process answers a spread of the prompts for some seconds; a server is not asked at all.

    Args:
        engine: the store.
        plan: what is to be asked.
        told: called with sentences for the reader.

    Raises:
        SuffrageError: the plan cannot be carried out.
    """
    prepared = prepare(engine, plan)
    on_server = plan.serving.api_base is not None
    who = None if on_server else respondent(plan, prepared, told)
    made = []
    for condition, asked in prepared.asked.items():
        questions = asked.questions
        writes = prepared.sampling.max_tokens * prepared.sampling.n_trials if prepared.method == "generation" else 0
        if who is None:
            read = sum(_letters_sent(q, prepared) for q in questions) // LETTERS_PER_TOKEN
            written = len(questions) * (writes or 1)
            seconds, n_tried = None, 0
        else:
            who.check(questions)
            read = sum(who.n_tokens(questions))
            written = len(questions) * writes
            share, spent, n_tried = _tried(who.answerer, questions, who.n_tokens)
            seconds = spent / share if share else None
        serving = plan.serving
        cost = None
        if serving.price_read is not None and serving.price_written is not None:
            cost = (read * serving.price_read + written * serving.price_written) / MILLION
        made.append(
            Estimate(
                benchmark=prepared.benchmark.label,
                model=plan.name or (plan.model if who is None else who.name),
                condition=condition,
                n_prompts=len(questions),
                n_tokens_read=read,
                n_tokens_written=written,
                seconds=seconds,
                n_tried=n_tried,
                cost=cost,
            )
        )
    return tuple(made)


def _letters_sent(question: Question, prepared: Prepared) -> int:
    """To a server: the text once for each option whose likelihood is asked for, and once for each answer written."""
    n_letters = len(question.text())
    if prepared.method == "loglikelihood":
        return sum(n_letters + len(question.join) + len(option) for option in question.options)
    return n_letters * prepared.sampling.n_trials


def _tried(
    answerer: Answerer, questions: Sequence[Question], n_tokens: Callable[[Sequence[Question]], Sequence[int]]
) -> tuple[float, float, int]:
    """Share of all tokens that was tried, the seconds it took, and how many prompts that were."""
    step = max(1, len(questions) // N_TRIED)
    some = questions[::step]
    n_each = dict(zip((question.prompt_id for question in some), n_tokens(some), strict=True))
    done: set[int] = set()
    start = time.monotonic()
    for replies in answerer.replies(some, lambda _: False):
        done |= {reply.prompt_id for reply in replies}
        if time.monotonic() - start > SECONDS_TRIED:
            break
    spent = time.monotonic() - start
    return sum(n_each[prompt] for prompt in done) / max(1, sum(n_tokens(questions))), spent, len(done)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
