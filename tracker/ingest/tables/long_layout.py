"""Recognition of tables with one row per score: of a model on a prompt, or on a task."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tracker.ingest.files.tabular.headings import is_row_number, normalize_heading
from tracker.ingest.files.tabular.number_cells import parse_number_cell
from tracker.ingest.measurement import KNOWN_METRICS, ReadOptions
from tracker.ingest.tables.layout import TableLayout, TableRejection
from tracker.ingest.tables.names.column_headings import is_side_heading, is_summary_heading, is_weak_model_heading
from tracker.ingest.tables.names.name_shapes import name_shares
from tracker.ingest.tables.names.vocabulary import PROMPT_DETAILS, TASK_HEADINGS, WEAK_PROMPT_HEADINGS
from tracker.ingest.tables.table_columns import ColumnRole, TableColumns

MIN_SHARE = 0.6
"""Share of the names in a column that must look like models, tasks or prompts, to take it as such."""
MAX_REPEATED = 0.2
"""Share of rows that may repeat the model of an earlier row in a table of one row per model."""
IDENTITY = (
    "model", "prompt", "text", "task", "benchmark", "metric", "trial", "condition", "variant", "run", "few_shot",
    "split", "choices",
)  # fmt: skip
JUDGE_HEADINGS = ("judge", "judge_model", "grader", "grader_model", "evaluator", "annotator", "reference_model")
NO_SCORE_COLUMN = "no column score, predicted or gold_probability"


@dataclass(frozen=True)
class LongTable:
    """A table whose rows may be single scores.

    Attributes:
        table: its columns.
        options: how the user reads it.
    """

    table: TableColumns
    options: ReadOptions

    def find(self) -> TableLayout | TableRejection | None:
        """Return the layout, why the table has none although its rows are single scores; None if they are not."""
        roles = dict(self.table.roles)
        measures = self._measures(roles)
        if "model" not in roles and not self.options.model:
            self._add_model(roles, measures)
        has_model = "model" in roles or bool(self.options.model)
        if not has_model or not measures or self._has_one_row_per_model(roles):
            return None
        if self._numbers_rows(roles):
            number = roles.pop("prompt")
            if "task" not in roles and "benchmark" not in roles:
                return self._reject_row_numbers(number)
        if "prompt" not in roles and "text" not in roles:
            problem = self._add_rows_of_models(roles, measures)
            if problem is not None:
                return problem
        if "prompt" in roles or "text" in roles:
            problem = self._add_task(roles)
            return problem or self._check_identity(roles, measures) or self._layout("long-table", roles, measures)
        task = roles.get("task") or roles.get("benchmark")
        if task is None:
            return None
        if "task" not in roles:
            roles["task"] = roles.pop("benchmark")
        return self._check_identity(roles, measures) or self._layout("task-score-table", roles, measures)

    def _measures(self, roles: dict[str, str]) -> list[str]:
        """Return the columns of scores or answers."""
        if "score" in roles:
            return [roles["score"]]
        metrics = [
            name
            for name, column in self.table.columns.items()
            if normalize_heading(column.heading) in KNOWN_METRICS and name not in roles.values()
        ]
        if metrics or "predicted" in roles or "gold_probability" in roles:
            return metrics or [roles[part] for part in ("predicted", "gold_probability") if part in roles]
        used = set(roles.values())
        columns_of_numbers = (
            name
            for name, column in self.table.columns.items()
            if column.role == ColumnRole.NUMBERS and name not in used and not is_row_number(name)
        )
        numbers = list(islice(columns_of_numbers, 2))
        if (
            len(numbers) == 1
            and not self.table.is_json
            and len(self._names(roles, ())) + sum(part in roles for part in IDENTITY) > 1
        ):
            roles["score"] = numbers[0]
            return numbers
        return []

    def _names(self, roles: dict[str, str], measures: Sequence[str]) -> list[str]:
        """Return the columns of words without a role."""
        return [
            name
            for name, column in self.table.columns.items()
            if column.role == ColumnRole.TEXTS and name not in roles.values() and name not in measures
        ]

    def _add_model(self, roles: dict[str, str], measures: Sequence[str]) -> None:
        """Find the column of models, by its heading or its names."""
        names = self._names(roles, measures)
        repeated = [name for name in names if not self.table.columns[name].is_unique]
        by_heading = [name for name in names if is_weak_model_heading(name)]
        run = roles.get("run", "")
        if not by_heading and run and is_weak_model_heading(run) and not self.table.columns[run].is_unique:
            by_heading = [run]
        by_names = [
            name
            for name in repeated
            if self._shares(name)["model"] >= MIN_SHARE
            and normalize_heading(name) not in JUDGE_HEADINGS
            and not (self._is_constant(name) and by_heading)
        ]
        rivals = [name for name in by_names if name not in by_heading]
        if len(by_heading) == 1 and (by_heading[0] in repeated or by_heading[0] == run) and not rivals:
            roles["model"] = by_heading[0]
        elif len(by_names) == 1:
            roles["model"] = by_names[0]
        if roles.get("model") == run and run:
            del roles["run"]

    def _shares(self, name: str) -> dict[str, float]:
        return {str(kind): share for kind, share in
                name_shares(self.table.columns[name].cells, self.options.known_names).items()}  # fmt: skip

    def _has_one_row_per_model(self, roles: dict[str, str]) -> bool:
        """Return whether each row is another model, as in a leaderboard."""
        if "model" not in roles or "model" in self.table.explicit or "prompt" in self.table.explicit:
            return False
        cells = self.table.columns[roles["model"]].cells
        columns_of_rows = [roles[part] for part in ("prompt", "text", "task", "benchmark") if part in roles]
        return (
            len(cells) > 2
            and len(set(cells)) == len(cells)
            and bool(columns_of_rows)
            and all(
                self.table.columns[name].is_unique and normalize_heading(name) in WEAK_PROMPT_HEADINGS
                for name in columns_of_rows
            )
        )

    def _numbers_rows(self, roles: dict[str, str]) -> bool:
        """Return whether the column of prompts only numbers the rows: no two models share one of its values."""
        prompt, model = roles.get("prompt", ""), roles.get("model", "")
        return (
            bool(prompt and model)
            and "text" not in roles
            and "prompt" not in self.table.explicit
            and normalize_heading(prompt) in WEAK_PROMPT_HEADINGS
            and self.table.n_rows > 2
            and self.table.columns[prompt].is_unique
            and len(set(self.table.columns[model].cells)) > 1
        )

    def _reject_row_numbers(self, name: str) -> TableRejection:
        """Return that no two models share a prompt."""
        return TableRejection(
            f"each {name!r} is in one row, so no two models share a prompt.",
            f"{shlex.join(['--map', f'prompt={name}'])}\n{shlex.join(['--ignore-columns', name])}",
            "long-table",
            0.9,
            is_final=True,
        )

    def _is_constant(self, name: str) -> bool:
        return len(set(self.table.columns[name].cells)) == 1

    def _add_rows_of_models(self, roles: dict[str, str], measures: Sequence[str]) -> TableRejection | None:
        """Find the column that distinguishes the rows of a model, if the rows repeat models."""
        explicit = "task" in roles or "benchmark" in roles
        if "model" in roles and self._repeated([roles["model"]]) <= MAX_REPEATED and not explicit:
            return None
        known = [roles[part] for part in IDENTITY if part in roles]
        if explicit and self._repeated(known) == 0:
            return None
        names = [
            name
            for name, column in self.table.columns.items()
            if name not in roles.values()
            and name not in measures
            and column.cells
            and (column.role == ColumnRole.TEXTS or all(cell.strip().isdigit() for cell in column.cells))
            and normalize_heading(column.heading) not in PROMPT_DETAILS
            and not is_row_number(name)
            and not is_side_heading(column.heading)
            and self._repeated([*known, name]) == 0
        ]
        if len(names) != 1:
            return self._reject_unknown_role(names, roles) if names else None
        name = names[0]
        shares = self._shares(name)
        cells = map(parse_number_cell, self.table.columns[measures[0]].cells)
        numbers = [number.value for number in cells if number is not None]
        is_binary = bool(numbers) and set(numbers) <= {0.0, 1.0}
        heading = set(normalize_heading(self.table.columns[name].heading).split("_"))
        if heading & TASK_HEADINGS and shares["prompt"] < MIN_SHARE and not explicit:
            roles["task"] = name
        elif shares["prompt"] >= MIN_SHARE or (is_binary and len(numbers) >= 12 and shares["task"] < MIN_SHARE):
            roles["prompt"] = name
        elif shares["task"] >= MIN_SHARE and not explicit:
            roles["task"] = name
        else:
            return self._reject_unknown_role(names, roles)
        return None

    def _reject_unknown_role(self, names: Sequence[str], roles: dict[str, str]) -> TableRejection:
        """Return that the role of columns is unknown, with the options that state it."""
        name = names[0]
        known = ", ".join(f"{part} ({roles[part]!r})" for part in ("model", "task", "prompt", "score") if part in roles)
        columns = ", ".join(map(repr, names[:3]))
        parts = ["task", "prompt"] if "task" not in roles else ["prompt", "trial", "variant"]
        options = [shlex.join(["--map", f"{part}={name}"]) for part in parts]
        if "model" not in roles:
            options = [shlex.join(["--map", f"model={name}"])]
        return TableRejection(
            f"one row per score, but what {'is' if len(names) == 1 else 'are'} {columns}? Recognized: {known}.",
            "\n".join(options),
            "long-table",
            0.9,
            is_final=True,
        )

    def _add_task(self, roles: dict[str, str]) -> TableRejection | None:
        """Find the column of tasks: words that few prompts do not share, and one for each prompt."""
        if "task" in roles:
            return None
        prompt = roles.get("prompt") or roles["text"]
        if "benchmark" in roles:
            values = set(self.table.columns[roles["benchmark"]].cells)
            if self.options.benchmark and len(values) > 1:
                roles["task"] = roles.pop("benchmark")
            return None
        n_prompts = len(set(self.table.columns[prompt].cells))
        names = [
            name
            for name in self._names(roles, ())
            if normalize_heading(name) not in PROMPT_DETAILS
            and not is_side_heading(name)
            and 1 < len(set(self.table.columns[name].cells)) <= max(2, n_prompts // 2)
            and len(self.table.columns[name].cells) == self.table.n_rows
            and self._repeated([prompt, name], within=prompt)
        ]
        if len(names) == 1:
            roles["task"] = names[0]
        return None

    def _check_identity(self, roles: dict[str, str], measures: Sequence[str]) -> TableRejection | None:
        """Return which columns may distinguish rows that repeat a model and its prompt or task."""
        known = [roles[part] for part in IDENTITY if part in roles]
        if self._repeated(known, differing=measures) == 0:
            return None
        names = [
            name
            for name, column in self.table.columns.items()
            if name not in roles.values()
            and name not in measures
            and column.cells
            and not column.is_unique
            and not is_summary_heading(column.heading)
            and self._repeated([*known, name], differing=measures) == 0
        ]
        return self._reject_unknown_role(names, {**roles, "task": roles.get("task", "")}) if names else None

    def _repeated(self, names: Sequence[str], *, differing: Sequence[str] = (), within: str = "") -> float:
        """Return the share of rows that repeat the cells of an earlier row in some columns.

        Args:
            names: the columns.
            differing: only rows that differ from the earlier one in these columns count.
            within: return 1 if each value of this column occurs with one combination of the columns, else 0.
        """
        if not within and not differing:
            return self.table.repeated(tuple(names))
        columns = [self.table.cells_of(name) for name in names]
        rows = list(zip(*columns, strict=True))
        if within:
            return float(len(set(rows)) == len(set(self.table.cells_of(within))))
        values = list(zip(*(self.table.cells_of(name) for name in differing), strict=True))
        first = dict(zip(reversed(rows), reversed(values), strict=True))
        n_differing = sum(first[row] != value for row, value in zip(rows, values, strict=True))
        return float(n_differing / max(1, len(rows)))

    def _layout(self, format: str, roles: dict[str, str], measures: Sequence[str]) -> TableLayout:
        skipped = [name for name in self.table.columns if name not in roles.values() and name not in measures]
        return TableLayout(
            format=format,
            orientation="long",
            roles=roles,
            values=measures,
            skipped=[name for name in skipped if not is_row_number(name)],
        )
