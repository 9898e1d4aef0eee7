"""Language models from folders and from the hub's cache: what is known of them, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracker.errors import LanguageModelError, MissingExtraError
from tracker.evaluating.local.loading import LanguageModel, load_language_model
from tracker.evaluating.model_files import hash_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OWN_CODE = """
import pathlib
from transformers import LlamaConfig, LlamaForCausalLM
pathlib.Path(__file__).with_name("ran").touch()

class OwnConfig(LlamaConfig):
    model_type = "of-its-own"

class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
"""
AUTO_MAP = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}


def load(folder: Path, **options: Any) -> LanguageModel:
    return load_language_model(str(folder), **{"device": "cpu", **options})


def configure(folder: Path, **settings: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))


def shard(folder: Path) -> list[Path]:
    """Puts the weights into several files; returns them."""
    model = load(folder).model
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="4MB")
    return sorted(folder.glob("*.safetensors"))


@pytest.fixture
def llama(language_model_folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(language_model_folders["llama"], tmp_path / "copied")


class TestFolder:
    @pytest.mark.parametrize(
        ("family", "architecture", "context", "is_encoder_decoder"),
        [
            ("gpt2", "GPT2LMHeadModel", 512, False),
            ("llama", "LlamaForCausalLM", 512, False),
            ("qwen2", "Qwen2ForCausalLM", 512, False),
            ("t5", "T5ForConditionalGeneration", 512, True),
        ],
    )
    def test_it_is_known_by_its_files(
        self,
        language_model_folders: dict[str, Path],
        family: str,
        architecture: str,
        context: int,
        is_encoder_decoder: bool,
    ) -> None:
        from safetensors import safe_open

        folder = language_model_folders[family]
        loaded = load(folder)
        assert (loaded.name, loaded.revision) == (folder.name, hash_files(folder))
        assert (loaded.architecture, loaded.context) == (architecture, context)
        assert loaded.is_encoder_decoder is is_encoder_decoder
        assert (loaded.device, loaded.dtype) == ("cpu", "float32")
        assert not loaded.model.training
        with safe_open(folder / "model.safetensors", framework="pt") as stored:
            n_stored = sum(stored.get_tensor(key).numel() for key in stored.keys())  # noqa: SIM118
        assert loaded.n_parameters == n_stored
        assert loaded.facts == {"parameters": n_stored}

    def test_settings_do_not_depend_on_its_place(self, language_model_folders: dict[str, Path]) -> None:
        settings = load(language_model_folders["llama"]).as_settings()
        assert set(settings) == {"architecture", "parameters", "dtype", "revision", "torch", "transformers"}
        assert str(language_model_folders["llama"].parent) not in json.dumps(settings)

    def test_no_device_and_no_dtype_are_the_best_there_are(self, language_model_folders: dict[str, Path]) -> None:
        plain, auto = (
            load_language_model(str(language_model_folders["gpt2"]), device=word, dtype=word) for word in (None, "auto")
        )
        assert (plain.device, plain.dtype) == (auto.device, auto.dtype) == (str(auto.model.device), "float32")

    def test_it_can_have_another_name(self, language_model_folders: dict[str, Path]) -> None:
        assert load(language_model_folders["llama"], name="org/other").name == "org/other"

    def test_weights_in_several_files_are_the_same_weights(self, llama: Path) -> None:
        import torch

        before = load(llama).model.state_dict()
        assert len(shard(llama)) > 2
        after = load(llama).model.state_dict()
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
    def test_numbers_have_the_chosen_dtype(self, llama: Path, dtype: str) -> None:
        loaded = load(llama, dtype=dtype)
        assert loaded.dtype == loaded.as_settings()["dtype"] == dtype
        assert str(loaded.model.lm_head.weight.dtype) == f"torch.{dtype}"

    def test_on_the_processor_it_computes_in_float32_whatever_its_files_hold(self, llama: Path) -> None:
        load(llama, dtype="bfloat16").model.save_pretrained(llama)
        assert json.loads((llama / "config.json").read_text())["dtype"] == "bfloat16"
        assert load(llama).dtype == load(llama, dtype=None).dtype == "float32"

    def test_the_limit_is_that_of_its_places_before_that_of_its_tokenizer(self, llama: Path) -> None:
        for limit in (100, 10**30):
            path = llama / "tokenizer_config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": limit}))
            assert load(llama).context == 512

    def test_a_model_without_places_reads_as_much_as_its_tokenizer_or_anything(
        self, language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        folder = shutil.copytree(language_model_folders["t5"], tmp_path / "t5")
        configure(folder, n_positions=99)
        path = folder / "tokenizer_config.json"
        for limit, context in ((300, 300), (10**30, None)):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": limit}))
            assert load(folder).context == context

    def test_a_token_to_fill_up_with_that_the_model_has_no_row_for_is_none(self, llama: Path) -> None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(llama)
        tokenizer.add_special_tokens({"pad_token": "<of no row>"})
        tokenizer.save_pretrained(llama)
        assert load(llama).tokenizer.pad_token is None

    def test_nothing_is_printed_on_the_terminal(self, llama: Path, capfd: pytest.CaptureFixture[str]) -> None:
        shard(llama)
        capfd.readouterr()
        load(llama)
        assert capfd.readouterr() == ("", "")


class TestCode:
    def test_code_of_the_model_does_not_run_unless_allowed(
        self, llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
        (llama / "own.py").write_text(OWN_CODE)
        configure(llama, model_type="of-its-own", auto_map=AUTO_MAP, architectures=["OwnModel"])
        with pytest.raises(LanguageModelError, match=r"needs Python code .* add --trust-remote-code"):
            load(llama)
        assert not list(tmp_path.rglob("ran"))
        assert load(llama, trust_remote_code=True).architecture == "OwnModel"
        assert list(tmp_path.rglob("ran"))

    def test_a_model_that_transformers_knows_itself_needs_no_code(self, llama: Path, tmp_path: Path) -> None:
        (llama / "own.py").write_text(OWN_CODE)
        configure(llama, auto_map=AUTO_MAP)
        assert load(llama).architecture == "LlamaForCausalLM"
        assert not list(tmp_path.rglob("ran"))

    def test_pickle_is_never_opened(self, llama: Path) -> None:
        (llama / "model.safetensors").rename(llama / "pytorch_model.bin")
        with pytest.raises(LanguageModelError, match=r"only pytorch_model\.bin, a pickle, which may run code"):
            load(llama)
        configure(llama, transformers_weights="pytorch_model.bin")
        with pytest.raises(LanguageModelError, match="has no safetensors weights"):
            load(llama)


class TestHub:
    @pytest.fixture
    def cached(self, language_model_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A hub that does not answer, and its local cache with one model; returns the model's place."""
        place = tmp_path / "models--org--small"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text(COMMIT)
        shutil.copytree(language_model_folders["llama"], place / "snapshots" / COMMIT)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        return place

    def test_what_the_cache_holds_is_known_by_its_commit(self, cached: Path) -> None:
        assert cached.is_dir()
        loaded = load_language_model("org/small", device="cpu")
        assert (loaded.name, loaded.revision) == ("org/small", COMMIT[:12])
        assert load_language_model("org/small", device="cpu", revision=COMMIT).revision == COMMIT[:12]

    def test_it_is_an_encoder_too(self, cached: Path) -> None:
        from tracker.evaluating.embeddings.encoders import load_encoder

        assert cached.is_dir()
        encoder = load_encoder("org/small", device="cpu")
        assert (encoder.name, encoder.revision) == ("org/small (last token)", COMMIT[:12])

    @pytest.mark.parametrize("options", [{"name_or_path": "org/none"}, {"name_or_path": "org/small", "revision": "v2"}])
    def test_what_it_does_not_hold_is_one_sentence(
        self, cached: Path, capfd: pytest.CaptureFixture[str], options: dict[str, str]
    ) -> None:
        assert cached.is_dir()
        with pytest.raises(
            LanguageModelError, match=r"the model hub did not provide it .the hub does not answer"
        ) as refused:
            load_language_model(device="cpu", **options)
        assert "\n" not in str(refused.value)
        assert capfd.readouterr().err == ""

    def test_weights_that_were_not_fetched_are_named(self, cached: Path) -> None:
        next(cached.rglob("model.safetensors")).unlink()
        with pytest.raises(LanguageModelError, match="org/small has no safetensors weights"):
            load_language_model("org/small", device="cpu")


