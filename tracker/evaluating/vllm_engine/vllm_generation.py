"""Generate responses by vLLM, which batches and schedules the requests itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.response_contexts import PromptContext, ResponseContexts
from tracker.evaluating.local.tokens import Context
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling, claim_batch, end_text
from tracker.evaluating.servers.prompt_requests import derive_seed
from tracker.evaluating.vllm_engine.vllm_options import PROMPTS_TOGETHER


class VllmGenerator(ResponseContexts):
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
        limit = None if model.context is None else model.context - 1
        super().__init__(model, sampling, chat=chat, too_long=too_long, n_extra=0, limit=limit)
        self.report = report
        self._n_together = batch_size or max(1, PROMPTS_TOGETHER // sampling.n_trials)

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires; all responses to a prompt are in
        one block.
        """
        fits, too_long = self.select_fitting(prompts, is_stored)
        if too_long:
            yield too_long
        for first in range(0, len(fits), self._n_together):
            members = fits[first : first + self._n_together]
            if claim_batch(is_stored, [prompt.prompt_id for prompt, _ in members]):
                yield self._generate(members)

    def _generate(self, members: Sequence[PromptContext]) -> list[Response]:
        rows = [(prompt, context, trial) for prompt, context in members for trial in self.trials]
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
