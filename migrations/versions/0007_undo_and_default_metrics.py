"""Remember the metrics of imported files and what each import changed; benchmarks have a default metric.

Of files imported before, the metrics are those of their runs; what they changed is unknown, so they cannot be undone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

DEFAULT_METRIC = "the metric of commands that name none, as chosen; null where the first one stored is used"
METRICS_OF_EARLIER_FILES = """
INSERT INTO source_metric (source_id, benchmark_id, metric_id)
SELECT DISTINCT run_source.source_id, run.benchmark_id, metric.id
FROM run_source JOIN run ON run.id = run_source.run_id CROSS JOIN metric
WHERE EXISTS (SELECT 1 FROM score WHERE score.run_id = run.id AND score.metric_id = metric.id)
   OR EXISTS (SELECT 1 FROM task_score AS whole WHERE whole.run_id = run.id AND whole.metric_id = metric.id)
"""


def upgrade():
    op.execute(  # not by a copy of the table: all others refer to it
        "ALTER TABLE benchmark ADD COLUMN default_metric_id INTEGER "
        "CONSTRAINT fk_benchmark_default_metric_id_metric REFERENCES metric (id)"
    )
    if op.get_bind().dialect.name != "sqlite":
        op.execute(f"COMMENT ON COLUMN benchmark.default_metric_id IS '{DEFAULT_METRIC}'")
    op.create_table(
        "source_metric",
        sa.Column("source_id", sa.Integer(), nullable=False, comment="the file"),
        sa.Column("benchmark_id", sa.Integer(), nullable=False, comment="the benchmark"),
        sa.Column("metric_id", sa.Integer(), nullable=False, comment="the metric"),
        sa.ForeignKeyConstraint(
            ["source_id"], ["source.id"], name=op.f("fk_source_metric_source_id_source"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name=op.f("fk_source_metric_benchmark_id_benchmark")
        ),
        sa.ForeignKeyConstraint(["metric_id"], ["metric.id"], name=op.f("fk_source_metric_metric_id_metric")),
        sa.PrimaryKeyConstraint("source_id", "benchmark_id", "metric_id", name=op.f("pk_source_metric")),
        comment="Under which metrics the scores of a file were stored in a benchmark",
    )
    op.create_table(
        "undo_record",
        sa.Column("id", sa.Integer(), nullable=False, comment="key; a larger one came later"),
        sa.Column(
            "source_id", sa.Integer(), nullable=True, comment="the imported file; null for an archive of a store"
        ),
        sa.Column("path", sa.String(), nullable=False, comment="name of the file when it was ingested"),
        sa.Column(
            "changes",
            sa.LargeBinary(),
            nullable=False,
            comment="keys of the added rows and replaced values: JSON, compressed with zlib",
        ),
        sa.Column("ingested", sa.DateTime(timezone=True), nullable=False, comment="when it was ingested, UTC"),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_undo_record_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_undo_record")),
        comment="What an import added and changed; suffrage undo reverses it",
    )
    op.create_index(op.f("ix_undo_record_source_id"), "undo_record", ["source_id"])
    op.execute(METRICS_OF_EARLIER_FILES)


def downgrade():
    op.drop_index(op.f("ix_undo_record_source_id"), table_name="undo_record")
    op.drop_table("undo_record")
    op.drop_table("source_metric")
    op.execute("ALTER TABLE benchmark DROP COLUMN default_metric_id")