def _cut(folder: Path, name: str, n_bytes: int) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:n_bytes])


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (
        lambda f: (f / "config.json").unlink(),
        r"it has neither config\.json nor adapter_config\.json",
    ),
    "config cut": (lambda f: _cut(f, "config.json", 40), r"config\.json cannot be read .* Download it again"),
    "config a list": (lambda f: (f / "config.json").write_text("[]"), r"config\.json is not a JSON object"),
    "wrong setting": (lambda f: configure(f, hidden_size="wide"), "cannot be loaded as a language model .*hidden_size"),
    "unknown kind": (lambda f: configure(f, model_type="future9"), r"future9, which transformers .* does not support"),
    "no kind": (lambda f: configure(f, model_type=None), "without a model_type"),
    "no tokenizer": (lambda f: [p.unlink() for p in f.glob("tokenizer*")], "has no tokenizer"),
    "tokenizer cut": (lambda f: _cut(f, "tokenizer.json", 500), "The tokenizer of .* cannot be loaded"),
    "weights cut": (lambda f: _cut(f, "model.safetensors", 99_999), r"model\.safetensors is truncated or damaged"),
    "weights empty": (lambda f: _cut(f, "model.safetensors", 0), r"model\.safetensors is truncated or damaged"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has no safetensors weights .* it has none"),
    "file missing": (
        lambda f: shard(f)[1].unlink(),
        r"lacks model-00002.*, which model\.safetensors\.index\.json lists",
    ),
    "file cut": (lambda f: _cut(f, shard(f)[0].name, 5_000), "model-00001.* is truncated or damaged"),
    "index empty": (
        lambda f: [shard(f), (f / "model.safetensors.index.json").write_text("{}")],
        "names no weight files",
    ),
    "other shapes": (
        lambda f: configure(f, hidden_size=128),
        r"\d+ weights of .* have other shapes .*\.weight\. Download",
    ),
    "more layers": (lambda f: configure(f, num_hidden_layers=4), "lacks 9 of its weights, such as model.layers.3"),
    "adapter": (lambda f: (f / "adapter_config.json").write_text("{}"), "is an adapter of type unknown"),
    "pickle named": (lambda f: configure(f, transformers_weights="a.bin"), "neither a safetensors file"),
}


