"""One prompt's replies from a server."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tracker.errors import ServerError
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply, Sampling
from tracker.evaluating.servers.api_capabilities import Prompt, Way
from tracker.evaluating.servers.connection import Connection
from tracker.evaluating.servers.protocol import (
    WORD_STARTS,
    Listed,
    MalformedError,
    Usage,
    echoed,
    label_logprobs,
    likeliest,
    n_continuation,
    written,
)
from tracker.evaluating.servers.retrying_client import Caller, GaveUpError, RefusedError

T = TypeVar("T")
MOST_STOPS = 4
"""Stop strings that every server takes; text is cut at all of them here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one prompt.

    Attributes:
        replies: one for each trial.
        is_outage: whether the server did not answer, rather than refuse.
        n_unlisted: labels that were not among the likeliest tokens.
        unlisted_bound: largest probability that one of them can have had.
    """

    replies: list[Reply]
    is_outage: bool = False
    n_unlisted: int = 0
    unlisted_bound: float = 0.0


@dataclass(kw_only=True)
class Asking:
    """Puts one prompt to a server, in one thread.

    Attributes:
        caller: asks.
        connection: the thread's.
        way: in which it is asked.
        model: its name on the server.
        sampling: how answers are written.
        is_written_method: whether answers, rather than labels, are asked for, in several trials.
        stop: ends the waiting.
    """

    caller: Caller
    connection: Connection
    way: Way
    model: str
    sampling: Sampling
    is_written_method: bool
    stop: threading.Event
    _spent: list[Usage] = field(default_factory=list)

    def outcome(self, question: Question) -> Outcome:
        """The prompt's replies; the earliest worked examples are left out where the server finds the text too long.

        Raises:
            HaltedError: stopped in the middle; there is no outcome.
            ServerError: nothing will be answered.
        """
        self._spent = []
        if self.way.asks != "text" and not question.options:
            return self._failed(question, "It has no options to choose from.", is_outage=False)
        for n_shots in range(len(question.shots), -1, -1):
            try:
                if self.way.asks == "letters":
                    return self._labels(question, n_shots)
                if self.way.asks == "likelihoods":
                    return self._likelihoods(question, n_shots)
                return self._texts(question, n_shots)
            except RefusedError as error:
                if error.status == 404:
                    raise ServerError(
                        f"The server {self.caller.address.host} no longer knows the model {self.model!r} or the "
                        f"address ({error.said}). What was answered is stored; run the same command again."
                    ) from None
                if not (error.is_too_long and n_shots):
                    return self._failed(question, f"{error}.", is_outage=False, is_too_long=error.is_too_long)
            except GaveUpError as error:
                return self._failed(question, f"{error}.", is_outage=True)
        raise AssertionError  # the last turn of the loop returns

    def _labels(self, question: Question, n_shots: int) -> Outcome:
        prompt = self._prompt(question, n_shots)
        first = self._likeliest(prompt)
        found = label_logprobs(first, question.options)
        logprob = max((logprob for token, logprob in first if _is_space(token)), default=-np.inf)
        if isinstance(prompt, str) and logprob > np.logaddexp.reduce(found.logprobs):
            # vocabularies without a token for a space and a digit together say the space first
            second = label_logprobs(self._likeliest(prompt + " "), question.options)
            both = np.logaddexp(found.logprobs, logprob + second.logprobs)
            left = 1.0 - np.exp(np.logaddexp.reduce([p for _, p in first]))
            bound = min(1.0, max(0.0, float(left)) + float(np.exp(logprob)) * second.unlisted_bound)
            n_unlisted = int(np.isneginf(both).sum())
        else:
            both, bound, n_unlisted = found.logprobs, found.unlisted_bound, found.n_unlisted
        bound = bound if n_unlisted else 0.0
        said: dict[str, Any] = {"logprobs": np.minimum(both, 0.0)}
        if n_unlisted == len(both):  # which is likeliest is then unknown
            said = {
                "error": f"None of its labels was among the {self.way.n_top} likeliest tokens that the server names."
            }
        elif bound:
            said["unlisted_share"] = bound / (bound + float(np.exp(np.logaddexp.reduce(both))))
        return Outcome(
            replies=[self._reply(question, n_shots, **said)],
            n_unlisted=n_unlisted,
            unlisted_bound=bound,
        )

    def _likeliest(self, prompt: Prompt) -> Listed:
        """The likeliest first tokens; none where the model ends at once."""
        return self._ask(self.way.body(self.model, prompt, n_tokens=1), lambda reply: likeliest(reply) or [])

    def _likelihoods(self, question: Question, n_shots: int) -> Outcome:
        text = question.text(n_shots)
        context = text.rstrip()
        options = [text[len(context) :] + question.join + option for option in question.options]
        n_context: int | None = None
        logprobs = []
        for option in options:
            tokens, values = self._echoed(context + option)
            n = n_continuation(tokens, option)
            if n is None:  # letters of several tokens: as lm-evaluation-harness, by the number of tokens before them
                if n_context is None:
                    n_context = len(self._echoed(context)[0])
                n = len(tokens) - n_context
            counted = values[len(values) - n :]
            if n < 1 or any(value is None for value in counted):
                raise RefusedError(200, "its probabilities do not cover the option")
            logprobs.append(sum(value for value in counted if value is not None))
        return Outcome(replies=[self._reply(question, n_shots, logprobs=np.array(logprobs, dtype=np.float64))])

    def _echoed(self, text: str) -> tuple[list[str], list[float | None]]:
        """Tokens of a text and their log-probabilities, without what the model adds."""

        def read(reply: Mapping[str, Any]) -> tuple[list[str], list[float | None]]:
            given = echoed(reply)
            if given is None:
                raise MalformedError("a reply without the probabilities of the text")
            counted = (reply.get("usage") or {}).get("completion_tokens")
            n_added = counted if self.way.n_extra and isinstance(counted, int) else self.way.n_extra
            end = len(given[0]) - n_added
            return given[0][:end], given[1][:end]

        return self._ask(self.way.body(self.model, text, n_tokens=0), read, n_letters_back=0)

    def _texts(self, question: Question, n_shots: int) -> Outcome:
        prompt = self._prompt(question, n_shots)
        replies: list[Reply] = []
        n_unanswered = 0
        for trial in range(self.sampling.n_trials if self.is_written_method else 1):
            body = self.way.body(
                self.model, prompt, n_tokens=self.sampling.max_tokens, **self._drawing(question.text(n_shots), trial)
            )
            self._spent = []
            try:
                text = self._ask(body, written, n_letters_back=4 * self.sampling.max_tokens)
            except GaveUpError as error:
                n_unanswered += 1
                replies.append(Reply(prompt_id=question.prompt_id, trial=trial, error=f"{error}."))
                continue
            replies.append(self._reply(question, n_shots, trial=trial, text=cut(text, self.sampling.stop)))
        return Outcome(replies=replies, is_outage=n_unanswered == len(replies))

    def _drawing(self, text: str, trial: int) -> dict[str, Any]:
        """What a request says of how answers are drawn; only what is not the protocol's default."""
        sampling = self.sampling
        said: dict[str, Any] = {"temperature": sampling.temperature}
        if sampling.temperature > 0:
            said["seed"] = seed_of(sampling.seed, text, trial)
        if sampling.top_p != 1.0:
            said["top_p"] = sampling.top_p
        if sampling.stop:
            said["stop"] = list(sampling.stop[:MOST_STOPS])
        return said

    def _prompt(self, question: Question, n_shots: int) -> Prompt:
        return question.messages(n_shots) if self.way.api == "chat" else question.text(n_shots)

    def _ask(self, body: dict[str, Any], read: Callable[[Mapping[str, Any]], T], n_letters_back: int = 4) -> T:
        sent = body.get("prompt") or "".join(turn["content"] for turn in body.get("messages", ()))
        made, spent = self.caller.ask(
            self.connection, self.way.path, body, read,
            n_letters=len(sent), n_letters_back=n_letters_back, stop=self.stop,
        )  # fmt: skip
        self._spent.append(spent)
        return made

    def _reply(self, question: Question, n_shots: int, **said: Any) -> Reply:
        return Reply(
            prompt_id=question.prompt_id,
            n_shots=n_shots,
            n_tokens_read=sum(one.n_read for one in self._spent),
            n_tokens_written=sum(one.n_written for one in self._spent),
            **said,
        )

    def _failed(self, question: Question, why: str, *, is_outage: bool, is_too_long: bool = False) -> Outcome:
        n_trials = self.sampling.n_trials if self.is_written_method else 1
        replies = [
            Reply(prompt_id=question.prompt_id, trial=trial, error=why, is_too_long=is_too_long)
            for trial in range(n_trials)
        ]
        return Outcome(replies=replies, is_outage=is_outage)


def cut(text: str, stops: tuple[str, ...]) -> str:
    """The text up to the first of the stop strings; servers leave it in, or know only four."""
    return text[: min((at for stop in stops if stop and (at := text.find(stop)) >= 0), default=len(text))]


def seed_of(seed: int, text: str, trial: int) -> int:
    """A seed for one answer to a text, in [0, 2**31)."""
    digest = hashlib.sha256(f"{seed}\n{trial}\n".encode() + text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) >> 1


def _is_space(token: str) -> bool:
    return token.translate(WORD_STARTS) == " "
