"""Evidence for what the rows and columns of a table with one row per model, prompt or task are.

Each reading of a table is scored by the headings, the shapes of the names, names in the store, the cells, side columns
and the size of the table. The numbers are weights of evidence, about 1 for a hint and 9 for a plain statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tracker.ingest.files.tabular.headings import is_row_number, normalize_heading
from tracker.ingest.files.tabular.number_cells import parse_number_cell
from tracker.ingest.measurement import KNOWN_METRICS, Entity, KnownNames
from tracker.ingest.tables.layout import Orientation
from tracker.ingest.tables.names.column_headings import (
    is_model_heading,
    is_model_side_heading,
    is_weak_model_heading,
    states_unit,
)
from tracker.ingest.tables.names.name_shapes import name_kind, name_shares
from tracker.ingest.tables.names.vocabulary import PROMPT_DETAILS, TASK_HEADINGS, WEAK_PROMPT_HEADINGS
from tracker.ingest.tables.table_columns import ColumnRole, TableColumn, TableColumns

ROWS: Mapping[Orientation, Entity] = {"prompts": "prompt", "models": "model", "leaderboard": "model", "tasks": "task"}
COLUMNS: Mapping[Orientation, Entity] = {
    "prompts": "model",
    "models": "prompt",
    "leaderboard": "task",
    "tasks": "model",
}
PLAIN, NAMES, CONTRADICTION = 9.0, 6.0, -3.0
MARGIN = 3.0
"""Evidence by which the best reading must exceed the next one."""
MAX_KEYS = 6
MAX_CELLS = 2_000
NOT_KEYS = ("split", "metric", "choices", "answer", "condition", "variant", "few_shot", "trial", "score", "stderr")
SKIPPED_ROLES = ("split", "metric", "few_shot", "trial", "variant", "condition", "stderr", "n_prompts")


@dataclass(frozen=True, kw_only=True)
class CrossReading:
    """A reading of a table with names on both axes.

    Attributes:
        orientation: what the rows are.
        key: column that names the rows.
        values: columns of scores.
        evidence: weight of evidence for this reading.
        contradiction: smallest evidence of the names of one axis.
    """

    orientation: Orientation
    key: str
    values: Sequence[str]
    evidence: float
    contradiction: float = 0.0


@dataclass
class CrossReadings:
    """All readings of a table with names on both axes.

    Attributes:
        table: the columns.
        known: names in the store.
        takes_texts: whether the cells are answers instead of numbers.
    """

    table: TableColumns
    known: KnownNames | None = None
    takes_texts: bool = False
    _shares: dict[tuple[str, ...], Mapping[Entity, float]] = field(default_factory=dict)

    def rank(self, orientations: Sequence[Orientation]) -> list[CrossReading]:
        """Return the possible readings, the most likely first."""
        readings = [
            self._read(orientation, key, values)
            for orientation in orientations
            for key in self._keys(orientation)
            if self._has_numbers(values := self.value_columns(orientation, key))
        ]
        return sorted(readings, key=lambda reading: -reading.evidence)

    def value_columns(self, orientation: Orientation, key: str) -> list[str]:
        """Return the columns of scores; columns that describe the rows are excluded."""
        explicit = [name for name, column in self.table.columns.items() if column.is_explicit]
        if explicit and orientation == "leaderboard":
            return [name for name in explicit if name != key]
        described = self._role_columns(orientation)
        names = [name for name in self._valued(orientation) if name != key and name not in described]
        attached = self.table.attached(names) if orientation == "leaderboard" else {}
        names = [name for name in names if name not in attached]
        if names or orientation != "leaderboard":
            return names
        return self._spare_columns({key, *described})

    def _spare_columns(self, used: set[str]) -> list[str]:
        """Return the columns of scores of a leaderboard without columns of tasks: averages, else durations or costs."""
        columns = [column for name, column in self.table.columns.items() if name not in used]
        if any(column.looks_like_scores() for column in columns):
            return []
        summaries = [column.name for column in columns if column.role == ColumnRole.SUMMARY and column.share_of_numbers]
        units = [column.name for column in columns if column.role == ColumnRole.SIDE and states_unit(column.heading)]
        return summaries or (units if len(units) > 2 else [])

    def _has_numbers(self, values: Sequence[str]) -> bool:
        texts = [self.table.columns[name].role == ColumnRole.TEXTS for name in values]
        return bool(texts) and (self.takes_texts or not all(texts))

    def _role_columns(self, orientation: Orientation) -> set[str]:
        roles = self.table.roles
        parts = ["model", *SKIPPED_ROLES]
        if orientation == "prompts":
            parts += ["prompt", "benchmark", "task", "text", "choices", "answer", "predicted"]
        if orientation == "tasks":
            parts += ["benchmark", "task"]
        numbers = ("stderr", "n_prompts", "metric", "variant", "trial")
        return {
            roles[part]
            for part in parts
            if part in roles and (part not in numbers or orientation != "models" or roles[part] in self.table.explicit)
        } | {name for role, name in self.table.explicit.items() if role != "score"}

    def _valued(self, orientation: Orientation) -> list[str]:
        """Return the columns that may hold scores."""
        if self.takes_texts:
            return [
                name for name, column, role in self._roles if role != ColumnRole.ROW_NUMBER and bool(column.heading)
            ]
        details = self._details if orientation == "prompts" else frozenset()
        return [
            name
            for name, column, role in self._roles
            if (name not in details if role is ColumnRole.NUMBERS else self._may_hold_scores(column, orientation))
        ]

    @cached_property
    def _roles(self) -> list[tuple[str, TableColumn, ColumnRole]]:
        return [(name, column, column.role) for name, column in self.table.columns.items()]

    @cached_property
    def _details(self) -> frozenset[str]:
        """Return the columns of numbers that describe prompts, by their headings."""
        return frozenset(
            name
            for name, column, role in self._roles
            if role is ColumnRole.NUMBERS
            and normalize_heading(column.heading) in PROMPT_DETAILS
            and name_kind(column.heading) != "model"
        )

    def _may_hold_scores(self, column: TableColumn, orientation: Orientation) -> bool:
        """Return whether a column without numbers may be one of scores, by its heading."""
        if orientation not in ("prompts", "models", "tasks"):
            return False
        is_side = column.role in (ColumnRole.SIDE, ColumnRole.TEXTS)
        is_expected = is_side and name_kind(column.heading) == COLUMNS[orientation]
        return bool(column.heading) and (column.role == ColumnRole.EMPTY or is_expected)

    @cached_property
    def _possible_keys(self) -> list[tuple[str, bool]]:
        """Return the columns that may name the rows, and whether they do so only if these are prompts."""
        keys = []
        for place, (name, column) in enumerate(self.table.columns.items()):
            if column.is_explicit or not column.cells:
                continue
            if (
                column.share_of_numbers < 0.5
                or (place == 0 and column.is_unique and all(cell.strip().isdigit() for cell in column.cells))
                or is_row_number(name)
            ):
                keys.append((name, False))
            elif normalize_heading(name) in WEAK_PROMPT_HEADINGS:
                keys.append((name, True))
        return keys

    def _keys(self, orientation: Orientation) -> list[str]:
        table, roles = self.table, self.table.roles
        if orientation in ("models", "leaderboard") and "model" in roles:
            return [roles["model"]]
        if orientation == "prompts":
            if "prompt" in table.explicit:
                return [table.explicit["prompt"]]
            if "prompt" in roles and normalize_heading(roles["prompt"]) not in WEAK_PROMPT_HEADINGS:
                return [roles["prompt"]]
            if "text" in roles:
                unnamed = [name for name in table.columns if is_row_number(name)]
                names = [name for name in unnamed if table.columns[name].role != ColumnRole.ROW_NUMBER]
                return [roles.get("prompt") or (names or [roles["text"]])[0] or ""]
        if orientation == "tasks":
            if "task" in table.explicit:
                return [table.explicit["task"]]
            if "prompt" in roles and self._names_prompts(roles["prompt"]):
                return []
        used = {roles[part] for part in NOT_KEYS if part in roles}
        if "model" in roles:
            used.add(roles["model"])
        keys = [
            name
            for name, only_of_prompts in self._possible_keys
            if name not in used and (orientation == "prompts" or not only_of_prompts)
        ][:MAX_KEYS]
        if orientation in ("models", "leaderboard"):
            keys = [name for name in keys if table.columns[name].role != ColumnRole.ROW_NUMBER]
            sides = [name for name in keys if self._describes_models(name)]
            keys = [name for name in keys if name not in sides] or sides
        return keys

    def _describes_models(self, name: str) -> bool:
        """Return whether a heading such as parameters or license states that the column describes models."""
        heading = self.table.columns[name].heading
        return is_model_side_heading(heading) and not is_weak_model_heading(heading)

    def _names_prompts(self, name: str) -> bool:
        """Return whether a column certainly names prompts: by its heading, or because it counts within tasks."""
        roles = self.table.roles
        if name in self.table.explicit or normalize_heading(name) not in WEAK_PROMPT_HEADINGS:
            return True
        tasks = [roles[part] for part in ("task", "benchmark") if part in roles]
        return bool(tasks) and not any(self.table.columns[task].is_unique for task in tasks)

    def _read(self, orientation: Orientation, key: str, values: Sequence[str]) -> CrossReading:
        rows = self._name_evidence(tuple(self.table.columns[key].counts), ROWS[orientation])
        names = tuple(dict.fromkeys(self.table.columns[name].heading for name in values))
        columns = self._name_evidence(names, COLUMNS[orientation])
        evidence = (
            rows
            + columns
            + self._heading_evidence(orientation, key)
            + self._cell_evidence(orientation, values)
            + self._side_evidence(orientation, key, values)
            + self._size_evidence(orientation, len(values))
        )
        return CrossReading(
            orientation=orientation, key=key, values=values, evidence=evidence, contradiction=min(rows, columns)
        )

    def _name_evidence(self, distinct: tuple[str, ...], kind: Entity) -> float:
        if distinct not in self._shares:
            self._shares[distinct] = name_shares(distinct, self.known)
        shares = self._shares[distinct]
        return NAMES * (shares[kind] - max(share for rival, share in shares.items() if rival != kind))

    def _heading_evidence(self, orientation: Orientation, key: str) -> float:
        roles, column = self.table.roles, self.table.columns[key]
        entity = ROWS[orientation]
        plain = normalize_heading(column.heading)
        explicit = {name: role for role, name in self.table.explicit.items()}
        if key in explicit:
            stated = {"model": "model", "prompt": "prompt", "text": "prompt", "task": "task", "benchmark": "task"}
            return 2 * PLAIN if stated.get(explicit[key]) == entity else -2 * PLAIN
        evidence = 0.0
        states_prompts = key == roles.get("text") or (key == roles.get("prompt") and plain not in WEAK_PROMPT_HEADINGS)
        states_tasks = bool(set(plain.replace("(", " ").replace(")", " ").replace("_", " ").split()) & TASK_HEADINGS)
        for kind, states, weight in (
            ("model", is_model_heading(column.heading), PLAIN),
            ("model", is_weak_model_heading(column.heading), 3.5),
            ("prompt", states_prompts, PLAIN),
            ("prompt", plain in WEAK_PROMPT_HEADINGS, 3.0),
            ("task", states_tasks or plain in TASK_HEADINGS or key in (roles.get("task"), roles.get("benchmark")), 8.0),
        ):
            if states:
                evidence += weight if kind == entity else -weight / 3
        if entity != "model" and "model" in roles:
            evidence -= PLAIN
        content = [part for part in ("text", "choices", "answer") if part in roles and roles[part] != key]
        evidence += len(content) * (4.0 if entity == "prompt" else -4.0)
        parts = [key] + [roles[part] for part in ("task", "benchmark") if entity == "prompt" and part in roles]
        repeated = self.table.repeated(tuple(dict.fromkeys(parts)))
        if repeated and entity == "task" and "metric" not in roles:
            evidence -= PLAIN  # a task has one row
        return evidence - (4.0 if repeated > 0.2 else 1.0 if repeated else 0.0)

    def _cell_evidence(self, orientation: Orientation, values: Sequence[str]) -> float:
        if self.takes_texts:
            return 0.0
        of_tasks = orientation in ("leaderboard", "tasks")
        cells: list[str] = []
        for name in values:
            cells += self.table.columns[name].cells[:50]
            if len(cells) > MAX_CELLS:
                break
        numbers = [number for cell in cells if (number := parse_number_cell(cell)) is not None]
        evidence = 0.0
        if numbers and all(number.value in (0, 1) and not number.is_percent for number in numbers):
            weight = 4.0 if len(numbers) >= 12 else 1.0
            evidence += -weight / 2 if of_tasks else weight / 2
        elif of_tasks:
            evidence += 2.5
        if of_tasks and any(number.is_percent for number in numbers):
            evidence += 2
        if of_tasks and any(number.stderr == number.stderr for number in numbers):
            evidence += 4
        arrows = [name for name in values if self.table.columns[name].direction is not None]
        if arrows:
            evidence += 5 if orientation == "leaderboard" else -5
        return evidence

    def _side_evidence(self, orientation: Orientation, key: str, values: Sequence[str]) -> float:
        entity, evidence = ROWS[orientation], 0.0
        used = {key, *values}
        columns = [column for name, column in self.table.columns.items() if name not in used]
        if any(is_model_side_heading(column.heading) for column in columns):
            evidence += 5 if entity == "model" else -3
        if any(column.role in (ColumnRole.SUMMARY, ColumnRole.STDERR) for column in columns) and entity == "model":
            evidence += 2
        if any(normalize_heading(column.heading) in PROMPT_DETAILS for column in columns):
            evidence += 2.5 if entity == "prompt" else 0
        if self.table.columns[key].has_summary:
            evidence += 3 if entity == "task" else -1
        metrics = sum(normalize_heading(self.table.columns[name].heading) in KNOWN_METRICS for name in values)
        if metrics and COLUMNS[orientation] == "model":
            evidence -= 6
        return evidence

    def _size_evidence(self, orientation: Orientation, n_columns: int) -> float:
        n_rows = self.table.n_rows
        evidence = {"leaderboard": 0.5, "prompts": 0.0, "models": -0.5, "tasks": -0.5}.get(orientation, 0.0)
        if orientation == "prompts":
            evidence += (1.5 if n_rows >= 100 else 0) + (1.0 if n_rows >= 30 and n_rows > 5 * n_columns else 0)
        if orientation == "models":
            evidence += (1.5 if n_columns >= 100 else 0) + (1.5 if n_columns >= 500 else 0)
        if orientation in ("leaderboard", "tasks") and max(n_rows if orientation == "tasks" else 0, n_columns) >= 500:
            evidence -= 2
        return evidence
