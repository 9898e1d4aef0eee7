"""What lies in the folder of a language model: fetched from the hub if need be, and looked at before it is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracker.errors import LanguageModelError
from tracker.evaluating.model_files import first_line, is_hub_reachable

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.tiktoken")
"""What is fetched from the hub."""
CODE = "*.py"


def download_model(name: str, revision: str, with_code: bool) -> Path:
    """The folder of the local cache that holds a model of the hub; its name is the commit."""
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
            reason = "it does not answer, and its local cache does not hold the model"
        raise LanguageModelError(
            f"{name!r} is no folder here, and could not be had from the model hub ({reason}). Give a "
            "folder, or a name on the hub while this machine can reach it."
        ) from error
    return Path(folder)


def read_json(path: Path, name: str) -> dict[str, Any]:
    """What a JSON file of a model holds."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LanguageModelError(
            f"{name}: {path.name} cannot be read ({first_line(error)}). Fetch it again."
        ) from error
    if not isinstance(read, dict):
        raise LanguageModelError(f"{name}: {path.name} is no JSON object. Fetch it again.")
    return read


def check_weights(folder: Path, name: str) -> None:
    """Reject a folder whose weights are not all there as safetensors, before any of them is read.

    Raises:
        LanguageModelError: with what to do.
    """
    from safetensors import SafetensorError, safe_open

    if (folder / "adapter_config.json").is_file():
        raise LanguageModelError(
            f"{name} is an adapter of another model. Merge the two, save the result, and give that."
        )
    if (folder / WEIGHTS).is_file():
        files = [WEIGHTS]
    elif (folder / INDEX).is_file():
        index = read_json(folder / INDEX, name).get("weight_map")
        if not isinstance(index, dict) or not index:
            raise LanguageModelError(f"{name} names no files of weights in {INDEX}. Fetch it again.")
        files = sorted({str(file) for file in index.values()})
    else:
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
        has = f"only {pickles[0]}, and pickle may run code: it is not read" if pickles else "none"
        raise LanguageModelError(
            f"{name} has no weights as safetensors ({WEIGHTS} or {INDEX}); it holds {has}. Fetch its safetensors, or "
            "convert it where you trust it: model.save_pretrained(FOLDER, safe_serialization=True)."
        )
    for file in files:
        if not (folder / file).is_file():
            raise LanguageModelError(f"{name} lacks {file}, which {INDEX} names. Fetch it again.")
        try:
            with safe_open(folder / file, framework="pt"):
                pass
        except (SafetensorError, OSError) as error:
            raise LanguageModelError(
                f"{folder / file} is cut short or damaged ({first_line(error)}). Fetch it again."
            ) from error


def check_code(settings: Mapping[str, Any], name: str, trusted: bool | None) -> None:
    """Reject a model that only its own Python code can run, unless that is allowed.

    Args:
        settings: what its config.json holds.
        name: of the model, as the user gave it.
        trusted: whether its code may run; None where nothing that the user can do allows it.

    Raises:
        LanguageModelError: it needs its code.
    """
    from transformers import CONFIG_MAPPING

    if settings.get("auto_map") and settings.get("model_type") not in CONFIG_MAPPING and not trusted:
        raise LanguageModelError(describe_code_requirement(name, trusted))


def describe_code_requirement(name: str, trusted: bool | None) -> str:
    """The message about a model, or its tokenizer, that only its own code can run."""
    then = "It is not run here." if trusted is None else "If you trust it, give --trust-remote-code."
    return f"{name} needs Python code that comes with it, which can do anything that you can. {then}"
