"""Runs can be hidden or superseded, and findings say why they no longer hold.

Going back, runs that are hidden or superseded become partial, which the older version leaves out of
everything too; why they were set aside is lost.
"""

from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

OLD_STATUS = "complete, or partial while it is being written"
NEW_STATUS = (
    "complete, partial (only what came before damage of its file), hidden or superseded; "
    "the last three are taken only by key"
)
REFERENCE = "fk_run_superseded_by_run"


def upgrade():
    with _altered_run(OLD_STATUS, NEW_STATUS, "status IN ('partial', 'complete', 'hidden', 'superseded')") as batch:
        batch.add_column(
            sa.Column(
                "superseded_by", sa.Integer(), nullable=True, comment="the run that took its place; null where none did"
            )
        )
        batch.add_column(
            sa.Column("reason", sa.String(), nullable=True, comment="why it is not complete, as people said it")
        )
        batch.create_foreign_key(REFERENCE, "run", ["superseded_by"], ["id"])
    op.create_index("ix_run_superseded_by", "run", ["superseded_by"])
    op.add_column(
        "analysis",
        sa.Column(
            "stale", sa.String(), nullable=True, comment="why it no longer holds, where a run it rests on was deleted"
        ),
    )
    op.add_column(
        "analysis_run",
        sa.Column(
            "status",
            sa.String(),
            nullable=False,
            server_default="complete",
            comment="the run's status when it was read",
        ),
    )


def downgrade():
    op.execute("UPDATE run SET status = 'partial' WHERE status <> 'complete'")
    op.execute("ALTER TABLE analysis_run DROP COLUMN status")  # in place; a batch would copy the table on SQLite
    op.execute("ALTER TABLE analysis DROP COLUMN stale")
    op.drop_index("ix_run_superseded_by", "run")
    with _altered_run(NEW_STATUS, OLD_STATUS, "status IN ('partial', 'complete')") as batch:
        batch.drop_constraint(REFERENCE, type_="foreignkey")
        batch.drop_column("superseded_by")
        batch.drop_column("reason")


@contextmanager
def _altered_run(before, after, statuses):
    """The table while its list of statuses and more is changed.

    SQLite copies it for that; the last key given is carried over by hand, or the key of a deleted run
    could be given again.
    """
    sequence = op.get_bind()
    last = None
    if sequence.dialect.name == "sqlite":
        last = sequence.scalar(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'run'"))
    with op.batch_alter_table("run", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint(op.f("ck_run_status"), type_="check")
        batch.create_check_constraint(op.f("ck_run_status"), statuses)
        if sequence.dialect.name != "sqlite":
            batch.alter_column("status", comment=after, existing_comment=before, existing_type=sa.String())
        yield batch
    if last is not None:
        sequence.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'run'"))
        sequence.execute(sa.text("INSERT INTO sqlite_sequence VALUES ('run', :last)"), {"last": last})
