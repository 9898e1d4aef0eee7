"""Import of model facts from a file: organization, size, open weights, aliases.

A file is stored whole or not at all, and only concerns models in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import is_missing, read_strings, shorten
from tracker.ingest.files.tabular.headings import assign_roles, normalize_heading
from tracker.ingest.files.tabular.json_lines import read_json_lines
from tracker.ingest.files.tabular.model_facts import parse_parameters, parse_release_date
from tracker.ingest.files.tabular.table import FileTable, TableProblems, read_table
from tracker.ingest.resolve.catalogue_resolver import MODEL_FACTS
from tracker.ingest.resolve.prompt_texts import make_storable
from tracker.schema import Model, ModelAlias

Fact = str | int | bool | date
ALIAS = "alias"
JSON_LINES = ".jsonl"
YES, NO = ("yes", "true", "1"), ("no", "false", "0")


@dataclass(frozen=True, kw_only=True)
class ModelFactsFile:
    """Facts of models in a file.

    Attributes:
        table: its rows, for messages.
        facts: value and row of each fact, by model.
        aliases: aliases of each model, and their rows.
        passed_over: columns without facts.
    """

    table: FileTable
    facts: Mapping[str, Mapping[str, tuple[Fact, int]]]
    aliases: Mapping[str, Mapping[str, int]]
    passed_over: tuple[str, ...] = ()


@dataclass(kw_only=True)
class ModelFactsChanges:
    """Changes made by importing model facts.

    Attributes:
        filled, changed, aliases: one text per change, such as ``org/m: parameters 7,000,000,000``.
        n_unchanged: number of facts and aliases that were stored before.
    """

    filled: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    n_unchanged: int = 0


def read_model_facts(path: Path) -> ModelFactsFile:
    """Read facts of models from CSV, TSV, Parquet or JSON Lines.

    Raises:
        BadInputError: the file is unreadable, has no column for the model or for a fact, holds an invalid value, or
            contradicts itself.
    """
    is_json = path.name.removesuffix(".gz").endswith(JSON_LINES)
    table = read_json_lines(path) if is_json else read_table(path)
    role = assign_roles(table.names)
    by_plain = {normalize_heading(name): name for name in reversed(table.names)}
    columns = {part: by_plain[part] for part in (*MODEL_FACTS, ALIAS) if part in by_plain}
    if "model" not in role or not columns:
        columns_found = ", ".join(table.names) or "none"
        lacking = "no column model" if "model" not in role else "no column holds facts of models"
        raise BadInputError(
            path,
            f"{lacking}. Its columns: {columns_found}.",
            advice=f"Columns of facts: {', '.join(MODEL_FACTS)}; {ALIAS} adds an alias.",
        )
    problems = TableProblems(table)
    models = read_strings(table, role["model"]).to_pylist()
    unnamed = [row for row, model in enumerate(models) if model is None]
    problems.add(unnamed, role["model"], ["does not name a model"])
    names = [make_storable(model or "") for model in models]
    facts: dict[str, dict[str, tuple[Fact, int]]] = {name: {} for name in names if name}
    aliases: dict[str, dict[str, int]] = {name: {} for name in names if name}
    for part, column in columns.items():
        for row, cell in enumerate(read_strings(table, column).to_pylist()):
            if is_missing(cell) or not names[row]:
                continue
            if part == ALIAS:
                aliases[names[row]].setdefault(make_storable(cell), row)
                continue
            value = READERS[part](cell)
            if value is None:
                problems.add([row], column, [f"{shorten(cell)!r} is {EXPECTATIONS[part]}"])
                continue
            first_value, earlier = facts[names[row]].setdefault(part, (value, row))
            if first_value != value:
                problems.add([row], column, [f"{names[row]} has {format_fact(first_value)} in {table.place(earlier)}"])
    problems.check()
    passed_over = [name for name in table.names if name not in (role["model"], *columns.values())]
    return ModelFactsFile(table=table, facts=facts, aliases=aliases, passed_over=tuple(passed_over))


def store_model_facts(session: Session, file: ModelFactsFile, *, overwrite: bool = False) -> ModelFactsChanges:
    """Store missing facts of models; replace different ones if requested.

    Args:
        session: an open write transaction; exclusive on PostgreSQL.
        file: the facts.
        overwrite: replace stored facts that differ; otherwise they raise.

    Raises:
        BadInputError: a model is unknown, a stored fact differs, or an alias is the name of another model.
    """
    problems = TableProblems(file.table)
    models = {model.name: model for model in session.scalars(sa.select(Model))}
    by_key = {model.id: model for model in models.values()}
    also = session.execute(sa.select(ModelAlias.name, ModelAlias.model_id)).all()  # type: ignore[call-overload]
    by_name = models | {name: by_key[key] for name, key in also}
    known = [name for name in file.facts if name in by_name]
    _report_unknown(file, sorted(by_name), problems)
    stored = ModelFactsChanges()
    new_facts: dict[tuple[str, str], tuple[Fact, int]] = {}
    differing = False
    for name in known:
        model = by_name[name]
        for fact, (value, row) in file.facts[name].items():
            stored_value = getattr(model, fact)
            first_value, earlier = new_facts.setdefault((model.name, fact), (value, row))
            if first_value != value:  # listed under an alias
                where = f"{model.name} has {format_fact(first_value)} in {file.table.place(earlier)}"
                problems.add([row], None, [f"{fact}: {where}"])
            elif stored_value == value:
                stored.n_unchanged += 1
            elif stored_value is None or overwrite:
                setattr(model, fact, value)
                change = f"{model.name}: {fact} {format_fact(value)}"
                if stored_value is None:
                    stored.filled.append(change)
                else:
                    stored.changed.append(f"{change}, before {format_fact(stored_value)}")
            else:
                differing = True
                text = f"the store has {fact} {format_fact(stored_value)} for {model.name}, not {format_fact(value)}"
                problems.add([row], None, [text])
        for alias, row in file.aliases[name].items():
            if alias not in by_name:
                by_name[alias] = model
                assert model.id is not None
                session.add(ModelAlias(name=alias, model_id=model.id))
                stored.aliases.append(f"{model.name}: alias {alias}")
            elif by_name[alias] is model:
                stored.n_unchanged += 1
            else:
                text = f"{alias!r} cannot be an alias of {model.name}: it names the model {by_name[alias].name}"
                problems.add([row], None, [text])
    problems.check("Replace the stored facts with --overwrite." if differing else "")
    session.flush()
    return stored


def format_fact(value: Fact) -> str:
    """Return a fact as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else value.isoformat() if isinstance(value, date) else repr(value)


def _report_unknown(file: ModelFactsFile, known: Iterable[str], problems: TableProblems) -> None:
    stored_names = list(known)
    rows = read_strings(file.table, assign_roles(file.table.names)["model"]).to_pylist()
    first: dict[str, int] = {}
    for row, name in enumerate(rows):
        first.setdefault(make_storable(name), row)
    for name in file.facts:
        if name not in stored_names:
            near = get_close_matches(name, stored_names, n=3, cutoff=0.6)
            hint = f"; did you mean {' or '.join(near)}?" if near else "" if stored_names else "; it has none yet"
            problems.add([first[name]], None, [f"the store has no model {name!r}{hint}"])


def _text(cell: str) -> str:
    return make_storable(cell)


def _open_weights(cell: str) -> bool | None:
    word = cell.strip().lower()
    return True if word in YES else False if word in NO else None


READERS: Mapping[str, Callable[[str], Any]] = {
    "organization": _text,
    "family": _text,
    "parameters": parse_parameters,
    "released": parse_release_date,
    "open_weights": _open_weights,
}
EXPECTATIONS = {
    "parameters": "not a number of parameters, such as 7000000000 or 7B",
    "released": "not a date such as 2024-05-31",
    "open_weights": "not yes or no",
}
