"""A prompt of OpenCompass: an entry of details, or a prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.files.block_builder import PromptContent
from tracker.ingest.files.json_values import count, mapping, number, text, texts, words
from tracker.option_labels import option_letter

CORRECT = ("correct", "is_correct", "cascade_correct")
PREDICTION_FIELDS = ("predictions", "pred", "prediction")
GOLD = ("references", "refr", "reference", "answers", "answer", "gold")
LABEL = "label: "
"""Prefix of option names in predictions by perplexity."""
SCORED, RECOMPUTED, NO_GOLD, NOT_COMPARABLE = "scored", "recomputed", "no gold", "not comparable"


@dataclass(frozen=True)
class OpenCompassRow:
    """The data of an entry.

    Attributes:
        content: content of the prompt.
        answers: answer of each trial; None if it is empty.
        scores: score of each trial, NaN if it cannot be scored.
        how: `SCORED` if the harness marks correct answers, `RECOMPUTED` if answers are compared here, else the reason
            for missing scores.
        probability: probability of the first answer, NaN if unknown.
    """

    content: PromptContent
    answers: Sequence[str | None]
    scores: Sequence[float]
    how: str
    probability: float = math.nan


def parse_detail(entry: Mapping[str, Any]) -> OpenCompassRow:
    """Parse an entry of details; for repeated runs, each value is a list."""
    correctness = next((entry[name] for name in CORRECT if entry.get(name) is not None), None)
    predictions = next((entry[name] for name in PREDICTION_FIELDS if entry.get(name) is not None), None)
    gold = next((entry[name] for name in GOLD if entry.get(name) is not None), None)
    origin = mapping(entry.get("origin_prediction"))
    candidates = (entry.get("prompt"), entry.get("origin_prompt"), origin.get("origin_prompt"))
    prompt = next((candidate for candidate in candidates if candidate is not None), None)
    n_trials = (
        len(predictions)
        if isinstance(correctness, list) and isinstance(predictions, list) and len(correctness) == len(predictions)
        else None
    )
    if isinstance(gold, list) and len(gold) == n_trials:
        gold = gold[0] if gold else None
    if isinstance(prompt, list) and len(prompt) == n_trials and prompt and not isinstance(prompt[0], dict):
        prompt = prompt[0]
    answers = (
        []
        if predictions is None
        else [_spoken(prediction) for prediction in (predictions if n_trials is not None else [predictions])]
    )
    golds = _accepted(gold)
    content = PromptContent(_last_question(prompt), None, golds[0] if golds else None, None, _more(golds))
    if correctness is not None:
        values = [
            _parse_correctness(value) for value in (correctness if isinstance(correctness, list) else [correctness])
        ]
        return OpenCompassRow(content, answers, values, SCORED)
    return OpenCompassRow(content, answers, *_compared(answers, golds))


def parse_prediction(entry: Mapping[str, Any]) -> OpenCompassRow:
    """Parse a prediction: generated, by perplexity of the options, or by their probabilities."""
    if "pred_label" in entry:
        return _by_probability(entry)
    response, gold, prompt = entry.get("prediction"), entry.get("gold"), entry.get("origin_prompt")
    rounds = isinstance(prompt, list) and any(isinstance(turn, list) for turn in prompt)
    if rounds or isinstance(response, dict):
        return OpenCompassRow(PromptContent(), [words(response)], [math.nan], NOT_COMPARABLE)
    answers = [_spoken(prediction) for prediction in (response if isinstance(response, list) else [response])]
    golds = _accepted(gold)
    # The question of a perplexity prompt is unknown, because its options are part of the text.
    by_perplexity = any(name.startswith(LABEL) for name in entry)
    content = PromptContent(
        None if by_perplexity else _last_question(prompt), None, golds[0] if golds else None, None, _more(golds)
    )
    if response is None:
        return OpenCompassRow(content, (), (), NOT_COMPARABLE)
    return OpenCompassRow(content, answers, *_compared(answers, golds))


def _by_probability(entry: Mapping[str, Any]) -> OpenCompassRow:
    """Return the option with the largest probability; the reference answer is its index or name."""
    names = texts(entry.get("choices"))
    chosen, gold = count(entry.get("pred_label")), entry.get("gold")
    place = count(gold)
    if place is None:
        place = names.index(gold) if gold in names else None
    options = [name.strip() for name in names] if len(names) > 1 else None
    right = option_letter(place) if place is not None else None
    content = PromptContent(text(entry.get("testing input")), options, right)
    if chosen is None:
        return OpenCompassRow(content, (), (), NOT_COMPARABLE)
    probabilities = entry.get("prediction")
    likely = number(probabilities[chosen]) if isinstance(probabilities, list) and chosen < len(probabilities) else None
    chance = likely if likely is not None and 0 <= likely <= 1 else math.nan
    letter = option_letter(chosen)
    return OpenCompassRow(content, [letter], *_compared([letter], [right] if right is not None else []), chance)


def _compared(answers: Sequence[str | None], golds: Sequence[str]) -> tuple[Sequence[float], str]:
    if not golds:
        return [math.nan] * len(answers), NO_GOLD
    accepted = {gold.strip() for gold in golds}
    return [float(answer is not None and answer.strip() in accepted) for answer in answers], RECOMPUTED


def _parse_correctness(value: Any) -> float:
    """Return a score from 0 to 1; NaN for anything else."""
    if isinstance(value, bool):
        return float(value)
    score = number(value)
    return score if score is not None and 0 <= score <= 1 else math.nan


def _spoken(value: Any) -> str | None:
    spoken = words(value)
    return spoken.strip() or None if spoken is not None else None


def _accepted(gold: Any) -> list[str]:
    """Return the accepted answers; None if the harness dropped them, as it does with 0 and ''."""
    references = gold if isinstance(gold, list) else [gold]
    return list(
        dict.fromkeys(
            reference_text.strip()
            for reference in references
            if (reference_text := words(reference)) is not None and reference_text.strip()
        )
    )


def _more(golds: Sequence[str]) -> dict[str, Any] | None:
    return {"accepted": list(golds)} if len(golds) > 1 else None


def _last_question(prompt: Any) -> str | None:
    """Return the last user message of a conversation; plain texts do not separate question and examples."""
    turns = [mapping(turn) for turn in prompt] if isinstance(prompt, list) else []
    questions = [turn["prompt"] for turn in turns if turn.get("role") in ("HUMAN", "user") and text(turn.get("prompt"))]
    return str(questions[-1]).strip() if questions else None
