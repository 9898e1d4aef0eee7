"""A file into the store from Python: one call, one transaction."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from measurement_blocks import all_rows

from tracker.errors import BadInputError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file

OPTIONS = ReadOptions(benchmark="b")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "wide.csv"
    path.write_text("prompt_id,A,B\n" + "".join(f"q{n},1,0\n" for n in range(500)))
    return path


class TestLaws:
    def test_progress_never_falls_and_ends_at_the_whole(self, store: sa.Engine, table: Path) -> None:
        reported: list[tuple[int, int]] = []
        ingest_file(store, table, OPTIONS, progress=lambda done, total: reported.append((done, total)))
        size = table.stat().st_size
        assert reported == sorted(reported)
        assert {total for _, total in reported} == {size}
        assert reported[0][0] < reported[-1][0] == size

    def test_a_dry_run_reports_what_would_change_and_changes_nothing(self, store: sa.Engine, table: Path) -> None:
        before = all_rows(store)
        result = ingest_file(store, table, OPTIONS, dry_run=True)
        assert result.summary() == f"{table} (wide-table): would be {result.changes.summary()}"
        assert result.changes.n_scores == 1000
        assert all_rows(store) == before
        assert ingest_file(store, table, OPTIONS).changes.summary() == result.changes.summary()


class TestErrors:
    def test_what_the_store_rejects_is_not_stored(self, store: sa.Engine, table: Path) -> None:
        before = all_rows(store)
        with pytest.raises(BadInputError, match="the benchmark is unknown"):
            ingest_file(store, table)
        assert all_rows(store) == before
