"""Load weights of prompts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError, SelectionError
from tracker.queries.findings.staleness import explain_staleness
from tracker.queries.resolution import find_benchmark
from tracker.queries.selected_runs.conditions import MAX_KEY
from tracker.queries.selection import OptionalInput, Selection, SelectionOption
from tracker.queries.sql import tables
from tracker.queries.sql.arrow import number_columns, read_arrow

TASK_EQUAL = "task-equal"
"""The rule of equal weights for every task, and for every prompt of a task."""
CUSTOM = "custom-weights"
"""Name of findings with custom weights from a file."""
PREFIX = "weight."
"""Prefix of the names under which findings store weights in ``prompt_value``."""


@dataclass(frozen=True, kw_only=True)
class PromptWeights(OptionalInput):
    """Stored weights of a benchmark's prompts, or the rule that computes them.

    Attributes:
        name: as selected, with the scheme: ``12:distance``, or ``task-equal``.
        finding_id: the finding with the weights; None for a rule.
        prompt_ids: ``(n,)`` int64, ascending; empty for a rule.
        values: ``(n,)`` float64, not negative, in any unit.
        made_by: name of the analysis, such as ``prompt-weighting``; '' for a rule.
        stale: why they should be computed again; '' if their scores are still the latest.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = "weights"

    name: str
    finding_id: int | None
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    made_by: str = CUSTOM
    stale: str = ""

    @classmethod
    def task_equal(cls) -> PromptWeights:
        """Return the rule of equal weights for every task."""
        return cls(name=TASK_EQUAL, finding_id=None, prompt_ids=np.empty(0, np.int64), values=np.empty(0), made_by="")

    @property
    def scheme(self) -> str:
        """The scheme of a finding with several, such as ``distance``; the rule's name for a rule."""
        return self.name if self.finding_id is None else self.name.partition(":")[2]

    @property
    def are_made_of_scores(self) -> bool:
        """Whether an analysis computed the weights from scores; false for equal tasks and custom weights."""
        return self.made_by not in ("", CUSTOM) and self.scheme != TASK_EQUAL

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Return whether a selection names weights."""
        return selection.weights is not None

    @classmethod
    def load(cls, session: Session, selection: Selection) -> PromptWeights:
        """Load the weights of a selection; see `load_prompt_weights`."""
        return load_prompt_weights(session, selection)

    @property
    def digest(self) -> str:
        """SHA-256 of scheme, prompts and weights, and of whether they are computed from scores."""
        hashed = hashlib.sha256(self.scheme.encode() + b"\0scores" * self.are_made_of_scores)
        hashed.update(self.prompt_ids.tobytes() + self.values.tobytes())
        return hashed.hexdigest()

    def align(self, prompt_ids: NDArray[np.int64], tasks: NDArray[np.str_]) -> NDArray[np.float64]:
        """Return the weight of each prompt; NaN without a weight.

        Args:
            prompt_ids: ``(m,)`` int64 keys.
            tasks: ``(m,)`` task of each; used by ``task-equal``.

        Returns:
            ``(m,)`` float64, in the unit of the weights.
        """
        if self.finding_id is None:
            _, place, counts = np.unique(tasks, return_inverse=True, return_counts=True)
            return np.asarray(1.0 / counts[place] / len(counts))
        place = np.minimum(np.searchsorted(self.prompt_ids, prompt_ids), len(self.prompt_ids) - 1)
        return np.where(self.prompt_ids[place] == prompt_ids, self.values[place], np.nan)


def load_prompt_weights(session: Session, selection: Selection) -> PromptWeights:
    """Load the weights that a selection names.

    Raises:
        NotFoundError: the finding does not exist, or has no such scheme.
        SelectionError: the finding has no weights, weights of another benchmark, or several schemes and none is named.
    """
    name = selection.weights or ""
    key, _, scheme = name.partition(":")
    if name == TASK_EQUAL:
        return PromptWeights.task_equal()
    if not key.isdecimal() or int(key) > MAX_KEY:
        raise SelectionError(
            f"No weights {name!r}. Use the key of a finding with weights, such as 12 or 12:distance (list them with "
            f"`suffrage findings`), or {TASK_EQUAL}."
        )
    finding = session.execute(
        sa.select(tables.finding.c.benchmark_id, tables.finding.c.analysis).where(tables.finding.c.id == int(key))
    ).first()
    weighing = sa.select(tables.prompt_value.c.finding_id).where(tables.prompt_value.c.name.startswith(PREFIX))
    if finding is None:
        known = session.scalars(weighing.distinct().order_by(tables.prompt_value.c.finding_id)).all()
        hint = "" if known else f"Record one: suffrage analyze prompt-weighting {selection.benchmark}"
        raise NotFoundError("finding with weights", key, known, hint)
    benchmark = find_benchmark(session, selection.benchmark)
    if finding.benchmark_id != benchmark.id:
        raise SelectionError(f"Finding {key} is not about {benchmark.label}. Choose weights of this benchmark.")
    names = session.scalars(
        sa.select(tables.prompt_value.c.name)
        .where(tables.prompt_value.c.finding_id == int(key), tables.prompt_value.c.name.startswith(PREFIX))
        .distinct()
        .order_by(tables.prompt_value.c.name)
    ).all()
    schemes = [name.removeprefix(PREFIX) for name in names]
    if not schemes:
        raise SelectionError(
            f"Finding {key} ({finding.analysis}) has no weights. Compute some: suffrage analyze prompt-weighting …"
        )
    if scheme and scheme not in schemes:
        raise NotFoundError(f"scheme in finding {key}", scheme, schemes)
    if not scheme and len(schemes) > 1:
        choices = ", ".join(f"{key}:{name}" for name in schemes)
        raise SelectionError(f"Finding {key} has several schemes. Choose one: {choices}.")
    scheme = scheme or schemes[0]
    stored = read_arrow(
        session,
        "SELECT prompt_id, value FROM prompt_value WHERE finding_id = ? AND name = ?",
        (int(key), PREFIX + scheme),
    )
    ids, values = number_columns(stored)
    order = np.argsort(ids)
    return PromptWeights(
        name=f"{key}:{scheme}",
        finding_id=int(key),
        prompt_ids=ids[order].astype(np.int64),
        values=values[order].astype(np.float64),
        made_by=finding.analysis,
        stale=explain_staleness(session, int(key)),
    )
