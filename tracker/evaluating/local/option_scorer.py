"""Compute the log-probability of each option after its prompt with a local model.

Prompts are packed one after another into rows, and a common prefix is computed once and cached. Not every model
computes packed rows correctly. This is tested on a row of copies of the shortest prompt; models that fail compute each
option separately.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import is_out_of_memory, process_in_halves
from tracker.evaluating.local.packing import PrefixGroup, count_computed_tokens, group_by_prefix, pack_row
from tracker.evaluating.local.padded_rows import score_option_by_option
from tracker.evaluating.local.tokens import Context, EncodedPrompt, Ids, describe_excess, encode_prompts
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response, claim_batch

TOKENS_TOGETHER = {"cpu": 512}
ACCELERATOR_TOKENS_TOGETHER = 2_048
"""Default number of tokens computed together on an accelerator."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 0.08, "float16": 0.02}
"""Tolerance of a token's log-probability, by dtype. The order of summation alone stays below it. Of 30 kinds of small
models with random weights, those that support packed rows deviated by at most 0.009 (bfloat16) and 0.001 (float16),
the others by at least 0.1.
"""
MAX_TEST_CONTEXT = 64
"""Maximum tokens of a context for the test of packed rows."""
MAX_TEST_ROW = 4_096
"""Maximum tokens of the row on which a model is tested."""
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "attention_window_size")
"""Names in model configurations of the attention window of sliding-window layers."""


