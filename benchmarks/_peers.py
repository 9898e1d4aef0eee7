"""Packages that ours are measured beside and that nothing else needs."""

from __future__ import annotations

import importlib
from types import ModuleType


class PeerMissingError(ModuleNotFoundError):
    """A benchmark cannot be run without its peer."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package}, its peer, is not installed; `make bench` installs it.", name=package)


class DeviceMissingError(RuntimeError):
    """A benchmark cannot be run without a device of some kind."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"no {kind} device.")


def peer(module: str) -> ModuleType:
    """A module of a peer.

    Raises:
        PeerMissingError: its package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == package:
            raise PeerMissingError(package) from error
        raise
