"""What engines that generate text have in common: encoded contexts, and prompts that leave no room for a response."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracker.errors import SelectionError
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokens import Context, describe_excess, encode_contexts
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, Sampling

PromptContext = tuple[RenderedPrompt, Context]


class ResponseContexts:
    """Encodes the contexts of prompts that are answered with generated text.

    Args:
        model: generates the text.
        sampling: sampling options.
        chat: whether prompts are sent as turns of a conversation.
        too_long: how to treat prompts that leave no room for a response: ``skip``, or ``cut`` to truncate their
            beginning.
        n_extra: tokens of the context that the model does not need for the response, whose last token it only predicts.
        limit: maximum number of tokens that the model can generate; None without one.

    Raises:
        SelectionError: ``sampling`` allows more tokens than the model can generate.
    """

    def __init__(
        self,
        model: LanguageModel,
        sampling: Sampling,
        *,
        chat: bool,
        too_long: str,
        n_extra: int,
        limit: int | None,
    ) -> None:
        self.model, self.sampling, self.chat, self.too_long = model, sampling, chat, too_long
        self._n_extra = n_extra
        self._contexts: tuple[Sequence[RenderedPrompt] | None, list[Context]] = (None, [])
        if limit is not None and sampling.max_tokens > limit:
            raise SelectionError(
                f"--max-tokens is {sampling.max_tokens:,}, but {model.name} can generate at most {limit:,} tokens. "
                "Use a smaller --max-tokens."
            )

    def encode_contexts(self, prompts: Sequence[RenderedPrompt]) -> list[Context]:
        """Return the encoded context of each prompt; few-shot examples are dropped until the response fits.

        The result is cached for the same list of prompts.
        """
        cached_prompts, contexts = self._contexts
        if cached_prompts is not prompts:
            room = self.sampling.max_tokens - self._n_extra
            contexts = encode_contexts(self.model, prompts, chat=self.chat, room=room)
            self._contexts = (prompts, contexts)
        return contexts

    def n_tokens(self, prompts: Sequence[RenderedPrompt]) -> list[int]:
        """Return the input tokens of each prompt, summed over its responses."""
        return [len(context.ids) * self.sampling.n_trials for context in self.encode_contexts(prompts)]

    @property
    def trials(self) -> range:
        """Return the numbers of the responses to a prompt."""
        return range(self.sampling.n_trials)

    def select_fitting(
        self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]
    ) -> tuple[list[PromptContext], list[Response]]:
        """Return the prompts that leave room for a response, and responses with an error for the others."""
        pairs = list(zip(prompts, self.encode_contexts(prompts), strict=True))
        if self.too_long == "cut":
            pairs = [(prompt, context.cut()) for prompt, context in pairs]
        too_long = [
            self._make_too_long_response(prompt, context, trial)
            for prompt, context in pairs
            if context.n_over and not is_stored(prompt.prompt_id)
            for trial in self.trials
        ]
        return [pair for pair in pairs if not pair[1].n_over], too_long

    def _make_too_long_response(self, prompt: RenderedPrompt, context: Context, trial: int) -> Response:
        kept = 0 if self.model.is_encoder_decoder else self.sampling.max_tokens
        reason = describe_excess(self.model, context, kept)
        return Response(
            prompt_id=prompt.prompt_id, trial=trial, n_examples=context.n_examples, error=reason, is_too_long=True
        )
