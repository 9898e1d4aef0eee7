"""Locate models, encoders and language models: in a local folder or on the model hub."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import SuffrageError, first_line

EXTRA = "models"
"""Command that installs the packages for models."""
DIGITS = 12
"""Number of digits of a revision: of the SHA-256 of a model's files, or of a commit."""
HUB = "https://huggingface.co"
SECONDS_FOR_HUB = 10
_LIBRARIES = threading.RLock()
"""Held while the state that the libraries share is changed."""


def resolve_folder(
    name_or_path: str, marker_files: tuple[str, ...], error_type: type[SuffrageError], alternatives: str
) -> Path | None:
    """Return the folder of a model, or None if the text can only be a name on the hub.

    Args:
        name_or_path: a folder, or a name on the model hub.
        marker_files: a model folder holds at least one of these files.
        error_type: exception to raise.
        alternatives: fixes that the message proposes.
    """
    if not name_or_path.strip():
        raise error_type(f"No model is specified. Use {alternatives}.")
    path = Path(os.path.expanduser(name_or_path))
    if path.is_dir():
        if not any((path / file).is_file() for file in marker_files):
            lacks = f"neither {' nor '.join(marker_files)}" if len(marker_files) > 1 else f"no {marker_files[0]}"
            raise error_type(f"{path} is not a model folder: it has {lacks}.")
        return path.resolve()
    if path.exists() or name_or_path.startswith((".", "~", os.sep)) or name_or_path.count("/") > 1:
        raise error_type(f"{path} is not the folder of a model. Use {alternatives}.")
    return None


def check_device(device: str, error_type: type[SuffrageError]) -> None:
    """Reject a device that torch cannot use."""
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise error_type(f"Device {device!r} is not available ({first_line(error)}). Try --device cpu.") from None


def hash_files(folder: Path) -> str:
    """Return the first digits of `digest_files`, by which a revision is known."""
    return digest_files(folder)[:DIGITS]


def digest_files(folder: Path) -> str:
    """Return the SHA-256 of a model's files (names and bytes), except hidden files and ``*.md``."""
    hashed = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        if name.endswith(".md") or any(part.startswith(".") for part in name.split("/")):
            continue
        with files[name].open("rb") as file:
            hashed.update(f"{name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return hashed.hexdigest()


def is_hub_reachable() -> bool:
    """Return whether the model hub is reachable; its own client would retry for minutes."""
    import requests

    try:
        requests.head(os.environ.get("HF_ENDPOINT", HUB), timeout=SECONDS_FOR_HUB)
    except requests.RequestException:
        return False
    return True


@contextmanager
def silence_libraries() -> Iterator[None]:
    """Keep the libraries' warnings and progress bars off the terminal; one thread at a time.

    While it loads a model, transformers replaces methods of its classes: overlapping loads would leave later models
    with untied weights.
    """
    from transformers.utils import logging as transformers_logging

    with _LIBRARIES:
        encoder_logger = logging.getLogger("sentence_transformers")
        verbosity, level, bars = (
            transformers_logging.get_verbosity(),
            encoder_logger.level,
            transformers_logging.is_progress_bar_enabled(),
        )
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        encoder_logger.setLevel(logging.ERROR)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            transformers_logging.set_verbosity(verbosity)
            encoder_logger.setLevel(level)
            if bars:
                transformers_logging.enable_progress_bar()
