"""Small language models of the kinds that people have in folders, with tokenizers trained here and random weights."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

FAMILIES = ("gpt2", "llama", "qwen2", "t5")
CONTEXT = 512
N_WORDS = 1_500
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def write_language_model(folder: Path, family: str, seed: int = 0, *, size: int = 256, context: int = CONTEXT) -> Path:
    """Write a model and its tokenizer as transformers lays them out; returns the folder.

    GPT-2 and Qwen2 split text into bytes and add nothing; Llama marks words by a leading bar and starts with <s>; T5
    ends with </s>.
    """
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(family, context)
    torch.manual_seed(seed)
    _model(family, tokenizer, size, context).save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return folder


def corpus(n_lines: int = 2_000, seed: int = 0) -> list[str]:
    """Lines of made-up questions with options, enough to train a tokenizer on."""
    rng = random.Random(seed)
    built = [
        "".join(rng.choice("bcdfglmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))) for _ in range(400)
    ]
    plain = ["which", "of", "these", "is", "the", "one", "that", "was", "not", "in", "what", "why", "how", "many", "do"]
    lines = []
    for _ in range(n_lines):
        words = " ".join(rng.choice(plain if rng.random() < 0.5 else built) for _ in range(rng.randint(3, 14)))
        options = " ".join(f"{letter}. {rng.choice(built)}" for letter in "ABCDE")
        lines.append(
            f"Question: {words.capitalize()}? ({rng.randint(0, 99)})\n{options}\nAnswer: {rng.choice('ABCDE')}"
        )
    return lines


def _tokenizer(family: str, context: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>"]
    if family in ("gpt2", "qwen2"):
        built = Tokenizer(models.BPE())
        built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        built.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=N_WORDS,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
    elif family == "llama":
        built = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        built.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace(prepend_scheme="first")]
        )
        built.decoder = decoders.Metaspace(prepend_scheme="first")
        made_bytes = [f"<0x{code:02X}>" for code in range(256)]
        trainer = trainers.BpeTrainer(
            vocab_size=N_WORDS,
            special_tokens=[*special, *made_bytes],
            initial_alphabet=list(map(chr, range(32, 127))),
            show_progress=False,
        )
    else:
        built = Tokenizer(models.Unigram())
        built.pre_tokenizer = pre_tokenizers.Metaspace()
        built.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=N_WORDS,
            special_tokens=special,
            unk_token="<unk>",
            initial_alphabet=list(map(chr, range(32, 127))),
            show_progress=False,
        )
    built.train_from_iterator(corpus(), trainer)
    if family == "llama":
        built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    elif family == "t5":
        built.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=built, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        pad_token=None if family == "gpt2" else "<pad>", model_max_length=context, chat_template=CHAT,
    )  # fmt: skip


def _model(family: str, tokenizer: Any, size: int, context: int) -> Any:
    import transformers as t

    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3, "vocab_size": len(tokenizer)}
    if family == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(n_embd=size, n_layer=3, n_head=4, n_positions=context, **ids))
    if family == "t5":
        shape = t.T5Config(
            d_model=size, d_ff=2 * size, d_kv=size // 4, num_layers=2, num_heads=4, decoder_start_token_id=3, **ids
        )  # fmt: skip
        return t.T5ForConditionalGeneration(shape)
    kind, built = (t.LlamaConfig, t.LlamaForCausalLM) if family == "llama" else (t.Qwen2Config, t.Qwen2ForCausalLM)
    shape = kind(
        hidden_size=size, intermediate_size=2 * size, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=context, tie_word_embeddings=family == "qwen2", **ids,
    )  # fmt: skip
    return built(shape)
