"""Import pyarrow without pandas, until something imports pandas.

pyarrow imports pandas, which takes a third of a second, as soon as it converts a Python value. The commands pass it no
pandas objects. Third-party formats and MLflow may: once pandas is imported, pyarrow knows its objects as always.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class _AfterImport:
    """An entry of `sys.meta_path` that calls a function after the first import of a module."""

    def __init__(self, name: str, action: Callable[[ModuleType], None]) -> None:
        self.name, self.action = name, action

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module; None for any other."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self.action(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


class _WithoutPandas:
    """An entry of `sys.meta_path` by which the import of pandas fails."""

    def find_spec(self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def import_pyarrow_without_pandas() -> None:
    """Make the first import of pyarrow in this process one without pandas."""
    if "pyarrow" not in sys.modules:
        sys.meta_path.insert(0, _AfterImport("pyarrow", _look_for_pandas))


def _look_for_pandas(pyarrow: ModuleType) -> None:
    """Let pyarrow look for pandas in vain, and again after the import of pandas."""
    if "pandas" in sys.modules:
        return
    hider = _WithoutPandas()
    sys.meta_path.insert(0, hider)
    try:
        pyarrow.scalar(None)
    finally:
        sys.meta_path.remove(hider)
    sys.meta_path.insert(0, _AfterImport("pandas", lambda _: pyarrow.table({}).to_pandas()))
