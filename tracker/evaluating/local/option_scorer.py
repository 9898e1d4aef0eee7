"""Compute the log-probability of each option after its prompt with a local model.

Prompts are packed one after another into rows, and a common prefix is computed once and cached. Not every model
computes packed rows correctly. This is tested on rows of copies of a prompt; models that fail compute each option
separately. So do all models for prompts whose length decides how positions are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import process_in_halves
from tracker.evaluating.local.packing import count_computed_tokens, group_by_prefix, pack_padded
from tracker.evaluating.local.padded_rows import score_option_by_option
from tracker.evaluating.local.row_choice import choose_row_size, find_route, prefers_flex
from tracker.evaluating.local.row_masks import find_rope_limit
from tracker.evaluating.local.row_scorer import MaskRoute, RowInFlight, RowScorer
from tracker.evaluating.local.tokens import Context, EncodedPrompt, add_spellings, describe_excess, encode_prompts
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, claim_batch

CPU_PADDED_TOKENS, PADDED_TOKENS = 4_096, 16_384
"""Tokens computed together, padding included, where each option has a separate row: on a CPU and elsewhere."""


class OptionScorer:
    """Responds to prompts with the log-probabilities of their options.

    Args:
        model: scores the options.
        method: ``letters`` or ``loglikelihood``.
        chat: whether prompts are sent as turns of a conversation.
        batch_size: prompts computed together; None for a suitable number.
        isolated_labels: score only the last token of each label, as the authors of SMART do, instead of the sum over
            its spellings.
        too_long: how to treat prompts that do not fit: ``skip``, or ``cut`` to truncate their beginning.
        report: called with a message if the evaluation deviates from the options.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        method: str,
        chat: bool = False,
        batch_size: int | None = None,
        isolated_labels: bool = False,
        too_long: str = "skip",
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model, self.method, self.chat, self.batch_size = model, method, chat, batch_size
        self.isolated_labels, self.too_long, self.report = isolated_labels, too_long, report
        self._prompts: Sequence[RenderedPrompt] | None = None
        self._encoded: list[EncodedPrompt] = []

    def encode(self, prompts: Sequence[RenderedPrompt]) -> list[EncodedPrompt]:
        """Return the prompts as tokens, in their order; cached for the same prompts.

        Raises:
            SelectionError: several labels have the same tokens.
        """
        if prompts is not self._prompts:
            self._encoded = encode_prompts(
                self.model,
                prompts,
                chat=self.chat,
                isolated_labels=self.isolated_labels,
                must_differ=self.method == "letters",
            )
            self._prompts = prompts
            if self.method == "letters":
                self._report_shared_beginnings()
                self._report_swallowed_labels()
                if not self.isolated_labels:
                    self._encoded = add_spellings(self.model, self._encoded)
        return self._encoded

    def _report_shared_beginnings(self) -> None:
        """Warn if a label's tokens begin with those of another label, which makes it never the likelier one."""
        begun = [label_pair for encoded in self._encoded if (label_pair := _find_shared_beginning(encoded)) is not None]
        if begun:
            shorter, longer = begun[0]
            self.report(
                f"in {len(begun):,} prompts one label is a prefix of another: {longer!r} begins with {shorter!r}. "
                "The longer label can never be the likelier one. Use other labels (--labels letters), or --method "
                "loglikelihood with option texts"
            )

    def _report_swallowed_labels(self) -> None:
        """Warn if the tokenizer joins a label's first characters to the prompt's last token."""
        joined = [encoded for encoded in self._encoded if encoded.swallowed]
        if joined:
            label = joined[0].prompt.options[joined[0].swallowed[0]]
            self.report(
                f"in {len(joined):,} prompts the tokenizer joins the end of the prompt to a label, such as {label!r}: "
                "the label is scored as separate tokens, which the model rarely generates there. Use a template that "
                "ends with a line, or --method loglikelihood with option texts"
            )

    def encode_contexts(self, prompts: Sequence[RenderedPrompt]) -> list[Context]:
        """Return the encoded prompts; few-shot examples are dropped until prompt and options fit."""
        return [encoded.context for encoded in self.encode(prompts)]

    def n_tokens(self, prompts: Sequence[RenderedPrompt]) -> list[int]:
        """Return the tokens of each prompt, with its examples and options."""
        return [count_computed_tokens(encoded, 0) for encoded in self.encode(prompts)]

    def respond(self, prompts: Sequence[RenderedPrompt], is_stored: Callable[[int], bool]) -> Iterator[list[Response]]:
        """Yield responses, as `tracker.evaluating.responses.ModelBackend` requires."""
        encoded_prompts = self.encode(prompts)
        if self.too_long == "cut":
            encoded_prompts = [encoded.cut() for encoded in encoded_prompts]
        fits = [encoded for encoded in encoded_prompts if not encoded.context.n_over]
        too_long = [
            _make_too_long_response(encoded, self.model) for encoded in encoded_prompts if encoded.context.n_over
        ]
        if missing := [response for response in too_long if not is_stored(response.prompt_id)]:
            yield missing
        together, alone = self._partition(fits)
        if alone:
            yield from self._score_separately(alone, is_stored, one_row_each=True)
        route, size = self._choose_rows(together) if together else (None, 0)
        if route is not None:
            yield from self._score_together(together, is_stored, route, size)
        elif together:
            yield from self._score_separately(together, is_stored)

    def _choose_rows(self, encoded_prompts: Sequence[EncodedPrompt]) -> tuple[MaskRoute | None, int]:
        """Return how masks reach the model in packed rows, and the tokens of a row; None if it cannot compute rows."""
        if self.model.is_encoder_decoder:
            return None, 0
        longest = max(encoded.length for encoded in encoded_prompts)
        dense_size, flex_size = (choose_row_size(self.model, longest, is_dense=dense) for dense in (True, False))
        route = find_route(self.model, encoded_prompts, dense_size)
        if route is None:
            self.report(
                f"{self.model.name} cannot compute several prompts in one row: options are computed separately, "
                "which is slower"
            )
        if route == "builders" and prefers_flex(self.model, encoded_prompts, dense_size, flex_size):
            return "flex", flex_size
        return route, dense_size

    def _partition(self, encoded_prompts: Sequence[EncodedPrompt]) -> tuple[list[EncodedPrompt], list[EncodedPrompt]]:
        """Return the prompts that may share a row, and those whose length decides how positions are encoded."""
        limit = None if self.model.is_encoder_decoder else find_rope_limit(self.model.model.config)
        alone = [encoded for encoded in encoded_prompts if limit is not None and encoded.length > limit]
        if alone:
            self.report(
                f"{self.model.name} encodes positions differently beyond {limit:,} tokens: the options of "
                f"{len(alone):,} prompts are computed separately, which is slower"
            )
        return [encoded for encoded in encoded_prompts if limit is None or encoded.length <= limit], alone

    def _score_together(
        self, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool], route: MaskRoute, size: int
    ) -> Iterator[list[Response]]:
        rows = self._submit_rows(encoded_prompts, is_stored, route, size)
        if self.model.device == "cpu":
            yield from map(self._make_responses, rows)
            return
        last: RowInFlight | None = None
        for row in rows:  # the next row is prepared and enqueued while the device computes the last one
            if last is not None:
                yield self._make_responses(last)
            last = row
        if last is not None:
            yield self._make_responses(last)

    def _submit_rows(
        self, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool], route: MaskRoute, size: int
    ) -> Iterator[RowInFlight]:
        for group in group_by_prefix(encoded_prompts, batch_size=self.batch_size, budget=size):
            rows: RowScorer | None = None
            for members in _claim_packs(group.packs, encoded_prompts, is_stored):
                rows = rows or RowScorer(self.model, group.prefix, route)
                yield from process_in_halves(rows.submit, members, self._report_smaller_batch)

    def _make_responses(self, row: RowInFlight) -> list[Response]:
        return [self._make_response(encoded, logprobs) for encoded, logprobs in row.collect()]

    def _score_separately(
        self, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool], *, one_row_each: bool = False
    ) -> Iterator[list[Response]]:
        def score(members: Sequence[EncodedPrompt]) -> list[tuple[EncodedPrompt, NDArray[np.float64]]]:
            logprobs = score_option_by_option(self.model, members, one_row_each=one_row_each)
            return list(zip(members, logprobs, strict=True))

        packs = pack_padded(
            encoded_prompts,
            batch_size=self.batch_size,
            budget=CPU_PADDED_TOKENS if self.model.device == "cpu" else PADDED_TOKENS,
            is_encoder_decoder=self.model.is_encoder_decoder,
        )
        for members in _claim_packs(packs, encoded_prompts, is_stored):
            for scored in process_in_halves(score, members, self._report_smaller_batch):
                yield [self._make_response(encoded, logprobs) for encoded, logprobs in scored]

    def _make_response(self, encoded: EncodedPrompt, logprobs: NDArray[np.float64]) -> Response:
        return Response(
            prompt_id=encoded.prompt.prompt_id,
            logprobs=encoded.sum_spellings(logprobs),
            n_examples=encoded.context.n_examples,
            n_tokens_read=count_computed_tokens(encoded, 0),
        )

    def _report_smaller_batch(self, n: int) -> None:
        self.report(f"out of memory; continuing with {n} prompts per batch")


def _claim_packs(
    packs: Sequence[Sequence[int]], encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool]
) -> Iterator[list[EncodedPrompt]]:
    """Claim packs of prompts one after another; yield those to compute."""
    for pack in packs:
        members = [encoded_prompts[at] for at in pack]
        if claim_batch(is_stored, [member.prompt.prompt_id for member in members]):
            yield members


def _find_shared_beginning(encoded: EncodedPrompt) -> tuple[str, str] | None:
    """Return two labels of which the second's tokens begin with all tokens of the first, if any."""
    for short, before in zip(encoded.prompt.options, encoded.options, strict=True):
        for long, ids in zip(encoded.prompt.options, encoded.options, strict=True):
            if len(before) < len(ids) and ids[: len(before)] == before:
                return short, long
    return None


def _make_too_long_response(encoded: EncodedPrompt, model: LanguageModel) -> Response:
    reason = describe_excess(model, encoded.context)
    return Response(
        prompt_id=encoded.prompt.prompt_id, n_examples=encoded.context.n_examples, error=reason, is_too_long=True
    )
