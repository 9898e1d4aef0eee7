"""The references of scores in new partitions are checked in one pass over the rows; no table changes."""

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade():
    """Nothing: the functions are replaced after the last migration."""


def downgrade():
    """Nothing: these functions serve earlier programs as well."""
