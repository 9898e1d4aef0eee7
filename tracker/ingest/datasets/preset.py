"""What a preset is, and which there are."""

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
    """How the rows of a known data set become prompts.

    Attributes:
        read: the prompt of a row, or in words why such rows are left out; raises `RowError` for a row that is wrong.
        hub: its name on the hub.
        configs: its configurations there that are taken by default; none means that it has only one.
        columns: names for the columns of its CSV files without a header.
    """

    read: Callable[[DatasetRow], PublishedPrompt | str]
    hub: str
    configs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_presets() -> Mapping[str, Preset]:
    """Every preset by name: the modules of the folder."""
    names = sorted(info.name for info in pkgutil.iter_modules(folder.__path__))
    modules = {name: importlib.import_module(f"{folder.__name__}.{name}") for name in names}
    return MappingProxyType({name: module.PRESET for name, module in modules.items()})


def find_preset(name: str) -> Preset:
    """The preset of that name; dashes are underscores.

    Raises:
        NotFoundError: there is none.
    """
    preset = load_presets().get(name.replace("-", "_"))
    if preset is None:
        raise NotFoundError("preset", name, load_presets())
    return preset
