"""Discover analyses through the entry-point group `suffrage.analyses`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.errors import NotFoundError
from tracker.plugins.discovery import PluginModule, discover

if TYPE_CHECKING:
    from tracker.queries.findings.looks import DeclaredTest

GROUP = "suffrage.analyses"
KIND = MARK = "analysis"


def discover_analyses() -> dict[str, PluginModule]:
    """Return every analysis by name, in the order of the names; see `discover`."""
    return discover(GROUP, MARK)


def discover_tests() -> dict[str, tuple[DeclaredTest, ...]]:
    """Return the tests of each analysis that has any, as `@analysis(tests=..., n_tests=...)` declares them."""
    from tracker.queries.findings.looks import DeclaredTest

    return {
        name: tuple(
            DeclaredTest(
                name=test,
                pvalues=tuple(pvalues),
                n_tests=plugin.options.get("n_tests", {}).get(test, ""),
                is_of_leader=test in plugin.options.get("leader_tests", ()),
            )
            for test, pvalues in plugin.options["tests"].items()
        )
        for name, plugin in discover_analyses().items()
        if plugin.options.get("tests")
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
