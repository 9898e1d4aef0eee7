"""Detect the end of a generated response: an end token, or a stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracker.evaluating.responses import TRUNCATED, end_text, split_reasoning

MORE_TOKENS = 8
"""Number of tokens to look at beyond the bytes of a stop string, since some tokens decode to nothing."""


def find_ending_tokens(model: Any, tokenizer: Any, stop: Sequence[str]) -> tuple[int, ...]:
    """Return the end tokens of model and tokenizer, and stop strings that are special tokens."""
    ending: set[int] = set()
    for token_ids in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        if token_ids is not None:
            ending |= {int(token) for token in ([token_ids] if isinstance(token_ids, int) else token_ids)}
    special = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    return tuple(sorted(ending | {int(special[word]) for word in stop if word in special}))


def decode_tokens(tokenizer: Any, ids: Sequence[int]) -> str:
    """Decode tokens without special tokens."""
    text: str = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text


class StopCriterion:
    """A stopping criterion: a row has ended after an end token or a stop string.

    Args:
        tokenizer: decodes tokens.
        n_rows: number of responses.
        n_read: number of input tokens of the rows.
        ends: end tokens.
        stop: stop strings.
        shrinks: whether to stop all rows when at most half of them have not ended, so that they continue without the
            others.

    Attributes:
        active: rows of the batch, in its order.
        n_written: number of tokens of each row up to its end, inclusive; None if it has not ended.
    """

    def __init__(
        self,
        tokenizer: Any,
        n_rows: int,
        n_read: int,
        ends: Sequence[int],
        stop: Sequence[str],
        *,
        shrinks: bool = False,
    ) -> None:
        self.tokenizer, self.n_read, self.ends = tokenizer, n_read, frozenset(ends)
        self.stop = tuple(word for word in stop if word)
        self.n_looked_at = max((len(word.encode()) for word in self.stop), default=0) + MORE_TOKENS
        self.shrinks = shrinks
        self.active = list(range(n_rows))
        self.n_written: list[int | None] = [None] * n_rows

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Return whether each active row has ended, ``(n_active,)``."""
        import torch

        written = input_ids[:, self.n_read :]
        last = written[:, -1].tolist()
        going = [place for place, row in enumerate(self.active) if self.n_written[row] is None]
        tails = written[going, -self.n_looked_at :].tolist() if self.stop and going else []
        for at, place in enumerate(going):
            if last[place] in self.ends or (self.stop and self._stopped(written[place], tails[at])):
                self.n_written[self.active[place]] = written.shape[1]
        ended = [self.n_written[row] is not None for row in self.active]
        is_half_empty = self.shrinks and 2 * ended.count(False) <= len(ended)
        return torch.tensor([is_half_empty or has_ended for has_ended in ended], device=input_ids.device)

    def drop_ended(self) -> list[int]:
        """Remove the rows that have ended from the active ones; return the places of the others in the batch."""
        places = [place for place, row in enumerate(self.active) if self.n_written[row] is None]
        self.active = [self.active[place] for place in places]
        return places

    def _stopped(self, written: Any, tail: Sequence[int]) -> bool:
        return self._holds(tail) and self._holds(written.tolist())  # a tail may decode differently on its own

    def _holds(self, ids: Sequence[int]) -> bool:
        text = split_reasoning(decode_tokens(self.tokenizer, ids))[1]
        return any(word in text for word in self.stop)

    def answer(self, row: int, ids: Sequence[int]) -> tuple[dict[str, Any], int]:
        """Return text, reasoning and finish reason of a row, and the number of generated tokens.

        Args:
            row: index of the row.
            ids: all generated tokens of the row.
        """
        n = self.n_written[row]
        kept = list(ids[: len(ids) if n is None else n])
        n_tokens = len(kept)
        if kept and kept[-1] in self.ends:
            kept.pop()
        ending = "stop" if n is not None else TRUNCATED
        return end_text(decode_tokens(self.tokenizer, kept), self.stop, ending), n_tokens
