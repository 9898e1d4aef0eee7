"""Store the summary of a finding as headline, evidence and caveats, with its warnings.

The summary of an earlier finding becomes a headline, its first sentence, and evidence, the rest.
Going back, the parts are joined; the warnings are lost.
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
COLUMNS = (
    ("headline", sa.String(), "the result in one sentence; null where it failed"),
    ("evidence", JSON, "list of sentences with the numbers behind the headline"),
    ("caveats", JSON, "list of sentences on what limits the headline"),
    ("warnings", JSON, "list of further warnings about the data and the method"),
)
FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def upgrade():
    for name, kind, comment in COLUMNS:
        op.add_column("finding", sa.Column(name, kind, nullable=True, comment=comment))
    finding = _finding_table()
    connection = op.get_bind()
    for key, summary in connection.execute(sa.select(finding.c.id, finding.c.summary)).all():
        if summary is not None:
            headline, *rest = FIRST_SENTENCE.split(summary, maxsplit=1)
            values = {"headline": headline, "evidence": rest, "caveats": [], "warnings": []}
            connection.execute(sa.update(finding).where(finding.c.id == key).values(values))
    op.drop_column("finding", "summary")
    op.execute("ALTER TABLE finding_metric RENAME COLUMN headline TO is_main")


def downgrade():
    op.execute("ALTER TABLE finding_metric RENAME COLUMN is_main TO headline")
    op.add_column("finding", sa.Column("summary", sa.String(), nullable=True, comment="the answer in plain words"))
    finding = _finding_table()
    connection = op.get_bind()
    parts = sa.select(finding.c.id, finding.c.headline, finding.c.evidence, finding.c.caveats)
    for key, headline, evidence, caveats in connection.execute(parts).all():
        if headline is not None:
            summary = " ".join([headline, *(evidence or []), *(caveats or [])])
            connection.execute(sa.update(finding).where(finding.c.id == key).values(summary=summary))
    for name, _, _ in reversed(COLUMNS):
        op.drop_column("finding", name)


def _finding_table():
    return sa.table(
        "finding",
        sa.column("id", sa.Integer()),
        sa.column("summary", sa.String()),
        *(sa.column(name, kind) for name, kind, _ in COLUMNS),
    )
