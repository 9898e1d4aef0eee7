"""Commands that evaluate a run together lease its prompts."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

OLD = (
    "how the answer was extracted; '' is the only or default method. reasoning, finish_reason and judge hold what "
    "the model wrote before its answer, why the text ended (if not by itself), and a judge's verdict"
)
NEW = (
    "how the answer was extracted; '' is the only or default method. reasoning, finish_reason, judge and judge_prompt "
    "hold what the model wrote before its answer, why the text ended, a judge's verdict, and the prompt of the judge"
)


def upgrade():
    op.create_table(
        "evaluation_lease",
        sa.Column("run_id", sa.Integer(), nullable=False, comment="the run that is being evaluated"),
        sa.Column("prompt_id", sa.Integer(), nullable=False, comment="the prompt"),
        sa.Column(
            "holder",
            sa.String(),
            nullable=False,
            comment="the command that evaluates the prompt: machine, process and a random number",
        ),
        sa.Column(
            "expires",
            sa.Double(),
            nullable=False,
            comment="when another command may evaluate the prompt: seconds since 1970-01-01 UTC, by the clock of the "
            "database server, or of the machine for SQLite",
        ),
        sa.ForeignKeyConstraint(
            ["prompt_id"], ["prompt.id"], op.f("fk_evaluation_lease_prompt_id_prompt"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], op.f("fk_evaluation_lease_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "prompt_id", name=op.f("pk_evaluation_lease")),
        comment="A prompt of an unfinished run that a command is evaluating",
    )
    op.create_index(op.f("ix_evaluation_lease_prompt_id"), "evaluation_lease", ["prompt_id"])
    _change_comment(OLD, NEW)


def downgrade():
    op.drop_index(op.f("ix_evaluation_lease_prompt_id"), table_name="evaluation_lease")
    op.drop_table("evaluation_lease")
    _change_comment(NEW, OLD)


def _change_comment(before, after):
    """Change a comment, which SQLite does not keep."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("answer", "extraction", comment=after, existing_comment=before, existing_type=sa.String())
