"""One prompt of OpenCompass: an entry of details, or a prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.ingest.files.block_builder import PromptContent
from tracker.ingest.files.json_values import count, mapping, number, text, texts, words
from tracker.option_labels import option_letter

CORRECT = ("correct", "is_correct", "cascade_correct")
SAID = ("predictions", "pred", "prediction")
GOLD = ("references", "refr", "reference", "answers", "answer", "gold")
LABEL = "label: "
"""What the names of options begin with, in predictions by perplexity."""
SCORED, RECOMPUTED, NO_GOLD, NOT_COMPARABLE = "scored", "recomputed", "no gold", "not comparable"


@dataclass(frozen=True)
class Row:
    """What an entry says.

    Attributes:
        content: of the prompt.
        said: the answer of each trial; None is an empty one.
        scores: of each trial, NaN where it cannot be scored.
        how: `SCORED` where the harness says what is right, `RECOMPUTED` where answers were compared here, else why
            they were not.
        probability: of the first answer, NaN where it is not known.
    """

    content: PromptContent
    said: Sequence[str | None]
    scores: Sequence[float]
    how: str
    probability: float = math.nan


def detail(entry: Mapping[str, Any]) -> Row:
    """An entry of details; where the harness ran a dataset several times, each value is a list of as many."""
    told = next((entry[name] for name in CORRECT if entry.get(name) is not None), None)
    said = next((entry[name] for name in SAID if entry.get(name) is not None), None)
    gold = next((entry[name] for name in GOLD if entry.get(name) is not None), None)
    origin = mapping(entry.get("origin_prediction"))
    asked = next((one for one in (entry.get("prompt"), entry.get("origin_prompt"), origin.get("origin_prompt"))
                  if one is not None), None)  # fmt: skip
    n_trials = len(said) if isinstance(told, list) and isinstance(said, list) and len(told) == len(said) else None
    if isinstance(gold, list) and len(gold) == n_trials:
        gold = gold[0] if gold else None
    if isinstance(asked, list) and len(asked) == n_trials and asked and not isinstance(asked[0], dict):
        asked = asked[0]
    answers = [] if said is None else [_spoken(one) for one in (said if n_trials is not None else [said])]
    golds = _accepted(gold)
    content = PromptContent(_asked(asked), None, golds[0] if golds else None, None, _more(golds))
    if told is not None:
        values = [_judged(one) for one in (told if isinstance(told, list) else [told])]
        return Row(content, answers, values, SCORED)
    return Row(content, answers, *_compared(answers, golds))


def prediction(entry: Mapping[str, Any]) -> Row:
    """A prediction: written, by perplexity of the options, or by their probabilities."""
    if "pred_label" in entry:
        return _by_probability(entry)
    said, gold, asked = entry.get("prediction"), entry.get("gold"), entry.get("origin_prompt")
    rounds = isinstance(asked, list) and any(isinstance(one, list) for one in asked)
    if rounds or isinstance(said, dict):
        return Row(PromptContent(), [words(said)], [math.nan], NOT_COMPARABLE)
    answers = [_spoken(one) for one in (said if isinstance(said, list) else [said])]
    golds = _accepted(gold)
    # Which words of a perplexity prompt are the question is not told: its options are part of them.
    by_perplexity = any(name.startswith(LABEL) for name in entry)
    content = PromptContent(
        None if by_perplexity else _asked(asked), None, golds[0] if golds else None, None, _more(golds)
    )
    if said is None:
        return Row(content, (), (), NOT_COMPARABLE)
    return Row(content, answers, *_compared(answers, golds))


def _by_probability(entry: Mapping[str, Any]) -> Row:
    """The option with the largest probability; a gold answer is its place, or its name."""
    names = texts(entry.get("choices"))
    chosen, gold = count(entry.get("pred_label")), entry.get("gold")
    place = count(gold)
    if place is None:
        place = names.index(gold) if gold in names else None
    options = [name.strip() for name in names] if len(names) > 1 else None
    right = option_letter(place) if place is not None else None
    content = PromptContent(text(entry.get("testing input")), options, right)
    if chosen is None:
        return Row(content, (), (), NOT_COMPARABLE)
    listed = entry.get("prediction")
    likely = number(listed[chosen]) if isinstance(listed, list) and chosen < len(listed) else None
    chance = likely if likely is not None and 0 <= likely <= 1 else math.nan
    said = option_letter(chosen)
    return Row(content, [said], *_compared([said], [right] if right is not None else []), chance)


def _compared(answers: Sequence[str | None], golds: Sequence[str]) -> tuple[Sequence[float], str]:
    if not golds:
        return [math.nan] * len(answers), NO_GOLD
    accepted = {gold.strip() for gold in golds}
    return [float(said is not None and said.strip() in accepted) for said in answers], RECOMPUTED


def _judged(told: Any) -> float:
    """A judgement from 0 to 1; NaN where it is none."""
    if isinstance(told, bool):
        return float(told)
    found = number(told)
    return found if found is not None and 0 <= found <= 1 else math.nan


def _spoken(said: Any) -> str | None:
    spoken = words(said)
    return spoken.strip() or None if spoken is not None else None


def _accepted(gold: Any) -> list[str]:
    """Right answers; a list is several of them. None where the harness dropped it, as it does with 0 and ''."""
    told = gold if isinstance(gold, list) else [gold]
    return list(dict.fromkeys(said.strip() for one in told if (said := words(one)) is not None and said.strip()))


def _more(golds: Sequence[str]) -> dict[str, Any] | None:
    return {"accepted": list(golds)} if len(golds) > 1 else None


def _asked(told: Any) -> str | None:
    """What the person said last in a conversation. In a plain text nothing parts the question from examples."""
    turns = [mapping(one) for one in told] if isinstance(told, list) else []
    asked = [turn["prompt"] for turn in turns if turn.get("role") in ("HUMAN", "user") and text(turn.get("prompt"))]
    return str(asked[-1]).strip() if asked else None
