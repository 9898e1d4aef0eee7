"""Weights on several devices, and quantised weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="accelerate is not installed")

import tiny_models  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from tracker.errors import LanguageModelError  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.local.loading import load_language_model  # noqa: E402
from tracker.evaluating.local.self_check import TOLERANCE  # noqa: E402
from tracker.evaluating.local.weights.pretrained import describe_quantization  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt  # noqa: E402
from tracker.evaluating.responses import Sampling  # noqa: E402

PROMPTS = [RenderedPrompt(prompt_id=n, question=" ".join(f"w{n + at}" for at in range(9 + n))) for n in (4, 9)]
IDS = torch.arange(4, 40)[None]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is available")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    tiny = tiny_models.load("llama")
    tiny.tokenizer.save_pretrained(folder)
    tiny.model.save_pretrained(folder)
    return folder


def _texts(model: Any) -> list[str | None]:
    batches = TextGenerator(model, Sampling(max_tokens=4, n_trials=2, temperature=1.0)).respond(
        PROMPTS, lambda _: False
    )
    return [response.text for batch in batches for response in batch]


def _quantize(folder: Path, target: Path) -> Path:
    """Write a model with linear layers of 8-bit floats and a scale for each block of 16 rows and columns."""
    target.mkdir()
    weights = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        if "_proj" not in name:
            weights[name] = weight
            continue
        blocks = weight.unflatten(0, (-1, 16)).unflatten(2, (-1, 16))
        scale = blocks.abs().amax(dim=(1, 3), keepdim=True) / 448
        weights[name] = (blocks / scale).reshape(weight.shape).to(torch.float8_e4m3fn)
        weights[f"{name}_scale_inv"] = scale[:, 0, :, 0].contiguous()
    save_file(weights, target / "model.safetensors", {"format": "pt"})
    for path in folder.glob("*.json"):
        (target / path.name).write_text(path.read_text())
    settings = json.loads((folder / "config.json").read_text())
    settings["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [16, 16]}
    (target / "config.json").write_text(json.dumps(settings))
    return target


class TestDevices:
    def test_all_devices_need_cuda(self, plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        with pytest.raises(LanguageModelError, match="--device all needs CUDA devices, and none is available"):
            load_language_model(str(plain), device="all")

    def test_accelerate_places_the_layers(self, plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same code with the CPU as the only device."""
        expected = load_language_model(str(plain), device="cpu")
        monkeypatch.setattr("tracker.evaluating.local.loading.resolve_device", lambda _: "all")
        model = load_language_model(str(plain), device="all")
        assert model.device == "cpu"
        assert _texts(model) == _texts(expected)

    @pytest.mark.parametrize("place", ["cpu", "disk"])
    def test_layers_in_main_memory_are_an_error(self, plain: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from transformers import LlamaForCausalLM

        monkeypatch.setattr("tracker.evaluating.local.loading.resolve_device", lambda _: "all")
        monkeypatch.setattr(LlamaForCausalLM, "hf_device_map", {"model": 0, "lm_head": place}, raising=False)
        with pytest.raises(LanguageModelError, match="does not fit into the memory of all CUDA devices"):
            load_language_model(str(plain), device="all")

    @needs_cuda
    def test_on_cuda_the_texts_are_those_of_one_device(self, plain: Path) -> None:
        single, distributed = (
            load_language_model(str(plain), device=device, dtype="float32") for device in ("cuda:0", "all")
        )
        assert distributed.device == "cuda:0"
        assert _texts(distributed) == _texts(single)


class TestQuantizedWeights:
    def test_they_are_loaded_as_stored_and_recorded(self, plain: Path, tmp_path: Path) -> None:
        """Without a device for 8-bit floats, transformers computes them in the data type of config.json."""
        folder = _quantize(plain, tmp_path / "quantized")
        model = load_language_model(str(folder), device="cpu")
        expected = load_language_model(str(plain), device="cpu")
        assert model.as_settings()["quantization"] == "fp8"
        assert model.device == "cpu"
        weights = load_file(folder / "model.safetensors")
        for name, weight in expected.model.named_parameters():
            if f"{name}_scale_inv" in weights:
                scale = weights[f"{name}_scale_inv"].repeat_interleave(16, 0).repeat_interleave(16, 1)
                weight.data = weights[name].float() * scale
        with torch.no_grad():
            logprobs, exact = (loaded.model(IDS).logits.float().log_softmax(-1) for loaded in (model, expected))
        assert float((logprobs - exact).square().mean().sqrt()) < TOLERANCE["bfloat16"]
        assert len(_texts(model)) == 4

    @pytest.mark.parametrize(
        ("stored", "description"),
        [
            ({"quant_method": "gptq", "bits": 4}, "gptq, 4 bits"),
            ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}, "bitsandbytes, 4 bits"),
            ({"load_in_8bit": True}, "bitsandbytes, 8 bits"),
            ({"quant_method": "mxfp4"}, "mxfp4"),
            (None, ""),
        ],
    )
    def test_method_and_bits_are_read_from_the_settings(self, stored: Any, description: str) -> None:
        assert describe_quantization({"quantization_config": stored}) == description

    def test_missing_packages_are_named(self, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = _quantize(plain, tmp_path / "quantized")
        settings = json.loads((folder / "config.json").read_text())
        settings["quantization_config"] = {"quant_method": "gptq", "bits": 4}
        (folder / "config.json").write_text(json.dumps(settings))
        with pytest.raises(LanguageModelError, match=r"because its weights are quantised \(gptq, 4 bits\)"):
            load_language_model(str(folder), device="cpu")
