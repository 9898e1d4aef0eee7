"""A result of promptfoo: its test, response and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tracker.ingest.files.json_values import count, mapping, optional_score, text, words

FIELDS = (
    "promptIdx", "testIdx", "testCase", "promptId", "provider", "prompt", "vars", "response", "error",
    "failureReason", "success", "score", "namedScores", "gradingResult",
)  # fmt: skip
"""Fields that are read of a result."""
SCORE, PASS = "score", "pass"
TECHNICAL = 2
"""Failure reason that is not a wrong answer."""
MAX_DETAIL_LENGTH = 200
EXACT = 2**53


class InvalidResultError(Exception):
    """An entry that is not a valid result, with the reason."""


@dataclass(frozen=True, slots=True)
class PromptfooColumn:
    """A column of promptfoo's table: provider and prompt.

    Attributes:
        provider, label: id of the provider and its label; '' if there is none.
        template: identifier of the prompt.
        prompt_label: its label.
        number: number of the column; None in old versions.
    """

    provider: str
    label: str
    template: str
    prompt_label: str
    number: int | None


@dataclass(frozen=True, slots=True)
class PromptfooResult:
    """The data of a result.

    Attributes:
        key: identifier of the test from its variables and assertions, which repetitions share.
        test: number of the test; None in old versions.
        text: the variables, or the whole prompt if there are none.
        gold: the only text that the answer should equal.
        output: the response; None if the file does not hold it.
        errored: whether the provider failed.
        success: None if unknown.
        values: values by metric; NaN if missing, None if not a number.
        weights: weights of the named scores in their reported sum, by metric.
    """

    column: PromptfooColumn
    key: str
    test: int | None
    text: str | None
    has_variables: bool
    gold: str | None
    details: dict[str, Any] | None
    output: str | None
    errored: bool
    success: bool | None
    values: Mapping[str, float | None]
    weights: Mapping[str, float]


def parse_result(data: Any) -> PromptfooResult:
    """Read a result.

    Raises:
        NotAResultError: the entry is not a result.
    """
    if not isinstance(data, dict):
        raise InvalidResultError("is not a result")
    case, prompt = mapping(data.get("testCase")), mapping(data.get("prompt"))
    case_variables = data.get("vars") if isinstance(data.get("vars"), dict) else case.get("vars")
    variables = {str(name): value for name, value in mapping(case_variables).items() if not str(name).startswith("_")}
    asserted = case.get("assert")
    success = data.get("success")
    grading = data.get("gradingResult")
    reason = data.get("failureReason")
    errored = (
        reason == TECHNICAL if count(reason) is not None else bool(data.get("error")) and not isinstance(grading, dict)
    )
    raw = text(prompt.get("raw"))
    values = {SCORE: optional_score(data.get("score")), PASS: float(success) if isinstance(success, bool) else math.nan}
    values |= {named_metric(name): optional_score(value) for name, value in mapping(data.get("namedScores")).items()}
    weights = mapping(mapping(grading).get("namedScoreWeights")).items()
    return PromptfooResult(
        column=_column(data, prompt),
        key=_hash(variables, asserted if asserted else None, None if variables else case.get("description")),
        test=count(data.get("testIdx")),
        text=_parse_question(variables) if variables else raw,
        has_variables=bool(variables),
        gold=_gold(asserted),
        details=_details(case),
        output=_output(data),
        errored=errored,
        success=success if isinstance(success, bool) else None,
        values=values,
        weights={
            named_metric(name): weight for name, value in weights if (weight := optional_score(value)) is not None
        },
    )


def named_metric(name: Any) -> str:
    """Return the metric of a named score; those named like the score of the test have a prefix."""
    return f"named/{name}" if name in (SCORE, PASS) else str(name)


def _column(data: Mapping[str, Any], prompt: Mapping[str, Any]) -> PromptfooColumn:
    provider_field = data.get("provider")
    provider = mapping(provider_field)
    prompt_label = text(prompt.get("label")) or text(prompt.get("display")) or ""
    return PromptfooColumn(
        provider=text(provider_field) or text(provider.get("id")) or "",
        label=text(provider.get("label")) or "",
        template=text(data.get("promptId")) or prompt_label,
        prompt_label=prompt_label,
        number=count(data.get("promptIdx")),
    )


def _hash(*parts: Any) -> str:
    try:
        serialized = json.dumps(parts, sort_keys=True)
    except (RecursionError, ValueError) as error:
        raise InvalidResultError("has variables that are nested too deeply") from error
    return sha256(serialized.encode()).hexdigest()[:16]


def _parse_question(variables: Mapping[str, Any]) -> str | None:
    """Return the only variable, or all by name."""
    texts = {
        name: variable_text
        for name, value in variables.items()
        if (variable_text := words(value)) is not None and variable_text.strip()
    }
    if len(texts) == 1:
        return next(iter(texts.values())).strip()
    return "\n".join(f"{name}: {texts[name].strip()}" for name in sorted(texts)) or None


def _gold(asserted: Any) -> str | None:
    assertions = (
        [assertion for assertion in asserted if isinstance(assertion, dict)] if isinstance(asserted, list) else []
    )
    equal = [assertion.get("value") for assertion in assertions if assertion.get("type") == "equals"]
    if len(equal) != 1 or isinstance(equal[0], (dict, list)):
        return None
    expected = words(equal[0])
    return expected.strip() or None if expected is not None else None


def _details(case: Mapping[str, Any]) -> dict[str, Any] | None:
    metadata = {**mapping(case.get("metadata")), "description": case.get("description")}
    details = {
        str(name): value
        for name, value in metadata.items()
        if (isinstance(value, str) and 0 < len(value) <= MAX_DETAIL_LENGTH)
        or (isinstance(value, (bool, int, float)) and -EXACT <= value <= EXACT)
    }
    return details or None


def _output(data: Mapping[str, Any]) -> str | None:
    response = data.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    output_text = words(output)
    return None if output_text is None else output_text.strip()
