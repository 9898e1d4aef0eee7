"""Call the model's generation without its own sampling defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.model_files import silence_libraries


def generate(model: LanguageModel, *, filler: int, ends: Sequence[int] = (), **options: Any) -> Any:
    """Return the output of the model's ``generate``, decoded greedily.

    Args:
        model: generates the tokens.
        filler: token that pads rows.
        ends: end tokens.
        **options: inputs, and options of ``generate`` such as ``max_new_tokens``.
    """
    import torch

    with torch.inference_mode(), _plain_generation_config(model.model, filler, ends), silence_libraries():
        return model.model.generate(return_dict_in_generate=True, **options)


@contextmanager
def _plain_generation_config(model: Any, filler: int, ends: Sequence[int]) -> Iterator[None]:
    """Remove the model's own sampling defaults (penalties, beams, temperature) from its generation settings.

    Tokens that begin and end a generated text are kept.
    """
    from transformers import GenerationConfig

    saved_config = model.generation_config
    names = ("bos_token_id", "decoder_start_token_id", "forced_bos_token_id")
    needed = {name: getattr(saved_config, name, None) for name in names}
    model.generation_config = GenerationConfig(
        do_sample=False, num_beams=1, use_cache=True, pad_token_id=filler, eos_token_id=list(ends) or None,
        **{name: value for name, value in needed.items() if value is not None},
    )  # fmt: skip
    try:
        yield
    finally:
        model.generation_config = saved_config


def find_filler(tokenizer: Any, ends: Sequence[int]) -> int:
    """Return the token that pads short rows and finished rows; the model never attends to it."""
    candidates = (tokenizer.pad_token_id, *ends, tokenizer.bos_token_id, 0)
    return int(next(token for token in candidates if token is not None))


def pad_rows(model: LanguageModel, rows: Sequence[Ids], filler: int) -> tuple[Any, Any]:
    """Return tokens and attention mask, ``(n_rows, n_columns)`` each; a causal model is padded on the left."""
    import torch

    width = max(map(len, rows))
    ids, mask = [], []
    for row in rows:
        padding, seen = [filler] * (width - len(row)), [1] * len(row)
        blank = [0] * len(padding)
        ids.append([*row, *padding] if model.is_encoder_decoder else [*padding, *row])
        mask.append([*seen, *blank] if model.is_encoder_decoder else [*blank, *seen])
    return torch.tensor(ids, device=model.device), torch.tensor(mask, device=model.device)
