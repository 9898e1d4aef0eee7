"""Where models come from, encoders and language models alike: a folder here, or the model hub."""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracker.errors import SuffrageError

EXTRA = "models"
"""What installs the packages that models need."""
DIGITS = 12
"""Of the SHA-256 of a model's files, or of a commit, as its revision."""
HUB = "https://huggingface.co"
SECONDS_FOR_HUB = 10


def local_folder(said: str, marks: tuple[str, ...], refused: type[SuffrageError], instead: str) -> Path | None:
    """The folder that a word stands for; None where it can only be a name on the hub.

    Args:
        said: a folder, or a name on the model hub.
        marks: files of which a model's folder holds at least one.
        refused: what is raised.
        instead: what can be given in its place.
    """
    if not said.strip():
        raise refused(f"No model is named. Give {instead}.")
    path = Path(said).expanduser()
    if path.is_dir():
        if not any((path / mark).is_file() for mark in marks):
            lacks = f"neither {' nor '.join(marks)}" if len(marks) > 1 else f"no {marks[0]}"
            raise refused(f"{path} is no model: it holds {lacks}.")
        return path.resolve()
    if path.exists() or said.startswith((".", "~", os.sep)) or said.count("/") > 1:
        raise refused(f"{path} is no folder of a model. Give {instead}.")
    return None


def check_device(device: str, refused: type[SuffrageError]) -> None:
    """Refuses a device that torch cannot compute on."""
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise refused(f"The device {device!r} cannot be used ({first_line(error)}). Try --device cpu.") from None


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


def hub_answers() -> bool:
    """Whether the model hub can be reached: its own client would ask for minutes before it says no."""
    import requests

    try:
        requests.head(os.environ.get("HF_ENDPOINT", HUB), timeout=SECONDS_FOR_HUB)
    except requests.RequestException:
        return False
    return True


def first_line(error: BaseException) -> str:
    """What an error says first, without the full stop; its class where it says nothing."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1].rstrip('.')}"
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextmanager
def quiet() -> Iterator[None]:
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
