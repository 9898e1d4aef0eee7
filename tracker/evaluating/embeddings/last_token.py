"""Language models as encoders: a text's vector is the last hidden state at its last token.

Source: Gupta et al. 2024 (SMART filtering), appendix A.5.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import EncoderError
from tracker.evaluating.embeddings.text_encoder import TextEncoder, count_tokens
from tracker.evaluating.local.loading import load_language_model

LAST_TOKEN = "last-token:"
"""Prefix of a language model's name that selects its last hidden state at the last token."""
MARK = " (last token)"
"""Suffix of the stored name. It separates these vectors from those of the same model with mean pooling."""
ARCHITECTURES = ("ForCausalLM", "LMHeadModel", "WithLMHead")
"""Suffixes of the class names of causal language models."""


@dataclass(frozen=True, kw_only=True)
class LastTokenEncoder(TextEncoder):
    """A language model that encodes a text by its last hidden state at the last token.

    Attributes:
        model: the `LanguageModel`.
    """

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, ``(n,)``, without truncation."""
        return count_tokens(self.model.tokenizer, texts)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts in one batch: ``(n, dimensions)`` vectors, zero for a text without tokens.

        Texts are padded on the right, whatever the tokenizer's default. No token attends to the padding, and positions
        count from the start.
        """
        import torch

        cut = {} if self.limit is None else {"truncation": True, "max_length": self.limit}
        rows = self.model.tokenizer(
            list(texts), padding=False, return_attention_mask=False, verbose=False, **cut
        )["input_ids"]  # fmt: skip
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        vectors = np.zeros((len(rows), self.dimensions), dtype=np.float32)
        if not lengths.any():
            return vectors
        ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        mask = np.arange(ids.shape[1]) < np.maximum(lengths, 1)[:, None]  # A fully masked row has no softmax.
        device = self.model.device
        with torch.inference_mode():
            states = self.model.model.base_model(
                input_ids=torch.from_numpy(ids).to(device),
                attention_mask=torch.from_numpy(mask.astype(np.int64)).to(device),
                use_cache=False,
            ).last_hidden_state
            last = torch.from_numpy(np.maximum(lengths, 1) - 1).to(device)
            last_states = states[torch.arange(len(rows), device=device), last].float().cpu().numpy()
        some = lengths > 0
        vectors[some] = last_states[some]
        return vectors


def load_last_token(
    name_or_path: str, *, revision: str = "", device: str | None = None, chosen: bool = True
) -> LastTokenEncoder:
    """Load a language model as an encoder.

    Args:
        name_or_path: a folder, or a name on the model hub.
        revision: branch, tag or commit on the hub.
        device: by default the fastest available device.
        chosen: whether the user selected last-token pooling.

    Raises:
        EncoderError: the model is an encoder-decoder.
        LanguageModelError: the model does not exist or cannot be loaded.
    """
    loaded = load_language_model(name_or_path, revision=revision, device=device, trust_remote_code=None)
    if loaded.is_encoder_decoder:
        raise EncoderError(
            f"{name_or_path} is an encoder-decoder, and its last token does not represent the text. Leave out "
            f"{LAST_TOKEN} to use the mean of all tokens."
        )
    warning = (
        "" if chosen else "it is a language model: the vector of a text is the last hidden state at its last token"
    )
    return LastTokenEncoder(
        name=f"{loaded.name}{MARK}",
        revision=loaded.revision,
        dimensions=int(loaded.model.config.get_text_config().hidden_size),
        limit=loaded.context,
        model=loaded,
        warning=warning,
    )


def is_causal_model(name_or_path: str, folder: Path | None, revision: str, *, offline: bool) -> bool:
    """Return whether a folder or a name on the hub is a causal language model without a sentence-transformers setup.

    False if its configuration cannot be read; the loader then reports the error.
    """
    if folder is not None:
        marked, config = (folder / "modules.json").is_file(), folder / "config.json"
        return not marked and _is_causal_config(config if config.is_file() else None)
    with suppress(Exception):
        return _fetch_from_hub(name_or_path, "modules.json", revision, offline) is None and _is_causal_config(
            _fetch_from_hub(name_or_path, "config.json", revision, offline)
        )
    return False


def _fetch_from_hub(name_or_path: str, file: str, revision: str, offline: bool) -> Path | None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return Path(str(hf_hub_download(name_or_path, file, revision=revision or None, local_files_only=offline)))
    except EntryNotFoundError:
        return None


def _is_causal_config(config: Path | None) -> bool:
    if config is None:
        return False
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        architectures = settings.get("architectures") or []
        is_other_kind = settings.get("is_encoder_decoder", False) or not settings.get("is_causal", True)
    except (OSError, ValueError, AttributeError):
        return False
    names = [str(name) for name in architectures] if isinstance(architectures, list) else []
    return not is_other_kind and any(name.endswith(ARCHITECTURES) for name in names) and "BertLMHeadModel" not in names
