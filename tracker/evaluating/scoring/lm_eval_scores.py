"""Scores of prompts imported from lm-evaluation-harness, as that harness computes them."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.response_scores import (
    NORMALISED,
    ExtractedAnswer,
    ScoresAndAnswers,
    make_failed_scores,
)
from tracker.ingest.datasets.lm_eval.stored_prompt import LmEvalPrompt
from tracker.option_labels import option_name

NO_FILTER = "none"
FALLBACK = "[invalid]"
"""Answer of the filter ``regex`` without a match."""
DEFAULT_PATTERN = r"#### (\-?[0-9\.\,]+)"


def score_lm_eval_response(prompt: RenderedPrompt, response: Response, choices: Sequence[str]) -> ScoresAndAnswers:
    """Return scores and answers of a response.

    A truncated response is scored like any other, as in the harness.

    Args:
        prompt: an imported prompt.
        response: the response to it, without an error.
        choices: texts of the options.

    Source: lm-evaluation-harness 0.4.13, ``ConfigurableTask.process_results``.
    """
    stored = prompt.lm_eval
    assert stored is not None
    if response.logprobs is None:
        return _score_text(stored, response, choices) if response.text is not None else make_failed_scores()
    if not np.isfinite(response.logprobs).any() or np.isnan(response.logprobs).any():
        return make_failed_scores()
    if stored.scoring.output_type == "loglikelihood":
        return _score_target(stored, response)
    return _score_options(stored, response.logprobs, choices)


def _score_options(stored: LmEvalPrompt, logprobs: NDArray[np.float64], choices: Sequence[str]) -> ScoresAndAnswers:
    probabilities = np.exp(logprobs - logprobs.max())
    probabilities /= probabilities.sum()
    best = int(np.argmax(logprobs))
    with np.errstate(divide="ignore"):
        by_length = int(np.argmax(logprobs / np.array(stored.lengths, dtype=np.float64)))
    names = choices if len(choices) == len(logprobs) else stored.continuations
    answers = [ExtractedAnswer(text=option_name(best, names), probability=float(probabilities[best]))]
    scores: dict[str, float] = {}
    if "acc" in stored.scoring.metrics:
        mass = float(probabilities[list(stored.correct)].sum())
        scores["acc"] = min(1.0, mass) if stored.scoring.sums_probability else float(best in stored.correct)
    if "acc_norm" in stored.scoring.metrics:
        scores["acc_norm"] = float(by_length in stored.correct)
        probability = float(probabilities[by_length])
        answers.append(
            ExtractedAnswer(extraction=NORMALISED, text=option_name(by_length, names), probability=probability)
        )
    if len(stored.correct) == 1:
        scores["gold_probability_likelihoods"] = float(probabilities[stored.correct[0]])
    return scores, tuple(answers)


def _score_target(stored: LmEvalPrompt, response: Response) -> ScoresAndAnswers:
    """Score the log-likelihood of a target, and whether it is the text that greedy decoding would generate."""
    assert response.logprobs is not None
    logprob = float(response.logprobs[0])
    scores: dict[str, float] = {}
    if "perplexity" in stored.scoring.metrics:
        scores["loglikelihood"] = logprob
    if "acc" in stored.scoring.metrics and response.is_greedy is not None:
        scores["acc"] = float(response.is_greedy[0])
    is_answer = bool(scores.get("acc"))
    answer = ExtractedAnswer(
        text=stored.continuations[0].strip() if is_answer else None,
        probability=float(np.exp(logprob)) if is_answer else None,
        status="ok" if is_answer else "empty",
    )
    return scores, (answer,)


def _score_text(stored: LmEvalPrompt, response: Response, choices: Sequence[str]) -> ScoresAndAnswers:
    scores: dict[str, float] = {}
    answers: list[ExtractedAnswer] = []
    for name, steps in stored.scoring.filters.items() or ((NO_FILTER, ()),):
        answer = extract_answer(response.text or "", steps, choices)
        suffix = "" if name == NO_FILTER else f",{name}"
        for metric, options in stored.scoring.metrics.items():
            scores[f"{metric}{suffix}"] = max(
                (exact_match(answer, reference, **options) for reference in stored.references), default=0.0
            )
        extracted = None if answer in ("", FALLBACK) else answer
        status = "empty" if extracted is None else "ok"
        if response.is_truncated and not answers:
            status = "truncated"
        answers.append(ExtractedAnswer(extraction=suffix[1:], text=extracted, status=status))
    return scores, tuple(answers)


def exact_match(
    answer: str,
    reference: str,
    *,
    regexes_to_ignore: Sequence[str] = (),
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> float:
    """Return 1 if two texts are equal after what is ignored has been removed from both, in the harness's order."""

    def normalize(text: str) -> str:
        for pattern in regexes_to_ignore:
            text = re.sub(pattern, "", text)
        if ignore_case:
            text = text.lower()
        removed = string.punctuation * ignore_punctuation + string.digits * ignore_numbers
        return text.translate(str.maketrans("", "", removed))

    return float(normalize(answer) == normalize(reference))


