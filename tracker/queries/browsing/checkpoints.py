"""Models that are checkpoints of one training: their names differ in the number of a step."""

from __future__ import annotations

import re
from collections.abc import Iterable

STEP = re.compile(
    r"(?P<mark>checkpoint|ckpt|global_?step|step|iter(?:ation)?)(?P<dash>[-_ ]?)(?P<number>\d{1,12})(?P<unit>[kKmM]?)"
    r"(?![A-Za-z0-9.])",
    re.IGNORECASE,
)
"""A step in the name of a model, such as ``checkpoint-2000`` or ``step4k``."""
UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def find_step(name: str) -> tuple[str, int] | None:
    """Return the name of a training, and the step in the name of one of its checkpoints; None without a step.

    Examples:
        >>> find_step("lab/tiny-step4k-base"), find_step("lab/tiny-7b")
        (('lab/tiny-step…-base', 4000), None)
    """
    match = STEP.search(name)
    if match is None:
        return None
    series = f"{name[: match.start('number')]}…{name[match.end() :]}"
    return series, int(match["number"]) * UNITS[match["unit"].lower()]


def group_checkpoints(names: Iterable[str]) -> dict[str, list[tuple[int, str]]]:
    """Return the checkpoints of each training with at least two of them: step and name, by step."""
    trainings: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if (step := find_step(name)) is not None:
            trainings.setdefault(step[0], []).append((step[1], name))
    return {series: sorted(steps) for series, steps in sorted(trainings.items()) if len(steps) > 1}
