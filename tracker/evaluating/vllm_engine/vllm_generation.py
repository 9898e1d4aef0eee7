"""Generate responses by vLLM, which batches and schedules the requests itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokens import Context, describe_excess, encode_contexts
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling, claim_batch, end_text
from tracker.evaluating.servers.prompt_requests import derive_seed
from tracker.evaluating.vllm_engine.vllm_options import PROMPTS_TOGETHER


class VllmGenerator:
    """Responds to prompts with generated text; arguments as `tracker.evaluating.local.generation.TextGenerator`.

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
        self._n_together = batch_size or max(1, PROMPTS_TOGETHER // sampling.n_trials)
        self._contexts: tuple[Sequence[RenderedPrompt] | None, list[Context]] = (None, [])
        if model.context is not None and sampling.max_tokens >= model.context:
            raise SelectionError(
                f"--max-tokens is {sampling.max_tokens:,}, but {model.name} can generate at most "
                f"{model.context - 1:,} tokens. Use a smaller --max-tokens."
            )

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires; all responses to a prompt are in
        one block.
        """
        pairs = list(zip(prompts, self.encode_contexts(prompts), strict=True))
        if self.too_long == "cut":
            pairs = [(prompt, _cut(context)) for prompt, context in pairs]
        too_long = [pair for pair in pairs if pair[1].n_over and not is_stored(pair[0].prompt_id)]
        if too_long:
            yield [self._make_too_long_response(*pair, trial) for pair in too_long for trial in self._trials]
        fits = [pair for pair in pairs if not pair[1].n_over]
        for first in range(0, len(fits), self._n_together):
            members = fits[first : first + self._n_together]
            if claim_batch(is_stored, [prompt.prompt_id for prompt, _ in members]):
                yield self._generate(members)

    def encode_contexts(self, prompts: Sequence[RenderedPrompt]) -> list[Context]:
        """Return the encoded context of each prompt; few-shot examples are dropped until the response fits.

        The result is cached for the same list of prompts.
        """
        cached_prompts, contexts = self._contexts
        if cached_prompts is not prompts:
            contexts = encode_contexts(self.model, prompts, chat=self.chat, room=self.sampling.max_tokens)
            self._contexts = (prompts, contexts)
        return contexts

    def n_tokens(self, prompts: Sequence[RenderedPrompt]) -> list[int]:
        """Return the input tokens of each prompt, summed over its responses."""
        return [len(context.ids) * self.sampling.n_trials for context in self.encode_contexts(prompts)]

    @property
    def _trials(self) -> range:
        return range(self.sampling.n_trials)

    def _generate(self, members: Sequence[tuple[RenderedPrompt, Context]]) -> list[Response]:
        rows = [(prompt, context, trial) for prompt, context in members for trial in self._trials]
        requests = [(context.ids, self._make_options(context, trial)) for _, context, trial in rows]
        responses = []
        for (prompt, context, trial), output in zip(rows, self.model.model.run(requests), strict=True):
            generated = output.outputs[0]
            fields: dict[str, Any] = end_text(generated.text, self.sampling.stop, generated.finish_reason or "")
            response = Response(
                prompt_id=prompt.prompt_id, trial=trial, n_examples=context.n_examples,
                n_tokens_read=len(context.ids), n_tokens_written=len(generated.token_ids),
                **fields,
            )  # fmt: skip
            responses.append(response)
        return responses

    def _make_options(self, context: Context, trial: int) -> dict[str, Any]:
        """Return the sampling parameters of one response; each text and trial has a separate seed."""
        sampling = self.sampling
        options: dict[str, Any] = {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature}
        if sampling.temperature > 0:
            options |= {"top_p": sampling.top_p, "seed": derive_seed(sampling.seed, context.text, trial)}
        if stop := [word for word in sampling.stop if word]:
            options["stop"] = stop
        return options

    def _make_too_long_response(self, prompt: RenderedPrompt, context: Context, trial: int) -> Response:
        reason = describe_excess(self.model, context, self.sampling.max_tokens)
        return Response(
            prompt_id=prompt.prompt_id, trial=trial, n_examples=context.n_examples, error=reason, is_too_long=True
        )


def _cut(context: Context) -> Context:
    """Truncate the context at its beginning by the number of excess tokens."""
    return replace(context, ids=context.ids[context.n_over :], n_over=0)