class TestErrors:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_a_damaged_folder_is_one_sentence_that_names_the_problem(self, llama: Path, damage: str) -> None:
        change, words = DAMAGES[damage]
        change(llama)
        with pytest.raises(LanguageModelError, match=words) as refused:
            load(llama)
        assert "\n" not in str(refused.value)

    def test_a_model_that_does_not_write_is_named_by_its_kind(self, tiny_encoder: Path) -> None:
        with pytest.raises(LanguageModelError, match=r"\(BertModel\) does not generate text"):
            load(tiny_encoder)

    def test_a_tokenizer_of_another_model_is_refused(
        self, language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        folder = shutil.copytree(language_model_folders["t5"], tmp_path / "mixed")
        shutil.copy(language_model_folders["gpt2"] / "tokenizer.json", folder / "tokenizer.json")
        with pytest.raises(LanguageModelError, match=r"has 1,\d+ tokens, but its model has 1,\d+. They do not belong"):
            load(folder)

    def test_without_the_extra_the_error_names_the_command_that_installs_it(
        self, llama: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(MissingExtraError, match=r"pip install '\.\[models\]'"):
            load(llama)

    @pytest.mark.parametrize("name", ["./nowhere", "~/nowhere", "/nowhere/at/all", "a/b/c", __file__])
    def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(
        self, language_model_folders: dict[str, Path], name: str
    ) -> None:
        with pytest.raises(LanguageModelError, match=r"is not the folder of a model\. Use a folder, or a name on"):
            load_language_model(name)

    def test_a_revision_is_for_the_hub_only(self, llama: Path) -> None:
        with pytest.raises(LanguageModelError, match="Leave out --revision"):
            load(llama, revision="2")

    @pytest.mark.parametrize("device", ["abacus", "cuda:77", "meta"])
    def test_a_device_that_cannot_compute_is_named(self, llama: Path, device: str) -> None:
        with pytest.raises(LanguageModelError, match=f"Device '{device}' is not available"):
            load(llama, device=device)

    def test_an_unknown_dtype_is_answered_with_the_known_ones(self, llama: Path) -> None:
        with pytest.raises(LanguageModelError, match=r"No dtype 'int8'\. Known: auto, float32, bfloat16, float16"):
            load(llama, dtype="int8")
