"""Generated tables are stored as they are, or rejected with a command that stores them as they are."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from generated_tables import GeneratedTable, TableGenerator, Truth

from tracker.cli.commands.ingest import command
from tracker.errors import BadInputError
from tracker.ingest.measurement import Prompts, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import parse_file

N_TABLES = 200
MAX_REJECTED = 0.15


@dataclass
class Outcomes:
    """The outcomes of reading generated tables.

    Attributes:
        wrong: tables that were read with another content.
        rejected: tables that need an option.
        unhelpful: rejected tables for which no command of the message gives the content.
    """

    wrong: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    unhelpful: list[str] = field(default_factory=list)


def read_content(path: Path, options: ReadOptions, format: str | None = None) -> Truth:
    content: Truth = {}
    for block in parse_file(path, options, format=format).measurements:
        assert not isinstance(block, Prompts), "a table of scores was read as prompts"
        kind = "task" if isinstance(block, TaskScores) else "prompt"
        assert isinstance(block, (Scores, TaskScores))
        items = block.tasks if isinstance(block, TaskScores) else block.prompts.keys
        for item, value in zip(items, block.values.tolist(), strict=True):
            if not np.isnan(value):
                content[kind, block.run.model, item] = value
    return content


def has_scale(content: Truth, truth: Truth) -> bool:
    """Whether a content is the truth; percentages may be fractions, on one scale for all."""
    if content.keys() != truth.keys():
        return False
    return any(
        all(abs(content[key] * scale - value) < 1e-9 * max(1, abs(value)) for key, value in truth.items())
        for scale in (1, 100)
    )


def parse_command(line: str) -> tuple[ReadOptions, str | None]:
    context = command.make_context("ingest", shlex.split(line)[2:])
    chosen = context.params
    columns = dict(chosen["columns"])
    if chosen["model_column"] is not None:
        columns["model"] = chosen["model_column"]
    options = ReadOptions(
        benchmark="b",
        columns=columns,
        orient=chosen["orient"],
        metric=chosen["metric"],
        task_columns=chosen["task_columns"],
        ignore_columns=chosen["ignore_columns"],
        splits=chosen["splits"],
    )
    return options, chosen["format_name"]


def try_commands(path: Path, error: BadInputError, truth: Truth) -> bool:
    """Whether a command of a message gives the content."""
    for line in str(error).splitlines():
        if line.strip().startswith("suffrage ingest "):
            options, format = parse_command(line.strip())
            try:
                if has_scale(read_content(path, options, format), truth):
                    return True
            except BadInputError:
                continue
    return False


def read_tables(tables: list[GeneratedTable], folder: Path) -> Outcomes:
    outcomes = Outcomes()
    for table in tables:
        path = table.write(folder)
        try:
            content = read_content(path, ReadOptions(benchmark="b"))
        except AssertionError as error:
            outcomes.wrong.append(f"{table.name}: {error}")
        except BadInputError as error:
            outcomes.rejected.append(f"{table.name}: {error}")
            if not try_commands(path, error, table.truth):
                outcomes.unhelpful.append(f"{table.name}: {error}\n{table.data[:300]!r}")
        else:
            if not has_scale(content, table.truth):
                outcomes.wrong.append(f"{table.name}: {table.data[:300]!r}: {sorted(content)[:3]}")
    return outcomes


def check(outcomes: Outcomes, n: int) -> None:
    assert outcomes.wrong == []
    assert outcomes.unhelpful == []
    assert len(outcomes.rejected) <= MAX_REJECTED * n, "\n".join(outcomes.rejected)


def test_200_generated_tables_are_read_as_they_are_or_rejected_with_a_working_command(tmp_path: Path) -> None:
    generator = TableGenerator(seed=16)
    check(read_tables([generator.draw(number) for number in range(N_TABLES)], tmp_path), N_TABLES)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_further_generated_tables(tmp_path: Path, seed: int) -> None:
    generator = TableGenerator(seed=1000 + seed)
    check(read_tables([generator.draw(number) for number in range(N_TABLES)], tmp_path), N_TABLES)
