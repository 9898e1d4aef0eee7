"""The views read the scores of each benchmark separately; no table changes."""

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade():
    """Nothing: the views are created again after the last migration."""


def downgrade():
    """Nothing: the earlier program creates its own views."""
