"""Export the prompts of a benchmark as a table.

The columns are benchmark, prompt_id, task, text, choices, gold_answer, split, and one for each further field.
`suffrage ingest` imports such a table.

Examples:
    suffrage export prompts mmlu_pro --output prompts.parquet
    suffrage export prompts mmlu_pro --format jsonl
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import SelectionError
from tracker.exporting.declaration import export
from tracker.exporting.prompt_labels import make_prompt_labels
from tracker.exporting.table_files import StreamedTable
from tracker.ingest.files.tabular.headings import CONTENT, SYNONYMS, normalize_heading
from tracker.plugins.parameters import ValueHint
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import load_selected_filter
from tracker.queries.resolution import BenchmarkKey, find_benchmark, select_tasks
from tracker.queries.scores import read_prompts
from tracker.queries.selection import Selection
from tracker.queries.sql import tables

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_TOGETHER = 2_000
COLUMNS = ("benchmark", "prompt_id", "task", "text", "choices", "gold_answer", "split")
PREFIX = "detail_"
"""Prefix of a further field whose name has another meaning."""
SPOKEN_FOR = frozenset(COLUMNS).union(*(SYNONYMS[part] for part in ("prompt", "model", "score", "predicted", *CONTENT)))
"""Column names with a meaning in a table of prompts, or that make it another table."""


@export
def export_prompts(
    session: Session,
    benchmark: str,
    *,
    tasks: Annotated[tuple[str, ...], "Names of tasks to include, separated by commas. By default all."] = (),
    split: Annotated[tuple[str, ...], "Names of splits to include, separated by commas. By default all."] = (),
    filter: Annotated[
        int | None, "ID of a filter finding; only the prompts that it keeps are exported.", ValueHint(metavar="ID")
    ] = None,
) -> StreamedTable:
    """Return the prompts of a benchmark's tasks, see `build_prompt_table`, with the warnings of the filter."""
    key = find_benchmark(session, benchmark)
    selection = Selection(benchmark=benchmark, tasks=tasks, split=split, filter=filter)
    warnings = list_filter_warnings(session, key, selection)
    table = build_prompt_table(session, key, selection)
    table.warnings[:0] = warnings
    return table


def build_prompt_table(session: Session, benchmark: BenchmarkKey, selection: Selection) -> StreamedTable:
    """Return a row per prompt of a selection's tasks and filter, in the order of ingestion.

    Columns: ``benchmark``, ``prompt_id`` (as `make_prompt_labels`), ``task``, ``text``, ``choices`` (a list),
    ``gold_answer``, ``split``, and one for each further field that some prompt has: integers, numbers, booleans and
    texts if all values are of that type, else JSON. A field whose name has another meaning in a table of prompts gets
    the prefix `PREFIX`.

    Raises:
        SelectionError: the benchmark has no prompts.
    """
    import pyarrow as pa

    tasks = select_tasks(session, benchmark, selection)
    only = load_selected_filter(session, benchmark, selection)
    prompt_ids, of_task = read_prompts(session, tasks, only, selection.split)
    if not len(prompt_ids):
        raise SelectionError(
            f"{benchmark.label} has no such prompts. If it has scores of whole tasks only, export scores."
        )
    order = np.argsort(prompt_ids)
    ids = prompt_ids[order].tolist()
    task_of = dict(zip(ids, of_task[order].tolist(), strict=True))
    names = make_prompt_labels(session, task_of)
    kinds = _kinds(session, ids)
    headings = _headings(list(kinds))
    texts = pa.string()
    fixed: dict[str, pa.DataType] = dict.fromkeys(COLUMNS, texts) | {"choices": pa.list_(texts)}
    schema = pa.schema([*fixed.items(), *((headings[field], kind) for field, kind in kinds.items())])
    warnings = [
        f"The field {field!r} is in the column {heading!r}." for field, heading in headings.items() if field != heading
    ]

    def batches() -> Iterator[pa.RecordBatch]:
        prompt = tables.prompt.c
        query = sa.select(prompt.id, prompt.text, prompt.choices, prompt.answer, prompt.split, prompt.details)
        for part in _parts(ids):
            rows = session.execute(query.where(prompt.id.in_(part)).order_by(prompt.id)).all()
            columns = [
                pa.array([benchmark.label] * len(rows), texts),
                pa.array([names[row.id] for row in rows], texts),
                pa.array([task_of[row.id] for row in rows], texts),
                pa.array([row.text for row in rows], texts),
                pa.array([row.choices for row in rows], fixed["choices"]),
                pa.array([row.answer for row in rows], texts),
                pa.array([row.split for row in rows], texts),
            ]
            for field, kind in kinds.items():
                values = [(row.details or {}).get(field) for row in rows]
                columns.append(pa.array([_encode(value, kind) for value in values], kind))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return StreamedTable(schema=schema, batches=batches(), warnings=warnings)


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[first : first + ROWS_TOGETHER] for first in range(0, len(ids), ROWS_TOGETHER))


def _kinds(session: Session, ids: Sequence[int]) -> dict[str, pa.DataType]:
    """Return the type of each further field, in the order in which prompts have them."""
    import pyarrow as pa

    prompt = tables.prompt.c
    met: dict[str, set[type]] = {}
    for part in _parts(ids):
        query = sa.select(prompt.details).where(prompt.id.in_(part), prompt.details.is_not(None)).order_by(prompt.id)
        for details in session.scalars(query):
            for field, value in details.items() if isinstance(details, Mapping) else ():
                if value is not None:
                    met.setdefault(field, set()).update(_kinds_of(value))
    exact = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    result = {}
    for field, kinds in met.items():
        alone = exact.get(next(iter(kinds)), pa.string()) if len(kinds) == 1 else pa.string()
        result[field] = pa.int64() if kinds == {int, _Large} else pa.float64() if kinds == {int, float} else alone
    return result


class _Large(int):
    """Return whether a value is an integer that float64 cannot represent."""


def _kinds_of(value: Any) -> tuple[type, ...]:
    if isinstance(value, int) and abs(value) > 2**53:
        return (int, _Large) if -(2**63) <= value < 2**63 else (list,)
    return (type(value),)


def _encode(value: Any, kind: pa.DataType) -> Any:
    import pyarrow as pa

    if value is None or isinstance(value, str) or not pa.types.is_string(kind):
        return float(value) if isinstance(value, int) and pa.types.is_floating(kind) else value
    return json.dumps(value, ensure_ascii=False)


def _headings(fields: Sequence[str]) -> dict[str, str]:
    """Return the heading of each field: its name, unless that is another column's or has another meaning."""
    used = set(COLUMNS)
    result: dict[str, str] = {}
    for field in fields:
        heading = field.strip()
        while not heading or normalize_heading(heading) in SPOKEN_FOR or normalize_heading(heading) in used:
            heading = PREFIX + heading
        used.add(normalize_heading(heading))
        result[field] = heading
    return result
