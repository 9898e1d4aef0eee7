"""A Llama of random weights on any device: time does not depend on what the weights are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.tracker.language_model_files import write_language_model
from tracker.evaluating.local.loading import LanguageModel


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of the model and of the work. By default 1.2 billion parameters, as of the smallest Llama 3.2."""

    width: int = 2_048
    inner: int = 8_192
    n_layers: int = 16
    n_heads: int = 32
    n_groups: int = 8
    n_words: int = 128_256
    context: int = 4_096
    n_prompts: int = 4_000
    n_generated: int = 512
    max_tokens: int = 128
    side: int = 8_192
    row_sizes: tuple[int, ...] = (2_000, 4_000, 8_000, 16_000)


@dataclass
class Count:
    """Tokens that went through a model."""

    n_tokens: int = 0


def random_model(device: str, shape: Shape) -> LanguageModel:
    """A model that never lay in a file, with a tokenizer that uses the first of its words."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    with TemporaryDirectory() as name:
        tokenizer = AutoTokenizer.from_pretrained(
            write_language_model(Path(name), "llama", size=64, context=shape.context)
        )
    config = LlamaConfig(
        hidden_size=shape.width, intermediate_size=shape.inner, num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads, num_key_value_heads=shape.n_groups, vocab_size=shape.n_words,
        max_position_embeddings=shape.context, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
        pad_token_id=3,
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            llama = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return LanguageModel(
        name="random", revision="", model=llama.eval().requires_grad_(False), tokenizer=tokenizer, device=device,
        dtype="bfloat16", context=shape.context, is_encoder_decoder=False, architecture="LlamaForCausalLM",
        n_parameters=llama.num_parameters(),
    )  # fmt: skip


@contextmanager
def counted(model: LanguageModel) -> Iterator[Count]:
    """Counts the tokens that go through a model while it lasts."""
    counter = Count()

    def count(_: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        counter.n_tokens += (keywords["input_ids"] if "input_ids" in keywords else arguments[0]).numel()

    hook = model.model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield counter
    finally:
        hook.remove()
