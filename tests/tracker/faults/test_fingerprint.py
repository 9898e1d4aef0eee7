"""Fingerprints of stores: equal for copies, different after each change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from disturbance import Disturbance
from fingerprint import SEQUENCE, list_changes, take_fingerprint
from operations import OPERATIONS, Operation

from tracker.database import create_unchecked_engine

Disturb = Callable[[Operation, str], Disturbance]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    ("statement", "is_kept", "expected"),
    [
        ("INSERT INTO model (name) VALUES ('m')", True, {"model"}),
        ("INSERT INTO model (name) VALUES ('m')", False, set()),
        ("CREATE INDEX extra ON model (name)", True, {"pg_class", "pg_index"}),
    ],
)
def test_a_fingerprint_shows_what_was_written(
    disturb: Disturb, engine: str, statement: str, is_kept: bool, expected: set[str]
) -> None:
    disturbance = disturb(OPERATIONS["import"], engine)
    place = disturbance.new_place()
    assert list_changes(disturbance.fingerprint, take_fingerprint(place)) == (set(), set())
    store = create_unchecked_engine(place.url)
    with store.connect() as connection:
        connection.exec_driver_sql(statement)
        (connection.commit if is_kept else connection.rollback)()
    store.dispose()
    contents, sequences = list_changes(disturbance.fingerprint, take_fingerprint(place))
    disturbance.drop_place(place)
    if engine == "sqlite":
        assert contents == ({"store.db"} if is_kept else set())
    else:
        assert (contents >= expected) if expected else contents == set()
        assert sequences == ({f"{SEQUENCE}model_id_seq"} if "model (name) VALUES" in statement else set())
