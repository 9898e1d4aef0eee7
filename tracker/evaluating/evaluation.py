"""A model is asked a benchmark's prompts, and what it answers is stored as it comes.

Each condition is a run. What is stored already of a run is not asked again, so that what was stopped goes on; at a
fixed batch size it then ends with the bytes of a run that was not stopped, since batches are cut from all prompts.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import orjson
import sqlalchemy as sa

from tracker.database import transaction
from tracker.evaluating.evaluation_result import Evaluated, notes_of
from tracker.evaluating.model_under_test import Respondent, respondent
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import Prepared, prepare
from tracker.evaluating.responses import Reply
from tracker.evaluating.scoring.score_response import SCORING, judge
from tracker.evaluating.warnings import of_options, of_run
from tracker.ingest.write.live.live_runs import (
    LiveRun,
    ScoredResponse,
    add_responses,
    complete_run,
    count_stored_trials,
    open_run,
)
from tracker.queries.catalogue.listing import mean_scores_by_run
from tracker.run_settings import USAGE
from tracker.schema import Run
from tracker.schema.run_fields import RunFields

SECONDS_PER_PORTION = 1.0
MOST_PER_PORTION = 500
UNSCORED = "the reply names none of the options, or there is no gold answer to hold it against"
NO_NUMBER = "the model gives its options no probability that is a number; are its weights sound?"

Progress = Callable[[int, int, int], None]
"""Told how many prompts are done, of how many, and how many tokens were read and written for it."""


def evaluate(
    engine: sa.Engine,
    plan: Plan,
    *,
    progress: Progress | None = None,
    told: Callable[[str], None] = lambda _: None,
    ended: Callable[[Evaluated], None] = lambda _: None,
) -> tuple[Evaluated, ...]:
    """Ask a model a benchmark's prompts, and store what it answers.

    Args:
        engine: the store.
        plan: what is to be asked of whom, and how.
        progress: told how far it came.
        told: called with sentences for the reader, as they become true.
        ended: called with each run when it has come as far as it comes.

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
    runs = []
    for condition in plan.conditions:
        runs.append(_Evaluation(engine, plan, prepared, who, condition, progress).made())
        ended(runs[-1])
    return tuple(runs)


