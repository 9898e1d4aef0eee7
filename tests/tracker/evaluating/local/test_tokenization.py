"""Texts as tokens: what the tokenizer's class computes, by a faster call."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tracker.evaluating.local.loading import LanguageModel, load_language_model
from tracker.evaluating.local.tokenization import tokenize

TEXTS = ("The first.", "", "Zwei Wörter, 日本語 👍", " a  b\n\n", "<s>The first.</s>", "x" * 300, *("one two",) * 400)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "t5"])
@pytest.mark.parametrize("bare", [True, False])
def test_tokens_are_those_of_the_tokenizer(model_of: Callable[[str], LanguageModel], family: str, bare: bool) -> None:
    model = model_of(family)
    assert model.is_encoder_decoder or model.tokenizer("a")["input_ids"][-1] != model.tokenizer.eos_token_id
    bos = model.tokenizer.bos_token
    expected = [
        tuple(model.tokenizer(text, add_special_tokens=not (bare or bool(bos and text.startswith(bos))))["input_ids"])
        for text in TEXTS
    ]
    assert tokenize(model, TEXTS, bare=bare) == expected


def test_truncation_and_padding_of_a_tokenizer_file_are_not_applied(
    language_model_folders: dict[str, Path], model_of: Callable[[str], LanguageModel], tmp_path: Path
) -> None:
    folder = tmp_path / "short"
    shutil.copytree(language_model_folders["llama"], folder)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    content["padding"] = {
        "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "<s>",
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert tokenize(load_language_model(str(folder), device="cpu"), TEXTS) == tokenize(model_of("llama"), TEXTS)


def test_classes_that_change_texts_are_respected(model_of: Callable[[str], LanguageModel]) -> None:
    model = model_of("llama")

    class Lower(type(model.tokenizer)):  # type: ignore[misc]
        def _encode_plus(self, text: Any, *arguments: Any, **options: Any) -> Any:
            return super()._encode_plus([each.lower() for each in text], *arguments, **options)

    lower = Lower(tokenizer_object=model.tokenizer.backend_tokenizer)
    texts = ["The First", "SECOND", "Third"]
    changed = tokenize(replace(model, tokenizer=lower), texts, bare=True)
    assert changed == tokenize(model, [text.lower() for text in texts], bare=True) != tokenize(model, texts, bare=True)
