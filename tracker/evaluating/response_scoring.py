"""Score portions of responses: by the rules of the plan, by a judge, and over the trials of a prompt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tracker.evaluating.judge import Judge
from tracker.evaluating.model_under_test import ModelUnderTest
from tracker.evaluating.preparation import PreparedEvaluation
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.pass_at_k import score_trials
from tracker.evaluating.scoring.response_scores import JUDGE, JUDGE_PROMPT
from tracker.evaluating.scoring.score_response import score_response
from tracker.ingest.write.live.live_runs import ScoredResponse

UNSCORED = "the response names none of the options, or the prompt has no reference answer"
NO_NUMBER = "the model gives its options no finite probability; check its weights"


@dataclass(frozen=True, kw_only=True, eq=False)
class ResponseScorer:
    """Scores the responses of an evaluation.

    Attributes:
        prepared: rules, templates and prompts.
        model: the model under test.
        prompts: rendered prompts by key.
        judge: grades generated responses; None without one.
    """

    prepared: PreparedEvaluation
    model: ModelUnderTest
    prompts: Mapping[int, RenderedPrompt]
    judge: Judge | None = None

    def score(self, responses: Iterable[Response], failed: dict[int, Response]) -> list[ScoredResponse]:
        """Return the rows to store. A prompt with a failed response is added to ``failed`` instead.

        Args:
            responses: all trials of each prompt.
            failed: responses without a score, by prompt; extended.
        """
        rows: list[tuple[Response, ScoredResponse]] = []
        for response in responses:
            if response.error:
                failed[response.prompt_id] = response
                continue
            row = self._score_one(response)
            rows.append((response, row))
            if not row.scores:
                reason = UNSCORED if response.logprobs is None else NO_NUMBER
                failed[response.prompt_id] = replace(response, error=reason)
        scored = self._grade([pair for pair in rows if pair[1].prompt_id not in failed], failed)
        return self._score_trials([row for row in scored if row.prompt_id not in failed])

    def _score_one(self, response: Response) -> ScoredResponse:
        prompt = self.prompts[response.prompt_id]
        scored = score_response(
            prompt,
            response,
            method=self.prepared.method,
            rules=self.prepared.rules,
            choices=self.prepared.get_choices(response.prompt_id),
        )
        usage: dict[str, float] = {"tokens_read": response.n_tokens_read, "tokens_written": response.n_tokens_written}
        if (cost := self.model.price(response)) is not None:
            usage["cost"] = cost
        if response.n_examples < len(prompt.examples):
            usage["with_fewer_shots"] = 1
        return ScoredResponse(
            prompt_id=response.prompt_id,
            trial=response.trial,
            scores=scored.scores,
            answers=tuple(
                (answer.extraction, answer.text, answer.probability, answer.status) for answer in scored.answers
            ),
            usage=usage,
        )

    def _grade(
        self, rows: Sequence[tuple[Response, ScoredResponse]], failed: dict[int, Response]
    ) -> list[ScoredResponse]:
        """Return the rows with the judge's scores; truncated and empty responses score 0 without a judge."""
        if self.judge is None or self.prepared.method != "generation":
            return [row for _, row in rows]
        rubric = self.judge.rubric
        sent = [
            at for at, (response, _) in enumerate(rows) if (response.text or "").strip() and not response.is_truncated
        ]
        texts = {at: self._render_for_judge(rows[at][0]) for at in sent}
        graded = dict(zip(sent, self.judge.grade(list(texts.values())), strict=True)) if texts else {}
        scored = []
        for at, (response, row) in enumerate(rows):
            if at not in graded:
                scored.append(replace(row, scores={**row.scores, rubric.metric: 0.0}))
                continue
            verdict, cost = graded[at]
            if verdict.score is None:
                failed[response.prompt_id] = replace(response, error=verdict.error)
                continue
            usage = {**row.usage, "judge_tokens_read": verdict.n_tokens_read}
            usage["judge_tokens_written"] = verdict.n_tokens_written
            if cost is not None:
                usage["cost"] = usage.get("cost", 0.0) + cost
            answers = (*row.answers, (JUDGE, verdict.text, None, "ok"), (JUDGE_PROMPT, texts[at], None, "ok"))
            scores = {**row.scores, rubric.metric: verdict.score}
            scored.append(replace(row, scores=scores, answers=answers, usage=usage))
        return scored

    def _render_for_judge(self, response: Response) -> str:
        assert self.judge is not None
        choices = self.prepared.get_choices(response.prompt_id) or ()
        return self.judge.rubric.render(self.prompts[response.prompt_id], response.text or "", choices)

    def _score_trials(self, rows: Sequence[ScoredResponse]) -> list[ScoredResponse]:
        """Return the rows with the metrics over all trials of a prompt, which its first trial holds."""
        names, correctness = self.prepared.rules.trial_metrics, self.prepared.rules.correctness
        if not names or self.prepared.method != "generation":
            return list(rows)
        by_prompt: dict[int, list[float]] = defaultdict(list)
        for row in rows:
            by_prompt[row.prompt_id].append(row.scores[correctness])
        return [
            replace(row, scores={**row.scores, **score_trials(by_prompt[row.prompt_id], names)})
            if not row.trial
            else row
            for row in rows
        ]
