"""Test which batches a model computes like single prompts, on a part of one prompt.

Recurrent models may read padding as text (RecurrentGemma), and some compute a batch wrongly in every case (RWKV in
transformers). Attention is right with any of them, up to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.evaluating.local.decoding.generate import find_filler, generate, pad_rows
from tracker.evaluating.local.decoding.prefix_cache import compute_prefix
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import is_out_of_memory
from tracker.evaluating.local.self_check import UNSUPPORTED, find_tolerance
from tracker.evaluating.local.tokenization import Ids

N_TESTED = 64
"""Tokens of the prompt on which a model is tested."""
N_STEPS = 4
"""Generated tokens that are compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """Which prompts a model computes correctly together.

    Attributes:
        together: whether prompts of equal length are.
        padded: whether prompts of different lengths are.
        reuses: whether cached keys and values of a row can be copied to others.
    """

    together: bool
    padded: bool
    reuses: bool


def find_batching(model: LanguageModel, context: Ids, *, n_longest: int) -> Batching:
    """Compare small batches with single prompts.

    Args:
        model: the model.
        context: tokens of a prompt.
        n_longest: tokens of the longest prompt with its response.
    """
    text = context[:N_TESTED]
    text = text * -(-8 // len(text))
    half, most = len(text) // 2, len(text) * 3 // 4
    test = _Test(model)
    switches_rope = has_switching_positions(model.model.config, n_longest)
    rows = [text, text[:most]]
    reuses = not (switches_rope or model.is_encoder_decoder) and test.agrees(rows, prefix=text[:half])
    padded = not switches_rope and (reuses or test.agrees(rows))
    together = padded or test.agrees([text[:most], text[-most:]])
    return Batching(together=together, padded=padded, reuses=reuses)


def has_switching_positions(config: Any, n_tokens: int) -> bool:
    """Return whether all positions are encoded differently in a batch that reaches some length (longrope, dynamic)."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    layers = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    limits = [
        part.get("original_max_position_embeddings")
        or getattr(text, "original_max_position_embeddings", None)
        or text.max_position_embeddings
        for part in layers
        if part.get("rope_type", part.get("type")) in ("longrope", "dynamic")
    ]
    return any(n_tokens > limit for limit in limits)


class _Test:
    """Compares batches of a model with single prompts."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.filler = find_filler(model.tokenizer, ())
        self._alone: dict[Ids, tuple[Any, list[int]]] = {}

    def agrees(self, rows: Sequence[Ids], *, prefix: Ids = ()) -> bool:
        """Return whether most outputs of a batch are those of its rows alone.

        Most, because a mixture of experts may send a token elsewhere for a difference in its last digits.
        """
        import torch

        alone = [self._run_alone(row) for row in rows]
        tokens = [generated for _, generated in alone]
        try:
            logprobs = self._run(rows, lambda row, step: tokens[row][step], prefix)[0]
        except UNSUPPORTED as error:
            if is_out_of_memory(error):
                raise
            return False
        differences = logprobs - torch.cat([expected for expected, _ in alone])
        errors = differences.square().mean(dim=-1).sqrt().flatten()
        within = errors <= find_tolerance(self.model.dtype)
        return 2 * int(within.sum()) > len(within)

    def _run_alone(self, row: Ids) -> tuple[Any, list[int]]:
        if row not in self._alone:
            logprobs, tokens = self._run([row], None, ())
            self._alone[row] = (logprobs, tokens[0])
        return self._alone[row]

    def _run(
        self, rows: Sequence[Ids], force: Callable[[int, int], int] | None, prefix: Ids
    ) -> tuple[Any, list[list[int]]]:
        """Return the log-probabilities of each step, ``(n_rows, n_steps, n_tokens)``, and the generated tokens."""
        import torch

        ids, mask = pad_rows(self.model, rows, self.filler)
        options: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if prefix:
            cached = compute_prefix(self.model, prefix, self.filler)
            if cached is None:
                raise NotImplementedError
            options["past_key_values"] = cached.expand([ids.shape[1] - len(row) for row in rows])
        n_read = 1 if self.model.is_encoder_decoder else ids.shape[1]

        def choose(input_ids: Any, scores: Any) -> Any:
            """Leave only the token that the row generates alone."""
            step = input_ids.shape[1] - n_read
            chosen = torch.full_like(scores, -torch.inf)
            for row in range(len(rows)):
                chosen[row, force(row, step) if force else int(scores[row].argmax())] = 0
            return chosen

        out = generate(
            self.model, filler=self.filler, max_new_tokens=N_STEPS, output_logits=True, logits_processor=[choose],
            **options,
        )  # fmt: skip
        logprobs = torch.stack(out.logits, dim=1).double().log_softmax(dim=-1)
        return logprobs, out.sequences[:, n_read:].tolist()
