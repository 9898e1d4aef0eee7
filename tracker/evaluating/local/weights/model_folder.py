"""The folder of a language model: download it from the hub if needed, and validate it before loading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError, first_line
from tracker.evaluating.model_files import is_hub_reachable

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.tiktoken")
"""File patterns to download from the hub."""
CODE = "*.py"


def download_model(name: str, revision: str, with_code: bool) -> Path:
    """Return the folder of the local cache with a model of the hub; its name is the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    patterns = [*FILES, CODE] if with_code else list(FILES)
    online = is_hub_reachable()
    try:
        folder = snapshot_download(
            name, revision=revision or None, allow_patterns=patterns, ignore_patterns=["*/*", "consolidated*"],
            local_files_only=not online,
        )  # fmt: skip
    except Exception as error:
        reason = first_line(error)
        if not online and isinstance(error, LocalEntryNotFoundError):
            reason = "the hub does not answer, and the local cache does not have the model"
        raise LanguageModelError(
            f"Cannot load {name!r}: there is no such folder, and the model hub did not provide it ({reason}). Use a "
            "folder, or a name on the hub while the hub is reachable."
        ) from error
    return Path(folder)


def read_json(path: Path, name: str) -> dict[str, Any]:
    """Return the content of a model's JSON file."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LanguageModelError(
            f"{name}: {path.name} cannot be read ({first_line(error)}). Download it again."
        ) from error
    if not isinstance(read, dict):
        raise LanguageModelError(f"{name}: {path.name} is not a JSON object. Download it again.")
    return read


def check_weights(folder: Path, name: str) -> None:
    """Reject a folder whose safetensors weights are incomplete, before any are loaded.

    Raises:
        LanguageModelError: with a hint how to fix it.
    """
    from safetensors import SafetensorError, safe_open

    if (folder / WEIGHTS).is_file():
        files = [WEIGHTS]
    elif (folder / INDEX).is_file():
        index = read_json(folder / INDEX, name).get("weight_map")
        if not isinstance(index, dict) or not index:
            raise LanguageModelError(f"{name} names no weight files in {INDEX}. Download it again.")
        files = sorted({str(file) for file in index.values()})
    else:
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
        has = f"only {pickles[0]}, a pickle, which may run code and is not loaded" if pickles else "none"
        raise LanguageModelError(
            f"{name} has no safetensors weights ({WEIGHTS} or {INDEX}); it has {has}. Download its safetensors, or "
            "convert it on a machine where you trust it: model.save_pretrained(FOLDER, safe_serialization=True)."
        )
    for file in files:
        if not (folder / file).is_file():
            raise LanguageModelError(f"{name} lacks {file}, which {INDEX} lists. Download it again.")
        try:
            with safe_open(folder / file, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise LanguageModelError(
                f"{folder / file} is truncated or damaged ({first_line(error)}). Download it again."
            ) from error


def check_code(settings: Mapping[str, Any], name: str, trusted: bool | None) -> None:
    """Reject a model that needs its own Python code, unless that is allowed.

    Args:
        settings: content of its config.json.
        name: name of the model as the user wrote it.
        trusted: whether its code may run; None if the user has no option to allow it.

    Raises:
        LanguageModelError: the model needs its code.
    """
    from transformers import CONFIG_MAPPING

    if settings.get("auto_map") and settings.get("model_type") not in CONFIG_MAPPING and not trusted:
        raise LanguageModelError(describe_code_requirement(name, trusted))


def describe_code_requirement(name: str, trusted: bool | None) -> str:
    """Return the error for a model or tokenizer that needs its own Python code."""
    then = "Suffrage does not run it." if trusted is None else "If you trust it, add --trust-remote-code."
    return f"{name} needs Python code from its own files, which runs with all of your permissions. {then}"
