"""Generate responses with a local model, greedily or by sampling.

The batch size changes the last digits of a model's output. Batches are therefore cut from all prompts, whether or not
they have stored responses. A batch with any missing response is computed whole.

Not every model computes a batch correctly. This is tested on a part of a prompt; models that fail generate the
responses to prompts of equal length together, or one response at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tracker.evaluating.local.decoding.batch_test import Batching, find_batching
from tracker.evaluating.local.decoding.batches import PromptBatch, cut_batches
from tracker.evaluating.local.decoding.decoder import Decoder
from tracker.evaluating.local.decoding.prefix_cache import PrefixCache, compute_prefix
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import process_in_halves
from tracker.evaluating.local.response_contexts import PromptContext, ResponseContexts
from tracker.evaluating.local.sampling import stream_key
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.local.tokens import Context
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling, claim_batch

TOGETHER = {"cpu": 8}
"""Default number of responses generated together on a CPU."""
ACCELERATOR_TOGETHER = 32
"""The same on an accelerator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """One response to generate."""

    prompt_id: int
    trial: int
    context: Context


class TextGenerator(ResponseContexts):
    """Responds to prompts with generated text.

    Args:
        model: generates the text.
        sampling: sampling options.
        chat: whether prompts are sent as turns of a conversation.
        batch_size: responses generated together; None for a suitable number.
        too_long: how to treat prompts that leave no room for a response: ``skip``, or ``cut`` to truncate their
            beginning.
        report: called with a message if the evaluation deviates from the options.

    Raises:
        SelectionError: ``sampling`` allows more tokens than the model can generate.
    """

    def __init__(
        self,
        model: LanguageModel,
        sampling: Sampling,
        *,
        chat: bool = False,
        batch_size: int | None = None,
        too_long: str = "skip",
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(model, sampling, chat=chat, too_long=too_long, n_extra=1, limit=_find_room(model))
        self.report = report
        self.together = batch_size or TOGETHER.get(model.device.split(":")[0], ACCELERATOR_TOGETHER)
        self._decoder = Decoder(model, sampling)
        self._prefix: tuple[Ids, PrefixCache | None] = ((), None)

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires; all responses to a prompt are in
        one block.

        A prompt that leaves no room for a response, even without few-shot examples, has a response with an error.
        """
        fitting, too_long = self.select_fitting(prompts, is_stored)
        if too_long:
            yield too_long
        fits = sorted(fitting, key=lambda pair: pair[0].prompt_id)
        if all(is_stored(prompt.prompt_id) for prompt, _ in fits):
            return
        batching = self._find_batching([context for _, context in fits])
        for batch in self.make_batches(fits, batching):
            members = [fits[at] for at in batch.members]
            if claim_batch(is_stored, [prompt.prompt_id for prompt, _ in members]):
                yield self._generate_batch(members, batch.prefix, batching)

    def make_batches(self, pairs: Sequence[PromptContext], batching: Batching) -> list[PromptBatch]:
        """Cut prompts into batches; all trials of a prompt are in the same batch."""
        return cut_batches(
            [context.ids for _, context in pairs],
            [prompt.head(context.n_examples) for prompt, context in pairs],
            size=max(1, self.together // self.sampling.n_trials),
            max_tokens=self.sampling.max_tokens,
            batching=batching,
        )

    def _find_batching(self, contexts: Sequence[Context]) -> Batching:
        """Return which prompts the model computes correctly together; warn if not all."""
        longest = max(contexts, key=lambda context: len(context.ids))
        batching = find_batching(self.model, longest.ids, n_longest=len(longest.ids) + self.sampling.max_tokens)
        if self.together > 1 and not batching.padded:
            reason, grouping = (
                ("only prompts of equal length", "in groups of equal length")
                if batching.together
                else ("no prompts", "one at a time")
            )
            self.report(
                f"{self.model.name} computes {reason} correctly in one batch: responses are generated {grouping}, "
                "which is slower"
            )
        return batching

    def _generate_batch(self, members: Sequence[PromptContext], prefix: Ids, batching: Batching) -> list[Response]:
        rows = [
            _Row(prompt_id=prompt.prompt_id, trial=trial, context=context)
            for prompt, context in members
            for trial in self.trials
        ]
        size = self.together if batching.together else 1
        responses: list[Response] = []
        for first in range(0, len(rows), size):  # more trials than the batch size
            for part in process_in_halves(
                lambda some: self._generate_rows(some, prefix, batching),
                rows[first : first + size],
                self._report_smaller_batch,
            ):
                responses += part
        return responses

    def _generate_rows(self, rows: Sequence[_Row], prefix: Ids, batching: Batching) -> list[Response]:
        """Generate the responses of one batch."""
        streams = [stream_key(self.sampling.seed, row.context.text, row.trial) for row in rows]
        ended = self._decoder.decode(
            [row.context.ids for row in rows], streams, prefix=self._compute_prefix(prefix), reuses=batching.reuses
        )
        return [
            Response(
                prompt_id=row.prompt_id, trial=row.trial, **fields, n_examples=row.context.n_examples,
                n_tokens_read=len(row.context.ids), n_tokens_written=n_tokens,
            )
            for row, (fields, n_tokens) in zip(rows, ended, strict=True)
        ]  # fmt: skip

    def _compute_prefix(self, ids: Ids) -> PrefixCache | None:
        """Return the keys and values of a prefix; those of the last one are kept."""
        if self._prefix[0] != ids:
            self._prefix = ((), None)  # free the memory first
            self._prefix = (ids, compute_prefix(self.model, ids, self._decoder.filler) if ids else None)
        return self._prefix[1]

    def _report_smaller_batch(self, n: int) -> None:
        self.report(f"out of memory; continuing with {n} responses per batch")


def _find_room(model: LanguageModel) -> int | None:
    """Return the maximum number of tokens a model can generate, or None without a limit."""
    if model.is_encoder_decoder:
        return getattr(model.model.config, "max_position_embeddings", None)
    return model.context
