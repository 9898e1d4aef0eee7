"""Score one response by any method."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tracker.errors import SelectionError
from tracker.evaluating.option_values import METHODS
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.options import score_options
from tracker.evaluating.scoring.response_scores import ResponseScores, make_failed_scores
from tracker.evaluating.scoring.written_answers import (
    check_ignored,
    check_metrics,
    compile_pattern,
    score_text,
    score_written_option,
)

SCORING = 1
"""Version of the scoring rules; raised when the same response would be scored differently, so that a run is never
scored by two versions.
"""


def check_scoring(
    metrics: Sequence[str] = ("exact_match",), extract: str | None = None, ignore: Collection[str] = ()
) -> None:
    """Raise the errors of `score_response` before a model has run for hours.

    Raises:
        SelectionError: a metric, a difference to ignore or a pattern is invalid.
        MissingExtraError: a metric needs packages that are not installed.
    """
    check_metrics(metrics)
    check_ignored(ignore)
    if extract is not None:
        compile_pattern(extract)


def score_response(
    prompt: RenderedPrompt,
    response: Response,
    *,
    method: str,
    metrics: Sequence[str] = ("exact_match",),
    extract: str | None = None,
    ignore: Collection[str] = (),
    choices: Sequence[str] | None = None,
) -> ResponseScores:
    """Return scores and answers of a response.

    - ``letters``: ``accuracy`` and ``gold_probability_letters``. If the model generated text instead of probabilities,
      the option is extracted from the text, and there is no probability.
    - ``loglikelihood``: ``acc``, ``acc_norm`` and ``gold_probability_likelihoods``.
    - ``generation``: the chosen metrics.

    Ties are broken in favour of the first option. A response with an error, or without an option of finite probability,
    has no scores. A response from which nothing can be extracted scores 0.

    Args:
        prompt: the rendered prompt.
        response: the response to it.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        metrics: metrics of generated answers.
        extract: pattern that finds the answer in the response: its last match, and of that the first group that takes
            part; the whole match without groups.
        ignore: differences that generated answers may have: see `written_answers.IGNORABLE`.
        choices: texts of the prompt's options, in order; by default its options.

    Raises:
        SelectionError: a method, a metric, a difference to ignore or a pattern is invalid.
        MissingExtraError: a metric needs packages that are not installed.
    """
    if method not in METHODS:
        raise SelectionError(f"No method {method!r}. Known: {', '.join(METHODS)}.")
    names = tuple(choices) if choices is not None else prompt.options
    if response.error:
        result = make_failed_scores()
    elif method != "generation" and response.logprobs is not None:
        result = score_options(prompt, response.logprobs, method, names, unlisted_share=response.unlisted_share)
    elif response.text is None or method == "loglikelihood":
        result = make_failed_scores()
    elif method == "letters":
        result = score_written_option(prompt, response.text, ("accuracy",), extract, ignore, names)
    elif prompt.options:
        result = score_written_option(prompt, response.text, metrics, extract, ignore, names)
    else:
        result = score_text(prompt, response.text, metrics, extract, ignore)
    scores, answers = result
    return ResponseScores(prompt_id=response.prompt_id, trial=response.trial, scores=scores, answers=answers)
