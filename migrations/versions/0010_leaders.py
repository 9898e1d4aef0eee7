"""Findings have the models that they rank first."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COMMENT = "the models with the best rank or mean, separated by commas; null where none is ranked"


def upgrade():
    op.add_column("finding", sa.Column("leader", sa.String(), nullable=True, comment=COMMENT))


def downgrade():
    op.drop_column("finding", "leader")
