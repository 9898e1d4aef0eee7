"""What evaluation on a device is measured beside: lm-evaluation-harness with the same model, and vLLM with its files.

Both receive tokens: tokenising is measured apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt

BATCHES = (16, 64, 256)
N_TRIED = 64
VLLM_MEMORY = 0.5
"""Share of the memory of the device that vLLM may use beside the loaded model."""

Work = Callable[[int], object]
"""Responds to the first prompts, as many as it is given."""
Peer = tuple[str, Work]


def option_peers(model: LanguageModel, prompts: Sequence[RenderedPrompt]) -> Iterator[Peer]:
    """Each installed peer: its name, and the work of scoring the options of the prompts."""
    if find_spec("lm_eval") is not None:
        for size in BATCHES:
            yield f"lm-evaluation-harness, batches of {size}", harness_options(model, prompts, size)
    if has_vllm(model):
        with TemporaryDirectory() as folder:
            yield "vLLM", vllm_options(model, prompts, folder)


def generation_peers(model: LanguageModel, prompts: Sequence[RenderedPrompt], max_tokens: int) -> Iterator[Peer]:
    """Each installed peer: its name, and the work of generating responses to the prompts."""
    if find_spec("lm_eval") is not None:
        for size in BATCHES:
            yield f"lm-evaluation-harness, batches of {size}", harness_generation(model, prompts, size, max_tokens)
    if has_vllm(model):
        with TemporaryDirectory() as folder:
            yield "vLLM", vllm_generation(model, prompts, folder, max_tokens)


def has_vllm(model: LanguageModel) -> bool:
    """Whether vLLM is installed and the model is on a device that it uses."""
    return model.device.startswith("cuda") and find_spec("vllm") is not None


def harness(model: LanguageModel, batch_size: int) -> Any:
    """The model as the harness sees it."""
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=model.model, tokenizer=model.tokenizer, backend="causal", batch_size=batch_size)


def harness_options(model: LanguageModel, prompts: Sequence[RenderedPrompt], batch_size: int) -> Work:
    """Score the options of prompts with the harness."""
    peer = harness(model, batch_size)
    requests = [
        [((prompt.text(), prompt.join + option), *peer._encode_pair(prompt.text(), prompt.join + option))
         for option in prompt.options]
        for prompt in prompts
    ]  # fmt: skip

    def respond(n: int) -> object:
        flat = [request for of_prompt in requests[:n] for request in of_prompt]
        scored = peer._loglikelihood_tokens(flat, disable_tqdm=True)
        assert len(scored) == len(flat)
        return scored

    return respond


def harness_generation(
    model: LanguageModel, prompts: Sequence[RenderedPrompt], batch_size: int, max_tokens: int
) -> Work:
    """Generate responses with the harness, greedily and without stop strings; it tokenises while it does."""
    from lm_eval.api.instance import Instance

    peer = harness(model, batch_size)
    options = {"until": [], "max_gen_toks": max_tokens, "do_sample": False}
    requests = [
        Instance(request_type="generate_until", doc={}, arguments=(prompt.text(), options), idx=place)
        for place, prompt in enumerate(prompts)
    ]

    def respond(n: int) -> object:
        texts = peer.generate_until(requests[:n], disable_tqdm=True)
        assert len(texts) == len(requests[:n])
        return texts

    return respond


def vllm_engine(model: LanguageModel, folder: str) -> Any:
    """The model as vLLM loads it from files."""
    from vllm import LLM

    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return LLM(model=folder, dtype=model.dtype, max_model_len=model.context, gpu_memory_utilization=VLLM_MEMORY)


def vllm_options(model: LanguageModel, prompts: Sequence[RenderedPrompt], folder: str) -> Work:
    """Score the options of prompts with vLLM: the log-probabilities of the tokens of each text."""
    from vllm import SamplingParams

    engine, sampling = vllm_engine(model, folder), SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0)
    encode = model.tokenizer.encode
    texts = [
        [{"prompt_token_ids": encode(prompt.text() + prompt.join + option)} for option in prompt.options]
        for prompt in prompts
    ]

    def respond(n: int) -> object:
        return engine.generate([text for of_prompt in texts[:n] for text in of_prompt], sampling, use_tqdm=False)

    return respond


def vllm_generation(model: LanguageModel, prompts: Sequence[RenderedPrompt], folder: str, max_tokens: int) -> Work:
    """Generate responses with vLLM, greedily."""
    from vllm import SamplingParams

    engine, sampling = vllm_engine(model, folder), SamplingParams(max_tokens=max_tokens, temperature=0.0)
    texts = [{"prompt_token_ids": model.tokenizer.encode(prompt.text())} for prompt in prompts]
    return lambda n: engine.generate(texts[:n], sampling, use_tqdm=False)
