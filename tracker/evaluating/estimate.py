"""How many tokens an evaluation takes, how long, and what it costs: before any of it is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tracker.evaluating.model_under_test import ModelUnderTest, load_model_under_test
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import PreparedEvaluation, prepare
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import ModelBackend
from tracker.evaluating.warnings import format_price

MAX_TRIAL_SECONDS = 5.0
N_TRIAL_PROMPTS = 64
LETTERS_PER_TOKEN = 4
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class EvaluationEstimate:
    """The tokens, the time and the cost of an evaluation under one condition.

    Attributes:
        benchmark, model, condition: what would be evaluated.
        n_prompts: all rendered prompts, those that are stored already included.
        n_tokens_read: of all prompts, with their examples and options; an estimate where a server reads them.
        n_tokens_written: at most.
        seconds: extrapolated from the speed of some prompts; None for a server.
        n_tried: prompts that were tried for it.
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
        text = (
            f"{self.benchmark}, {self.model} ({self.condition.replace('_', '-')}): {self.n_prompts:,} prompts, "
            f"{about}{self.n_tokens_read:,} tokens to read{written}"
        )
        if self.seconds is not None:
            text += f"; about {_format_duration(self.seconds)}, as {self.n_tried:,} of the prompts foretell"
        if self.cost is not None:
            text += f"; {'at most' if self.n_tried else 'about'} {format_price(self.cost)} by the prices given"
        return text


def estimate(
    engine: sa.Engine, plan: Plan, *, report: Callable[[str], None] = lambda _: None
) -> tuple[EvaluationEstimate, ...]:
    """Estimate tokens, time and cost of each condition of a plan.

    A model in this process responds to a spread of the prompts for some seconds; a server gets no request.

    Args:
        engine: the store.
        plan: what would be evaluated.
        report: called with sentences for the reader.

    Raises:
        SuffrageError: the plan cannot be carried out.
    """
    prepared = prepare(engine, plan)
    model = None if plan.server.api_base is not None else load_model_under_test(plan, prepared, report)
    return tuple(_estimate_condition(plan, prepared, model, condition) for condition in prepared.rendered)


def _estimate_condition(
    plan: Plan, prepared: PreparedEvaluation, model: ModelUnderTest | None, condition: str
) -> EvaluationEstimate:
    prompts = prepared.rendered[condition].prompts
    n_written = prepared.sampling.max_tokens * prepared.sampling.n_trials if prepared.method == "generation" else 0
    seconds: float | None = None
    if model is None:
        n_read = sum(_count_sent_letters(prompt, prepared) for prompt in prompts) // LETTERS_PER_TOKEN
        n_written = len(prompts) * (n_written or 1)
        n_tried = 0
    else:
        model.check(prompts)
        n_read = sum(model.n_tokens(prompts))
        n_written = len(prompts) * n_written
        share, spent, n_tried = _time_some(model.backend, prompts, model.n_tokens)
        seconds = spent / share if share else None
    price_read, price_written = plan.server.price_read, plan.server.price_written
    cost = None
    if price_read is not None and price_written is not None:
        cost = (n_read * price_read + n_written * price_written) / MILLION
    return EvaluationEstimate(
        benchmark=prepared.benchmark.label,
        model=plan.name or (plan.model if model is None else model.name),
        condition=condition,
        n_prompts=len(prompts),
        n_tokens_read=n_read,
        n_tokens_written=n_written,
        seconds=seconds,
        n_tried=n_tried,
        cost=cost,
    )


def _count_sent_letters(prompt: RenderedPrompt, prepared: PreparedEvaluation) -> int:
    """To a server: the text once for each option whose likelihood is requested, and once for each answer written."""
    n_letters = len(prompt.text())
    if prepared.method == "loglikelihood":
        return sum(n_letters + len(prompt.join) + len(option) for option in prompt.options)
    return n_letters * prepared.sampling.n_trials


def _time_some(
    backend: ModelBackend,
    prompts: Sequence[RenderedPrompt],
    n_tokens: Callable[[Sequence[RenderedPrompt]], Sequence[int]],
) -> tuple[float, float, int]:
    """Share of all tokens that was tried, the seconds it took, and how many prompts that were."""
    step = max(1, len(prompts) // N_TRIAL_PROMPTS)
    some = prompts[::step]
    n_each = dict(zip((prompt.prompt_id for prompt in some), n_tokens(some), strict=True))
    done: set[int] = set()
    start = time.monotonic()
    for responses in backend.respond(some, lambda _: False):
        done |= {response.prompt_id for response in responses}
        if time.monotonic() - start > MAX_TRIAL_SECONDS:
            break
    spent = time.monotonic() - start
    return sum(n_each[prompt_id] for prompt_id in done) / max(1, sum(n_tokens(prompts))), spent, len(done)


def _format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
