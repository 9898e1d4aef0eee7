"""Answers that a model in this process writes, greedily or drawn at random.

How many rows go through a model together moves its numbers in their last digits. So batches are cut from all
questions, whatever is stored already, and a batch of which any answer is missing is computed whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import halving
from tracker.evaluating.local.sampling import Drawing, stream_key
from tracker.evaluating.local.stop_strings import Endings, ending_tokens
from tracker.evaluating.local.tokens import Context, Ids, contexts, why_too_long
from tracker.evaluating.model_files import quiet
from tracker.evaluating.prompt_templates.rendered_prompt import Question
from tracker.evaluating.responses import Reply, Sampling

TOGETHER = {"cpu": 8}
"""Answers that are written together by default."""
MANY_TOGETHER = 32
"""On an accelerator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """One answer to be written."""

    prompt_id: int
    trial: int
    context: Context
    ids: Ids


class WrittenAnswers:
    """Answers questions by writing.

    Args:
        model: who answers.
        sampling: how.
        chat: whether questions are put as turns of a conversation.
        batch_size: answers that are written together; None for as many as are fast.
        too_long: what becomes of prompts that leave no room for an answer: ``skip``, or ``cut`` at their beginning.
        told: called with a sentence where something is done otherwise than it was asked for.

    Raises:
        SelectionError: the model cannot write as many tokens as are asked for.
    """

    def __init__(
        self,
        model: LanguageModel,
        sampling: Sampling,
        *,
        chat: bool = False,
        batch_size: int | None = None,
        too_long: str = "skip",
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model, self.sampling, self.chat, self.too_long, self.told = model, sampling, chat, too_long, told
        self.together = batch_size or TOGETHER.get(model.device.split(":")[0], MANY_TOGETHER)
        self.ends = ending_tokens(model.model, model.tokenizer, sampling.stop)
        self._contexts: tuple[Sequence[Question] | None, list[Context]] = (None, [])
        room = _room(model)
        if room is not None and sampling.max_tokens > room:
            raise SelectionError(
                f"{model.name} can write {room:,} tokens at most, and --max-tokens asks for {sampling.max_tokens:,}."
            )

    def replies(self, questions: Sequence[Question], stored: Callable[[int], bool]) -> Iterator[list[Reply]]:
        """As `tracker.evaluating.responses.Answerer` says; every reply to a prompt is in the same portion.

        A prompt that leaves no room for the answer, even without worked examples, has a reply with an error.
        """
        asked = list(zip(questions, self.contexts(questions), strict=True))
        if self.too_long == "cut":
            asked = [(question, _cut(context)) for question, context in asked]
        late = [(question, context) for question, context in asked if context.n_over]
        if unsaid := [
            self._too_long(*one, trial) for one in late if not stored(one[0].prompt_id) for trial in self._trials
        ]:
            yield unsaid
        for batch in self.batches([one for one in asked if not one[1].n_over]):
            if not all(stored(question.prompt_id) for question, _ in batch):
                yield self._answers(batch)

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        """What the model reads of each; worked examples are left out until the answer fits behind it.

        They are found once for the same list of questions.
        """
        known, found = self._contexts
        if known is not questions:
            found = contexts(self.model, questions, chat=self.chat, room=self.sampling.max_tokens - 1)
            self._contexts = (questions, found)
        return found

    def n_tokens(self, questions: Sequence[Question]) -> list[int]:
        """Tokens that are read of each, for all of its answers."""
        return [len(context.ids) * self.sampling.n_trials for context in self.contexts(questions)]

    def batches(self, asked: Sequence[tuple[Question, Context]]) -> Iterator[list[tuple[Question, Context]]]:
        """Questions of like length together, the longest first; all trials of one are in the same batch."""
        ordered = sorted(asked, key=lambda one: (-len(one[1].ids), one[0].prompt_id))
        size = max(1, self.together // self.sampling.n_trials)
        for first in range(0, len(ordered), size):
            yield ordered[first : first + size]

    @property
    def _trials(self) -> range:
        return range(self.sampling.n_trials)

    def _answers(self, batch: Sequence[tuple[Question, Context]]) -> list[Reply]:
        rows = [
            _Row(prompt_id=question.prompt_id, trial=trial, context=context, ids=context.ids)
            for question, context in batch
            for trial in self._trials
        ]
        made: list[Reply] = []
        for first in range(0, len(rows), self.together):  # of more trials than go together
            for part in halving(self._written, rows[first : first + self.together], self._smaller):
                made += part
        return made

    def _written(self, rows: Sequence[_Row]) -> list[Reply]:
        """The answers of rows that go through the model together."""
        import torch

        model, sampling = self.model, self.sampling
        width = max(len(row.ids) for row in rows)
        filler = self._filler()
        ids = [_padded(row.ids, width, filler, left=not model.is_encoder_decoder) for row in rows]
        seen = [_padded((1,) * len(row.ids), width, 0, left=not model.is_encoder_decoder) for row in rows]
        n_read = 1 if model.is_encoder_decoder else width
        endings = Endings(model.tokenizer, len(rows), n_read, self.ends, sampling.stop)
        processors = []
        if sampling.temperature > 0:
            keys = [stream_key(sampling.seed, row.context.text, row.trial) for row in rows]
            processors.append(Drawing(keys, n_read, sampling.temperature, sampling.top_p))
        with torch.inference_mode(), self._plainly(filler), quiet():
            out = model.model.generate(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(seen, device=model.device),
                logits_processor=processors,
                stopping_criteria=[endings],
            )
        made = []
        for at, (row, written) in enumerate(zip(rows, out[:, n_read:].tolist(), strict=True)):
            text, n_tokens = endings.answer(at, written)
            reply = Reply(
                prompt_id=row.prompt_id, trial=row.trial, text=text, n_shots=row.context.n_shots,
                n_tokens_read=len(row.ids), n_tokens_written=n_tokens,
            )  # fmt: skip
            made.append(reply)
        return made

    @contextmanager
    def _plainly(self, filler: int) -> Iterator[None]:
        """The model's own wishes of how it should be sampled do not count: penalties, beams, temperatures.

        What it needs stays: which tokens begin and end what it writes.
        """
        from transformers import GenerationConfig

        own = self.model.model.generation_config
        needed = {
            name: getattr(own, name, None) for name in ("bos_token_id", "decoder_start_token_id", "forced_bos_token_id")
        }
        plain = GenerationConfig(
            max_new_tokens=self.sampling.max_tokens, do_sample=False, num_beams=1, use_cache=True,
            pad_token_id=filler, eos_token_id=list(self.ends) or None,
            **{name: value for name, value in needed.items() if value is not None},
        )  # fmt: skip
        self.model.model.generation_config = plain
        try:
            yield
        finally:
            self.model.model.generation_config = own

    def _filler(self) -> int:
        """What fills up short rows, and rows that have ended; it is never read."""
        tokenizer: Any = self.model.tokenizer
        known = (tokenizer.pad_token_id, *self.ends, tokenizer.bos_token_id, 0)
        return int(next(one for one in known if one is not None))

    def _too_long(self, question: Question, context: Context, trial: int) -> Reply:
        kept = 0 if self.model.is_encoder_decoder else self.sampling.max_tokens
        why = why_too_long(self.model, context, kept)
        return Reply(prompt_id=question.prompt_id, trial=trial, n_shots=context.n_shots, error=why, is_too_long=True)

    def _smaller(self, n: int) -> None:
        self.told(f"memory was too small; going on with {n} answers together")


def _room(model: LanguageModel) -> int | None:
    """How many tokens a model can write at most; None where there is no limit."""
    if model.is_encoder_decoder:
        return getattr(model.model.config, "max_position_embeddings", None)
    return model.context


def _padded(ids: Sequence[int], width: int, filler: int, *, left: bool) -> list[int]:
    filling = [filler] * (width - len(ids))
    return [*filling, *ids] if left else [*ids, *filling]


def _cut(context: Context) -> Context:
    """Without the first of its tokens, as many as are too many."""
    return replace(context, ids=context.ids[context.n_over :], n_over=0)
