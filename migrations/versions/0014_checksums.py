"""Everything has checksums; they are computed at the end of the upgrade, as the views are created."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "checksum",
        sa.Column("table_name", sa.String(), nullable=False, comment="the table of the rows"),
        sa.Column(
            "key",
            sa.BigInteger(),
            nullable=False,
            autoincrement=False,
            comment="what the rows belong to, such as the key of their run or finding",
        ),
        sa.Column(
            "high",
            sa.BigInteger(),
            nullable=False,
            comment="sum of the first 64-bit hashes of the rows, modulo 2^64, signed",
        ),
        sa.Column("low", sa.BigInteger(), nullable=False, comment="sum of the second 64-bit hashes"),
        sa.PrimaryKeyConstraint("table_name", "key", name=op.f("pk_checksum")),
        comment="Checksums of what this program wrote; suffrage db check compares them",
        sqlite_with_rowid=False,
    )


def downgrade():
    op.drop_table("checksum")