class OptionScorer:
    """Responds to prompts with the log-probabilities of their options.

    Args:
        model: scores the options.
        method: ``letters`` or ``loglikelihood``.
        chat: whether prompts are sent as turns of a conversation.
        batch_size: prompts computed together; None for a suitable number.
        isolated_labels: score only the last token of each label, as the authors of SMART do.
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
        self.budget = TOKENS_TOGETHER.get(str(model.device).split(":")[0], ACCELERATOR_TOKENS_TOGETHER)
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
        if fits:
            score = self._score_together if self._supports_rows(fits) else self._score_separately
            yield from score(fits, is_stored)

    def _score_together(
        self, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool]
    ) -> Iterator[list[Response]]:
        for group in group_by_prefix(encoded_prompts, batch_size=self.batch_size, budget=self.budget):
            yield from self._score_group(group, encoded_prompts, is_stored)

    def _score_group(
        self, group: PrefixGroup, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool]
    ) -> Iterator[list[Response]]:
        rows: _RowScorer | None = None
        for pack in group.packs:
            members = [encoded_prompts[at] for at in pack]
            if not claim_batch(is_stored, [member.prompt.prompt_id for member in members]):
                continue
            rows = rows or _RowScorer(self.model, group.prefix)
            for scored in process_in_halves(rows.compute_logprobs, members, self._report_smaller_batch):
                yield [self._make_response(encoded, logprobs) for encoded, logprobs in scored]

    def _score_separately(
        self, encoded_prompts: Sequence[EncodedPrompt], is_stored: Callable[[int], bool]
    ) -> Iterator[list[Response]]:
        def score(members: Sequence[EncodedPrompt]) -> list[tuple[EncodedPrompt, NDArray[np.float64]]]:
            return list(zip(members, score_option_by_option(self.model, members), strict=True))

        for group in group_by_prefix(encoded_prompts, batch_size=self.batch_size, budget=self.budget):
            for pack in group.packs:
                members = [encoded_prompts[at] for at in pack]
                if claim_batch(is_stored, [member.prompt.prompt_id for member in members]):
                    for scored in process_in_halves(score, members, self._report_smaller_batch):
                        yield [self._make_response(encoded, logprobs) for encoded, logprobs in scored]

    def _supports_rows(self, encoded_prompts: Sequence[EncodedPrompt]) -> bool:
        """Return whether the model computes the same numbers for packed prompts as for each option separately."""
        if self.model.is_encoder_decoder:
            return False
        longest = max(encoded.length for encoded in encoded_prompts)
        window = _find_window(self.model.model.config)
        if window is not None and longest >= window:
            self.report(
                f"{self.model.name} has an attention window of {window:,} tokens, shorter than the longest prompt: "
                "options are computed separately, which is slower"
            )
            return False
        short = min(encoded_prompts, key=lambda encoded: encoded.length).shorten(MAX_TEST_CONTEXT)
        if not self._measure_row_error(short, min(self.budget + longest, MAX_TEST_ROW)) <= 1:
            self.report(
                f"{self.model.name} cannot compute several prompts in one row: options are computed separately, "
                "which is slower"
            )
            return False
        return True

    def _measure_row_error(self, short: EncodedPrompt, n_tokens: int) -> float:
        """Return the error of a prompt in a packed row, relative to the tolerance; infinite if rows cannot be computed.

        The row is filled with copies, because models that count a window or positions along the row are wrong only far
        from its beginning.
        """
        prefix = short.context.ids[: len(short.context.ids) // 2]
        n_copies = max(2, n_tokens // count_computed_tokens(short, len(prefix)))
        by_itself = score_option_by_option(self.model, [short])[0]
        n_summed = np.sqrt([len(option) for option in short.options])  # rounding errors add up like a random walk
        far = 0.0
        try:
            for option_logprobs in process_in_halves(
                _RowScorer(self.model, prefix).compute_logprobs, [short] * n_copies
            ):
                far = max(
                    far, *(float(np.sqrt((((n - by_itself) / n_summed) ** 2).mean())) for _, n in option_logprobs)
                )
        except (
            TypeError,
            ValueError,
            RuntimeError,
            AttributeError,
            KeyError,
            IndexError,
            NotImplementedError,
        ) as error:
            if is_out_of_memory(error):
                raise
            return np.inf
        return far / TOLERANCE.get(self.model.dtype, TOLERANCE["bfloat16"])

    def _make_response(self, encoded: EncodedPrompt, logprobs: NDArray[np.float64]) -> Response:
        return Response(
            prompt_id=encoded.prompt.prompt_id,
            logprobs=logprobs,
            n_examples=encoded.context.n_examples,
            n_tokens_read=count_computed_tokens(encoded, 0),
        )

    def _report_smaller_batch(self, n: int) -> None:
        self.report(f"out of memory; continuing with {n} prompts per batch")


class _RowScorer:
    """Computes packed rows of prompts after a prefix that is computed once.

    Args:
        model: computes the rows.
        prefix: tokens of the prefix; may be empty.
    """

    def __init__(self, model: LanguageModel, prefix: Ids) -> None:
        self.model, self.n_prefix = model, len(prefix)
        self.keeps = "logits_to_keep" in inspect.signature(model.model.forward).parameters
        self.cache: Any = None
        if prefix:
            import torch

            with torch.inference_mode():
                ids = torch.tensor([prefix], device=model.device)
                last_logits = {"logits_to_keep": 1} if self.keeps else {}
                self.cache = model.model(input_ids=ids, use_cache=True, **last_logits).past_key_values

    def compute_logprobs(self, members: Sequence[EncodedPrompt]) -> list[tuple[EncodedPrompt, NDArray[np.float64]]]:
        """Return the log-probabilities of the options of each prompt, ``(n_options,)`` each."""
        import torch

        row = pack_row(members, self.n_prefix)
        device = self.model.device
        places, back = np.unique(row.predictors, return_inverse=True)
        predictor_places = torch.from_numpy(places).to(device)
        kind = self.model.model.dtype
        allowed = torch.from_numpy(row.attention_mask(self.n_prefix)).to(device)
        mask = torch.zeros(allowed.shape, dtype=kind, device=device).masked_fill_(~allowed, torch.finfo(kind).min)
        with torch.inference_mode():
            out = self.model.model(
                input_ids=torch.from_numpy(row.ids)[None].to(device),
                position_ids=torch.from_numpy(row.positions)[None].to(device),
                attention_mask=mask[None, None],
                past_key_values=_copy_cache(self.cache),
                use_cache=self.cache is not None,
                **({"logits_to_keep": predictor_places} if self.keeps else {}),
            )
            logits = out.logits[0] if self.keeps else out.logits[0, predictor_places]
            logits = logits.float()
            at = torch.from_numpy(back).to(device)
            targets = torch.from_numpy(row.targets).to(device)
            option_logprobs = logits[at, targets] - logits.logsumexp(dim=-1)[at]
        return list(zip(members, row.sum_by_option(option_logprobs.double().cpu().numpy()), strict=True))


def _find_shared_beginning(encoded: EncodedPrompt) -> tuple[str, str] | None:
    """Return two labels of which the second's tokens begin with all tokens of the first, if any."""
    for short, before in zip(encoded.prompt.options, encoded.options, strict=True):
        for long, ids in zip(encoded.prompt.options, encoded.options, strict=True):
            if len(before) < len(ids) and ids[: len(before)] == before:
                return short, long
    return None


def _find_window(config: Any) -> int | None:
    """Return the attention window of sliding-window layers in tokens; None if every layer attends to all tokens."""
    text = config.get_text_config()
    sizes = [getattr(text, name, None) for name in WINDOWS]
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    if isinstance(rope, Mapping) and rope.get("rope_type", rope.get("type")) in ("longrope", "dynamic"):
        # beyond that length all positions are encoded differently, and the row's length decides
        usual = getattr(text, "original_max_position_embeddings", None) or text.max_position_embeddings
        sizes.append(rope.get("original_max_position_embeddings") or usual)
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def _copy_cache(cache: Any) -> Any:
    """Return a copy of the prefix's keys and values; appending to the copy does not change the original."""
    import copy

    if cache is None:
        return None
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    return copied


def _make_too_long_response(encoded: EncodedPrompt, model: LanguageModel) -> Response:
    reason = describe_excess(model, encoded.context)
    return Response(
        prompt_id=encoded.prompt.prompt_id, n_examples=encoded.context.n_examples, error=reason, is_too_long=True
    )
