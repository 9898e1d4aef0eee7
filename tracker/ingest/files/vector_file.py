"""External vectors: a Parquet table or an npz file with one row per prompt."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError, first_line
from tracker.ingest.files.file_contents import PARQUET, check_expansion, read_bytes
from tracker.ingest.files.tabular.cells import read_names
from tracker.ingest.files.tabular.headings import assign_roles, normalize_heading
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.settings.input_limits import current_limits, explain_limit

if TYPE_CHECKING:
    import pyarrow as pa

VECTOR = ("vector", "vectors", "embedding", "embeddings")
PLURALS = {"prompt_ids": "prompt_id", "tasks": "task"}
ZIP = b"PK"


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorFile:
    """Vectors of a file.

    Attributes:
        table: its rows, for messages.
        keys: name of each row's prompt.
        tasks: task of each row; None if the file has no tasks.
        vectors: ``(n, n_dimensions)`` float32, finite, nonzero.
    """

    table: FileTable
    keys: list[str]
    tasks: list[str] | None
    vectors: NDArray[np.float32]

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self.table.path


def read_vectors(path: Path) -> VectorFile:
    """Read a file of vectors.

    Raises:
        BadInputError: the file is neither Parquet nor npz, lacks a column, or holds an invalid vector.
    """
    start = read_bytes(path)[:4]
    if not start.startswith((PARQUET, ZIP)):
        raise BadInputError(
            path, "is neither a Parquet nor an npz file.", advice="Save the vectors as .parquet or .npz."
        )
    table = read_table(path) if start.startswith(PARQUET) else _read_npz(path)
    role = assign_roles(table.names)
    vector_column = next((name for name in table.names if normalize_heading(name) in VECTOR), None)
    if "prompt" not in role or vector_column is None:
        part, names = ("prompts", "prompt_id") if "prompt" not in role else ("vectors", "vector")
        raise BadInputError(path, f"no column {names} for the {part}. Its columns: {', '.join(table.names)}.")
    problems = TableProblems(table)
    keys = read_names(table, role["prompt"]).to_pylist()
    problems.add([row for row, key in enumerate(keys) if key is None], role["prompt"], ["does not name a prompt"])
    vectors = _vectors(table, vector_column, problems)
    problems.check()
    tasks = [task or "" for task in read_names(table, role["task"]).to_pylist()] if "task" in role else None
    return VectorFile(table=table, keys=keys, tasks=tasks, vectors=vectors)


def _vectors(table: FileTable, name: str, problems: TableProblems) -> NDArray[np.float32]:
    """Return the column as ``(n, n_dimensions)``; invalid rows are reported and set to zero."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.arrow[name]
    kind = column.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise BadInputError(table.path, f"the column {name!r} holds {kind}, not lists of numbers.")
    lengths = np.array(pc.fill_null(pc.list_value_length(column), 0).to_pylist(), dtype=np.int64)
    empty = np.flatnonzero(lengths == 0)
    problems.add(empty, name, ["no vector"])
    if len(empty) == len(lengths):
        return np.zeros((len(lengths), 0), dtype=np.float32)
    usual = Counter(lengths[lengths > 0].tolist()).most_common(1)[0][0]
    odd = np.flatnonzero((lengths != usual) & (lengths > 0))
    problems.add(odd, name, [f"{lengths[row]} numbers; most rows have {usual}" for row in odd])
    whole = lengths == usual
    numbers = pc.list_flatten(column.filter(pa.array(whole)))
    vectors = np.zeros((len(lengths), usual), dtype=np.float32)
    with np.errstate(over="ignore"):  # overflow of float32 is reported below
        vectors[whole] = np.asarray(pc.cast(numbers, pa.float64(), safe=False).to_numpy()).reshape(-1, usual)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    problems.add(broken, name, ["the vector contains NaN, infinity, null or a number beyond float32"])
    problems.add(np.flatnonzero(whole & ~vectors.any(axis=1)), name, ["the vector is zero, so it has no direction"])
    return vectors


def _read_npz(path: Path) -> FileTable:
    import pyarrow as pa

    data = read_bytes(path)
    try:
        _check_members(path, data)
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            columns = {PLURALS.get(normalize_heading(name), name): arrays[name] for name in arrays.files}
    except BadInputError:
        raise
    except (
        OSError, ValueError, EOFError, KeyError, NotImplementedError, MemoryError, RuntimeError, OverflowError,
        TypeError, SyntaxError, struct.error, tokenize.TokenError, zlib.error, zipfile.BadZipFile,
    ) as error:  # fmt: skip
        raise BadInputError(path, f"is not a readable npz file of plain arrays ({first_line(error)}).") from error
    try:
        table = pa.table({name: _column(array) for name, array in columns.items()})
    except (pa.ArrowException, ValueError, TypeError) as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in columns.items())
        text = (
            f"its arrays have the wrong shapes: {shapes}. Save prompt_id (n,), vector (n, d) and optionally task (n,)."
        )
        raise BadInputError(path, text) from error
    if table.num_rows == 0:
        raise BadInputError(path, "holds no rows.")
    return FileTable(path, table, None)


def _check_members(path: Path, data: bytes) -> None:
    """Reject an archive whose arrays expand beyond the limits.

    Raises:
        BadInputError: it has too many arrays, or one claims to be larger than its bytes.
    """
    limits = current_limits()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > limits.members:
            raise BadInputError(path, explain_limit("members", f"has {len(members):,} arrays"))
        check_expansion(path, sum(member.file_size for member in members), len(data))
        for member in members:
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                first = version == (1, 0)
                read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                shape, _, kind = read_header(file)
                if math.prod(shape) * kind.itemsize > member.file_size:
                    raise BadInputError(path, f"the array {member.filename!r} is truncated.")


def _column(array: NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    if array.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).ravel()), array.shape[1])
    if array.ndim != 1:
        raise ValueError(f"{array.ndim} dimensions")
    return pa.array(array)