class _Evaluation:
    """A plan under one condition."""

    def __init__(
        self,
        engine: sa.Engine,
        plan: Plan,
        prepared: Prepared,
        who: Respondent,
        condition: str,
        progress: Progress | None,
    ) -> None:
        self.engine, self.plan, self.prepared, self.who = engine, plan, prepared, who
        self.condition, self.progress = condition, progress
        self.asked = prepared.asked[condition]
        self.questions = self.asked.questions
        self.by_prompt = {question.prompt_id: question for question in self.questions}

    def made(self) -> Evaluated:
        """The run, as far as it comes."""
        run = self._opened()
        with transaction(self.engine, write=False) as session:
            before = count_stored_trials(session, run.id) if not run.is_new else {}
        done = {prompt for prompt, n_trials in before.items() if n_trials >= self.who.n_trials}
        n_before = len(done)
        failed: dict[int, Reply] = {}
        if run.status == "partial":
            failed = self._ask(run, done)
            self._end(run, failed)
        return self._told(run, failed, n_before)

    def _opened(self) -> LiveRun:
        asking = self.plan.asking
        said: dict[str, Any] = {
            "method": self.prepared.method,
            "template": self.prepared.template.as_settings(),
            "chat": asking.chat,
            **self.who.decisive,
        }
        if asking.too_long == "cut":
            said["too_long"] = "cut"
        decisive = {"asked": self.asked.digest, "scoring": SCORING, **said}
        drawn = {
            "few_shot": self.asked.few_shot,
            "few_shot_split": asking.few_shot_split,
            "shots": asking.shots if asking.few_shot else None,
            "answer_only_shots": asking.answer_only_shots if self.condition == "answer_only" else None,
            "split": asking.split,
            "tasks": list(asking.tasks) or None,
            "limit": asking.limit,
            "seed": asking.seed,
        }
        settings = {
            "harness": "suffrage",
            **said,
            **{name: value for name, value in drawn.items() if value is not None},
            **self.who.incidental,
            "scoring": SCORING,
            "n_prompts": len(self.questions),
            "command": self.plan.command(),
        }
        with transaction(self.engine, exclusive=True) as session:
            return open_run(
                session,
                benchmark_id=self.prepared.benchmark.id,
                model=self.who.name,
                fields=RunFields(
                    condition=self.condition,
                    variant=self.plan.variant,
                    few_shot=self.asked.few_shot,
                    settings=settings,
                    limited=asking.limit is not None or bool(asking.tasks),
                ),
                identity=hashlib.sha256(orjson.dumps(decisive, option=orjson.OPT_SORT_KEYS)).hexdigest(),
                again=self.plan.again,
                model_facts=self.who.facts,
            )

    def _ask(self, run: LiveRun, done: set[int]) -> dict[int, Reply]:
        """Ask, judge and store what is not done yet; returns the replies without an answer, by prompt."""
        failed: dict[int, Reply] = {}
        n_tokens = 0
        self._tell(done, n_tokens)
        replies = self.who.answerer.replies(self.questions, done.__contains__)
        with closing(replies):  # type: ignore[type-var]
            for portion in _portions(_whole(replies, self.who.n_trials)):
                n_tokens += sum(reply.n_tokens_read + reply.n_tokens_written for reply in portion)
                fresh = [reply for reply in portion if reply.prompt_id not in done]  # some of a batch may be stored
                rows = self._judged(fresh, failed)
                if rows:
                    with transaction(self.engine, exclusive=True) as session:
                        add_responses(session, run.id, rows)
                    done |= {row.prompt_id for row in rows}
                self._tell(done, n_tokens)
        return {prompt: reply for prompt, reply in failed.items() if prompt not in done}

    def _tell(self, done: set[int], n_tokens: int) -> None:
        if self.progress:
            self.progress(len(done), len(self.questions), n_tokens)

    def _judged(self, replies: Iterable[Reply], failed: dict[int, Reply]) -> list[ScoredResponse]:
        """What is stored of replies; those without an answer are put among the failed ones, all of a prompt's."""
        rows: list[ScoredResponse] = []
        for reply in replies:
            if reply.error:
                failed[reply.prompt_id] = reply
                continue
            row = self._measured(reply)
            rows.append(row)
            if not row.scores:
                failed[reply.prompt_id] = replace(reply, error=UNSCORED if reply.logprobs is None else NO_NUMBER)
        return [row for row in rows if row.prompt_id not in failed]

    def _measured(self, reply: Reply) -> ScoredResponse:
        question, writing = self.by_prompt[reply.prompt_id], self.plan.writing
        found = judge(
            question,
            reply,
            method=self.prepared.method,
            metrics=writing.metrics,
            extract=writing.extract,
            ignore=writing.ignore,
            choices=self.prepared.choices_of(reply.prompt_id),
        )
        usage: dict[str, float] = {"tokens_read": reply.n_tokens_read, "tokens_written": reply.n_tokens_written}
        if (cost := self.who.price(reply)) is not None:
            usage["cost"] = cost
        if reply.n_shots < len(question.shots):
            usage["with_fewer_shots"] = 1
        return ScoredResponse(
            prompt_id=reply.prompt_id,
            trial=reply.trial,
            scores=found.scores,
            answers=tuple(
                (answer.extraction, answer.text, answer.probability, answer.status) for answer in found.answers
            ),
            usage=usage,
        )

    def _end(self, run: LiveRun, failed: Mapping[int, Reply]) -> None:
        """Make the run complete, unless prompts are to be asked again."""
        left_out = Counter(self.asked.left_out)
        again = sorted(prompt for prompt, reply in failed.items() if not reply.is_too_long)
        if again and self.plan.errored is None:
            return
        with transaction(self.engine, exclusive=True) as session:
            if self.plan.errored == "wrong":
                names = [name for name in self.prepared.metrics if not name.startswith("gold_probability")]
                wrong, error = dict.fromkeys(names, 0.0), (("", None, None, "error"),)
                trials = range(self.who.n_trials)
                lost = [
                    ScoredResponse(prompt_id=prompt, trial=trial, scores=wrong, answers=error)
                    for prompt in again
                    for trial in trials
                ]
                add_responses(session, run.id, lost)
            left_out["longer than the model reads"] += len(failed) - len(again)
            left_out["no answer, counted as wrong" if self.plan.errored == "wrong" else "no answer"] += len(again)
            complete_run(session, run.id, left_out)

    def _told(self, run: LiveRun, failed: Mapping[int, Reply], n_before: int) -> Evaluated:
        with transaction(self.engine, write=False) as session:
            stored = session.get_one(Run, run.id)
            usage = (stored.settings or {}).get(USAGE) or {}
            warnings = notes_of(self.asked.left_out, failed, usage, self.asked.few_shot, self.who.remarks())
            return Evaluated(
                run_id=run.id,
                label=run.label,
                benchmark=self.prepared.benchmark.label,
                model=self.who.name,
                condition=self.condition,
                variant=self.plan.variant,
                splits=self.prepared.splits,
                is_complete=stored.status != "partial",
                n_prompts=len(self.questions),
                n_new=max(0, len(count_stored_trials(session, run.id)) - n_before),
                means=mean_scores_by_run(session, [run.id]).get(run.id, {}),
                left_out=dict(self.asked.left_out),
                failed={prompt: reply.error for prompt, reply in failed.items()},
                usage=usage,
                warnings=(*warnings, *of_run(session, stored)),
            )


def _whole(replies: Iterable[list[Reply]], n_trials: int) -> Iterator[list[Reply]]:
    """The same replies, held back until all of a prompt's trials are there, or one has failed."""
    held: dict[int, list[Reply]] = {}
    for some in replies:
        ready: list[Reply] = []
        for reply in some:
            mine = held.setdefault(reply.prompt_id, [])
            mine.append(reply)
            if len(mine) == n_trials:
                ready += held.pop(reply.prompt_id)
        yield ready


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
