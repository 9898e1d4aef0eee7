"""The damaged parts of a store that can be restored, with the checksums that they must have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from tracker.copying.store_faults import SCORES, StoreFault
from tracker.ingest.write.checksums import hash_scores
from tracker.ingest.write.score_columns import ScoreColumn, pack
from tracker.integrity.row_hashes import Row, Words, hash_rows, read_plain_rows
from tracker.integrity.scopes import covered_tables, describe_scope
from tracker.integrity.stored_checksums import compute_checksums, read_checksums
from tracker.schema import metadata

_SCORE = metadata.tables[SCORES]
_NOTHING = np.zeros(2, dtype=np.uint64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Damage:
    """Rows that differ from their checksum: a row, or the rows of a run, finding or prompt in a table.

    Attributes:
        table: their table.
        key: of their scope; see `tracker.integrity.scopes`.
        sentence: the fault.
        expected: ``(2,)`` sum of the hashes of the rows that were stored; None for scores of a run whose row is itself
            damaged, until that is restored.
    """

    table: sa.Table
    key: int
    sentence: str
    expected: NDArray[np.uint64] | None

    @property
    def place(self) -> tuple[str, int]:
        """Return table and key."""
        return self.table.name, self.key

    @property
    def name(self) -> str:
        """Return what is damaged, such as ``prompt 17`` or ``answer of run 5``."""
        return describe_scope(*self.place)

    @property
    def is_stray(self) -> bool:
        """Return whether there should be no scores at all, by the recorded checksum of their run."""
        return self.table is _SCORE and self.expected is not None and not self.expected.any()

    @property
    def is_unknown(self) -> bool:
        """Return whether the rows have no checksum: another program added them, or the checksum is lost."""
        return self.table is not _SCORE and self.expected is not None and not self.expected.any()


def list_damages(connection: sa.Connection, faults: Iterable[StoreFault]) -> list[Damage]:
    """Return the faults that are about rows, in the order of the tables: rows after those that they refer to."""
    covered = {table.name for table in covered_tables()}
    contents = [fault for fault in faults if fault.content is not None and fault.content.key is not None]
    expected: dict[str, dict[int, NDArray[np.uint64]]] = {}
    damages = []
    damaged_runs = {fault.content.key for fault in contents if fault.content and fault.content.table == "run"}
    for fault in contents:
        assert fault.content is not None
        assert fault.content.key is not None
        name, key = fault.content.table, fault.content.key
        if name == SCORES:
            words = None if key in damaged_runs else read_score_checksum(connection, key)
        elif name in covered:
            if name not in expected:
                keys, sums = read_checksums(connection, name)
                expected[name] = dict(zip(keys.tolist(), sums, strict=True))
            words = expected[name].get(key, _NOTHING)
        else:
            continue
        damages.append(Damage(table=metadata.tables[name], key=key, sentence=fault.sentence, expected=words))
    order = {table.name: place for place, table in enumerate(metadata.sorted_tables)}
    return sorted(damages, key=lambda damage: (order[damage.table.name], damage.key))


def read_score_checksum(connection: sa.Connection, run: int) -> NDArray[np.uint64] | None:
    """Return the recorded checksum of a run's scores; None if the run has no row, or a checksum that is none."""
    text = connection.scalar(sa.text("SELECT checksum FROM run WHERE id = :run").bindparams(run=run))
    return parse_score_checksum(text)


def parse_score_checksum(text: Any) -> NDArray[np.uint64] | None:
    """Return the two words of 32 hexadecimal digits; None if the text is anything else."""
    try:
        plain = text.decode() if isinstance(text, bytes) else str(text)
        return np.array([int(plain[:16], 16), int(plain[16:], 16)], dtype=np.uint64) if len(plain) == 32 else None
    except (ValueError, OverflowError):
        return None


def hash_each_row(table: sa.Table, rows: Sequence[Row]) -> Words:
    """Return the ``(n, 2)`` hashes of rows in the plain form, as the checksum of their scope sums them."""
    if not rows:
        return np.zeros((0, 2), dtype=np.uint64)
    if table is not _SCORE:
        return hash_rows(table, rows)[1]
    hashes = np.zeros((len(rows), 2), dtype=np.uint64)
    metrics = np.array([row[1] for row in rows])
    prompts, trials = (np.array([row[place] for row in rows], dtype=np.int64) for place in (2, 3))
    values = np.array([row[4] for row in rows], dtype=np.float64)
    for metric in np.unique(metrics):
        at = metrics == metric
        hashes[at] = hash_scores(ScoreColumn(int(metric), pack(prompts[at], trials[at]), values[at]))
    return hashes


def read_scope(connection: sa.Connection, table: sa.Table, key: int) -> list[Row]:
    """Return the rows of a scope in the plain form, with the columns that `hash_each_row` needs."""
    rows = [row for batch in read_plain_rows(connection, table, [key]) for row in batch]
    return [tuple(row[: len(table.columns)]) for row in rows] if table is _SCORE else [tuple(row) for row in rows]


def has_expected_rows(connection: sa.Connection, damage: Damage, expected: NDArray[np.uint64]) -> bool:
    """Return whether the rows that are stored now have the recorded checksum."""
    if damage.table is _SCORE:
        rows = read_scope(connection, damage.table, damage.key)
        present = hash_each_row(damage.table, rows).sum(axis=0, dtype=np.uint64)
        n = connection.scalar(sa.text("SELECT n_scores FROM run WHERE id = :run").bindparams(run=damage.key))
        return bool((present == expected).all()) and n == len(rows)
    _, sums = compute_checksums(connection, damage.table, [damage.key])
    present = sums[0] if len(sums) else _NOTHING
    return bool((present == expected).all())
