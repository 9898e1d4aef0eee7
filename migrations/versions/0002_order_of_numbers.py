"""The numbers of a finding keep their order."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade():
    column = sa.Column(
        "position", sa.Integer(), nullable=False, server_default="0", comment="place in the finding's own order, from 0"
    )
    op.add_column("finding_metric", column)


def downgrade():
    with op.batch_alter_table("finding_metric") as batch:
        batch.drop_column("position")
