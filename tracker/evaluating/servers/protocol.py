"""OpenAI's protocol: build requests and parse responses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.scoring.label_spellings import WORD_STARTS, strip_token

LETTERS_PER_TOKEN = 4
"""Approximate characters per token; used if a server reports no counts."""
MAX_TOKENS = 10**9
"""Maximum plausible number of tokens of one request; larger or negative counts are ignored."""
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields of a message that hold its reasoning, by vLLM and DeepSeek, and by OpenRouter."""

TokenLogprobs = list[tuple[str, float]]
"""Tokens and natural logarithms of their probabilities."""


class MalformedError(Exception):
    """A response that violates the protocol; the request is repeated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one request.

    Attributes:
        n_read, n_written: input and output tokens, as counted by the server.
        is_estimated: whether they are estimated from the length of the text, because the server reports no counts.
    """

    n_read: int
    n_written: int
    is_estimated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelProbabilities:
    """Label probabilities from a list of the likeliest tokens.

    Attributes:
        logprobs: ``(n_labels,)``, -inf for unlisted labels.
        n_unlisted: number of unlisted labels.
        unlisted_bound: upper bound of the probability of an unlisted label: the rest of the list, in [0, 1].
    """

    logprobs: NDArray[np.float64]
    n_unlisted: int
    unlisted_bound: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenText:
    """A generated text.

    Attributes:
        text: without separate reasoning.
        reasoning: reasoning that the server separates from the text.
        finish_reason: why the text ended, as the server reports it; '' if it does not.
    """

    text: str
    reasoning: str
    finish_reason: str


def get_choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the only choice of a response.

    Raises:
        MalformedError: the response has no choices.
    """
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise MalformedError("a response without choices")
    return choices[0]


def get_text(response: Mapping[str, Any]) -> str:
    """Return the generated text without separate reasoning."""
    return get_written(response).text


def get_written(response: Mapping[str, Any]) -> WrittenText:
    """Return the generated text, in either endpoint's format; '' if the model generated nothing visible."""
    chosen = get_choice(response)
    message = chosen.get("message")
    text, reasoning = chosen.get("text"), ""
    if isinstance(message, Mapping):
        text = message.get("content")
        reasoning = next((part for name in REASONING_FIELDS if isinstance(part := message.get(name), str)), "")
    elif message is not None:
        raise MalformedError("a response without text")
    if isinstance(text, list):  # parts, as Mistral sends reasoning and text
        parts = [part for part in text if isinstance(part, Mapping)]
        reasoning = reasoning or _join_parts(part.get("thinking") for part in parts)
        text = _join_parts(part.get("text") for part in parts)
    if text is not None and not isinstance(text, str):
        raise MalformedError("a response without text")
    finish_reason = chosen.get("finish_reason")
    return WrittenText(
        text=text or "", reasoning=reasoning, finish_reason=finish_reason if isinstance(finish_reason, str) else ""
    )


def _join_parts(parts: Iterable[Any]) -> str:
    """Return the texts among the parts of a message; a part may itself be a list of parts."""
    texts = (
        part if isinstance(part, str) else _join_parts(inner.get("text") for inner in part)
        for part in parts
        if isinstance(part, str | list)
    )
    return "".join(texts)


def get_top_logprobs(response: Mapping[str, Any]) -> TokenLogprobs | None:
    """Return the likeliest first tokens; None if the server lists none.

    Both endpoints use two formats: ``top_logprobs`` as one mapping per token, and ``content`` as one object per token.
    """
    logprobs = get_choice(response).get("logprobs")
    if not isinstance(logprobs, Mapping):
        return None
    content, tops = logprobs.get("content"), logprobs.get("top_logprobs")
    tokens: TokenLogprobs
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        entries = content[0].get("top_logprobs")
        tokens = _parse_entries(entries) if isinstance(entries, list) else []
        tokens += [entry for entry in _parse_entries([content[0]]) if entry[0] not in {token for token, _ in tokens}]
    elif isinstance(tops, list) and tops and isinstance(tops[0], Mapping):
        tokens = [(str(token), _parse_logprob(logprob)) for token, logprob in tops[0].items()]
    else:
        return None
    return tokens or None


