"""Suffrage: how far can a benchmark's ranking be trusted?

From Python, all of it is in `open`, which gives a `Store`:

    import tracker

    with tracker.open("sqlite:///results.db") as store:
        store.ingest("results/", benchmark="mmlu_pro", metric="accuracy")
        print(store.leaderboard("mmlu_pro"))
        print(store.analyze("prompt-correlation", "mmlu_pro", seed=0).summary())

Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.version import __version__

if TYPE_CHECKING:
    from tracker.api.store import AnalysisResult, Store
    from tracker.api.store import open_store as open
    from tracker.errors import SuffrageError

__all__ = ["AnalysisResult", "Store", "SuffrageError", "__version__", "open"]

_MODULES = {
    "open": ("tracker.api.store", "open_store"),
    "Store": ("tracker.api.store", "Store"),
    "AnalysisResult": ("tracker.api.store", "AnalysisResult"),
    "SuffrageError": ("tracker.errors", "SuffrageError"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tracker' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _MODULES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
