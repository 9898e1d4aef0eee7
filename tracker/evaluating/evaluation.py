"""Evaluate a model on a benchmark: send prompts, score responses, and store the scores as they arrive.

Each condition is a run. Prompts with stored scores are skipped, so that an interrupted run can be resumed. At a fixed
batch size the result has the same bytes as an uninterrupted run, since batches are cut from all prompts. Commands that
evaluate the same run at once share it: each prompt is computed by one of them.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import orjson
import sqlalchemy as sa

from tracker.database import transaction
from tracker.evaluating.evaluation_result import EvaluationOutcome, bound_means, list_result_warnings
from tracker.evaluating.model_under_test import ModelUnderTest, load_model_under_test
from tracker.evaluating.plan import Plan
from tracker.evaluating.preparation import PreparedEvaluation, prepare
from tracker.evaluating.response_scoring import ResponseScorer
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.score_response import SCORING
from tracker.evaluating.sharing.run_claims import LEASE_SECONDS, RunClaims
from tracker.evaluating.warnings import count_truncated, list_option_warnings, list_run_warnings
from tracker.ingest.write.live.live_runs import (
    LiveRun,
    ScoredResponse,
    add_responses,
    complete_run,
    count_stored_trials,
    open_run,
)
from tracker.queries.catalogue.listing import load_means_by_run
from tracker.run_fields import RunFields
from tracker.run_settings import USAGE
from tracker.schema import Run

SECONDS_PER_PORTION = 1.0
MAX_PER_PORTION = 500

Progress = Callable[[int, int, int], None]
"""Progress callback: called with the number of finished prompts, of all prompts, of input tokens and of output tokens.
"""


def evaluate(
    engine: sa.Engine,
    plan: Plan,
    *,
    progress: Progress | None = None,
    report: Callable[[str], None] = lambda _: None,
    on_run_end: Callable[[EvaluationOutcome], None] = lambda _: None,
    lease_s: float = LEASE_SECONDS,
) -> tuple[EvaluationOutcome, ...]:
    """Evaluate a model on a benchmark's prompts, and store its scores.

    Args:
        engine: the store.
        plan: the model, the prompts and the options.
        progress: called with the numbers of prompts and tokens.
        report: called with messages for the user as they arise.
        on_run_end: called with the result of each condition.
        lease_s: seconds after which another command that evaluates the same run takes over the prompts of this one, if
            it has stopped.

    Returns:
        One result per condition.

    Raises:
        SuffrageError: the plan is not valid, or the evaluation failed; responses received before are stored.
    """
    prepared = prepare(engine, plan)
    for warning in list_option_warnings(plan, prepared.method):
        report(warning)
    model = load_model_under_test(plan, prepared, report)
    for rendered in prepared.rendered.values():
        model.check(rendered.prompts)
    results = []
    for condition in plan.conditions:
        evaluation = _ConditionEvaluation(engine, plan, prepared, model, condition, progress)
        results.append(evaluation.run(lease_s, report))
        on_run_end(results[-1])
    return tuple(results)


class _ConditionEvaluation:
    """The evaluation of a plan under one condition."""

    def __init__(
        self,
        engine: sa.Engine,
        plan: Plan,
        prepared: PreparedEvaluation,
        model: ModelUnderTest,
        condition: str,
        progress: Progress | None,
    ) -> None:
        self.engine, self.plan, self.prepared, self.model = engine, plan, prepared, model
        self.condition, self.progress = condition, progress
        self.rendered = prepared.rendered[condition]
        self.prompts = self.rendered.prompts
        self.scorer = ResponseScorer(
            prepared=prepared,
            model=model,
            prompts={prompt.prompt_id: prompt for prompt in self.prompts},
            judge=model.judge,
        )

    def run(self, lease_s: float, report: Callable[[str], None]) -> EvaluationOutcome:
        """Request all missing responses, and store their scores."""
        run = self._open_run()
        with transaction(self.engine, write=False) as session:
            before = count_stored_trials(session, run.id) if not run.is_new else {}
            usage = (session.get_one(Run, run.id).settings or {}).get(USAGE) or {}
        if self.model.budget is not None:
            self.model.budget.add(usage.get("cost", 0.0))
        stored = {prompt for prompt, n_trials in before.items() if n_trials >= self.model.n_trials}
        claims = RunClaims(
            self.engine, run.id, n_trials=self.model.n_trials, stored=stored, lease_s=lease_s, report=report
        )
        failed: dict[int, Response] = {}
        if run.status == "partial":
            with claims:
                is_ended = False
                while not is_ended:
                    self._respond(claims, failed)
                    failed = {prompt: failed[prompt] for prompt in sorted(failed) if prompt not in claims.stored}
                    is_ended = self._end_run(run, failed, claims)
        return self._summarize(run, failed, len(claims.evaluated))

    def _open_run(self) -> LiveRun:
        prompt_options = self.plan.prompts
        decisive_settings: dict[str, Any] = {
            "method": self.prepared.method,
            "template": self.prepared.template.as_settings(),
            "chat": prompt_options.chat,
            **self.model.decisive,
        }
        for name in ("system_prompt", "template_arguments"):
            if value := getattr(prompt_options, name):
                decisive_settings[name] = value
        if extra := self.plan.server.extra_fields():
            decisive_settings["extra_body"] = extra
        if prompt_options.too_long == "cut":
            decisive_settings["too_long"] = "cut"
        decisive = {"asked": self.rendered.digest, "scoring": SCORING, **decisive_settings}
        prompt_settings = {
            "few_shot": self.rendered.few_shot,
            "few_shot_split": prompt_options.few_shot_split,
            "shots": prompt_options.example_choice if prompt_options.few_shot else None,
            "answer_only_shots": prompt_options.answer_only_examples if self.condition == "answer_only" else None,
            "split": prompt_options.split,
            "tasks": list(prompt_options.tasks) or None,
            "limit": prompt_options.limit,
            "seed": prompt_options.seed,
        }
        settings = {
            "harness": "suffrage",
            **decisive_settings,
            **{name: value for name, value in prompt_settings.items() if value is not None},
            **self.model.incidental,
            "scoring": SCORING,
            "n_prompts": len(self.prompts),
            "command": self.plan.command(),
        }
        with transaction(self.engine, exclusive=True) as session:
            return open_run(
                session,
                benchmark_id=self.prepared.benchmark.id,
                model=self.model.name,
                fields=RunFields(
                    condition=self.condition,
                    variant=self.plan.variant,
                    few_shot=self.rendered.few_shot,
                    settings=settings,
                    limited=prompt_options.limit is not None or bool(prompt_options.tasks),
                ),
                identity=hashlib.sha256(orjson.dumps(decisive, option=orjson.OPT_SORT_KEYS)).hexdigest(),
                again=self.plan.again,
                model_facts=self.model.facts,
            )

    def _respond(self, claims: RunClaims, failed: dict[int, Response]) -> None:
        """Collect, score and store the missing responses of this command and of those that stop before they store
        theirs; add those without an answer to ``failed``.
        """
        n_tokens = 0
        self._report_progress(claims, n_tokens)
        prompt_ids = [prompt.prompt_id for prompt in self.prompts]
        while True:
            n_known, n_claimed = claims.n_known, claims.n_claimed
            responses = self.model.backend.respond(self.prompts, claims)
            with closing(responses):  # type: ignore[type-var]
                for portion in _group_portions(_group_trials(responses, self.model.n_trials)):
                    n_tokens += sum(response.n_tokens_read + response.n_tokens_written for response in portion)
                    fresh = [response for response in portion if not claims(response.prompt_id)]
                    rows = self.scorer.score(fresh, failed)
                    claims.store(rows, {response.prompt_id for response in fresh})
                    claims.failed |= failed.keys()
                    self._report_progress(claims, n_tokens)
            is_stuck = claims.n_claimed > n_claimed and claims.n_known == n_known
            can_claim = not is_stuck and claims.wait(prompt_ids)
            self._report_progress(claims, n_tokens)
            if not can_claim:
                return

    def _report_progress(self, claims: RunClaims, n_tokens: int) -> None:
        if self.progress:
            self.progress(len(claims.stored), len(self.prompts), n_tokens)

    def _end_run(self, run: LiveRun, failed: Mapping[int, Response], claims: RunClaims) -> bool:
        """Mark the run complete, unless prompts are to be evaluated again; return False if others still evaluate it."""
        skipped = Counter(self.rendered.skipped)
        unanswered = sorted(prompt for prompt, response in failed.items() if not response.is_too_long)
        if (unanswered and self.plan.errored is None) or not claims.is_open:
            return True
        with transaction(self.engine, exclusive=True) as session:
            if claims.is_shared(session):
                return False
            if self.plan.errored == "wrong":
                names = [name for name in self.prepared.metrics if "_probability" not in name]
                wrong, error = dict.fromkeys(names, 0.0), (("", None, None, "error"),)
                trials = range(self.model.n_trials)
                unanswered_rows = [
                    ScoredResponse(prompt_id=prompt, trial=trial, scores=wrong, answers=error)
                    for prompt in unanswered
                    for trial in trials
                ]
                add_responses(session, run.id, unanswered_rows)
            skipped["longer than the model's context"] += len(failed) - len(unanswered)
            skipped["no answer, scored as wrong" if self.plan.errored == "wrong" else "no answer"] += len(unanswered)
            complete_run(session, run.id, skipped)
        return True

    def _summarize(self, run: LiveRun, failed: Mapping[int, Response], n_new: int) -> EvaluationOutcome:
        with transaction(self.engine, write=False) as session:
            stored = session.get_one(Run, run.id)
            usage = (stored.settings or {}).get(USAGE) or {}
            warnings = list_result_warnings(
                self.rendered.skipped, failed, usage, self.rendered.few_shot, self.model.list_warnings()
            )
            means = load_means_by_run(session, [run.id]).get(run.id, {})
            n_truncated, n_scored = count_truncated(session, stored), len(count_stored_trials(session, run.id))
            return EvaluationOutcome(
                run_id=run.id,
                label=run.label,
                benchmark=self.prepared.benchmark.label,
                model=self.model.name,
                condition=self.condition,
                variant=self.plan.variant,
                splits=self.prepared.splits,
                is_complete=stored.status != "partial",
                n_prompts=len(self.prompts),
                n_new=n_new,
                means=means,
                n_truncated=n_truncated,
                at_most=bound_means(means, n_truncated, n_scored, self.model.n_trials),
                skipped=dict(self.rendered.skipped),
                failed={prompt: response.error for prompt, response in failed.items()},
                usage=usage,
                warnings=(*warnings, *list_run_warnings(session, stored)),
            )


def _group_trials(responses: Iterable[list[Response]], n_trials: int) -> Iterator[list[Response]]:
    """Yield the same responses, held back until all trials of a prompt are present or one has failed."""
    waiting: dict[int, list[Response]] = {}
    for portion in responses:
        ready: list[Response] = []
        for response in portion:
            trials = waiting.setdefault(response.prompt_id, [])
            trials.append(response)
            if len(trials) == n_trials:
                ready += waiting.pop(response.prompt_id)
        yield ready


def _group_portions(responses: Iterator[list[Response]]) -> Iterator[list[Response]]:
    """Yield responses in blocks of about a second; on an interruption, first yield those already received."""
    portion: list[Response] = []
    last = time.monotonic()
    try:
        for group in responses:
            portion += group
            if time.monotonic() - last >= SECONDS_PER_PORTION or len(portion) >= MAX_PER_PORTION:
                yield portion
                portion, last = [], time.monotonic()
    except GeneratorExit:
        raise
    except BaseException:
        if portion:
            yield portion
        raise
    if portion:
        yield portion
