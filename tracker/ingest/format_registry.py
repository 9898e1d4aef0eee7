"""Registry of file formats: built-in ones and those of plug-ins."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from types import MappingProxyType, ModuleType

from tracker.plugins.discovery import command_name, distribution_name, sorted_entry_points

GROUP = "suffrage.formats"


def load_formats() -> Mapping[str, ModuleType]:
    """Return every format by name, such as ``wide-table``; built-in formats keep their names.

    A broken plug-in is skipped with a warning.
    """
    return MappingProxyType({name: module for name, (module, _) in _formats(tuple(sys.path)).items()})


@dataclass(frozen=True, kw_only=True)
class FormatDescription:
    """Description of a format for users.

    Attributes:
        format: name of the format.
        holds: content of its files.
        recognised_by: names or content that identify a file; None if the format does not define it.
        package: package and version that provide the format.
    """

    format: str
    holds: str
    recognised_by: str | None
    package: str | None


def describe_formats() -> list[FormatDescription]:
    """Return the descriptions of all formats, sorted by name."""
    return [
        FormatDescription(
            format=name,
            holds=(module.__doc__ or "").strip().partition("\n")[0].rstrip("."),
            recognised_by=getattr(module, "RECOGNIZED_BY", None),
            package=package,
        )
        for name, (module, package) in sorted(_formats(tuple(sys.path)).items())
    ]


@lru_cache(maxsize=4)
def _formats(_search_path: tuple[str, ...]) -> Mapping[str, tuple[ModuleType, str | None]]:
    by_name: dict[str, tuple[ModuleType, str | None]] = {}
    for entry in sorted_entry_points(GROUP):
        package = distribution_name(entry) or None
        for module in _modules(entry):
            name = command_name(module.__name__)
            if not callable(getattr(module, "mismatch_reason", None)) or not callable(getattr(module, "read", None)):
                _warn(f"{module.__name__} is not a format: define the functions mismatch_reason and read.")
            elif name in by_name and by_name[name][0] is not module:
                by_name[f"{entry.name}:{name}"] = module, package
            else:
                by_name[name] = module, package
    return MappingProxyType(by_name)


def _modules(entry: EntryPoint) -> Iterator[ModuleType]:
    package = _imported(entry.module, entry.name)
    if package is None:
        return
    folders = getattr(package, "__path__", None)
    if folders is None or hasattr(package, "read"):
        yield package
        return
    for info in sorted(pkgutil.iter_modules(folders), key=lambda info: info.name):
        module = None if info.name.startswith("_") else _imported(f"{package.__name__}.{info.name}", entry.name)
        if module is not None:
            yield module


def _imported(name: str, entry: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises must cost only itself
        _warn(f"the format {name} of the entry point {entry!r} cannot be used: {type(error).__name__}: {error}")
        return None


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)
