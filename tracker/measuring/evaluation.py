"""A model is asked a benchmark's prompts, and what it answers is stored as it comes.

Each condition is a run. What is stored already of a run is not asked again, so that what was stopped goes on; at a
fixed batch size it then ends with the bytes of a run that was not stopped, since batches are cut from all prompts.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa

from tracker.database import transaction
from tracker.evaluations import USAGE
from tracker.ingest.live_runs import LiveRun, Measured, add, complete, open_run, stored_prompts
from tracker.measuring.judging.judged import judge
from tracker.measuring.plan import Plan
from tracker.measuring.preparation import Prepared, prepare
from tracker.measuring.questions.asking import Asked
from tracker.measuring.remarks import of_cost, of_options, of_run
from tracker.measuring.replies import Answerer, Reply
from tracker.measuring.respondents import Respondent, respondent

SECONDS_PER_PORTION = 1.0
MOST_PER_PORTION = 500
N_NAMED = 3
UNSCORED = "the reply names none of the options, or there is no gold answer to hold it against"
NO_NUMBER = "the model gives its options no probability that is a number; are its weights sound?"

Progress = Callable[[int, int, int], None]
"""Told how many prompts are done, of how many, and how many tokens were read and written for it."""


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A run that was made, or as far as it came.

    Attributes:
        run_id, label: which run it is.
        benchmark, model, condition: of whom it tells what.
        is_complete: whether it has ended; else the same command goes on with it.
        n_prompts: that were to be asked.
        n_new: that were asked now.
        means: of every metric over its prompts.
        left_out: why prompts were not asked, and how many.
        failed: why prompts got no answer, by key.
        usage: what it took, with what it took before.
        notes: what the reader should be told.
    """

    run_id: int
    label: str
    benchmark: str
    model: str
    condition: str
    is_complete: bool
    n_prompts: int
    n_new: int
    means: Mapping[str, float]
    left_out: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def summary(self) -> str:
        """What came of it, in one line."""
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.means.items())
        asked = f"{self.n_new:,} of {self.n_prompts:,} prompts asked now" if self.n_new < self.n_prompts else ""
        done = asked or f"{self.n_prompts:,} prompts"
        if self.n_new == 0 and self.is_complete and not self.failed:
            done = f"{self.n_prompts:,} prompts, all stored before"
        state = "" if self.is_complete else "; not finished"
        shown = "" if self.condition == "full" else f" ({self.condition.replace('_', '-')})"
        return f"{self.benchmark}, {self.model}{shown}: run {self.run_id}, {done}{': ' if means else ''}{means}{state}"


