"""A stand-in for the package vllm: its documented classes, computed by transformers, one request at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

from tracker.evaluating.local.decoding.stop_strings import decode_tokens


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class SamplingParams:
    """The parameters of vLLM 0.33 that are used; others are an error, as there."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    detokenize: bool = True

    def __post_init__(self) -> None:
        if self.logprob_token_ids is not None and len(self.logprob_token_ids) > 128:
            raise ValueError("Requested logprob_token_ids of length above 128")


@dataclass
class OldSamplingParams:
    """Those of older versions, which do not return the log-probabilities of chosen tokens."""

    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    prompt_logprobs: int | None = None
    detokenize: bool = True
    logprob_token_ids: list[int] | None = field(init=False, default=None)


class LLM:
    """vLLM's class for models in this process."""

    arguments: dict[str, Any]

    def __init__(self, model: str, *, tokenizer: str, dtype: str, **options: Any) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        type(self).arguments = {"model": model, "dtype": dtype, **options}
        self.tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()
        length = getattr(self.model.config, "max_position_embeddings", None) or self.model.config.n_positions
        self.llm_engine = SimpleNamespace(
            model_config=SimpleNamespace(max_model_len=length, dtype=f"torch.{str(self.model.dtype).split('.')[-1]}")
        )

    def generate(self, prompts: list[dict[str, Any]], sampling_params: list[Any], *, use_tqdm: bool) -> list[Any]:
        assert len(prompts) == len(sampling_params)
        return [
            self._respond(prompt["prompt_token_ids"], p) for prompt, p in zip(prompts, sampling_params, strict=True)
        ]

    def _respond(self, ids: list[int], params: Any) -> Any:
        limit = self.llm_engine.model_config.max_model_len
        if len(ids) + 1 > limit:
            raise ValueError(
                f"The decoder prompt (length {len(ids)}) is longer than the maximum model length of {limit}."
            )
        before = self._logprobs(ids)
        prompt_logprobs = None
        if params.prompt_logprobs is not None:
            prompt_logprobs = [None, *({token: _rank(before[at], token)} for at, token in enumerate(ids[1:]))]
        written: list[int] = []
        first: dict[int, Logprob] = {}
        finish_reason, text = "length", ""
        while len(written) < (params.max_tokens or limit) and len(ids) + len(written) < limit:
            row = before[-1] if not written else self._logprobs([*ids, *written])[-1]
            token = self._draw(row, params, len(written))
            if not written:
                first = {number: _rank(row, number) for number in (*(params.logprob_token_ids or ()), token)}
            written.append(token)
            kept = [number for number in written if number != self.model.config.eos_token_id]
            text = decode_tokens(self.tokenizer, kept) if params.detokenize else ""
            stops = [text.find(word) for word in params.stop or () if word in text]
            if token == self.model.config.eos_token_id or stops:
                finish_reason, text = "stop", text[: min(stops, default=len(text))]
                break
        output = SimpleNamespace(text=text, token_ids=written, logprobs=[first], finish_reason=finish_reason)
        return SimpleNamespace(outputs=[output], prompt_logprobs=prompt_logprobs, prompt_token_ids=ids)

    def _logprobs(self, ids: list[int]) -> Any:
        import torch

        with torch.inference_mode():
            return self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)

    def _draw(self, row: Any, params: Any, step: int) -> int:
        import torch

        if params.temperature == 0:
            return int(row.argmax())
        generator = torch.Generator().manual_seed((params.seed or 0) + step)
        return int(torch.multinomial((row / params.temperature).exp(), 1, generator=generator))


def _rank(row: Any, token: int) -> Logprob:
    return Logprob(logprob=float(row[token]), rank=1 + int((row > row[token]).sum()))


def make_module(sampling_params: type = SamplingParams) -> ModuleType:
    """The package, as it is imported."""
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, sampling_params  # type: ignore[attr-defined]
    return module
