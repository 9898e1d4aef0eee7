"""vLLM in this process: against transformers by a stand-in for the package, and by the package where it can run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vllm_stand_in
from option_prompts import make_prompts

torch = pytest.importorskip("torch")

from tracker.errors import LanguageModelError, MissingExtraError, SelectionError  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.plan import Plan  # noqa: E402
from tracker.evaluating.plan_settings import LoadingSettings  # noqa: E402
from tracker.evaluating.responses import Response, Sampling  # noqa: E402
from tracker.evaluating.vllm_engine import vllm_loading  # noqa: E402
from tracker.evaluating.vllm_engine.vllm_generation import VllmGenerator  # noqa: E402
from tracker.evaluating.vllm_engine.vllm_loading import load_vllm_model  # noqa: E402
from tracker.evaluating.vllm_engine.vllm_options import VllmOptionScorer  # noqa: E402

TOLERANCE = 1e-4


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., LanguageModel]:
    """Loads a model by the stand-in, as if there were two CUDA devices."""

    def load(folder: Path, sampling_params: type = vllm_stand_in.SamplingParams, **options: Any) -> LanguageModel:
        monkeypatch.setitem(sys.modules, "vllm", vllm_stand_in.make_module(sampling_params))
        monkeypatch.setattr(vllm_loading, "count_devices", lambda: 2)
        return load_vllm_model(str(folder), LoadingSettings(**options))

    return load


def every(backend: Any, prompts: list[Any], stored: Any = lambda _: False) -> dict[tuple[int, int], Response]:
    responses = [response for block in backend.respond(prompts, stored) for response in block]
    return {(response.prompt_id, response.trial): response for response in responses}


class TestAgainstReference:
    @pytest.mark.parametrize(
        ("family", "sampling_params"),
        [
            ("gpt2", vllm_stand_in.OldSamplingParams),
            ("llama", vllm_stand_in.SamplingParams),
            ("qwen2", vllm_stand_in.SamplingParams),
        ],
    )
    def test_options_have_the_same_log_probabilities(
        self,
        family: str,
        sampling_params: type,
        stand_in: Callable[..., LanguageModel],
        model_of: Callable[[str], LanguageModel],
        language_model_folders: dict[str, Path],
    ) -> None:
        model = stand_in(language_model_folders[family], sampling_params)
        for method, chat in (("letters", False), ("letters", True), ("loglikelihood", False)):
            prompts = make_prompts(3, letters=method == "letters", n_examples=1)
            expected = every(OptionScorer(model_of(family), method=method, chat=chat), prompts)
            computed = every(VllmOptionScorer(model, method=method, chat=chat, batch_size=2), prompts)
            assert sorted(computed) == sorted(expected)
            for key, response in expected.items():
                np.testing.assert_allclose(computed[key].logprobs, response.logprobs, atol=TOLERANCE)
                assert computed[key].n_examples == response.n_examples
                assert computed[key].n_tokens_read == response.n_tokens_read

    def test_greedy_texts_are_the_same(
        self,
        stand_in: Callable[..., LanguageModel],
        model_of: Callable[[str], LanguageModel],
        language_model_folders: dict[str, Path],
    ) -> None:
        prompts = make_prompts(3, n_examples=1)
        for sampling in (Sampling(max_tokens=3), Sampling(max_tokens=6, stop=(" ", "e"), n_trials=2)):
            expected = every(TextGenerator(model_of("llama"), sampling), prompts)
            computed = every(VllmGenerator(stand_in(language_model_folders["llama"]), sampling), prompts)
            assert sorted(computed) == sorted(expected)
            for key, response in expected.items():
                assert (computed[key].text, computed[key].finish_reason) == (response.text, response.finish_reason)
                assert computed[key].n_tokens_read == response.n_tokens_read

    def test_each_trial_has_its_seed_and_a_second_run_the_same_texts(
        self, stand_in: Callable[..., LanguageModel], language_model_folders: dict[str, Path]
    ) -> None:
        model = stand_in(language_model_folders["gpt2"])
        sampling = Sampling(max_tokens=4, temperature=1.0, n_trials=3, seed=5)
        first, again = (every(VllmGenerator(model, sampling), make_prompts(2, n_examples=0)) for _ in range(2))
        texts = {key: response.text for key, response in first.items()}
        assert texts == {key: response.text for key, response in again.items()}
        assert len(set(texts.values())) > 1

    def test_stored_batches_are_skipped_and_greedy_targets_are_known(
        self, stand_in: Callable[..., LanguageModel], language_model_folders: dict[str, Path]
    ) -> None:
        model = stand_in(language_model_folders["gpt2"])
        prompts = make_prompts(4, n_examples=0)
        rest = every(VllmOptionScorer(model, method="loglikelihood", batch_size=2), prompts, {1, 2, 3}.__contains__)
        assert sorted(key for key, _ in rest) == [3, 4], "batches are computed whole"
        ids = model.tokenizer(prompts[0].text()).input_ids
        with torch.inference_mode():
            token = int(model.model._llm.model(torch.tensor([ids])).logits[0, -1].argmax())
        greedy = replace(prompts[0], join="", options=(model.tokenizer.decode([token]), " zzz qqq"))
        (response,) = every(VllmOptionScorer(model, method="loglikelihood"), [greedy]).values()
        assert response.is_greedy == (True, False)


class TestLimits:
    def test_prompts_up_to_the_context_are_computed_and_longer_ones_rejected(
        self, stand_in: Callable[..., LanguageModel], language_model_folders: dict[str, Path]
    ) -> None:
        """vLLM needs room for a generated token, also where none is used."""
        model = replace(stand_in(language_model_folders["gpt2"]), context=40)
        model.model._llm.llm_engine.model_config.max_model_len = 40
        (prompt,) = make_prompts(1, n_examples=0)
        prompt = replace(prompt, question="Why?", options=(" a", " and so on"))
        n_spare = 40 - len(model.tokenizer(prompt.text()).input_ids)
        errors = []
        for n in range(n_spare - 9, n_spare + 2):
            longer = replace(prompt, question=" the" * n + prompt.question)
            (response,) = every(VllmOptionScorer(model, method="loglikelihood"), [longer]).values()
            errors.append(bool(response.error))
            (text,) = every(VllmGenerator(model, Sampling(max_tokens=2)), [longer]).values()
            assert text.is_too_long or text.n_tokens_written <= 2
        assert errors == sorted(errors)
        assert {True, False} == set(errors)
        with pytest.raises(SelectionError, match="can generate at most 39 tokens"):
            VllmGenerator(model, Sampling(max_tokens=40))


class TestLoading:
    def test_facts_and_arguments(
        self, stand_in: Callable[..., LanguageModel], language_model_folders: dict[str, Path]
    ) -> None:
        model = stand_in(language_model_folders["llama"], dtype="bfloat16", device_count=2)
        arguments = vllm_stand_in.LLM.arguments
        assert (arguments["tensor_parallel_size"], arguments["dtype"], arguments["enable_prefix_caching"]) == (
            2,
            "bfloat16",
            True,
        )
        assert (model.name, model.architecture, model.context) == ("llama", "LlamaForCausalLM", 512)
        assert model.n_parameters == sum(p.numel() for p in model.model._llm.model.parameters())

    def test_what_is_missing_is_named_with_what_to_do(
        self, monkeypatch: pytest.MonkeyPatch, stand_in: Callable[..., LanguageModel], language_model_folders: Any
    ) -> None:
        folder = language_model_folders["llama"]
        monkeypatch.setitem(sys.modules, "vllm", None)
        with pytest.raises(MissingExtraError, match=r"pip install '.\[vllm\]'"):
            load_vllm_model(str(folder), LoadingSettings())
        with pytest.raises(LanguageModelError, match="runs on CUDA devices, not on 'cpu'"):
            stand_in(folder, device="cpu")
        with pytest.raises(LanguageModelError, match="--device-count is 3, but 2 CUDA devices are available"):
            stand_in(folder, device_count=3)
        monkeypatch.setattr(vllm_loading, "count_devices", lambda: 0)
        with pytest.raises(LanguageModelError, match="needs a CUDA device, and none is available"):
            load_vllm_model(str(folder), LoadingSettings())

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"engine": "server"}, "--engine server needs the address"),
            ({"engine": "vllm", "api_base": "http://localhost/v1"}, "Leave out one"),
            ({"engine": "jax"}, "engine is 'jax'; it must be one of: auto, transformers, vllm, server"),
            ({"device_count": 2}, "--device-count needs --engine vllm"),
        ],
    )
    def test_engines_that_contradict_other_options_are_rejected(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(SelectionError, match=words):
            Plan.from_options("quiz", "m", **options)


@pytest.mark.skipif(not vllm_loading.count_devices(), reason="there is no CUDA device")
def test_the_package_itself_agrees_with_transformers(
    language_model_folders: dict[str, Path], model_of: Callable[[str], LanguageModel]
) -> None:
    """In bfloat16 at best: vLLM rounds differently."""
    pytest.importorskip("vllm", reason="the extra vllm is not installed")
    model = load_vllm_model(str(language_model_folders["llama"]), LoadingSettings(dtype="float32"))
    for method in ("letters", "loglikelihood"):
        prompts = make_prompts(6, letters=method == "letters")
        expected = every(OptionScorer(model_of("llama"), method=method), prompts)
        for key, response in every(VllmOptionScorer(model, method=method), prompts).items():
            np.testing.assert_allclose(response.logprobs, expected[key].logprobs, atol=1e-2)
    expected = every(TextGenerator(model_of("llama"), Sampling(max_tokens=4)), prompts)
    computed = every(VllmGenerator(model, Sampling(max_tokens=4)), prompts)
    assert {key: len(response.text or "") > 0 for key, response in computed.items()} == dict.fromkeys(expected, True)
