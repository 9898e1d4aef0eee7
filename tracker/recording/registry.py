"""Analyses, found through the entry-point group `suffrage.analyses`."""

from __future__ import annotations

from tracker.errors import NotFoundError
from tracker.plugins.discovery import PluginModule, discover

GROUP = "suffrage.analyses"
KIND = MARK = "analysis"


def discover_analyses() -> dict[str, PluginModule]:
    """Every analysis by name, in the order of the names; see `discover`."""
    return discover(GROUP, MARK)


def find_analysis(name: str) -> PluginModule:
    """The analysis of that name.

    Raises:
        NotFoundError: there is none.
    """
    every = discover_analyses()
    if name not in every:
        hint = "" if every else "No installed package brings any."
        raise NotFoundError("analysis", name, every, hint)
    return every[name]
