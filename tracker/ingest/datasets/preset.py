"""Presets: definition and discovery."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tracker.errors import NotFoundError
from tracker.ingest.datasets import presets as folder
from tracker.ingest.datasets.row import DatasetRow, PublishedPrompt


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Definition of how to read a known data set.

    Attributes:
        read: returns the prompt of a row, or the reason for skipping such rows; raises `RowError` for an invalid row.
        hub: its name on the hub.
        configs: configurations that are loaded by default; empty if there is only one.
        columns: column names of its CSV files without a header.
    """

    read: Callable[[DatasetRow], PublishedPrompt | str]
    hub: str
    configs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_presets() -> Mapping[str, Preset]:
    """Return every preset by name; each module of the folder is one."""
    names = sorted(info.name for info in pkgutil.iter_modules(folder.__path__))
    modules = {name: importlib.import_module(f"{folder.__name__}.{name}") for name in names}
    return MappingProxyType({name: module.PRESET for name, module in modules.items()})


def find_preset(name: str) -> Preset:
    """Return the preset with a name; dashes count as underscores.

    Raises:
        NotFoundError: no such preset.
    """
    preset = load_presets().get(name.replace("-", "_"))
    if preset is None:
        raise NotFoundError("preset", name, load_presets())
    return preset
