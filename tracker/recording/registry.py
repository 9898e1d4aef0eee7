"""Discover analyses through the entry-point group `suffrage.analyses`."""

from __future__ import annotations

from tracker.errors import NotFoundError
from tracker.plugins.discovery import PluginModule, discover

GROUP = "suffrage.analyses"
KIND = MARK = "analysis"


def discover_analyses() -> dict[str, PluginModule]:
    """Return every analysis by name, in the order of the names; see `discover`."""
    return discover(GROUP, MARK)


def discover_tests() -> dict[str, tuple[str, ...]]:
    """Return, by analysis, the metrics that can be the p-value of its verdict, as `@analysis(test=...)` declares."""
    return {
        name: tuple(plugin.options["test"]) for name, plugin in discover_analyses().items() if "test" in plugin.options
    }


def find_analysis(name: str) -> PluginModule:
    """Return the analysis of that name.

    Raises:
        NotFoundError: no analysis has this name.
    """
    every = discover_analyses()
    if name not in every:
        hint = "" if every else "No installed package provides any."
        raise NotFoundError("analysis", name, every, hint)
    return every[name]
