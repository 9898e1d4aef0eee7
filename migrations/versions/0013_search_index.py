"""The words of prompts are indexed."""

from alembic import op

from tracker.schema.search_index import create_search_index, drop_search_index

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade():
    create_search_index(op.get_bind())


def downgrade():
    drop_search_index(op.get_bind())
