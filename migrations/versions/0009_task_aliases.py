"""Tasks have other names, under which files have them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "task_alias",
        sa.Column("benchmark_id", sa.Integer(), nullable=False, comment="the benchmark of the task"),
        sa.Column("name", sa.String(), nullable=False, comment="the other name, such as mmlu_pro_biology"),
        sa.Column("task_id", sa.Integer(), nullable=False, comment="the task"),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmark.id"], name=op.f("fk_task_alias_benchmark_id_benchmark")),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"], name=op.f("fk_task_alias_task_id_task")),
        sa.PrimaryKeyConstraint("benchmark_id", "name", name=op.f("pk_task_alias")),
        comment="Another name of a task in imported files",
    )
    op.create_index(op.f("ix_task_alias_task_id"), "task_alias", ["task_id"])


def downgrade():
    op.drop_index(op.f("ix_task_alias_task_id"), table_name="task_alias")
    op.drop_table("task_alias")
