"""Score one response by any method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tracker.errors import SelectionError
from tracker.evaluating.option_values import METHODS
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.lm_eval_scores import score_lm_eval_response
from tracker.evaluating.scoring.options import score_options
from tracker.evaluating.scoring.response_scores import (
    FINISH_REASON,
    REASONING,
    ExtractedAnswer,
    ResponseScores,
    make_failed_scores,
    make_truncated_scores,
)
from tracker.evaluating.scoring.rules import DEFAULT, ScoringRules
from tracker.evaluating.scoring.written_answers import score_text, score_written_option

SCORING = 3
"""Version of the scoring rules; raised when the same response would be scored differently, so that a run is never
scored by two versions.
"""


def score_response(
    prompt: RenderedPrompt,
    response: Response,
    *,
    method: str,
    rules: ScoringRules = DEFAULT,
    choices: Sequence[str] | None = None,
) -> ResponseScores:
    """Return scores and answers of a response.

    - ``letters``: ``accuracy``, ``gold_probability_letters`` and ``label_probability``. If the model generated text
      instead of probabilities, the option is extracted from the text, and there is no probability.
    - ``loglikelihood``: ``acc``, ``acc_norm`` and ``gold_probability_likelihoods``.
    - ``generation``: the chosen metrics.

    Ties are broken in favour of the first option. A response with an error, or without an option of finite probability,
    has no scores. A response from which nothing can be extracted scores 0, and so does a truncated one. Prompts
    imported from lm-evaluation-harness are scored as there; see `tracker.evaluating.scoring.lm_eval_scores`.

    Args:
        prompt: the rendered prompt.
        response: the response to it.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        rules: how generated answers are scored. Of a pattern the last match is used, and of that the first group that
            takes part; the whole match without groups.
        choices: texts of the prompt's options, in order; by default its options.

    Raises:
        SelectionError: a method, a metric, a difference to ignore or a pattern is invalid.
        MissingExtraError: a metric needs packages that are not installed.
    """
    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    names = tuple(choices) if choices is not None else prompt.options or prompt.labels
    if response.error:
        result = make_failed_scores()
    elif prompt.lm_eval is not None:
        result = score_lm_eval_response(prompt, response, names)
    elif method != "generation" and response.logprobs is not None:
        result = score_options(prompt, response.logprobs, method, names, unlisted_share=response.unlisted_share)
    elif response.text is None or method == "loglikelihood":
        result = make_failed_scores()
    elif response.is_truncated:
        has_reference = bool(prompt.references) or prompt.correct_option is not None
        metrics = ("accuracy",) if method == "letters" else rules.response_metrics
        result = make_truncated_scores(response.text, metrics, has_reference=has_reference)
    elif method == "letters":
        result = score_written_option(prompt, response.text, replace(rules, metrics=("accuracy",)), names)
    elif prompt.options or prompt.labels:
        result = score_written_option(prompt, response.text, rules, names)
    else:
        result = score_text(prompt, response.text, rules)
    scores, answers = result
    return ResponseScores(
        prompt_id=response.prompt_id,
        trial=response.trial,
        scores=scores,
        answers=(*answers, *_list_circumstances(response)),
    )


def _list_circumstances(response: Response) -> Iterator[ExtractedAnswer]:
    """Return what is stored beside the answers: reasoning, and the finish reason if it is known."""
    if response.reasoning:
        yield ExtractedAnswer(extraction=REASONING, text=response.reasoning)
    if response.finish_reason:
        yield ExtractedAnswer(extraction=FINISH_REASON, text=response.finish_reason)
