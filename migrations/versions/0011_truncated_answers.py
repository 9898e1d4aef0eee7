"""Answers may be truncated at the maximum number of tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

OLD_STATUSES, NEW_STATUSES = "'ok', 'error', 'empty'", "'ok', 'error', 'empty', 'truncated'"
OLD = {
    "extraction": "how the answer was extracted; '' is the only or default method",
    "status": "ok, error (the model failed), empty (nothing could be extracted)",
}
NEW = {
    "extraction": "how the answer was extracted; '' is the only or default method. reasoning, finish_reason and judge "
    "hold what the model wrote before its answer, why the text ended (if not by itself), and a judge's verdict",
    "status": "ok, error (the model failed), empty (nothing could be extracted), truncated (at the maximum number of "
    "tokens)",
}


def upgrade():
    _change(NEW_STATUSES, OLD, NEW)


def downgrade():
    op.execute("UPDATE answer SET status = 'empty' WHERE status = 'truncated'")
    _change(OLD_STATUSES, NEW, OLD)


def _change(statuses, before, after):
    """Change the list of statuses, for which SQLite copies the table, and the comments, which SQLite does not keep."""
    with op.batch_alter_table("answer", table_kwargs={"sqlite_with_rowid": False}) as batch:
        batch.drop_constraint(op.f("ck_answer_status"), type_="check")
        batch.create_check_constraint(op.f("ck_answer_status"), f"status IN ({statuses})")
        if op.get_bind().dialect.name != "sqlite":
            for name in before:
                batch.alter_column(name, comment=after[name], existing_comment=before[name], existing_type=sa.String())
