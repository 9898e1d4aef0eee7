"""Scores of one run under one metric as sorted columns: put together, made unique, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.ingest.measurement import Prompts

TRIAL_BITS = 31


@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """Scores of one run under one metric, in the order of the primary key.

    Attributes:
        metric_id: key of the metric.
        keys: ``(n,)`` int64, prompt and trial packed; strictly increasing.
        values: ``(n,)`` float64, finite.
    """

    metric_id: int
    keys: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.keys)

    def where(self, chosen: NDArray[np.bool_]) -> ScoreColumn:
        """The scores where ``chosen`` is true."""
        return ScoreColumn(self.metric_id, self.keys[chosen], self.values[chosen])


@dataclass(frozen=True, eq=False)
class Piece:
    """What one block of a file adds to a column, in the file's order.

    Attributes:
        prompts: as the file calls them.
        prompt_ids: ``(n,)`` int64, aligned with ``prompts``.
        values: ``(n,)`` float64; NaN = not measured.
        trials: ``(n,)`` int64, or one number for all.
        places: where in the file the values stand.
    """

    prompts: Prompts
    prompt_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    trials: NDArray[np.int64] | int
    places: str = ""

    def place(self, row: int) -> str:
        """Where a value stands, in words."""
        said = [self.places] if self.places else []
        if self.prompts.lines is not None:
            said.append(f"line {self.prompts.lines[row]}")
        said.append(f"prompt {self.prompts.keys[row]!r}")
        return ", ".join(said)


def pack(prompt_ids: NDArray[np.int64], trials: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Prompt and trial as one number that sorts as they do."""
    return (prompt_ids.astype(np.int64) << TRIAL_BITS) | trials


def unpack(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Prompts and trials of packed keys."""
    return keys >> TRIAL_BITS, keys & ((1 << TRIAL_BITS) - 1)


def assemble(metric_id: int, pieces: Sequence[Piece]) -> tuple[ScoreColumn, list[str]]:
    """One column of all pieces; what is said twice alike counts once.

    Returns:
        The column, and a sentence for each prompt and trial that was given different scores.
    """
    keys = np.concatenate([pack(p.prompt_ids, p.trials) for p in pieces])
    values = np.concatenate([np.asarray(p.values, dtype=np.float64) for p in pieces]) + 0.0  # -0.0 becomes 0.0
    measured = ~np.isnan(values)
    if not measured.all():
        keys, values = keys[measured], values[measured]
    if len(keys) > 1 and not (keys[1:] > keys[:-1]).all():
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
    again = keys[1:] == keys[:-1]
    if not again.any():
        return ScoreColumn(metric_id, keys, values), []
    different = np.flatnonzero(again & (values[1:] != values[:-1]))
    problems = [_said_twice(pieces, int(key)) for key in np.unique(keys[different + 1])]
    first = np.concatenate([[True], ~again])
    return ScoreColumn(metric_id, keys[first], values[first]), problems


def outside(pieces: Sequence[Piece], lower: float | None, upper: float | None) -> list[str]:
    """A sentence for each score that a metric's bounds do not allow."""
    problems = []
    for piece in pieces:
        values = np.asarray(piece.values, dtype=np.float64)
        wrong = np.isinf(values)
        if lower is not None:
            wrong |= values < lower
        if upper is not None:
            wrong |= values > upper
        allowed = f"[{'-∞' if lower is None else f'{lower:g}'}, {'∞' if upper is None else f'{upper:g}'}]"
        problems += [
            f"{piece.place(row)}: {values[row]:g} is outside {allowed}" for row in np.flatnonzero(wrong).tolist()
        ]
    return problems


@dataclass(frozen=True, eq=False)
class Comparison:
    """A new column beside the stored one.

    Attributes:
        new: ``(n,)`` whether the store holds no score there yet.
        different: ``(n,)`` whether it holds another one.
        stored: ``(n,)`` float64, the stored scores; NaN where there is none.
    """

    new: NDArray[np.bool_]
    different: NDArray[np.bool_]
    stored: NDArray[np.float64]


def compare(column: ScoreColumn, stored: ScoreColumn | None) -> Comparison:
    """What of a column the store holds already, and holds otherwise."""
    held = np.full(len(column), np.nan)
    if stored is not None and len(stored):
        at = np.minimum(np.searchsorted(stored.keys, column.keys), len(stored) - 1)
        known = stored.keys[at] == column.keys
        held[known] = stored.values[at[known]]
    new = np.isnan(held)
    return Comparison(new=new, different=~new & (held != column.values), stored=held)


def _said_twice(pieces: Sequence[Piece], key: int) -> str:
    said = [
        (piece.place(row), float(piece.values[row]))
        for piece in pieces
        for row in np.flatnonzero(pack(piece.prompt_ids, piece.trials) == key).tolist()
        if not np.isnan(piece.values[row])
    ]
    (first, value), (second, other) = said[0], next(s for s in said if s[1] != said[0][1])
    return f"{first} has the score {value:g}, {second} has {other:g}"
