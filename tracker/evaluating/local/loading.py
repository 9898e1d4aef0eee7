"""Load language models from a folder or the model hub: safetensors weights, and no remote code unless allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError, MissingExtraError, first_line
from tracker.evaluating.local.weights.adapters import ADAPTER, find_adapter
from tracker.evaluating.local.weights.model_folder import (
    check_code,
    check_weights,
    describe_code_requirement,
    download_model,
    read_json,
)
from tracker.evaluating.local.weights.pretrained import (
    ALL_DEVICES,
    describe_quantization,
    load_weights,
    resolve_device,
)
from tracker.evaluating.model_files import (
    DIGITS,
    EXTRA,
    hash_files,
    resolve_folder,
    silence_libraries,
)
from tracker.evaluating.option_values import DTYPES

TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "tekken.json", "tokenizer_config.json",
)  # fmt: skip
"""Files from which a tokenizer can be loaded."""
CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
"""Names of the context length in model configurations."""
UNLIMITED = 10_000_000
"""Tokenizers without a limit report a far larger number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LanguageModel:
    """A loaded language model.

    Attributes:
        name: stored name.
        revision: revision of its weights: the first digits of the hash of its files, or of the commit on the hub.
        model: the transformers model, in evaluation mode.
        tokenizer: the transformers tokenizer.
        device: such as ``cpu`` or ``cuda:0``; the first of several, which reads the tokens.
        dtype: data type of the weights, such as ``bfloat16``.
        context: maximum number of input and output tokens; for an encoder-decoder, of input tokens; None without a
            limit.
        is_encoder_decoder: whether the model is an encoder-decoder.
        architecture: name of its class.
        n_parameters: number of parameters; shared ones are counted once.
        details: quantisation, and kind, base model and its revision of an adapter; empty for plain weights.
        chat_arguments: arguments of its chat template, by name.
    """

    name: str
    revision: str
    model: Any
    tokenizer: Any
    device: str
    dtype: str
    context: int | None
    is_encoder_decoder: bool
    architecture: str
    n_parameters: int
    details: Mapping[str, str] = field(default_factory=dict)
    chat_arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts about the model, for its row in the store."""
        return {"parameters": self.n_parameters}

    def as_settings(self) -> dict[str, Any]:
        """Return how the model was loaded, for the run's record; independent of where its files are."""
        return {
            "architecture": self.architecture,
            "parameters": self.n_parameters,
            "dtype": self.dtype,
            "revision": self.revision,
            **self.details,
            "torch": version("torch"),
            "transformers": version("transformers"),
        }


def load_language_model(
    name_or_path: str,
    *,
    revision: str = "",
    device: str | None = "auto",
    dtype: str | None = "auto",
    trust_remote_code: bool | None = False,
    name: str | None = None,
    base_model: str | None = None,
) -> LanguageModel:
    """Load a language model from a folder or the model hub.

    Args:
        name_or_path: a folder in the format of transformers or an adapter of peft, or a name on the model hub.
        revision: branch, tag or commit on the hub.
        device: such as ``cpu`` or ``cuda:1``; ``auto`` or None selects the fastest available device, and
            ``all`` distributes the layers over all CUDA devices.
        dtype: one of `DTYPES`; ``auto`` or None selects the data type of the files if they are quantised or on a CUDA
            device, float32 elsewhere.
        trust_remote_code: whether Python code among the model's files may run; None means no, and the user has no
            option to allow it.
        name: stored name; by default the folder's name, or the name on the hub.
        base_model: base model of an adapter, a folder or a name on the hub; None for that in the adapter's settings.

    Raises:
        MissingExtraError: required packages are not installed.
        LanguageModelError: the model does not exist or cannot be loaded, or the device or data type is not available.
    """
    try:
        import torch  # noqa: F401  transformers can be imported without it
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"The model {name_or_path}", EXTRA) from error
    if dtype not in (*DTYPES, "auto", None):
        raise LanguageModelError(f"No dtype {dtype!r}. Known: auto, {', '.join(DTYPES)}.")
    device = resolve_device(device)
    local = resolve_folder(
        name_or_path,
        ("config.json", ADAPTER),
        LanguageModelError,
        "a folder, or a name on the hub; with --api-base a name on a server",
    )
    if local is not None and revision:
        raise LanguageModelError(
            f"{name_or_path} is a local model, so --revision does not apply. Leave out --revision."
        )
    with silence_libraries():
        folder = local or download_model(name_or_path, revision, bool(trust_remote_code))
        adapter = find_adapter(folder, name_or_path, base_model)
        parts = _load_parts(
            adapter.base_folder if adapter else folder, name_or_path, device, dtype, trust_remote_code,
            tokenizer_folder=folder,
        )  # fmt: skip
        model, tokenizer = parts.model, parts.tokenizer
        n_parameters = int(model.num_parameters())
        if adapter:
            model = adapter.apply(model)
    _check_vocabulary(tokenizer, model, name_or_path)
    quantized = {"quantization": parts.quantization} if parts.quantization else {}
    return LanguageModel(
        name=name or (name_or_path if local is None else local.name),
        revision=hash_files(local) if local is not None else folder.name[:DIGITS],
        model=model,
        tokenizer=tokenizer,
        device=str(model.get_input_embeddings().weight.device) if device == ALL_DEVICES else device,
        dtype=str(model.dtype).removeprefix("torch."),
        context=_find_context_length(model.config, tokenizer),
        is_encoder_decoder=parts.is_encoder_decoder,
        architecture=type(model).__name__,
        n_parameters=n_parameters,
        details={**quantized, **(adapter.as_settings() if adapter else {})},
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _LoadedParts:
    """A loaded model and its tokenizer; ``quantization`` is '' for plain weights."""

    tokenizer: Any
    model: Any
    is_encoder_decoder: bool
    quantization: str


def _load_parts(
    folder: Path, name: str, device: str, dtype: str | None, trust_remote_code: bool | None, tokenizer_folder: Path
) -> _LoadedParts:
    """Load tokenizer and model; the tokenizer is that of its folder, if that has one."""
    import transformers

    settings = read_json(folder / "config.json", name)
    check_weights(folder, name)
    check_code(settings, name, trust_remote_code)
    options = {"trust_remote_code": bool(trust_remote_code), "local_files_only": True}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **options)
    except Exception as error:
        raise LanguageModelError(_explain_unknown_model(name, settings, error)) from error
    is_encoder_decoder = _is_encoder_decoder(config, settings, name, bool(trust_remote_code))
    has_tokenizer = any((tokenizer_folder / file).is_file() for file in TOKENIZERS)
    tokenizer = _load_tokenizer(tokenizer_folder if has_tokenizer else folder, name, options, trust_remote_code)
    kind = transformers.AutoModelForSeq2SeqLM if is_encoder_decoder else transformers.AutoModelForCausalLM
    quantization = describe_quantization(settings)
    model = load_weights(
        kind, folder, name, device=device, dtype=dtype, quantization=quantization,
        options={"config": config, **options},
    )  # fmt: skip
    return _LoadedParts(
        tokenizer=tokenizer, model=model, is_encoder_decoder=is_encoder_decoder, quantization=quantization
    )


