"""A logged sample: its prompt, and the likelihoods of the options."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.option_labels import option_letter

BACKGROUND = ("context", "passage", "article", "paragraph", "story", "premise", "sentence1", "question1")
QUESTION = (
    "question", "problem", "query", "prompt", "goal", "input", "instruction", "hypothesis", "sentence2", "question2",
    "sentence", "ctx", "text", "claim",
)  # fmt: skip
CHOICES = ("choices", "options", "endings", "answer_choices")
MAX_DETAIL_LENGTH = 200
DOC_ID = "lm_eval_doc_id"
"""Detail with a document's number in its task, by which the harness can evaluate single documents."""
NOTHING_EXTRACTED = ("", "[invalid]")


@dataclass(frozen=True)
class Requests:
    """The requests for one prompt.

    Attributes:
        prompts: text before each continuation.
        continuations: texts with requested likelihoods; empty for generated answers.
        loglikelihoods: one for each continuation, NaN if unknown.
    """

    prompts: Sequence[str]
    continuations: Sequence[str]
    loglikelihoods: Sequence[float]

    @property
    def are_options(self) -> bool:
        """Return whether the continuations are options of a multiple-choice prompt."""
        return len(self.continuations) > 1


def requests(row: Mapping[str, Any]) -> Requests:
    """Parse the requests of a sample, logged as lists or mappings, with numbers or texts."""
    logged = row.get("arguments")
    if isinstance(logged, dict):
        logged = list(logged.values())
    pairs = (
        [list(request.values()) if isinstance(request, dict) else request for request in logged]
        if isinstance(logged, list)
        else []
    )
    pairs = [pair for pair in pairs if isinstance(pair, list) and pair]
    prompts = [pair[0] for pair in pairs if isinstance(pair[0], str)]
    if any(len(pair) < 2 or not isinstance(pair[1], str) for pair in pairs):
        return Requests(prompts, (), ())
    continuations = [pair[1] for pair in pairs]
    answers = row.get("filtered_resps")
    if not isinstance(answers, list) or len(answers) != len(pairs) or not all(map(_is_pair, answers)):
        answers = row.get("resps")
        answers = (
            [answer[0] if isinstance(answer, list) and answer else None for answer in answers]
            if isinstance(answers, list)
            else []
        )
    loglikelihoods = [_loglikelihood(answer[0]) if _is_pair(answer) else math.nan for answer in answers]
    if len(loglikelihoods) != len(pairs):
        loglikelihoods = [math.nan] * len(pairs)
    # Mutual information requests each option a second time without the question.
    if "acc_mutual_info" in row and len(pairs) % 2 == 0:
        half = len(pairs) // 2
        prompts, continuations, loglikelihoods = prompts[:half], continuations[:half], loglikelihoods[:half]
    return Requests(prompts, continuations, loglikelihoods)


def key(row: Mapping[str, Any]) -> str:
    """Return the harness's hash of the document, computed here for old versions, else the document's number."""
    logged = row.get("doc_hash")
    if isinstance(logged, str) and logged:
        return logged
    doc = row.get("doc")
    if isinstance(doc, dict):
        text = json.dumps(doc, indent=2, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
    return str(row.get("doc_id"))


def question(doc: Mapping[str, Any], sent: Requests, few_shot: int | None) -> str | None:
    """Return the question: the document's own fields, else the request if it has no few-shot examples."""
    by_name = {str(name).lower(): value for name, value in doc.items()}
    parts = [
        next((text for name in names if (text := _text(by_name.get(name)))), None) for names in (BACKGROUND, QUESTION)
    ]
    texts = [part for part in parts if part]
    if texts:
        return "\n".join(texts)
    return sent.prompts[0].strip() or None if few_shot == 0 and sent.prompts else None


def choices(doc: Mapping[str, Any], sent: Requests) -> list[str] | None:
    """Return the options: those of the document if their number matches the requests, else the continuations."""
    by_name = {str(name).lower(): value for name, value in doc.items()}
    for name in CHOICES:
        options = by_name.get(name)
        options = options.get("text") if isinstance(options, dict) else options
        if (
            not isinstance(options, list)
            or len(options) < 2
            or (sent.are_options and len(options) != len(sent.continuations))
        ):
            continue
        if all(isinstance(option, (str, int, float)) for option in options):
            return [str(option).strip() for option in options]
    if not sent.are_options:
        return None
    texts = sent.continuations if len(set(sent.continuations)) > 1 else sent.prompts
    return [text.strip() for text in texts]


def gold(row: Mapping[str, Any], sent: Requests) -> int | None:
    """Return the index of the correct option; None if there is not exactly one."""
    target = row.get("target")
    if not sent.are_options or isinstance(target, bool) or not re.fullmatch(r"\d{1,9}", str(target).strip()):
        return None
    place = int(str(target).strip())
    return place if place < len(sent.continuations) else None


def answer(row: Mapping[str, Any], sent: Requests) -> str | None:
    """Return the reference answer: the letter of the correct option, else the target's text."""
    place = gold(row, sent)
    if place is not None:
        return option_letter(place)
    target = row.get("target")
    return None if target is None or not str(target).strip() else str(target).strip()


def probabilities(sent: Requests) -> list[float] | None:
    """Return the options' normalized likelihoods; None if one is unknown or all are zero."""
    values = sent.loglikelihoods
    top = max(values, default=math.nan)
    if not sent.are_options or any(map(math.isnan, values)) or not math.isfinite(top):
        return None
    shares = [math.exp(value - top) for value in values]
    return [share / math.fsum(shares) for share in shares]


def extract_answer(
    row: Mapping[str, Any], sent: Requests, shares: Sequence[float] | None
) -> tuple[str | None, float, bool]:
    """Return the answer, its probability, and whether the sample holds an answer.

    Args:
        row: the sample.
        sent: its requests.
        shares: the normalized likelihoods of the options.
    """
    if sent.are_options:
        best = None if shares is None else shares.index(max(shares))
        return (None, math.nan, False) if best is None or shares is None else (option_letter(best), max(shares), True)
    if sent.continuations:
        return None, math.nan, False
    return extract_written_answer(row), math.nan, "filtered_resps" in row


def extract_written_answer(row: Mapping[str, Any]) -> str | None:
    """Return the generated text as extracted by the filter."""
    response = row.get("filtered_resps")
    while isinstance(response, list):
        response = response[0] if response else None
    text = None if response is None else str(response).strip()
    return None if text is None or text in NOTHING_EXTRACTED else text


def details(doc: Mapping[str, Any], number: Any) -> dict[str, Any] | None:
    """Return short further fields of a document, and its number."""
    known = {*BACKGROUND, *QUESTION, *CHOICES}
    fields = {
        str(name): value
        for name, value in doc.items()
        if str(name).lower() not in known
        and isinstance(value, (str, int, float, bool))
        and not (isinstance(value, str) and len(value) > MAX_DETAIL_LENGTH)
    }
    if re.fullmatch(r"\d{1,9}", str(number)):
        fields[DOC_ID] = int(number)
    return fields or None


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("stem") or value.get("text")
    return value.strip() if isinstance(value, str) and value.strip() else None


def _is_pair(answer: Any) -> bool:
    return isinstance(answer, list) and len(answer) == 2 and isinstance(answer[0], (str, int, float))


def _loglikelihood(value: str | float) -> float:
    """Return a log-likelihood, which may be infinite; NaN for anything else."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
