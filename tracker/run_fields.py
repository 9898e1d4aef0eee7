"""The fields of a run that a file or an evaluation provides, declared once for parser, writer, queries and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

Merge = Callable[[Any, Any], Any]


def _keep_if_equal(first: Any, second: Any) -> Any:
    return first if first == second else None


def _keep_first(first: Any, second: Any) -> Any:
    return first or second


def _add_missing(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> Any:
    known = first or {}
    missing = {name: value for name, value in (second or {}).items() if name not in known}
    return {**known, **missing} if missing else first


def _run_field(meaning: str, *, heading: str | None = None, merge: Merge | None = None, **options: Any) -> Any:
    return field(metadata={"meaning": meaning, "heading": heading, "merge": merge}, **options)


@dataclass(frozen=True, kw_only=True)
class RunFields:
    """How a model was run; each field is a column of the table ``run`` of the same name.

    The metadata of a field hold its ``meaning``; its ``heading`` in files, where that is not its name; and ``merge``,
    a function of the stored and the new value for a run that one more file extends, None for the fields that identify
    a run.

    Attributes:
        condition: ``full`` or ``answer_only``.
        variant: changed form of the prompts; '' is the plain one.
        label: what distinguishes it from other runs of its model, such as the harness's time stamp; '' where the file
            does not say, so that scores which contradict those stored make a new run.
        few_shot: solved examples before each question; None where unknown or mixed.
        settings: how the model was run, by name.
        limited: whether only a part of the benchmark was selected on purpose.
        started: when it was run, with time zone.
    """

    condition: str = _run_field("full, or answer_only: the question was withheld", default="full")
    variant: str = _run_field("variant or perturbation of the prompts; '' is the plain one", default="")
    label: str = _run_field("the harness's time stamp; else '' for the first, then #2, #3", heading="run", default="")
    few_shot: int | None = _run_field(
        "few-shot examples before each question; null where unknown or mixed", merge=_keep_if_equal, default=None
    )
    settings: Mapping[str, Any] = _run_field(
        "how the model was run, by name", merge=_add_missing, default_factory=dict, compare=False
    )
    limited: bool = _run_field(
        "whether the evaluation was limited to a part of the benchmark on purpose", merge=_keep_first, default=False
    )
    started: datetime | None = _run_field(  # noqa: RUF009 - it makes a field
        "when the model was run, UTC; null where unknown", merge=_keep_first, default=None
    )


RUN_FIELDS = {run_field.name: run_field for run_field in fields(RunFields)}
"""The fields by name, in order."""


def run_heading(name: str) -> str:
    """Return what a field is called in files: ``run`` for the label, else its name."""
    return RUN_FIELDS[name].metadata["heading"] or name


def run_meaning(name: str) -> str:
    """Return what a field means, in one line."""
    return str(RUN_FIELDS[name].metadata["meaning"])


def run_values(row: Any) -> dict[str, Any]:
    """Return the fields of a run by name, from a `RunFields`, a row of ``run``, or a row of a query that has them."""
    return {name: getattr(row, name) for name in RUN_FIELDS}


def merge_run_values(stored: Any, new: Any) -> dict[str, Any]:
    """Return the fields of a run that one more file extends, by name, without those that identify it."""
    return {
        name: run_field.metadata["merge"](getattr(stored, name), getattr(new, name))
        for name, run_field in RUN_FIELDS.items()
        if run_field.metadata["merge"] is not None
    }