MAX_PROBABILITY_SUM = 1.01
"""Maximum sum of the probabilities of first tokens; above 1 by rounding."""


def match_labels(tokens: Iterable[tuple[str, float]], labels: Sequence[str]) -> LabelProbabilities:
    """Return the probability of each label as the first token, by any spelling of it: ``A``, `` A``, ``▁A``.

    Labels that differ only in spaces are matched separately.

    Raises:
        MalformedError: the probabilities are invalid.
    """
    logprobs = np.full(len(labels), -np.inf)
    mass = 0.0
    bare = [label.strip() for label in labels]
    for token, logprob in tokens:
        mass += math.exp(logprob)
        spelling = strip_token(token)
        for at, label in enumerate(bare):
            if spelling == label:
                logprobs[at] = np.logaddexp(logprobs[at], logprob)
    if mass > MAX_PROBABILITY_SUM:
        raise MalformedError("probabilities of first tokens that sum to more than 1")
    return LabelProbabilities(
        logprobs=np.minimum(logprobs, 0.0),
        n_unlisted=int(np.isneginf(logprobs).sum()),
        unlisted_bound=min(1.0, max(0.0, 1.0 - mass)),
    )


def get_echoed_logprobs(response: Mapping[str, Any]) -> tuple[list[str], list[float | None]] | None:
    """Return the tokens of the sent text and of its continuation, with their log-probabilities; None if missing."""
    logprobs = get_choice(response).get("logprobs")
    if not isinstance(logprobs, Mapping):
        return None
    tokens, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return None
    if len(tokens) != len(values):
        raise MalformedError("a response with more tokens than probabilities")
    return [str(token) for token in tokens], [None if value is None else _parse_logprob(value) for value in values]


def count_continuation_tokens(tokens: Sequence[str], continuation: str) -> int | None:
    """Return the number of final tokens that make up the continuation; None if they do not spell it.

    Offsets are not used: some servers count start tokens as letters, others do not. A token across the border belongs
    to the continuation. If a vocabulary hides the space before a word, spaces are ignored.
    """
    bare = "".join(continuation.split())
    joined = ""
    lenient = None
    for n, token in enumerate(reversed(tokens), start=1):
        joined = token.translate(WORD_STARTS) + joined
        if joined.endswith(continuation):
            return n
        if lenient is None and bare and "".join(joined.split()).endswith(bare):
            lenient = n
        if len(joined) > 2 * len(continuation) + 64:
            break
    return lenient


def get_usage(response: Mapping[str, Any], *, sent: int, received: int) -> Usage:
    """Return the tokens as counted by the server, else estimated from the sent and received letters."""
    counts = response.get("usage")
    if isinstance(counts, Mapping):
        read, written = counts.get("prompt_tokens"), counts.get("completion_tokens")
        if isinstance(read, int) and 0 <= read <= MAX_TOKENS:
            written = written if isinstance(written, int) and 0 <= written <= MAX_TOKENS else 0
            return Usage(n_read=read, n_written=written)
    return Usage(n_read=estimate_tokens(sent), n_written=estimate_tokens(received), is_estimated=True)


def estimate_tokens(n_letters: int) -> int:
    """Return the approximate number of tokens of a text."""
    return -(-n_letters // LETTERS_PER_TOKEN)


def parse_error(body: Any) -> tuple[str, str]:
    """Return a server's error message and error code, without control characters; '' if missing."""
    details = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(details, Mapping):
        message = details.get("message") or details.get("detail") or details.get("error") or ""
        return _printable(str(message)), _printable(str(details.get("code") or details.get("type") or ""))
    return (_printable(details), "") if isinstance(details, str) else ("", "")


def _printable(text: str) -> str:
    """Replace characters that would change a terminal, such as escape sequences, by spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _parse_entries(entries: Sequence[Any]) -> TokenLogprobs:
    valid = [entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("token"), str)]
    return [(entry["token"], _parse_logprob(entry.get("logprob"))) for entry in valid]


def _parse_logprob(value: Any) -> float:
    """Return a log-probability; values above 0 by rounding become 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise MalformedError("a probability that is not a number")
    return min(0.0, float(value))
