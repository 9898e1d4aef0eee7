"""Discover export formats: those in `tracker.exporting.formats`, and others through the entry-point group
`suffrage.exports`.
"""

from __future__ import annotations

from tracker.errors import NotFoundError
from tracker.plugins.discovery import PluginModule, discover

GROUP = "suffrage.exports"
MARK = "export"
PACKAGE = "tracker.exporting.formats"


def discover_exports() -> dict[str, PluginModule]:
    """Return every export that is a command, by name, in the order of the names."""
    return {name: plugin for name, plugin in _plugins().items() if not plugin.options.get("format_of")}


def list_formats(export: str) -> list[PluginModule]:
    """Return the additional formats of an export, besides its default format."""
    return [plugin for plugin in _plugins().values() if plugin.options.get("format_of") == export]


def find_export(name: str) -> PluginModule:
    """Return the export of that name.

    Raises:
        NotFoundError: no export has this name.
    """
    every = discover_exports()
    if name not in every:
        raise NotFoundError("export", name, every)
    return every[name]


def _plugins() -> dict[str, PluginModule]:
    return discover(GROUP, MARK, package=PACKAGE)
