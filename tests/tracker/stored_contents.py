"""What stores hold, without times and paths of imports: two imports of the same results are equal."""

from __future__ import annotations

import sqlalchemy as sa

from tracker import schema
from tracker.database import connect, transaction

IMPORTS = ("checksum", "database", "undo_record")
OF_IMPORTS = ("created", "path", "ingested")
Contents = dict[str, list[str]]


def contents(url: str) -> Contents:
    """The rows of all tables but the checksums, which depend on keys and times."""
    engine = connect(url, create=False)
    with transaction(engine, write=False) as session:
        rows = {
            table.name: sorted(
                repr(row)
                for row in session.execute(
                    sa.select(*(column for column in table.columns if column.name not in OF_IMPORTS))
                )
            )
            for table in schema.metadata.sorted_tables
            if table.name not in IMPORTS
        }
    engine.dispose()
    return rows
