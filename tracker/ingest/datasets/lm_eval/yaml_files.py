"""Task files of lm-evaluation-harness: YAML with ``include:`` and references to Python functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import read_bytes
from tracker.ingest.files.yaml_text import parse_yaml

FUNCTION = "!function"


@dataclass(frozen=True, slots=True)
class CodeReference:
    """A Python function that a task file names with ``!function``; it is not loaded yet.

    Attributes:
        name: module and function, such as ``utils.process_docs``.
        folder: folder of the task file.
    """

    name: str
    folder: Path


def load_task_file(path: Path, included_by: Sequence[Path] = ()) -> dict[str, Any]:
    """Load a task file with the files that it includes; its own values replace included ones.

    Args:
        path: the file.
        included_by: files whose inclusion led here.

    Raises:
        BadInputError: a file cannot be read, is not a YAML mapping, or includes itself.
    """
    resolved = Path(os.path.realpath(os.path.expanduser(path)))
    if resolved in included_by:
        raise BadInputError(path, "includes itself.")
    content = read_bytes(resolved)
    settings = parse_task_file(content, resolved)
    includes = settings.pop("include", None) or []
    merged: dict[str, Any] = {}
    for name in includes if isinstance(includes, list) else [includes]:
        included = load_task_file(resolved.parent / str(name), (*included_by, resolved))
        included.pop("task_list", None)
        merged |= included
    return merged | settings


def parse_task_file(content: bytes, path: Path) -> dict[str, Any]:
    """Parse one task file without its includes.

    Raises:
        BadInputError: it is not a YAML mapping.
    """
    settings = parse_yaml(path, content, _make_loader(path.parent))
    if not isinstance(settings, dict):
        raise BadInputError(path, "is not a task of lm-evaluation-harness: it holds no YAML mapping.")
    return settings


def find_code(value: Any) -> CodeReference | None:
    """Return the first Python function in nested settings; None without one."""
    if isinstance(value, CodeReference):
        return value
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = value
    return next((code for part in parts if (code := find_code(part)) is not None), None)


def _make_loader(folder: Path) -> Any:
    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A safe loader that keeps references to functions."""

    Loader.add_constructor(FUNCTION, lambda loader, node: CodeReference(loader.construct_scalar(node), folder))
    return Loader
