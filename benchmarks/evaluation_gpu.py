"""Evaluating with a model of a billion parameters on a CUDA device: tokens a second, and share of the card's rate.

The model is a Llama of random weights, built on the device in bfloat16: time does not depend on what the weights are.
Prompts are those of `benchmarks.evaluation`. The card's rate is measured in the same run, by products of large bfloat16
matrices. What evaluating computes is counted low: two operations per weight of the layers for each token that goes
through the model, and per weight of the output for none; attention is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._peers import DeviceMissingError
from benchmarks.evaluation import N_EXAMPLES, Method, prompts
from tests.tracker.language_model_files import write_language_model
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.option_scorer import OptionScorer
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt

METHODS: tuple[Method, ...] = ("loglikelihood", "letters")
SIDE = 8_192
N_PRODUCTS = 20
N_WARM = 64


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of the model and its prompts. By default 1.2 billion parameters, as of the smallest Llama 3.2."""

    width: int = 2_048
    inner: int = 8_192
    n_layers: int = 16
    n_heads: int = 32
    n_groups: int = 8
    n_words: int = 128_256
    n_prompts: int = 4_000


def measurements() -> Iterator[dict[str, Any]]:
    """One line per method and kind of examples."""
    import torch

    if not torch.cuda.is_available():
        raise DeviceMissingError("CUDA")
    yield from measured("cuda:0", Shape(), torch.cuda.get_device_name(0))


def measured(device: str, shape: Shape, label: str) -> Iterator[dict[str, Any]]:
    """The same on any device."""
    model = random_model(device, shape)
    weights = sum(p.numel() for p in model.model.model.layers.parameters())
    for method in METHODS:
        for fixed in (True, False):
            rendered = prompts(method, fixed, shape.n_prompts)
            n_read = sum(OptionScorer(model, method=method).n_tokens(rendered))
            _respond(model, method, rendered[:N_WARM])
            with counted(model) as count:
                spent = seconds(device, partial(_respond, model, method, rendered))
            card = matrix_rate(device)
            done = 2 * weights * count.n_tokens / spent
            examples = f"{N_EXAMPLES} {'fixed' if fixed else 'varying'} examples"
            yield {
                "name": f"{label}: {shape.n_prompts:,} prompts by {method}, {examples}, "
                f"Llama of random weights, {model.n_parameters / 1e9:.2f} billion parameters, {model.dtype}",
                "ours_s": spent,
                "prompts_per_s": shape.n_prompts / spent,
                "tokens_read_per_s": n_read / spent,
                "tokens_computed_per_s": count.n_tokens / spent,
                "share_of_tokens_computed": count.n_tokens / n_read,
                "teraflops": done / 1e12,
                "card_teraflops": card / 1e12,
                "share_of_matrix_rate": done / card,
            }


def _respond(model: LanguageModel, method: Method, rendered: Sequence[RenderedPrompt]) -> None:
    n_answered = sum(map(len, OptionScorer(model, method=method).respond(rendered, lambda _: False)))
    assert n_answered == len(rendered)


def random_model(device: str, shape: Shape) -> LanguageModel:
    """A model that never lay in a file, with a tokenizer that uses the first of its words."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    with TemporaryDirectory() as name:
        tokenizer = AutoTokenizer.from_pretrained(write_language_model(Path(name), "llama", size=64, context=4_096))
    config = LlamaConfig(
        hidden_size=shape.width, intermediate_size=shape.inner, num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads, num_key_value_heads=shape.n_groups, vocab_size=shape.n_words,
        max_position_embeddings=4_096, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=3,
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
        dtype="bfloat16", context=4_096, is_encoder_decoder=False, architecture="LlamaForCausalLM",
        n_parameters=llama.num_parameters(),
    )  # fmt: skip


@dataclass
class Count:
    """Tokens that went through a model."""

    n_tokens: int = 0


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


def matrix_rate(device: str, side: int = SIDE) -> float:
    """Operations a second of products of bfloat16 matrices, the best of three tries."""
    import torch

    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))

    def products() -> None:
        for _ in range(N_PRODUCTS):
            torch.mm(a, b)

    products()
    return 2 * side**3 * N_PRODUCTS / min(seconds(device, products) for _ in range(3))


def seconds(device: str, run: Callable[[], object]) -> float:
    """Wall-clock seconds until the device has done it."""
    import torch

    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    started = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - started


if __name__ == "__main__":
    for measurement in measurements():
        print(json.dumps(measurement), flush=True)
