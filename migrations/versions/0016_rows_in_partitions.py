"""On PostgreSQL every score and answer is in the partition of its benchmark.

`suffrage db upgrade` moves the rows before, in steps that can be interrupted; this migration moves what remains.
"""

from alembic import op

from tracker.connections.partition_conversion import (
    KEYS,
    check_dependents,
    check_partition_views,
    column_names,
    compare_counts,
    convert_rows,
    copy_rights,
)

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TRIGGERS = [
    "CREATE CONSTRAINT TRIGGER benchmark_inserted AFTER INSERT ON benchmark DEFERRABLE INITIALLY IMMEDIATE "
    "FOR EACH ROW EXECUTE FUNCTION benchmark_has_partitions()",
    *(
        f"CREATE TRIGGER score_{done} AFTER {verb} ON score REFERENCING NEW TABLE AS fresh "
        "FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()"
        for verb, done in (("INSERT", "inserted"), ("UPDATE", "updated"))
    ),
]


def upgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    convert_rows(connection)
    for table in KEYS:
        compare_counts(connection, table)
        op.drop_table(f"{table}_unpartitioned")
        op.rename_table(f"{table}_partitioned", table)
    op.drop_table("moved_run")
    op.execute("DROP FUNCTION IF EXISTS store_is_being_upgraded() CASCADE")
    for statement in TRIGGERS:
        op.execute(statement)


def downgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    check_dependents(connection, KEYS)
    check_partition_views(connection, list(KEYS))
    op.execute("DROP TRIGGER benchmark_inserted ON benchmark")
    op.execute(
        "CREATE TABLE moved_run (table_name varchar NOT NULL, run_id integer NOT NULL, "
        "CONSTRAINT pk_moved_run PRIMARY KEY (table_name, run_id))"
    )
    for table, key in KEYS.items():
        former, partitioned = f"{table}_unpartitioned", f"{table}_partitioned"
        op.rename_table(table, partitioned)
        op.execute(f"CREATE TABLE {former} (LIKE {partitioned} INCLUDING CONSTRAINTS INCLUDING COMMENTS)")
        op.drop_column(former, "benchmark_id")
        columns = column_names(connection, former)
        op.execute(f"INSERT INTO {former} ({columns}) SELECT {columns} FROM {partitioned}")
        op.execute(f"ALTER TABLE {former} ADD CONSTRAINT pk_{former} PRIMARY KEY ({key})")
        op.create_foreign_key(f"fk_{table}_run_id_run", former, "run", ["run_id"], ["id"], ondelete="CASCADE")
        copy_rights(connection, partitioned, former)
    op.create_foreign_key("fk_answer_prompt_id_prompt", "answer_unpartitioned", "prompt", ["prompt_id"], ["id"])
    for verb, done in (("INSERT", "inserted"), ("UPDATE", "updated")):
        op.execute(f"DROP TRIGGER score_{done} ON score_partitioned")
        op.execute(
            f"CREATE TRIGGER score_{done} AFTER {verb} ON score_unpartitioned REFERENCING NEW TABLE AS fresh "
            "FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()"
        )
