"""Language models as encoders: the vector of a text is the last hidden state at its last token."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import EncoderError, LanguageModelError
from tracker.evaluating.embeddings.encoders import TextEncoder, load_encoder
from tracker.evaluating.embeddings.last_token import LastTokenEncoder

TEXTS = [
    "Which of these is it?",
    "a",
    "why not in the one " * 150,  # longer than the context
    "one\ntwo three\n" * 7,
    " x",
    "Question: How many? (3)\nA. ba\nB. lo\nAnswer: A",
]
DECODERS = ("gpt2", "llama", "qwen2")


def one_by_one(folder: Path, texts: list[str], limit: int) -> np.ndarray[Any, Any]:
    """The obvious way: each text by itself, nothing filled up, all of the model's layers but the one for words."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    vectors = []
    for text in texts:
        ids = torch.tensor([tokenizer(text, verbose=False)["input_ids"][:limit]])
        with torch.no_grad():
            vectors.append(model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0, -1].numpy())
    return np.array(vectors)


def changed(folder: Path, to: Path, **settings: object) -> Path:
    """A copy with other settings in its config.json."""
    shutil.copytree(folder, to)
    config = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(config | settings))
    return to


class TestAgainstReference:
    @pytest.mark.parametrize("family", DECODERS)
    def test_vectors_are_those_of_each_text_by_itself(
        self, language_model_folders: dict[str, Path], family: str
    ) -> None:
        folder = language_model_folders[family]
        encoder = load_encoder(str(folder), device="cpu")
        assert encoder.limit is not None
        vectors, alone = encoder.encode(TEXTS), one_by_one(folder, TEXTS, encoder.limit)
        assert vectors.dtype == np.float32
        assert np.abs(vectors - alone).max() < 1e-5
        assert np.abs(alone - alone.mean(axis=0)).max() > 0.1

    @pytest.mark.parametrize("side", ["left", "right"])
    @pytest.mark.parametrize("family", DECODERS)
    def test_the_side_that_the_tokenizer_fills_up_does_not_matter(
        self, language_model_folders: dict[str, Path], family: str, side: str
    ) -> None:
        encoder = load_encoder(str(language_model_folders[family]), device="cpu")
        before = encoder.encode(TEXTS)
        encoder.model.tokenizer.padding_side = side
        assert np.array_equal(encoder.encode(TEXTS), before)


class TestLaws:
    def test_what_a_text_is_encoded_with_moves_no_more_than_last_digits(
        self, language_model_folders: dict[str, Path]
    ) -> None:
        encoder = load_encoder(str(language_model_folders["llama"]), device="cpu")
        together = encoder.encode(TEXTS)
        for size in (1, 2, 4):
            parts = [encoder.encode(TEXTS[first : first + size]) for first in range(0, len(TEXTS), size)]
            assert np.abs(np.concatenate(parts) - together).max() < 1e-5

    def test_a_text_without_tokens_has_a_vector_of_zeros(self, language_model_folders: dict[str, Path]) -> None:
        encoder = load_encoder(str(language_model_folders["gpt2"]), device="cpu")
        assert encoder.lengths(["", "a"]).tolist() == [0, 1]
        vectors = encoder.encode(["", "a b"])
        assert not vectors[0].any()
        assert np.abs(vectors[1] - encoder.encode(["a b"])[0]).max() < 1e-5
        assert encoder.encode(["", ""]).tolist() == np.zeros((2, encoder.dimensions)).tolist()

    def test_a_text_is_cut_at_its_end_to_what_the_model_reads(self, language_model_folders: dict[str, Path]) -> None:
        encoder = load_encoder(str(language_model_folders["qwen2"]), device="cpu")
        long, limit = TEXTS[2], encoder.limit
        assert limit is not None
        assert encoder.lengths([long])[0] > limit
        assert np.array_equal(encoder.encode([long]), encoder.encode([f"{long} and more"]))


class TestNames:
    def test_its_name_differs_from_that_of_means(self, language_model_folders: dict[str, Path]) -> None:
        chosen_by_default = load_encoder(str(language_model_folders["llama"]), device="cpu")
        chosen_by_prefix = load_encoder(f"last-token:{language_model_folders['llama']}", device="cpu")
        assert isinstance(chosen_by_default, LastTokenEncoder)
        assert (chosen_by_default.name, chosen_by_default.revision) == (
            chosen_by_prefix.name,
            chosen_by_prefix.revision,
        )
        assert chosen_by_default.name.endswith(" (last token)")
        assert "last hidden state" in chosen_by_default.warning
        assert chosen_by_prefix.warning == ""

    def test_a_folder_that_somebody_made_an_encoder_of_is_read_as_they_made_it(
        self, language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        folder = shutil.copytree(language_model_folders["llama"], tmp_path / "made")
        modules = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling")]
        names = [
            {"idx": int(name), "name": name, "path": path, "type": f"sentence_transformers.models.{kind}"}
            for name, path, kind in modules
        ]
        (folder / "modules.json").write_text(json.dumps(names))
        (folder / "1_Pooling").mkdir()
        pooling = {"word_embedding_dimension": 256, "pooling_mode_mean_tokens": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        vectors = load_encoder(str(folder), device="cpu")
        assert type(vectors) is TextEncoder
        assert vectors.name == "made"

    def test_one_that_sees_the_whole_text_is_no_decoder(
        self, language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        folder = changed(language_model_folders["llama"], tmp_path / "both-ways", is_causal=False)
        assert type(load_encoder(str(folder), device="cpu")) is TextEncoder


class TestErrors:
    def test_an_encoder_decoder_has_no_last_token(self, language_model_folders: dict[str, Path]) -> None:
        with pytest.raises(EncoderError, match=r"is an encoder-decoder.* Leave out last-token:"):
            load_encoder(f"last-token:{language_model_folders['t5']}", device="cpu")

    def test_a_model_that_does_not_write_has_none_either(
        self, language_model_folders: dict[str, Path], tiny_encoder: Path
    ) -> None:
        with pytest.raises(LanguageModelError, match="does not generate text"):
            load_encoder(f"last-token:{tiny_encoder}", device="cpu")

    def test_code_that_it_brings_is_never_run_and_no_option_is_named_that_would(
        self, language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        remote_config = {"model_type": "of-its-own", "auto_map": {"AutoModelForCausalLM": "own.Own"}}
        folder = changed(language_model_folders["llama"], tmp_path / "own", **remote_config)
        with pytest.raises(LanguageModelError, match=r"needs Python code .* Suffrage does not run it\.$"):
            load_encoder(str(folder), device="cpu")

    def test_last_token_of_nothing_is_refused(self, language_model_folders: dict[str, Path]) -> None:
        with pytest.raises(LanguageModelError, match="No model is specified"):
            load_encoder("last-token:", device="cpu")
