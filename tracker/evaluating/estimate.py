"""Estimate the tokens, time and cost of an evaluation before anything is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tracker.evaluating.judge import MAX_TOKENS
from tracker.evaluating.model_under_test import ModelUnderTest, load_model_under_test
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import PreparedEvaluation, prepare
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import ModelBackend
from tracker.evaluating.warnings import format_price
from tracker.number_format import format_duration

MAX_TRIAL_SECONDS = 5.0
N_TRIAL_PROMPTS = 64
LETTERS_PER_TOKEN = 4
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class EvaluationEstimate:
    """Estimated tokens, time and cost of an evaluation under one condition.

    Attributes:
        benchmark, model, condition: of the evaluation.
        n_prompts: all rendered prompts, including those already stored.
        n_tokens_read: input tokens of all prompts, with their examples and options; approximate for a server.
        n_tokens_written: maximum number of output tokens.
        n_judge_tokens_read, n_judge_tokens_written: the same of a judge, if every response has the maximum length.
        seconds: extrapolated from the speed on some prompts; None for a server.
        n_tried: number of prompts that were timed.
        cost: with the judge's, in the currency of the prices, if every response has the maximum length; as exact as
            the token counts.
            None without prices.
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
    n_judge_tokens_read: int = 0
    n_judge_tokens_written: int = 0

    def summary(self) -> str:
        """Return the estimate in one line."""
        about = "" if self.n_tried else "about "
        written = f", at most {self.n_tokens_written:,} output tokens" if self.n_tokens_written else ""
        text = (
            f"{self.benchmark}, {self.model} ({self.condition.replace('_', '-')}): {self.n_prompts:,} prompts, "
            f"{about}{self.n_tokens_read:,} input tokens{written}"
        )
        if self.n_judge_tokens_read:
            text += (
                f"; the judge about {self.n_judge_tokens_read:,} input tokens, at most "
                f"{self.n_judge_tokens_written:,} output tokens"
            )
        if self.seconds is not None:
            text += f"; about {format_duration(self.seconds)} (extrapolated from {self.n_tried:,} prompts)"
        if self.cost is not None:
            text += f"; {'at most' if self.n_tried else 'about'} {format_price(self.cost)} at the given prices"
        return text


def estimate(
    engine: sa.Engine, plan: Plan, *, report: Callable[[str], None] = lambda _: None
) -> tuple[EvaluationEstimate, ...]:
    """Estimate tokens, time and cost of each condition of a plan.

    A local model is timed on a sample of the prompts for some seconds. A server receives no request, and no judge.

    Args:
        engine: the store.
        plan: the evaluation.
        report: called with messages for the user.

    Raises:
        SuffrageError: the plan is not valid.
    """
    prepared = prepare(engine, plan)
    model = (
        None
        if plan.server.api_base is not None
        else load_model_under_test(plan, replace(prepared, rubric=None), report)
    )
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
    n_judge_read, n_judge_written = _count_judge_tokens(prepared, prompts)
    cost = None
    if price_read is not None and price_written is not None:
        cost = ((n_read + n_judge_read) * price_read + (n_written + n_judge_written) * price_written) / MILLION
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
        n_judge_tokens_read=n_judge_read,
        n_judge_tokens_written=n_judge_written,
    )


def _count_judge_tokens(prepared: PreparedEvaluation, prompts: Sequence[RenderedPrompt]) -> tuple[int, int]:
    """Return the input and output tokens of a judge: of the rubric with each response, and of its verdicts."""
    if prepared.rubric is None or prepared.method != "generation":
        return 0, 0
    sampling = prepared.sampling
    n_letters = sum(
        len(prepared.rubric.render(prompt, "", prepared.get_choices(prompt.prompt_id) or ())) for prompt in prompts
    )
    n_responses = len(prompts) * sampling.n_trials
    n_read = n_letters * sampling.n_trials // LETTERS_PER_TOKEN + n_responses * sampling.max_tokens
    return n_read, n_responses * MAX_TOKENS


def _count_sent_letters(prompt: RenderedPrompt, prepared: PreparedEvaluation) -> int:
    """Return the tokens sent to a server: the text once per option whose likelihood is requested, and once per
    response.
    """
    n_letters = len(prompt.text())
    if prepared.method == "loglikelihood":
        return sum(n_letters + len(prompt.join) + len(option) for option in prompt.options)
    return n_letters * prepared.sampling.n_trials


def _time_some(
    backend: ModelBackend,
    prompts: Sequence[RenderedPrompt],
    n_tokens: Callable[[Sequence[RenderedPrompt]], Sequence[int]],
) -> tuple[float, float, int]:
    """Return the share of all tokens that was tried, the seconds it took, and the number of prompts."""
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