def _explain_unknown_model(name: str, settings: Mapping[str, Any], error: Exception) -> str:
    from transformers import CONFIG_MAPPING

    kind = settings.get("model_type")
    if kind in CONFIG_MAPPING or "auto_map" in settings:
        return f"{name} cannot be loaded as a language model ({first_line(error)})."
    description = f"of type {kind}" if kind else "without a model_type in config.json"
    return (
        f"{name} is a model {description}, which transformers {version('transformers')} does not support. Try a "
        "newer version: pip install -U transformers."
    )


def _is_encoder_decoder(config: Any, settings: Mapping[str, Any], name: str, trusted: bool) -> bool:
    """Return whether the model is an encoder-decoder; raise an error if it does not generate text."""
    from transformers.models.auto import modeling_auto as known

    writes, masked = known.MODEL_FOR_CAUSAL_LM_MAPPING, known.MODEL_FOR_MASKED_LM_MAPPING
    two_parts = getattr(config, "is_encoder_decoder", False)
    brought = settings.get("auto_map") or {} if trusted else {}
    if two_parts and (
        type(config) in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING or "AutoModelForSeq2SeqLM" in brought
    ):
        return True
    causal = type(config) in writes and (type(config) not in masked or getattr(config, "is_decoder", False))
    if not two_parts and (causal or "AutoModelForCausalLM" in brought):
        return False
    label = ", ".join(settings.get("architectures") or []) or settings.get("model_type") or "of an unknown kind"
    raise LanguageModelError(
        f"{name} ({label}) does not generate text: it is neither a causal language model nor an encoder-decoder."
    )


def _load_tokenizer(folder: Path, name: str, options: Mapping[str, Any], trusted: bool | None) -> Any:
    from transformers import AutoTokenizer

    if not any((folder / file).is_file() for file in TOKENIZERS) and not list(folder.glob("*.tiktoken")):
        raise LanguageModelError(
            f"{name} has no tokenizer, such as tokenizer.json. Add the tokenizer's files to the folder."
        )
    try:
        return AutoTokenizer.from_pretrained(folder, **options)
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise LanguageModelError(describe_code_requirement(f"The tokenizer of {name}", trusted)) from error
        raise LanguageModelError(f"The tokenizer of {name} cannot be loaded ({first_line(error)}).") from error


def _check_vocabulary(tokenizer: Any, model: Any, name: str) -> None:
    """Reject a tokenizer of another model; clear a padding token for which the model has no embedding."""
    try:
        n_rows = model.get_input_embeddings().weight.shape[0]
    except (AttributeError, NotImplementedError):  # custom tokenizers may lack it
        return
    if tokenizer.vocab_size > n_rows:
        raise LanguageModelError(
            f"The tokenizer of {name} has {tokenizer.vocab_size:,} tokens, but its model has {n_rows:,}. They do not "
            "belong together."
        )
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id >= n_rows:
        tokenizer.pad_token = None


def _find_context_length(config: Any, tokenizer: Any) -> int | None:
    """Return the context length: from the positions, or with relative positions (T5) from the tokenizer."""
    text = config.get_text_config()
    if not hasattr(text, "relative_attention_num_buckets"):
        for name in CONTEXT_NAMES:
            length = getattr(text, name, None)
            if isinstance(length, int) and length > 0:
                return length
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit is not None and limit < UNLIMITED else None
