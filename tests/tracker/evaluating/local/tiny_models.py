"""Tiny models of many architectures, loaded with a tokenizer of their words."""

from __future__ import annotations

from functools import cache
from typing import Any

import model_families

N_WORDS = 96
CONTEXT = 512
_SHAPE = {
    "vocab_size": N_WORDS, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0,
}  # fmt: skip
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_MORE: dict[str, dict[str, Any]] = {
    "CTRL": {"n_embd": 32, "dff": 64, "n_layer": 3, "n_head": 4, "n_positions": 512},
    "Falcon": {"multi_query": False},
    "Falcon:alibi": {"alibi": True},
    "FalconH1": {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    "GraniteMoeHybrid": {
        **_EXPERTS,
        "layer_types": ["mamba", "attention", "mamba", "attention"],
        "mamba_n_heads": 8,
        "mamba_d_state": 8,
        "mamba_d_head": 8,
        "shared_intermediate_size": 32,
    },
    "Jamba": {
        **_EXPERTS,
        "attn_layer_offset": 1,
        "attn_layer_period": 2,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "Lfm2": {"block_multiple_of": 8},
    "Mamba2": {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8},
    "MiniMax": {**_EXPERTS, "head_dim": 8, "block_size": 8},
    "Phi3:longrope": {
        "original_max_position_embeddings": 32,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0, 1.0, 1.0, 1.0],
            "long_factor": [4.0, 4.0, 4.0, 4.0],
        },
    },
    "Qwen3Next": {
        **_EXPERTS,
        "head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "shared_expert_intermediate_size": 32,
    },
    "RecurrentGemma": {"attention_window_size": 16, "lru_width": 32, "head_dim": 8},
    "Rwkv": {"attention_hidden_size": 32, "context_length": 512},
    "Zamba2": {
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "use_mem_rope": True,
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
        "attention_head_dim": 16,
        "kv_channels": 8,
        "use_mamba_kernels": False,
    },
    "T5": {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "cls": "T5ForConditionalGeneration",
        "decoder_start_token_id": 0,
    },
    "Bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "cls": "BartForConditionalGeneration",
        "decoder_start_token_id": 2,
    },
}
"""Families by the beginning of their class: recurrent layers, several kinds of positions, encoder-decoders."""
FAMILIES = (*model_families.WINDOWED, *model_families.UNLIMITED, *model_families.SEPARATE, *_MORE)


@cache
def make_tokenizer() -> Any:
    """Return a tokenizer of the words ``w4`` to ``w95``, one token each."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>"]
    words = [*special, *(f"w{n}" for n in range(len(special), N_WORDS))]
    built = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=built, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def load(family: str, dtype: str = "float32") -> Any:
    """Return a model as `load_language_model` does."""
    import torch

    from tracker.evaluating.local.loading import LanguageModel

    built = _build(family) if family in _MORE else model_families.build_family(family, N_WORDS)
    model = built.to(getattr(torch, dtype))
    return LanguageModel(
        name=family, revision="", model=model, tokenizer=make_tokenizer(), device="cpu", dtype=dtype, context=CONTEXT,
        is_encoder_decoder=model.config.is_encoder_decoder, architecture=type(model).__name__,
        n_parameters=model.num_parameters(),
    )  # fmt: skip


def _build(family: str) -> Any:
    """Return a model with wide weights, so that outputs lie as far apart as after training."""
    import torch
    import transformers

    options = {**_SHAPE, **_MORE[family]}
    name = family.split(":")[0]
    default = f"{name}ForCausalLM" if hasattr(transformers, f"{name}ForCausalLM") else f"{name}LMHeadModel"
    kind = getattr(transformers, options.pop("cls", default))
    torch.manual_seed(0)
    model = kind(getattr(transformers, f"{name}Config")(**options)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, 0.3 if parameter.shape[-1] <= 64 else 0.15)
    return model
