"""Scores of one response, by any method."""

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
"""Raised when the same response comes to be scored otherwise: one run is never scored in two ways."""


def check_scoring(
    metrics: Sequence[str] = ("exact_match",), extract: str | None = None, ignore: Collection[str] = ()
) -> None:
    """Raise the errors of `score_response` before a model has worked for hours.

    Raises:
        SelectionError: a metric or a difference to ignore that is not known, or a pattern that is none.
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
    """Scores and answers of a response.

    - ``letters``: ``accuracy`` and ``gold_probability_letters``. Where the model wrote instead of giving
      probabilities, the option is extracted from what it wrote, and there is no probability.
    - ``loglikelihood``: ``acc``, ``acc_norm`` and ``gold_probability_likelihoods``.
    - ``generation``: the chosen metrics.

    Of options that are equally likely, the first is chosen. A response with an error, or in which no option has a
    finite probability, has no scores: the prompt was not measured. A response from which nothing can be
    extracted scores 0.

    Args:
        prompt: as the model read it.
        response: to it.
        method: ``letters``, ``loglikelihood`` or ``generation``.
        metrics: of written answers.
        extract: pattern that finds the answer in what the model wrote: its last match, and of that the first group
            that takes part; the whole match where it has no groups.
        ignore: of written answers, differences that do not matter: see `written_answers.IGNORABLE`.
        choices: texts of the prompt's options, in order; by default what the prompt calls them.

    Raises:
        SelectionError: a method, a metric or a difference to ignore that is not known, or a pattern that is none.
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