def evaluate(
    engine: sa.Engine,
    plan: Plan,
    *,
    progress: Progress | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> tuple[Evaluated, ...]:
    """Ask a model a benchmark's prompts, and store what it answers.

    Args:
        engine: the store.
        plan: what is to be asked of whom, and how.
        progress: told how far it came.
        told: called with sentences for the reader, as they become true.

    Returns:
        One for each condition.

    Raises:
        SuffrageError: the plan cannot be carried out; what was answered before is stored.
    """
    prepared = prepare(engine, plan)
    for remark in of_options(plan, prepared.method):
        told(remark)
    who = respondent(plan, prepared, told)
    for asked in prepared.asked.values():
        who.check(asked.questions)
    return tuple(_one(engine, plan, prepared, who, condition, progress) for condition in plan.conditions)


def _one(
    engine: sa.Engine, plan: Plan, prepared: Prepared, who: Respondent, condition: str, progress: Progress | None
) -> Evaluated:
    asked = prepared.asked[condition]
    run = _opened(engine, plan, prepared, who, condition)
    with transaction(engine, write=False) as session:
        before = stored_prompts(session, run.id) if not run.is_new else {}
    n_trials = who.n_trials
    done = {prompt for prompt, trials in before.items() if trials >= n_trials}
    failed: dict[int, str] = {}
    n_before = len(done)
    if run.status == "partial":
        todo = _Todo(engine, plan, prepared, asked, run, progress)
        failed = todo.work(who.answerer, done, n_trials, who.price)
        _end(engine, plan, prepared, asked, run, failed, who)
    return _told(engine, prepared, who, condition, asked, run, failed, n_before)


class _Todo:
    """The questions of one run that are not answered yet."""

    def __init__(
        self, engine: sa.Engine, plan: Plan, prepared: Prepared, asked: Asked, run: LiveRun, progress: Progress | None
    ) -> None:
        self.engine, self.plan, self.prepared, self.run, self.progress = engine, plan, prepared, run, progress
        self.questions = asked.questions
        self.by_prompt = {question.prompt_id: question for question in asked.questions}
        self.n_tokens = 0

    def work(
        self, answerer: Answerer, done: set[int], n_trials: int, price: Callable[[Reply], float | None]
    ) -> dict[int, str]:
        """Ask, judge and store; returns why prompts got no answer, by key."""
        failed: dict[int, str] = {}
        held: dict[int, list[Reply]] = {}
        if self.progress:
            self.progress(len(done), len(self.questions), 0)
        replies = answerer.replies(self.questions, done.__contains__)
        with closing(replies):  # type: ignore[type-var]
            for portion in _portions(replies):
                rows = []
                for reply in portion:
                    self.n_tokens += reply.n_tokens_read + reply.n_tokens_written
                    if reply.prompt_id in done:  # of a batch that was stored in part
                        continue
                    if reply.error:
                        failed[reply.prompt_id] = reply.error
                        continue
                    held.setdefault(reply.prompt_id, []).append(reply)
                    if len(held[reply.prompt_id]) == n_trials:  # a prompt is stored with all of its trials
                        judged = [self._measured(one, price(one)) for one in held.pop(reply.prompt_id)]
                        if all(one.scores for one in judged):
                            rows += judged
                        else:
                            failed[reply.prompt_id] = UNSCORED if reply.logprobs is None else NO_NUMBER
                if rows:
                    with transaction(self.engine, exclusive=True) as session:
                        add(session, self.run.id, rows)
                    done |= {row.prompt_id for row in rows}
                if self.progress:
                    self.progress(len(done), len(self.questions), self.n_tokens)
        return {prompt: why for prompt, why in failed.items() if prompt not in done}

    def _measured(self, reply: Reply, cost: float | None) -> Measured:
        question = self.by_prompt[reply.prompt_id]
        found = judge(
            question,
            reply,
            method=self.prepared.method,
            metrics=self.plan.writing.metrics,
            extract=self.plan.writing.extract,
            ignore=self.plan.writing.ignore,
            choices=self.prepared.choices_of(reply.prompt_id),
        )
        usage: dict[str, float] = {"tokens_read": reply.n_tokens_read, "tokens_written": reply.n_tokens_written}
        if cost is not None:
            usage["cost"] = cost
        if reply.n_shots < len(question.shots):
            usage["with_fewer_shots"] = 1
        return Measured(
            prompt_id=reply.prompt_id,
            trial=reply.trial,
            scores=found.scores,
            answers=tuple((one.extraction, one.text, one.probability, one.status) for one in found.answers),
            usage=usage,
        )


def _portions(replies: Iterator[list[Reply]]) -> Iterator[list[Reply]]:
    """Replies in portions of about a second; what came before an interruption is handed over first."""
    held: list[Reply] = []
    last = time.monotonic()
    try:
        for some in replies:
            held += some
            if time.monotonic() - last >= SECONDS_PER_PORTION or len(held) >= MOST_PER_PORTION:
                yield held
                held, last = [], time.monotonic()
    except GeneratorExit:
        raise
    except BaseException:
        if held:
            yield held
        raise
    if held:
        yield held


def _opened(engine: sa.Engine, plan: Plan, prepared: Prepared, who: Respondent, condition: str) -> LiveRun:
    asked = prepared.asked[condition]
    asking = plan.asking
    words = {
        "method": prepared.method,
        "template": prepared.template.as_settings(),
        "chat": asking.chat,
        "few_shot": asking.few_shot,
        "shots": asking.shots if asking.few_shot else None,
        "few_shot_split": asking.few_shot_split,
        "answer_only_shots": asking.answer_only_shots if condition == "answer_only" else None,
        "too_long": asking.too_long if asking.too_long == "cut" else None,
        "seed": asking.seed,
        "limit": asking.limit,
        **who.decisive,
    }
    words = {name: value for name, value in words.items() if value is not None}
    decisive = orjson.dumps({"asked": asked.digest, **words}, option=orjson.OPT_SORT_KEYS)
    settings = {
        "harness": "suffrage",
        **words,
        **who.incidental,
        "n_prompts": len(asked.questions),
        "command": plan.command(),
    }
    n_shots = {len(question.shots) for question in asked.questions}
    with transaction(engine, exclusive=True) as session:
        return open_run(
            session,
            benchmark_id=prepared.benchmark.id,
            model=who.name,
            condition=condition,
            variant=plan.variant,
            few_shot=n_shots.pop() if len(n_shots) == 1 else None,
            settings=settings,
            limited=asking.limit is not None or bool(asking.tasks),
            identity=hashlib.sha256(decisive).hexdigest(),
            again=plan.again,
            model_facts=who.facts,
        )


def _end(
    engine: sa.Engine,
    plan: Plan,
    prepared: Prepared,
    asked: Asked,
    run: LiveRun,
    failed: Mapping[int, str],
    who: Respondent,
) -> None:
    """Make the run complete, unless prompts are to be asked again."""
    left_out = Counter(asked.left_out)
    again = {prompt for prompt in failed if prompt not in who.misfits}
    with transaction(engine, exclusive=True) as session:
        if plan.errored == "wrong" and again:
            names = [name for name in prepared.metrics if not name.startswith("gold_probability")]
            lost = [
                Measured(
                    prompt_id=prompt,
                    trial=trial,
                    scores=dict.fromkeys(names, 0.0),
                    answers=(("", None, None, "error"),),
                )
                for prompt in sorted(again)
                for trial in range(who.n_trials)
            ]
            add(session, run.id, lost)
        elif again and plan.errored is None:
            return
        for prompt in failed:
            if prompt in who.misfits:
                left_out["longer than the model reads"] += 1
            else:
                left_out["no answer, counted as wrong" if plan.errored == "wrong" else "no answer"] += 1
        complete(session, run.id, left_out)


def _told(
    engine: sa.Engine,
    prepared: Prepared,
    who: Respondent,
    condition: str,
    asked: Asked,
    run: LiveRun,
    failed: Mapping[int, str],
    n_before: int,
) -> Evaluated:
    from tracker.schema import Metric, Run, Score

    with transaction(engine, write=False) as session:
        stored = session.get_one(Run, run.id)
        n_now = len(stored_prompts(session, run.id))
        score: Any = Score
        metric: Any = Metric
        means = session.execute(
            sa.select(metric.name, sa.func.avg(score.value))
            .join(metric, metric.id == score.metric_id)
            .where(score.run_id == run.id)
            .group_by(metric.name)
            .order_by(metric.name)
        )
        usage = (stored.settings or {}).get(USAGE) or {}
        return Evaluated(
            run_id=run.id,
            label=run.label,
            benchmark=prepared.benchmark.label,
            model=who.name,
            condition=condition,
            is_complete=stored.status != "partial",
            n_prompts=len(asked.questions),
            n_new=max(0, n_now - n_before),
            means={name: float(value) for name, value in means},
            left_out=dict(asked.left_out),
            failed=dict(failed),
            usage=usage,
            notes=(
                *_notes(asked, failed, usage, who, plan_shots=max((len(q.shots) for q in asked.questions), default=0)),
                *of_run(session, stored),
            ),
        )


def _notes(
    asked: Asked, failed: Mapping[int, str], usage: Mapping[str, float], who: Respondent, *, plan_shots: int
) -> tuple[str, ...]:
    notes = [f"{n:,} prompts were not asked: {why}" for why, n in asked.left_out.items() if n]
    if fewer := int(usage.get("with_fewer_shots", 0)):
        notes.append(f"{fewer:,} prompts were asked with fewer than {plan_shots} examples, since all did not fit")
    long = [prompt for prompt in failed if prompt in who.misfits]
    if long:
        notes.append(f"{len(long):,} prompts are longer than the model reads, and have no score")
    reasons = Counter(why for prompt, why in failed.items() if prompt not in who.misfits)
    notes += [*who.remarks(), *of_cost(usage)]
    notes += [f"{n:,} prompts got no answer: {why}" for why, n in reasons.most_common(N_NAMED)]
    return tuple(notes)
