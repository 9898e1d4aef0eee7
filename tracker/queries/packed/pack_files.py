"""Packs: the compact scores of a benchmark under one metric and condition, as NumPy files in a folder.

The name of the folder ends with a digest of the content, so a damaged pack is not read, and builders of equal packs
agree. A pack appears at once, by renaming; whoever has opened one keeps it when another replaces it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from tracker.private_files.temporary import unfinished_output
from tracker.queries.packed.compact_scores import CompactScores
from tracker.queries.packed.pack_folder import PackFolder

ARRAYS = ("run_ids", "checksums", "prompt_ids", "values", "counts")
UNREADABLE = (OSError, ValueError, EOFError, KeyError)
"""Errors of files that are missing, truncated or no arrays."""


@dataclass(frozen=True, kw_only=True)
class PackKey:
    """What a pack holds.

    Attributes:
        benchmark_id, metric_id: keys.
        condition: of the runs.
    """

    benchmark_id: int
    metric_id: int
    condition: str

    @property
    def prefix(self) -> str:
        """Return the first part of the folder's name."""
        return f"{self.benchmark_id}-{self.metric_id}-{self.condition}-"


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Compact scores with the checksums of their runs.

    Attributes:
        scores: every score of the runs under the metric.
        checksums: ``(n_runs,)`` ``run.checksum`` when the scores were read, as bytes.
    """

    scores: CompactScores
    checksums: NDArray[np.bytes_]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays by the names of their files."""
        known = {"checksums": self.checksums, **vars(self.scores)}
        return {name: known[name] for name in ARRAYS if known[name] is not None}

    def select_valid(self, run_ids: NDArray[np.int64], checksums: NDArray[np.bytes_]) -> NDArray[np.bool_]:
        """Return which of some runs have the same checksum here, ``(n,)``."""
        known = self.scores.run_ids
        if not len(known):
            return np.zeros(len(run_ids), dtype=np.bool_)
        place = np.minimum(np.searchsorted(known, run_ids), len(known) - 1)
        return np.asarray((known[place] == run_ids) & (self.checksums[place] == checksums))


def open_pack(folder: PackFolder, key: PackKey) -> Pack | None:
    """Return the latest intact pack of some scores, mapped into memory; None without any."""
    if not folder.is_trusted():
        return None
    for path in _list_packs(folder.path, key):
        with suppress(*UNREADABLE):
            pack = _load(path)
            if path.name == key.prefix + _compute_digest(pack):
                return pack
    return None


def save_pack(folder: PackFolder, key: PackKey, pack: Pack) -> None:
    """Store a pack, and remove those that it replaces.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    folder.create()
    if not folder.is_trusted():
        return
    path = folder.path / (key.prefix + _compute_digest(pack))
    older = _list_packs(folder.path, key)
    with unfinished_output(path, is_folder=True, mode=0o700) as unfinished:
        for name, values in pack.arrays().items():
            np.save(unfinished / f"{name}.npy", values, allow_pickle=False)
            (unfinished / f"{name}.npy").chmod(folder.file_mode)
        unfinished.chmod(folder.folder_mode)
        if path in older:  # the same pack, perhaps damaged
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # another builder was faster
            os.rename(unfinished, path)
    for replaced in older:
        if replaced != path and path.exists():
            shutil.rmtree(replaced, ignore_errors=True)


def _list_packs(folder: Path, key: PackKey) -> list[Path]:
    """Return the folders of the packs of some scores, the latest first."""
    times = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(key.prefix):
                with suppress(OSError):
                    times[Path(entry.path)] = entry.stat(follow_symlinks=False).st_mtime_ns
    return sorted(times, key=lambda path: -times[path])


def _load(path: Path) -> Pack:
    files = {
        name: np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        for name in ARRAYS
        if name != "counts" or (path / "counts.npy").exists()
    }
    checksums = files.pop("checksums")
    return Pack(scores=CompactScores(**{"counts": None, **files}), checksums=checksums)


def _compute_digest(pack: Pack) -> str:
    hashed = xxhash.xxh3_128()
    for name, values in pack.arrays().items():
        hashed.update(f"{name} {values.dtype.str} {values.shape}".encode())
        hashed.update(np.ascontiguousarray(values).view(np.uint8).data)
    return hashed.hexdigest()
