"""CSV or Parquet table with one row per prompt: text, choices, gold answer, task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracker.errors import BadInputError
from tracker.ingest.cells import is_missing, is_number
from tracker.ingest.headings import CONTENT, is_row_number, plain, roles
from tracker.ingest.measurement import Measurement, ReadOptions
from tracker.ingest.prompt_columns import named_prompts
from tracker.ingest.sniffing import head
from tracker.ingest.tables import Problems, read_table

SPECIFICITY = 20
NAMES_PROMPTS = True
CONTENT_OF_A_PROMPT = ("text", "choices", "answer")


def declines(path: Path, options: ReadOptions) -> str | None:
    """Why the file is no prompt table."""
    top = head(path)
    if isinstance(top, str):
        return top
    role = _roles(top.names)
    if options.values == "predictions" and "text" not in role:
        return "the cells are said to be predicted answers"
    if options.orient == "models":
        return "the rows are said to be models"
    if "prompt" not in role and "text" not in role:
        return "no column prompt_id, and no column text"
    for part in ("model", "score", "predicted"):
        if part in role:
            return f"the column {role[part]!r} says that it holds what models did"
    if any(part in role for part in CONTENT_OF_A_PROMPT):
        return None
    if "task" not in role and "split" not in role:
        return "no column text, choices, answer, task or split"
    for name in top.names:
        cells = [cell for cell in top.column(name) if not is_missing(cell)]
        if name not in role.values() and cells and all(map(is_number, cells)):
            return f"the column {name!r} holds numbers beside prompts without text"
    return None


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """The prompts, one block per benchmark."""
    table = read_table(path)
    role = _roles(table.names)
    if "prompt" not in role and "text" not in role:
        raise BadInputError(path, "no column names the prompts: name one prompt_id, or give their text.")
    taken = {role[part] for part in ("prompt", *CONTENT) if part in role}
    further = [name for name in table.names if name not in taken and not is_row_number(name)]
    problems = Problems(table)
    prompts = named_prompts(table, role, options, problems, further=further)
    problems.check()
    yield from prompts.blocks


def _roles(names: tuple[str, ...] | list[str]) -> dict[str, str]:
    role = roles(names)
    if "text" not in role and plain(role.get("prompt", "")) == "prompt":
        role["text"] = role.pop("prompt")
    return role
