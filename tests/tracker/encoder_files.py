"""A small model of the kind that people have in a folder: BERT with random weights, and a vocabulary of letters."""

from __future__ import annotations

import json
from pathlib import Path

LIMIT = 24
DIMENSIONS = 16


def write_encoder(folder: Path, seed: int = 0) -> Path:
    """Write its files as sentence-transformers lays them out; returns the folder."""
    import torch
    from transformers import BertConfig, BertModel

    (folder / "1_Pooling").mkdir(parents=True)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("0123456789?.,")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    special = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    contents = {
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
        | {f"{name}_token": word for name, word in special.items()},
        "sentence_bert_config.json": {"max_seq_length": LIMIT, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": DIMENSIONS, "pooling_mode_mean_tokens": True},
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))
    torch.manual_seed(seed)
    shape = BertConfig(
        vocab_size=len(words),
        hidden_size=DIMENSIONS,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LIMIT + 8,
    )
    BertModel(shape).save_pretrained(folder)
    return folder
