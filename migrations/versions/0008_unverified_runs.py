"""Runs have the reported scores that differ from those computed from their rows."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COMMENT = "which scores that its harness reports differ from those computed from its rows; null where none does"


def upgrade():
    op.add_column("run", sa.Column("unverified", sa.String(), nullable=True, comment=COMMENT))


def downgrade():
    op.drop_column("run", "unverified")
