"""Language models as encoders: the vector of a text is the last hidden state at its last token.

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
"""Before the name of a language model: what it stands for is its last hidden state at the last token."""
MARK = " (last token)"
"""After its name, as it is stored: vectors that are means of all tokens are another encoder's."""
ARCHITECTURES = ("ForCausalLM", "LMHeadModel", "WithLMHead")
"""How classes are called that write on from where a text ends."""


@dataclass(frozen=True, kw_only=True)
class LastTokenEncoder(TextEncoder):
    """A language model whose last hidden state at the last token of a text is the text's vector.

    Attributes:
        model: the `LanguageModel`.
    """

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """``(n,)`` tokens of each text, nothing cut off."""
        return count_tokens(self.model.tokenizer, texts)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``(n, dimensions)`` vectors of texts that go through the model together; zero for a text without tokens.

        Texts are filled up behind their end, whatever the tokenizer would do: there no token sees what fills, and
        places count from the begin.
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
        mask = np.arange(ids.shape[1]) < np.maximum(lengths, 1)[:, None]  # a row that is all hidden has no softmax
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
        device: where it computes; by default the fastest there is.
        chosen: whether the user chose the last token.

    Raises:
        EncoderError: it reads with one part and writes with another.
        LanguageModelError: it is not there or cannot be loaded.
    """
    loaded = load_language_model(name_or_path, revision=revision, device=device, trust_remote_code=None)
    if loaded.is_encoder_decoder:
        raise EncoderError(
            f"{name_or_path} is an encoder-decoder: its encoder sees the whole text at every token, and the last "
            f"stands for no more than the others. Leave out {LAST_TOKEN} for the mean of all."
        )
    warning = (
        "" if chosen else "it is a language model: the vector of a text is its last hidden state at the last token"
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
    """Whether a folder, or what is of that name on the hub, is a language model that is not made into an encoder.

    False where that cannot be found out: the loader reports the error.
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
