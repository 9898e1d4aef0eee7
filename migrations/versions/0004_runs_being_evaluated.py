"""Runs may be partial because their evaluation has not finished.

Only what the comment says of the column changes; SQLite keeps no comments.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OLD_STATUS = (
    "complete, partial (only what came before damage of its file), hidden or superseded; "
    "the last three are taken only by key"
)
NEW_STATUS = (
    "complete, partial (its file was damaged, or its evaluation has not finished), hidden or superseded; "
    "the last three are taken only by key"
)


def upgrade():
    _comment(NEW_STATUS, OLD_STATUS)


def downgrade():
    _comment(OLD_STATUS, NEW_STATUS)


def _comment(comment, before):
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("run", "status", comment=comment, existing_comment=before, existing_type=sa.String())
