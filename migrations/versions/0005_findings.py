"""What was recorded is a finding: `analysis` becomes `finding`, its name the column `analysis`.

Only names change, those of tables, columns, indexes and constraints. Going back, they change back.
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

CHILDREN = (
    "finding_artifact",
    "finding_metric",
    "prompt_value",
    "task_value",
    "filter_decision",
    "filter_reason",
    "ranking",
)
"""Tables whose rows are parts of a finding and keep their own name."""
COMMENTS = {
    ("finding", None): ("One question asked of one selection of data", "The recorded result of an analysis"),
    ("finding", "analysis"): (
        "which question, such as prompt-correlation",
        "which analysis, such as prompt-correlation",
    ),
    ("publication", "kind"): ("analysis or run", "finding or run"),
    ("publication", "ref_id"): ("key of the analysis or run", "key of the finding or run"),
}
"""By table and column: the comment before and after. SQLite keeps none."""


def upgrade():
    _rename_tables("analysis", "finding")
    _rename_kind("analysis", "finding")
    _change_comments(COMMENTS)


def downgrade():
    _change_comments({place: (new, old) for place, (old, new) in COMMENTS.items()})
    _rename_kind("finding", "analysis")
    _rename_tables("finding", "analysis")


def _rename_tables(old, new):
    """Rename a table, its children's references and whatever is named after it."""
    old_label, new_label = ("name", "analysis") if new == "finding" else ("analysis", "name")
    op.drop_index(f"ix_{old}_benchmark_id", old)
    op.drop_index(f"ix_{old}_{old_label}", old)
    op.drop_index(f"ix_{old}_run_run_id", f"{old}_run")
    op.rename_table(old, new)
    op.rename_table(f"{old}_run", f"{new}_run")
    op.execute(f"ALTER TABLE {new} RENAME COLUMN {old_label} TO {new_label}")
    for table in (f"{new}_run", *CHILDREN):
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old}_id TO {new}_id")
    for table, names in _constraints(old, new).items():
        if op.get_bind().dialect.name == "sqlite":
            _rebuild_with_names(table, names)
        else:
            for old_name, new_name in names.items():
                op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {old_name} TO {new_name}")
    if op.get_bind().dialect.name != "sqlite":
        op.execute(f"ALTER SEQUENCE {old}_id_seq RENAME TO {new}_id_seq")
    op.create_index(f"ix_{new}_benchmark_id", new, ["benchmark_id"])
    op.create_index(f"ix_{new}_{new_label}", new, [new_label])
    op.create_index(f"ix_{new}_run_run_id", f"{new}_run", ["run_id"])


def _constraints(old, new):
    """Of each table, under its new name: old and new names of its constraints."""
    renamed = {
        new: [
            "pk_{}",
            "ck_{}_status",
            "fk_{}_benchmark_id_benchmark",
            "fk_{}_encoder_id_encoder",
            "fk_{0}_filter_id_{0}",
            "fk_{0}_weights_id_{0}",
        ],
        f"{new}_run": ["pk_{}_run", "fk_{0}_run_{0}_id_{0}", "fk_{}_run_run_id_run"],
    } | {table: [f"fk_{table}_{{0}}_id_{{0}}"] for table in CHILDREN}
    return {table: {name.format(old): name.format(new) for name in names} for table, names in renamed.items()}


def _rebuild_with_names(table, names):
    """Copy a table of SQLite into one whose constraints have other names.

    SQLite cannot rename a constraint. The copy is made by the table's own statement, so that AUTOINCREMENT and
    WITHOUT ROWID stay; the last key given is carried over, or the key of a deleted row could be given again.
    """
    connection = op.get_bind()
    statement = connection.scalar(sa.text("SELECT sql FROM sqlite_master WHERE name = :table"), {"table": table})
    for old_name, new_name in names.items():
        statement = re.sub(rf"\b{old_name}\b", new_name, statement)
    counter = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :table")
    last_key = connection.scalar(counter, {"table": table})
    connection.exec_driver_sql(re.sub(rf'^CREATE TABLE "?{table}"?', f"CREATE TABLE {table}_renamed", statement))
    connection.exec_driver_sql(f"INSERT INTO {table}_renamed SELECT * FROM {table}")
    connection.exec_driver_sql(f"DROP TABLE {table}")
    connection.exec_driver_sql(f"ALTER TABLE {table}_renamed RENAME TO {table}")
    if last_key is not None:
        last = {"table": table, "last": last_key}
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table})
        connection.execute(sa.text("INSERT INTO sqlite_sequence VALUES (:table, :last)"), last)


def _rename_kind(old, new):
    """Rename a kind of publication, in its rows and in the list of kinds."""
    with op.batch_alter_table("publication") as batch:
        batch.drop_constraint(op.f("ck_publication_kind"), type_="check")
    op.execute(f"UPDATE publication SET kind = '{new}' WHERE kind = '{old}'")
    with op.batch_alter_table("publication") as batch:
        batch.create_check_constraint(op.f("ck_publication_kind"), f"kind IN ('{new}', 'run')")


def _change_comments(comments):
    if op.get_bind().dialect.name == "sqlite":
        return
    for (table, column), (before, after) in comments.items():
        if column is None:
            op.create_table_comment(table, after, existing_comment=before)
        else:
            kind = sa.Integer() if column == "ref_id" else sa.String()
            op.alter_column(table, column, comment=after, existing_comment=before, existing_type=kind)
