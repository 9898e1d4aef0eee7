"""Kernels run whatever an older version of the program, or a damaged disk, left in their cache."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType

import filelock
import pytest
from numba.core.errors import TypingError

from tracker.statistics import jit

MODULE, CALLEE = "kernels_of_a_test", "called_kernels_of_a_test"
SOURCE = """
from typing import Any, NamedTuple
import numpy as np
from called_kernels_of_a_test import ADDED, weigh
from tracker.statistics.jit import jit

class {name}(NamedTuple):
    values: Any

@jit
def add(rows):
    total = 0
    for i in range(rows.values.size):
        total += weigh(rows.values[i]) + ADDED
    return total

def run():
    return add({name}(np.arange(5)))
"""
CALLEE_SOURCE = """
from tracker.statistics.jit import jit

ADDED = {added}

@jit
def weigh(value):
    return {weight} * value
"""


def load(folder: Path, class_name: str = "Rows", weight: int = 1, added: int = 0) -> ModuleType:
    """The module of the kernel, as a new process would import it."""
    import_source(folder / f"{CALLEE}.py", CALLEE_SOURCE.format(weight=weight, added=added))
    return import_source(folder / f"{MODULE}.py", SOURCE.format(name=class_name))


def import_source(path: Path, source: str) -> ModuleType:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cached(module: ModuleType, suffix: str) -> Path:
    """The only file of the kernel's cache with this suffix."""
    (path,) = Path(module.add.stats.cache_path).glob(f"{MODULE}.add-*{suffix}")
    return path


def outcome(module: ModuleType) -> tuple[int, int, int]:
    """The sum, and how often machine code was found in the cache and not found."""
    total = module.run()
    return total, sum(module.add.stats.cache_hits.values()), sum(module.add.stats.cache_misses.values())


@pytest.fixture(autouse=True)
def _restore_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for name in (MODULE, CALLEE):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))


class TestStaleCaches:
    def test_machine_code_is_cached(self, tmp_path: Path) -> None:
        assert outcome(load(tmp_path)) == (10, 0, 1)
        assert outcome(load(tmp_path)) == (10, 1, 0)

    def test_an_index_that_names_a_removed_class_is_rewritten(self, tmp_path: Path) -> None:
        load(tmp_path, "Groups").run()
        renamed = load(tmp_path, "Rows")
        with cached(renamed, ".nbi").open("rb") as file:
            pickle.load(file)  # the version of the compiler
            with pytest.raises(AttributeError, match="Groups"):
                pickle.loads(file.read())
        assert outcome(renamed) == (10, 0, 1)
        assert outcome(load(tmp_path)) == (10, 1, 0)

    @pytest.mark.parametrize(("change", "total"), [({"weight": 3}, 30), ({"added": 2}, 20)])
    def test_a_change_in_another_file_compiles_the_caller_anew(
        self, change: dict[str, int], total: int, tmp_path: Path
    ) -> None:
        assert outcome(load(tmp_path)) == (10, 0, 1)
        assert outcome(load(tmp_path, **change)) == (total, 0, 1)
        assert outcome(load(tmp_path, **change)) == (total, 1, 0)

    @pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
    @pytest.mark.parametrize("content", [b"", b"no pickle"])
    def test_a_damaged_file_is_rewritten(self, suffix: str, content: bytes, tmp_path: Path) -> None:
        module = load(tmp_path)
        module.run()
        cached(module, suffix).write_bytes(content)
        assert outcome(load(tmp_path)) == (10, 0, 1)
        assert outcome(load(tmp_path)) == (10, 1, 0)


class TestProcessesThatCompileAtOnce:
    def test_machine_code_of_another_process_is_loaded_after_waiting_for_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        earlier, kernel = load(tmp_path).weigh, load(tmp_path).weigh
        lock = filelock.FileLock

        def lock_after_compilation(path: Path, timeout: float) -> filelock.BaseFileLock:
            monkeypatch.setattr("filelock.FileLock", lock)
            assert earlier(5) == 5
            return lock(path, timeout=timeout)

        monkeypatch.setattr("filelock.FileLock", lock_after_compilation)
        assert kernel(5) == 5
        assert sum(earlier.stats.cache_misses.values()) == sum(kernel.stats.cache_hits.values()) == 1
        assert not kernel.stats.cache_misses

    def test_the_lock_is_released(self, tmp_path: Path) -> None:
        module = load(tmp_path)
        module.run()
        with pytest.raises(TypingError):
            module.add("not an array")
        (path,) = Path(module.add.stats.cache_path).glob("*.lock")
        filelock.FileLock(path, timeout=0).acquire()

    def test_a_kernel_is_compiled_where_nothing_can_be_locked(self, tmp_path: Path) -> None:
        module = load(tmp_path)
        Path(module.add.stats.cache_path, f"{module.add._cache._impl.filename_base}.lock").mkdir(parents=True)
        assert outcome(module) == (10, 0, 1)


def test_the_time_of_a_search_is_without_that_of_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(jit, "_compiling", [0.0])
    monkeypatch.setattr(jit, "monotonic", lambda: now[0])
    begun = jit.working_time()
    now[0] += 2
    assert jit.working_time() == begun + 2
    module = load(tmp_path)
    load_overload = jit._Cache.load_overload

    def wait(self: jit._Cache, *arguments: object) -> object:
        now[0] += 7
        return load_overload(self, *arguments)

    monkeypatch.setattr(jit._Cache, "load_overload", wait)
    assert module.run() == 10
    assert now[0] >= 1009
    assert jit.working_time() == begun + 2
    assert module.run() == 10
    assert jit.working_time() == begun + 2
