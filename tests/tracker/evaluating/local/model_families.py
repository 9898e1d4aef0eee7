"""Tiny causal language models of many families, built here with random weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WINDOW = 24
"""Attention window of all families that have one: shorter than the prompts of the tests and their shared examples."""
SHAPE = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 2_048,
}  # fmt: skip
MOE = {
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}  # fmt: skip
LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "head_dim": 8,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "num_key_value_heads": 4,
}  # fmt: skip
SLIDING = {"sliding_window": WINDOW}
HALF = {**SLIDING, "layer_types": ["sliding_attention", "full_attention"] * 2}

WINDOWED: Mapping[str, Mapping[str, Any]] = {
    "cohere2": HALF,
    "exaone4": HALF,
    "gemma2": {**HALF, "query_pre_attn_scalar": 8},
    "gemma3_text": HALF,
    "gpt_oss": {**HALF, **MOE},
    "llama4_text": {
        **MOE, "attention_chunk_size": WINDOW, "layer_types": ["chunked_attention", "full_attention"] * 2,
        "intermediate_size_mlp": 32, "moe_layers": [1], "no_rope_layers": [1, 0, 1, 0],
        "attn_temperature_tuning": False,
    },
    "ministral": HALF,
    "mistral": SLIDING,
    "mixtral": {**SLIDING, **MOE},
    "olmo3": HALF,
    "phi3": SLIDING,
    "qwen2": {**SLIDING, "use_sliding_window": True, "max_window_layers": 2},
    "qwen2_moe": {**SLIDING, **MOE, "use_sliding_window": True, "max_window_layers": 2},
    "qwen3": {**SLIDING, "use_sliding_window": True, "max_window_layers": 2},
    "qwen3_moe": {**SLIDING, **MOE, "use_sliding_window": True, "max_window_layers": 2},
    "smollm3": {**SLIDING, "use_sliding_window": True, "max_window_layers": 2},
    "starcoder2": SLIDING,
}  # fmt: skip
"""Families with a window or chunks in some layers or in all."""
UNLIMITED: Mapping[str, Mapping[str, Any]] = {
    "apertus": {},
    "arcee": {},
    "biogpt": {},
    "codegen": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 2_048, "rotary_dim": 8},
    "cohere": {},
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "ernie4_5": {},
    "gemma": {},
    "glm": {"partial_rotary_factor": 0.5},
    "glm4": {"partial_rotary_factor": 0.5},
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 2_048},
    "gpt_bigcode": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 2_048},
    "gpt_neox": {},
    "gptj": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 2_048, "rotary_dim": 8},
    "granite": {},
    "granitemoe": MOE,
    "helium": {},
    "hunyuan_v1_dense": {},
    "llama": {},
    "nemotron": {},
    "olmo": {},
    "olmo2": {},
    "olmoe": MOE,
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "persimmon": {},
    "phi": {},
    "phimoe": MOE,
    "seed_oss": {},
    "stablelm": {},
    "xglm": {"d_model": 32, "ffn_dim": 48, "num_layers": 3, "attention_heads": 4},
}  # fmt: skip
"""Families whose layers attend to all tokens before."""
SEPARATE: Mapping[str, Mapping[str, Any]] = {
    "bloom": {"n_layer": 3, "n_head": 4},
    "gpt_neo": {
        "num_layers": 4, "num_heads": 4, "window_size": WINDOW, "attention_types": [[["global", "local"], 2]],
    },
    "mamba": {"state_size": 8, "num_hidden_layers": 2},
    "mpt": {"d_model": 32, "n_layers": 3, "n_heads": 4, "max_seq_len": 2_048},
}  # fmt: skip
"""Families that compute each option separately: their positions or windows count places in the row."""


def build_family(family: str, n_words: int, **more: Any) -> Any:
    """Return a model of a family with random weights, large enough that each token before changes the next."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = {**WINDOWED, **UNLIMITED, **SEPARATE}[family]
    config = AutoConfig.for_model(
        family,
        **{**SHAPE, **settings, "vocab_size": n_words, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3, **more},
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=1.5 * weight.shape[-1] ** -0.5)
    return model
