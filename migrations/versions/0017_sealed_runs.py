"""Scores and answers of runs can be in files outside the store."""

import sqlalchemy as sa
from alembic import op

from tracker.connections.partition_conversion import give_to_owner
from tracker.errors import DatabaseError

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Who reads or writes runs has to read or write these: roles would otherwise lose their access to all scores.
LIKE_RUN = """
DO $$
DECLARE granted record;
BEGIN
    FOR granted IN
        SELECT acl.privilege_type AS kind,
               CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END AS grantee
        FROM pg_class, aclexplode(relacl) AS acl
        WHERE pg_class.oid = 'run'::regclass AND acl.grantee <> relowner
            AND acl.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON sealed_run, sealed_metric TO %s', granted.kind, granted.grantee);
    END LOOP;
END $$
"""


def upgrade():
    op.create_table(
        "sealed_run",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column(
            "address",
            sa.String(),
            nullable=False,
            comment="the folder of the files, or its address such as s3://bucket/folder",
        ),
        sa.Column(
            "digest",
            sa.String(),
            nullable=False,
            comment="SHA-256 of the manifest in the folder, which has the SHA-256 of the other files",
        ),
        sa.Column("checksum", sa.String(), nullable=False, comment="run.checksum of the scores in the files"),
        sa.Column(
            "answer_checksum",
            sa.String(),
            nullable=False,
            comment="checksum of the answers in the files; all zeros without any",
        ),
        sa.Column("n_answers", sa.BigInteger(), nullable=False, comment="how many rows of answer are in the files"),
        sa.Column(
            "rows_in_store",
            sa.Boolean(),
            nullable=False,
            comment="whether the rows are in score and answer as well, to be read",
        ),
        sa.Column("sealed", sa.DateTime(timezone=True), nullable=False, comment="when it was sealed, UTC"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], op.f("fk_sealed_run_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_sealed_run")),
        comment="A run whose scores and answers are in Parquet files outside the store",
    )
    op.create_table(
        "sealed_metric",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run"),
        sa.Column("metric_id", sa.Integer(), nullable=False, comment="the metric"),
        sa.Column("n_scores", sa.BigInteger(), nullable=False, comment="how many rows of score are in the files"),
        sa.Column("mean", sa.Double(), nullable=False, comment="their mean, as avg(value) of the database"),
        sa.ForeignKeyConstraint(
            ["metric_id"], ["metric.id"], op.f("fk_sealed_metric_metric_id_metric"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], op.f("fk_sealed_metric_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "metric_id", name=op.f("pk_sealed_metric")),
        comment="Number and mean of the scores of a sealed run under a metric",
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(LIKE_RUN)
        for table in ("sealed_run", "sealed_metric"):
            give_to_owner(op.get_bind(), "run", f"TABLE {table}")


def downgrade():
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM sealed_run WHERE NOT rows_in_store")):
        raise DatabaseError(
            "Scores of the store are in sealed files, which earlier versions cannot read. Copy them back first: "
            "suffrage unseal --all"
        )
    op.drop_table("sealed_metric")
    op.drop_table("sealed_run")
