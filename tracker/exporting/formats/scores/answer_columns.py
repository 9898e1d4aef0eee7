"""Columns with the answers of a run beside its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracker.exporting.exported_runs import ExportedRun
from tracker.queries.sql.arrow import Reading, number_columns
from tracker.queries.sql.run_terms import run_terms

if TYPE_CHECKING:
    import pyarrow as pa

NO_ANSWER = "NA"
"""Value of the answer column if no answer is stored; an empty cell is an answer from which nothing could be extracted.
"""

Cells = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Index of the metric (-1: none), index of the prompt, trial and score (NaN: none) of each row."""


def locate_keys(known: NDArray[np.int64], selected: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the indices of keys among ascending ones, and which of the keys exist; indices only of those."""
    if not len(known):
        return np.empty(0, dtype=np.int64), np.zeros(len(selected), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, selected), len(known) - 1)
    is_known = known[at] == selected
    return at[is_known], is_known


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerColumns:
    """The answers of one run, extracted by one method.

    Attributes:
        keys: ``(n,)`` int64, prompt and trial packed; ascending.
        text: ``n`` texts as written to the table.
        probability: ``(n,)`` of that answer; NaN if unknown.
        extraction: extraction method; '' is the default.
        n_errors, n_others: answers that are errors, and answers extracted by another method.
    """

    keys: NDArray[np.int64]
    text: pa.Array
    probability: NDArray[np.float64]
    extraction: str
    n_errors: int
    n_others: int

    @classmethod
    def read(cls, reading: Reading, run: ExportedRun) -> AnswerColumns:
        """Load the answers of a run, by the default extraction method if there is one, else the first by name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = reading.table(
            "SELECT prompt_id, trial, extraction, status, COALESCE(text, '') AS text, "
            f"COALESCE(probability, -1.0) AS probability FROM answer WHERE {run_terms(reading, [run.id])} "
            "ORDER BY prompt_id, trial",
            runs=[run.id],
        )
        if not table.num_rows:
            none = np.empty(0)
            empty = pa.array([], pa.string())
            return cls(keys=none.astype(np.int64), text=empty, probability=none, extraction="", n_errors=0, n_others=0)
        extraction = min(pc.unique(table["extraction"]).to_pylist())
        rows = table.filter(pc.equal(table["extraction"], extraction))
        prompts, trials, chances = number_columns(rows.select(["prompt_id", "trial", "probability"]))
        error = pc.equal(rows["status"], "error")
        text = pc.if_else(error, NO_ANSWER, pc.if_else(pc.equal(rows["status"], "empty"), "", rows["text"]))
        return cls(
            keys=pack_keys(prompts.astype(np.int64), trials.astype(np.int64)),
            text=text.combine_chunks(),
            probability=np.where(chances < 0, np.nan, chances.astype(np.float64)),
            extraction=extraction,
            n_errors=int(pc.sum(error).as_py()),
            n_others=table.num_rows - rows.num_rows,
        )

    def beside(self, keys: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """Return text and probability for each row."""
        import pyarrow as pa

        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        is_known = self.keys[at] == keys if len(self.keys) else np.zeros(len(keys), dtype=np.bool_)
        places = pa.array(np.where(is_known, at, len(self.keys)))
        text = pa.concat_arrays([self.text, pa.array([NO_ANSWER], self.text.type)]).cast(pa.string()).take(places)
        chance = np.append(self.probability, np.nan)[np.where(is_known, at, len(self.keys))]
        return text, pa.array(chance, mask=np.isnan(chance))

    def unscored(self, scored: Cells, prompt_ids: NDArray[np.int64]) -> Cells:
        """Return rows for the answers without an exported score; prompts are found by ascending keys."""
        keys = self.keys[~np.isin(self.keys, pack_keys(prompt_ids[scored[1]], scored[2]))]
        places, is_known = locate_keys(prompt_ids, keys >> 31)
        n = len(places)
        return np.full(n, -1), places, (keys & ((1 << 31) - 1))[is_known], np.full(n, np.nan)


def pack_keys(prompts: NDArray[np.int64], trials: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pack prompt and trial into one key, in the order of prompts and then of trials."""
    return (prompts << 31) | trials
