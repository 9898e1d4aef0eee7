"""CSV, Parquet or JSON Lines with one row per prompt: text, choices, reference answer, task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.files.mismatch import Mismatch, first_missing
from tracker.ingest.files.tabular.cells import is_missing, is_number
from tracker.ingest.files.tabular.headings import CONTENT, assign_roles, is_row_number, normalize_heading
from tracker.ingest.files.tabular.json_lines import first_names, is_json_lines, read_rows
from tracker.ingest.files.tabular.prompt_columns import parse_prompts
from tracker.ingest.files.tabular.table import TableProblems
from tracker.ingest.files.tabular.table_head import read_head
from tracker.ingest.measurement import Measurement, ReadOptions

SPECIFICITY = 20
RECOGNIZED_BY = "a column that names prompts, and text, choices, reference answer, task or split; no model, no score"
PROMPTS_ONLY = True
FIELDS = ("prompt_id", "text", "choices", "gold_answer")
"""Required fields of JSON Lines; most other files of lines with texts have a different content."""


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a prompt table."""
    if is_json_lines(path):
        names = first_names(path)
        if isinstance(names, str):
            return names
        if "model" in names:
            return "the field 'model' marks results of models"
        return first_missing([(name in names, f"no field {name}") for name in FIELDS])
    top = read_head(path)
    if isinstance(top, str):
        return top
    role = _roles(top.names)
    if options.values == "predictions" and "text" not in role:
        return "--values predictions reads the cells as answers"
    if options.orient == "models":
        return "--orient models reads the rows as models"
    if "prompt" not in role and "text" not in role:
        return "no column prompt_id or text"
    for part in ("model", "score", "predicted"):
        if part in role:
            return f"the column {role[part]!r} marks results of models"
    if "choices" in role or "answer" in role:
        return None
    cells_by_column = {
        name: [cell for cell in top.column(name) if not is_missing(cell)] for name in _further(top.names, role)
    }
    numeric = [name for name, cells in cells_by_column.items() if cells and all(map(is_number, cells))]
    if "text" in role:
        if len(numeric) > 1 and len(numeric) == len(cells_by_column):
            return f"all columns beside the text hold numbers, like scores of models: {', '.join(numeric[:3])}"
        return None
    if "task" not in role and "split" not in role:
        return Mismatch("no column text, choices, answer, task or split", 1 / 2)
    return f"the column {numeric[0]!r} holds numbers, and no column holds text" if numeric else None


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield the prompts, one block per benchmark."""
    table = read_rows(path)
    role = _roles(table.names)
    if "prompt" not in role and "text" not in role:
        raise BadInputError(path, "no column names the prompts: name one prompt_id, or give their text.")
    problems = TableProblems(table)
    prompts = parse_prompts(table, role, options, problems, further=_further(table.names, role))
    problems.check()
    yield from prompts.blocks


def _further(names: Sequence[str], role: Mapping[str, str]) -> list[str]:
    known = {role[part] for part in ("prompt", *CONTENT) if part in role}
    return [name for name in names if name not in known and not is_row_number(name)]


def _roles(names: Sequence[str]) -> dict[str, str]:
    role = assign_roles(names)
    if "text" not in role and normalize_heading(role.get("prompt", "")) == "prompt":
        role["text"] = role.pop("prompt")
    return role