def extract_answer(text: str, steps: Sequence[Mapping[str, Any]], choices: Sequence[str]) -> str:
    """Return the answer that a pipeline of filters extracts from a response.

    Args:
        text: the response.
        steps: filters with their options; ``function`` is the name.
        choices: texts of the prompt's options.

    Source: lm-evaluation-harness, ``filters/``.
    """
    for step in steps:
        options = {name: value for name, value in step.items() if name != "function"}
        if step["function"] == "multi_choice_regex":
            text = _extract_option(text, choices, **options)
        else:
            text = _FILTERS[step["function"]](text, **options)
    return text


def _extract_match(
    text: str, regex_pattern: str = DEFAULT_PATTERN, group_select: int = 0, fallback: str = FALLBACK
) -> str:
    matches = re.findall(regex_pattern, text)
    if not matches:
        return fallback
    match = matches[group_select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), fallback)
    return str(match).strip()


def _replace_by_table(text: str, mapping_dict: Mapping[str, Any] | None = None, default_value: Any = None) -> str:
    return str((mapping_dict or {}).get(text, default_value))


_FILTERS: Mapping[str, Callable[..., str]] = {
    "regex": _extract_match,
    "remove_whitespace": lambda text: text.strip(),
    "lowercase": lambda text: text.lower(),
    "uppercase": lambda text: text.upper(),
    "map": _replace_by_table,
}


def _extract_option(
    text: str,
    choices: Sequence[str],
    regex_pattern: str = DEFAULT_PATTERN,
    group_select: int = 0,
    fallback: str = FALLBACK,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    regexes_to_ignore: Sequence[str] | None = None,
) -> str:
    """Return the match of a pattern, else the letter of an option whose text occurs, else the letter after a colon."""

    def simplify(value: str) -> str:
        for pattern in regexes_to_ignore or ():
            value = re.sub(pattern, "", value)
        value = value.lower() if ignore_case else value
        return value.translate(_punctuation()) if ignore_punctuation else value

    letters = [chr(ord("A") + place) for place in range(len(choices))]
    texts = [simplify(choice.strip()) for choice in choices]
    by_text = {option: f"({letter})" for option, letter in zip(texts, letters, strict=True)}
    of_texts = "|".join(re.escape(option) for option in sorted(texts, key=len, reverse=True))
    attempts: tuple[tuple[str, str, Mapping[str, str]], ...] = (
        (regex_pattern, text, {}),
        (of_texts, simplify(text), by_text),
        (rf":[\s]*({'|'.join(letters)})", text, {letter: f"({letter})" for letter in letters}),
    )
    for pattern, searched, names in attempts:
        if match := _find_match(pattern, searched, group_select):
            return names.get(match, match)
    return fallback


def _find_match(pattern: str, text: str, group_select: int) -> str:
    matches = re.findall(pattern, text)
    if not matches:
        return ""
    match = matches[group_select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), "")
    return str(match).strip()


@cache
def _punctuation() -> Mapping[int, None]:
    """Return the table that removes all Unicode punctuation."""
    return dict.fromkeys(code for code in range(sys.maxunicode) if unicodedata.category(chr(code)).startswith("P"))
