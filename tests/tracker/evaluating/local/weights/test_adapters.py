"""Adapters: loaded with their base model, they compute what the merged model computes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
peft = pytest.importorskip("peft", reason="peft is not installed")

import tiny_models  # noqa: E402

from tracker.errors import LanguageModelError, MissingExtraError  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel, load_language_model  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.model_files import hash_files  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt  # noqa: E402
from tracker.evaluating.responses import Sampling  # noqa: E402

PROMPTS = [
    RenderedPrompt(
        prompt_id=at, question=" ".join(f"w{4 + 7 * at + n}" for n in range(5 + at)), options=("w9", "w8 w7")
    )
    for at in range(4)
]
IDS = torch.arange(4, 40)[None]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, an adapter with wide weights, and the sum of both."""
    folder = tmp_path_factory.mktemp("adapters")
    tiny = tiny_models.load("llama")
    for name in ("base", "merged", "adapter"):
        tiny.tokenizer.save_pretrained(folder / name)
    tiny.model.save_pretrained(folder / "base")
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(tiny.model, config)
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data.normal_(0, 0.3)
    model.peft_config["default"].base_model_name_or_path = str(folder / "base")
    model.save_pretrained(folder / "adapter")
    model.merge_and_unload().save_pretrained(folder / "merged")
    return folder


@pytest.fixture
def adapter(folders: Path, tmp_path: Path) -> Path:
    """A copy of the adapter, to change."""
    return Path(shutil.copytree(folders / "adapter", tmp_path / "copied"))


def _load(folder: Path, **options: Any) -> LanguageModel:
    return load_language_model(str(folder), device="cpu", **options)


def _configure(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _logprobs(model: LanguageModel) -> Any:
    batches = OptionScorer(model, method="loglikelihood").respond(PROMPTS, lambda _: False)
    responses = sorted((response for batch in batches for response in batch), key=lambda response: response.prompt_id)
    return torch.stack([torch.from_numpy(response.logprobs) for response in responses])


def _texts(model: LanguageModel) -> dict[int, str | None]:
    batches = TextGenerator(model, Sampling(max_tokens=5)).respond(PROMPTS, lambda _: False)
    return {response.prompt_id: response.text for batch in batches for response in batch}


class TestAgainstReference:
    def test_options_and_texts_are_those_of_the_merged_model(self, folders: Path) -> None:
        adapted, merged, base = (_load(folders / name) for name in ("adapter", "merged", "base"))
        torch.testing.assert_close(_logprobs(adapted), _logprobs(merged), atol=1e-5, rtol=0)
        assert not torch.allclose(_logprobs(adapted), _logprobs(base), atol=0.1)
        assert _texts(adapted) == _texts(merged)

    def test_in_bfloat16_it_is_computed_beside_the_weights(self, folders: Path) -> None:
        adapted = _load(folders / "adapter", dtype="bfloat16")
        with torch.no_grad():
            merged, base = (_load(folders / name).model(IDS).logits.log_softmax(-1) for name in ("merged", "base"))
            logprobs = adapted.model(IDS).logits.float().log_softmax(-1)
        error = float((logprobs - merged).square().mean())
        assert error < 0.01 * float((logprobs - base).square().mean()), error
        assert any("lora" in name for name, _ in adapted.model.named_modules())
        assert adapted.dtype == "bfloat16"
        assert _texts(adapted)

    def test_adapter_and_base_model_are_recorded(self, folders: Path) -> None:
        adapted, base = _load(folders / "adapter"), _load(folders / "base")
        settings = adapted.as_settings()
        assert (settings["adapter"], settings["base_model"], settings["base_revision"]) == (
            "LORA", "base", hash_files(folders / "base"),
        )  # fmt: skip
        assert (adapted.name, adapted.revision) == ("adapter", hash_files(folders / "adapter"))
        assert (adapted.architecture, adapted.n_parameters) == (base.architecture, base.n_parameters)
        assert not {"adapter", "base_model", "quantization"} & set(base.as_settings())

    def test_another_base_model_can_be_named(self, adapter: Path, folders: Path) -> None:
        _configure(adapter, base_model_name_or_path="/nowhere/base")
        moved = shutil.copytree(folders / "base", adapter.parent / "moved")
        torch.testing.assert_close(
            _logprobs(_load(adapter, base_model=str(moved))), _logprobs(_load(folders / "merged"))
        )

    def test_an_adapter_without_a_tokenizer_has_that_of_its_base_model(self, adapter: Path, folders: Path) -> None:
        for path in adapter.glob("*token*"):
            path.unlink()
        assert _texts(_load(adapter)) == _texts(_load(folders / "merged"))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "base moved": (
        lambda f: _configure(f, base_model_name_or_path="/nowhere/base"),
        r"The base model /nowhere/base of the adapter .* is not available.*\nName its folder: --base-model PATH",
    ),
    "no base": (
        lambda f: _configure(f, base_model_name_or_path=None),
        "names no base model. Name it: --base-model PATH",
    ),
    "prompts": (lambda f: _configure(f, peft_type="PREFIX_TUNING"), "of type PREFIX_TUNING, which adds no weights"),
    "unknown": (lambda f: _configure(f, peft_type="NEXT"), "of type NEXT, which adds no weights"),
    "pickle": (
        lambda f: (f / "adapter_model.safetensors").rename(f / "adapter_model.bin"),
        r"has no adapter_model\.safetensors. Pickled adapters may run code",
    ),
    "other shapes": (lambda f: _configure(f, r=5), "does not fit its base model base .*--base-model PATH"),
    "other modules": (
        lambda f: _configure(f, target_modules=["q_proj"]),
        "does not fit its base model base: 16 weights are in one of them alone",
    ),
}


class TestErrors:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_damaged_adapter_is_an_error_that_names_the_fix(self, adapter: Path, damage: str) -> None:
        change, words = DAMAGES[damage]
        change(adapter)
        with pytest.raises(LanguageModelError, match=words):
            _load(adapter)

    def test_a_full_model_has_no_base_model(self, folders: Path) -> None:
        with pytest.raises(LanguageModelError, match="is a full model, so --base-model does not apply"):
            _load(folders / "base", base_model="other")

    def test_a_missing_package_is_an_error_with_the_command_that_installs_it(
        self, folders: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "peft", None)
        with pytest.raises(MissingExtraError, match=r"pip install '\.\[models\]'"):
            _load(folders / "adapter")
