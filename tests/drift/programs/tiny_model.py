"""Make language models with different random weights and a token for each byte: ``python tiny_model.py FOLDER ...``."""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

END = "<|endoftext|>"
N_POSITIONS = 512


def make(folder: str, seed: int) -> None:
    tokens = {token: number for number, token in enumerate([END, *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    tokenizer = Tokenizer(models.BPE(vocab=tokens, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=END, model_max_length=N_POSITIONS
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = GPT2Config(
        vocab_size=len(tokens), n_positions=N_POSITIONS, n_embd=32, n_layer=2, n_head=2, initializer_range=0.5,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(sizes).save_pretrained(folder)


for number, name in enumerate(sys.argv[1:]):
    make(name, seed=number)
