"""Buffer for the blocks of a file, in memory if they are small, else in a temporary file."""

from __future__ import annotations

import pickle
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import IO, Any, overload
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from tracker.errors import OutputError
from tracker.ingest.measurement import Answers, Measurement, MetricDescription, Prompts, RunDescription, Scores
from tracker.ingest.resolve.duplicates import MARK

MAX_BYTES_IN_MEMORY = 48 << 20
"""Approximate size of blocks in bytes above which they are written to a file."""
MAX_PROMPTS_LOADED = 4
BYTES_PER_TEXT = 64
"""Overhead of a text in bytes."""


class BlockBuffer(Sequence[Measurement]):
    """Blocks in order, readable repeatedly; blocks that share their prompts still do when read back.

    Args:
        limit: size of blocks in bytes that are kept in memory.
    """

    def __init__(self, limit: int = MAX_BYTES_IN_MEMORY) -> None:
        self.limit = limit
        self.size = 0
        self.has_duplicates = False
        """Return whether prompts have numbered names, which `tracker.ingest.resolve.duplicates` disambiguates."""
        self.first_runs: dict[str, RunDescription] = {}
        """The first run of each model, by its name."""
        self._blocks: list[Measurement] = []
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int] | Measurement] = []
        self._prompt_places: list[tuple[int, int]] = []
        self._numbers: WeakKeyDictionary[Prompts, int] = WeakKeyDictionary()
        self._loaded: WeakValueDictionary[int, Prompts] = WeakValueDictionary()
        self._latest: deque[Prompts] = deque(maxlen=MAX_PROMPTS_LOADED)
        self._shared: list[RunDescription | MetricDescription] = []
        self._shared_places: dict[int, int] = {}
        self._weighed: WeakKeyDictionary[Prompts, None] = WeakKeyDictionary()

    def append(self, block: Measurement) -> None:
        """Add a block.

        Raises:
            OutputError: the disk of temporary files is full.
        """
        prompts = block if isinstance(block, Prompts) else getattr(block, "prompts", None)
        if not isinstance(block, Prompts):
            self.first_runs.setdefault(block.run.model, block.run)
        if prompts is not None and prompts not in self._weighed:
            self._weighed[prompts] = None
            self.size += _weight_of_prompts(prompts)
            if prompts.disambiguated_by is not None and not self.has_duplicates:
                self.has_duplicates = any(MARK in key for key in prompts.keys)
        self.size += _weight(block)
        if self._file is not None:
            self._put(block)
            return
        self._blocks.append(block)
        if self.size > self.limit:
            self._file = tempfile.TemporaryFile(prefix="suffrage-")  # noqa: SIM115 - lives as long as the buffer
            blocks, self._blocks = self._blocks, []
            for kept in blocks:
                self._put(kept)

    def close(self) -> None:
        """Release the blocks and their file."""
        if self._file is not None:
            self._file.close()
        self._blocks, self._places = [], []
        self._latest.clear()

    def __len__(self) -> int:
        return len(self._blocks) if self._file is None else len(self._places)

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> list[Measurement]: ...
    def __getitem__(self, index: int | slice) -> Measurement | list[Measurement]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if self._file is None:
            return self._blocks[index]
        place = self._places[index]
        return _Reader(self, self._bytes(place)).load() if isinstance(place, tuple) else place

    def __iter__(self) -> Iterator[Measurement]:
        for index in range(len(self)):
            yield self[index]

    def _put(self, block: Measurement) -> None:
        sink = BytesIO()
        try:
            _Writer(self, sink).dump(block)
        except (pickle.PicklingError, TypeError, AttributeError):  # a plug-in may yield parts that cannot be copied
            self._places.append(block)
            return
        self._places.append(self._written(sink.getbuffer()))

    def _written(self, data: Any) -> tuple[int, int]:
        import zstandard

        assert self._file is not None
        packed = zstandard.ZstdCompressor(level=1).compress(data)
        try:
            start = self._file.seek(0, 2)
            self._file.write(packed)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OutputError(
                f"{folder}: {error.strerror or error}. Large files are buffered there. Free some "
                "space, or set the environment variable TMPDIR to another folder."
            ) from error
        return start, len(packed)

    def _bytes(self, place: tuple[int, int]) -> bytes:
        import zstandard

        assert self._file is not None
        self._file.seek(place[0])
        return zstandard.ZstdDecompressor().decompress(self._file.read(place[1]))

    def _reference(self, thing: Any) -> tuple[str, int] | None:
        """Return the number that identifies a part shared by blocks."""
        if isinstance(thing, Prompts):
            if thing not in self._numbers:
                sink = BytesIO()
                pickle.Pickler(sink, protocol=5).dump(thing)
                self._numbers[thing] = len(self._prompt_places)
                self._prompt_places.append(self._written(sink.getbuffer()))
            return "prompts", self._numbers[thing]
        if isinstance(thing, (RunDescription, MetricDescription)):
            if id(thing) not in self._shared_places:
                self._shared_places[id(thing)] = len(self._shared)
                self._shared.append(thing)
            return "shared", self._shared_places[id(thing)]
        return None

    def _resolve(self, kind: str, number: int) -> Any:
        if kind == "shared":
            return self._shared[number]
        prompts = self._loaded.get(number)
        if prompts is None:
            prompts = pickle.loads(self._bytes(self._prompt_places[number]))
            assert isinstance(prompts, Prompts)
            self._loaded[number] = prompts
        self._latest.append(prompts)
        return prompts


class _Writer(pickle.Pickler):
    def __init__(self, buffer: BlockBuffer, sink: BytesIO) -> None:
        super().__init__(sink, protocol=5)
        self._buffer = buffer

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        return self._buffer._reference(obj)


class _Reader(pickle.Unpickler):
    def __init__(self, buffer: BlockBuffer, data: bytes) -> None:
        super().__init__(BytesIO(data))
        self._buffer = buffer

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        return self._buffer._resolve(*pid)


def _weight_of_prompts(prompts: Prompts) -> int:
    columns = (prompts.keys, prompts.text, prompts.choices, prompts.answer, prompts.details)
    return sum(_weight_of_texts(column) for column in columns if column is not None)


def _weight(block: Measurement) -> int:
    if isinstance(block, Prompts):
        return 0
    weight = int(block.values.nbytes) if not isinstance(block, Answers) else _weight_of_texts(block.text)
    if isinstance(block, (Scores, Answers)) and isinstance(block.trials, np.ndarray):
        weight += int(block.trials.nbytes)
    return weight


def _weight_of_texts(texts: Sequence[Any]) -> int:
    """Return the approximate size of texts, lists or mappings in bytes, estimated from a sample."""
    step = max(1, len(texts) // 64)
    chosen = texts[::step]
    weight = sum(map(_weight_of_value, chosen))
    return weight * len(texts) // max(1, len(chosen))


def _weight_of_value(value: Any) -> int:
    if isinstance(value, str):
        return BYTES_PER_TEXT + len(value)
    if isinstance(value, (list, tuple)):
        return BYTES_PER_TEXT + sum(map(_weight_of_value, value))
    if isinstance(value, dict):
        return 4 * BYTES_PER_TEXT + sum(map(_weight_of_value, value.values()))
    return BYTES_PER_TEXT // 2
