"""Generate responses with a local model, greedily or by sampling.

The batch size changes the last digits of a model's output. Batches are therefore cut from all prompts, whether or not
they have stored responses. A batch with any missing response is computed whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import process_in_halves
from tracker.evaluating.local.sampling import GumbelSampler, stream_key
from tracker.evaluating.local.stop_strings import StopCriterion, find_ending_tokens
from tracker.evaluating.local.tokens import Context, Ids, describe_excess, encode_contexts
from tracker.evaluating.model_files import silence_libraries
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
    ids: Ids


class TextGenerator:
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
        self.model, self.sampling, self.chat, self.too_long, self.report = model, sampling, chat, too_long, report
        self.together = batch_size or TOGETHER.get(model.device.split(":")[0], ACCELERATOR_TOGETHER)
        self.ends = find_ending_tokens(model.model, model.tokenizer, sampling.stop)
        self._contexts: tuple[Sequence[RenderedPrompt] | None, list[Context]] = (None, [])
        room = _find_room(model)
        if room is not None and sampling.max_tokens > room:
            raise SelectionError(
                f"--max-tokens is {sampling.max_tokens:,}, but {model.name} can generate at most {room:,} tokens. "
                "Use a smaller --max-tokens."
            )

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires; all responses to a prompt are in
        one block.

        A prompt that leaves no room for a response, even without few-shot examples, has a response with an error.
        """
        pairs = list(zip(prompts, self.encode_contexts(prompts), strict=True))
        if self.too_long == "cut":
            pairs = [(prompt, _cut(context)) for prompt, context in pairs]
        too_long = [
            self._make_too_long_response(prompt, context, trial)
            for prompt, context in pairs
            if context.n_over and not is_stored(prompt.prompt_id)
            for trial in self._trials
        ]
        if too_long:
            yield too_long
        for batch in self.make_batches([(prompt, context) for prompt, context in pairs if not context.n_over]):
            if claim_batch(is_stored, [prompt.prompt_id for prompt, _ in batch]):
                yield self._generate_batch(batch)

    def encode_contexts(self, prompts: Sequence[RenderedPrompt]) -> list[Context]:
        """Return the encoded context of each prompt; few-shot examples are dropped until the response fits.

        The result is cached for the same list of prompts.
        """
        cached_prompts, contexts = self._contexts
        if cached_prompts is not prompts:
            contexts = encode_contexts(self.model, prompts, chat=self.chat, room=self.sampling.max_tokens - 1)
            self._contexts = (prompts, contexts)
        return contexts

    def n_tokens(self, prompts: Sequence[RenderedPrompt]) -> list[int]:
        """Return the input tokens of each prompt, summed over its responses."""
        return [len(context.ids) * self.sampling.n_trials for context in self.encode_contexts(prompts)]

    def make_batches(
        self, pairs: Sequence[tuple[RenderedPrompt, Context]]
    ) -> Iterator[list[tuple[RenderedPrompt, Context]]]:
        """Group prompts of similar length, longest first; all trials of a prompt are in the same batch."""
        ordered = sorted(pairs, key=lambda pair: (-len(pair[1].ids), pair[0].prompt_id))
        size = max(1, self.together // self.sampling.n_trials)
        for first in range(0, len(ordered), size):
            yield ordered[first : first + size]

    @property
    def _trials(self) -> range:
        return range(self.sampling.n_trials)

    def _generate_batch(self, batch: Sequence[tuple[RenderedPrompt, Context]]) -> list[Response]:
        rows = [
            _Row(prompt_id=prompt.prompt_id, trial=trial, context=context, ids=context.ids)
            for prompt, context in batch
            for trial in self._trials
        ]
        responses: list[Response] = []
        for first in range(0, len(rows), self.together):  # more trials than the batch size
            for part in process_in_halves(
                self._generate_rows, rows[first : first + self.together], self._report_smaller_batch
            ):
                responses += part
        return responses

    def _generate_rows(self, rows: Sequence[_Row]) -> list[Response]:
        """Generate the responses of one batch."""
        import torch

        model, sampling = self.model, self.sampling
        width = max(len(row.ids) for row in rows)
        filler = self._find_filler()
        ids = [_pad(row.ids, width, filler, left=not model.is_encoder_decoder) for row in rows]
        seen = [_pad((1,) * len(row.ids), width, 0, left=not model.is_encoder_decoder) for row in rows]
        n_read = 1 if model.is_encoder_decoder else width
        stop_criterion = StopCriterion(model.tokenizer, len(rows), n_read, self.ends, sampling.stop)
        processors = []
        if sampling.temperature > 0:
            keys = [stream_key(sampling.seed, row.context.text, row.trial) for row in rows]
            processors.append(GumbelSampler(keys, n_read, sampling.temperature, sampling.top_p))
        with torch.inference_mode(), self._plain_generation_config(filler), silence_libraries():
            out = model.model.generate(
                input_ids=torch.tensor(ids, device=model.device),
                attention_mask=torch.tensor(seen, device=model.device),
                logits_processor=processors,
                stopping_criteria=[stop_criterion],
            )
        responses = []
        for at, (row, written) in enumerate(zip(rows, out[:, n_read:].tolist(), strict=True)):
            fields, n_tokens = stop_criterion.answer(at, written)
            response = Response(
                prompt_id=row.prompt_id, trial=row.trial, **fields, n_examples=row.context.n_examples,
                n_tokens_read=len(row.ids), n_tokens_written=n_tokens,
            )  # fmt: skip
            responses.append(response)
        return responses

    @contextmanager
    def _plain_generation_config(self, filler: int) -> Iterator[None]:
        """Return the generation settings without the model's own sampling defaults (penalties, beams, temperature).

        Tokens that begin and end a generated text are kept.
        """
        from transformers import GenerationConfig

        saved_config = self.model.model.generation_config
        names = ("bos_token_id", "decoder_start_token_id", "forced_bos_token_id")
        needed = {name: getattr(saved_config, name, None) for name in names}
        plain = GenerationConfig(
            max_new_tokens=self.sampling.max_tokens, do_sample=False, num_beams=1, use_cache=True,
            pad_token_id=filler, eos_token_id=list(self.ends) or None,
            **{name: value for name, value in needed.items() if value is not None},
        )  # fmt: skip
        self.model.model.generation_config = plain
        try:
            yield
        finally:
            self.model.model.generation_config = saved_config

    def _find_filler(self) -> int:
        """Return the token that pads short rows and finished rows; the model never attends to it."""
        tokenizer: Any = self.model.tokenizer
        candidates = (tokenizer.pad_token_id, *self.ends, tokenizer.bos_token_id, 0)
        return int(next(token for token in candidates if token is not None))

    def _make_too_long_response(self, prompt: RenderedPrompt, context: Context, trial: int) -> Response:
        kept = 0 if self.model.is_encoder_decoder else self.sampling.max_tokens
        reason = describe_excess(self.model, context, kept)
        return Response(
            prompt_id=prompt.prompt_id, trial=trial, n_examples=context.n_examples, error=reason, is_too_long=True
        )

    def _report_smaller_batch(self, n: int) -> None:
        self.report(f"out of memory; continuing with {n} responses per batch")


def _find_room(model: LanguageModel) -> int | None:
    """Return the maximum number of tokens a model can generate, or None without a limit."""
    if model.is_encoder_decoder:
        return getattr(model.model.config, "max_position_embeddings", None)
    return model.context


def _pad(ids: Sequence[int], width: int, filler: int, *, left: bool) -> list[int]:
    filling = [filler] * (width - len(ids))
    return [*filling, *ids] if left else [*ids, *filling]


def _cut(context: Context) -> Context:
    """Truncate the context at its beginning by the number of excess tokens."""
    return replace(context, ids=context.ids[context.n_over :], n_over=0)
