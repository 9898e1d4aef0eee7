"""OpenAI's protocol: what is sent, and what a reply says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD_STARTS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
"""How vocabularies write the space before a word, and the end of a line."""
LETTERS_PER_TOKEN = 4
MOST_TOKENS = 10**9
"""Of one request; a server that counts more, or less than none, has miscounted."""
"""Roughly; used where a server does not count."""

Listed = list[tuple[str, float]]
"""Tokens and natural logarithms of their probabilities."""


class MalformedError(Exception):
    """A reply that is not what the protocol promises; it is asked for again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one request.

    Attributes:
        n_read, n_written: as the server counted them.
        is_estimated: whether it did not count, and they are estimated from the length of the text.
    """

    n_read: int
    n_written: int
    is_estimated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """What a list of the likeliest tokens says of the labels.

    Attributes:
        logprobs: ``(n_labels,)``, -inf for those that are not listed.
        n_unlisted: how many are not.
        unlisted_bound: largest probability that one of them can have had: what the list leaves over, in [0, 1].
    """

    logprobs: NDArray[np.float64]
    n_unlisted: int
    unlisted_bound: float


def choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one choice of a reply.

    Raises:
        MalformedError: there is none.
    """
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise MalformedError("a reply without choices")
    return choices[0]


def written(reply: Mapping[str, Any]) -> str:
    """The text that a model wrote, in either endpoint's form; '' where it wrote nothing that is shown."""
    chosen = choice(reply)
    message = chosen.get("message")
    text = chosen.get("text") if message is None else message.get("content") if isinstance(message, Mapping) else 0
    if text is None:
        return ""
    if not isinstance(text, str):
        raise MalformedError("a reply without text")
    return text


def likeliest(reply: Mapping[str, Any]) -> Listed | None:
    """The likeliest first tokens; None where the server lists none.

    Two forms are in use, by either endpoint: ``top_logprobs`` as one mapping a token, and ``content`` as one object a
    token.
    """
    given = choice(reply).get("logprobs")
    if not isinstance(given, Mapping):
        return None
    content, tops = given.get("content"), given.get("top_logprobs")
    listed: Listed
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        entries = content[0].get("top_logprobs")
        listed = _entries(entries) if isinstance(entries, list) else []
        listed += [entry for entry in _entries([content[0]]) if entry[0] not in {token for token, _ in listed}]
    elif isinstance(tops, list) and tops and isinstance(tops[0], Mapping):
        listed = [(str(token), _number(logprob)) for token, logprob in tops[0].items()]
    else:
        return None
    return listed or None


MOST_MASS = 1.01
"""Of the probabilities of first tokens; more than 1 by rounding."""


def label_logprobs(listed: Iterable[tuple[str, float]], labels: Sequence[str]) -> Labels:
    """The probability of each label as the first token, by any spelling of it: ``A``, `` A``, ``▁A``.

    Labels that are the same but for spaces share nothing: each is matched on its own.

    Raises:
        MalformedError: the probabilities cannot be.
    """
    found = np.full(len(labels), -np.inf)
    mass = 0.0
    bare = [label.strip() for label in labels]
    for token, logprob in listed:
        mass += math.exp(logprob)
        said = token.translate(WORD_STARTS).strip()
        for at, label in enumerate(bare):
            if said == label:
                found[at] = np.logaddexp(found[at], logprob)
    if mass > MOST_MASS:
        raise MalformedError("probabilities of first tokens that add up to more than 1")
    return Labels(
        logprobs=np.minimum(found, 0.0),
        n_unlisted=int(np.isneginf(found).sum()),
        unlisted_bound=min(1.0, max(0.0, 1.0 - mass)),
    )


def echoed(reply: Mapping[str, Any]) -> tuple[list[str], list[float | None]] | None:
    """Tokens of the text that was sent and of what follows, with their log-probabilities; None where not given."""
    given = choice(reply).get("logprobs")
    if not isinstance(given, Mapping):
        return None
    tokens, values = given.get("tokens"), given.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list):
        return None
    if len(tokens) != len(values):
        raise MalformedError("a reply with more tokens than probabilities")
    return [str(token) for token in tokens], [None if value is None else _number(value) for value in values]


def n_continuation(tokens: Sequence[str], continuation: str) -> int | None:
    """How many tokens at the end make up the continuation; None where they do not spell it.

    Offsets are of no use here: servers count marks of the beginning as letters, or do not. A token that reaches back
    over the border belongs to the continuation. Where a vocabulary hides the space before a word, spaces are ignored.
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


def usage(reply: Mapping[str, Any], *, sent: int, received: int) -> Usage:
    """Tokens as the server counted them, else estimated from the letters that were sent and received."""
    given = reply.get("usage")
    if isinstance(given, Mapping):
        read, out = given.get("prompt_tokens"), given.get("completion_tokens")
        if isinstance(read, int) and 0 <= read <= MOST_TOKENS:
            written = out if isinstance(out, int) and 0 <= out <= MOST_TOKENS else 0
            return Usage(n_read=read, n_written=written)
    return Usage(n_read=estimate(sent), n_written=estimate(received), is_estimated=True)


def estimate(n_letters: int) -> int:
    """Tokens of a text of so many letters, roughly."""
    return -(-n_letters // LETTERS_PER_TOKEN)


def error_text(body: Any) -> tuple[str, str]:
    """What a server says is wrong, and its code for it; '' where it says none."""
    given = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(given, Mapping):
        said = given.get("message") or given.get("detail") or given.get("error") or ""
        return str(said), str(given.get("code") or given.get("type") or "")
    return (given, "") if isinstance(given, str) else ("", "")


def _entries(entries: Sequence[Any]) -> Listed:
    named = [entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("token"), str)]
    return [(entry["token"], _number(entry.get("logprob"))) for entry in named]


def _number(value: Any) -> float:
    """A log-probability; rounding may have pushed it above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise MalformedError("a probability that is no number")
    return min(0.0, float(value))
