"""Scores and answers on PostgreSQL get partitions by benchmark; 0016 moves the rows there.

A store at this version is in the middle of its upgrade: its rows are in ``score_unpartitioned`` and
``answer_unpartitioned``, those that are moved also in partitions of ``score_partitioned`` and ``answer_partitioned``. A
program that was connected before finds neither ``score`` nor ``answer``, and can change no run.
"""

from alembic import op

from tracker.connections.partition_conversion import (
    check_dependents,
    check_names,
    check_partition_views,
    copy_rights,
    give_to_owner,
)
from tracker.schema.partition_functions import FUNCTIONS, format_functions

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = ("score", "answer")
COMMENT = (
    "the benchmark of the run, whose partition holds the row; PostgreSQL only. It may be left out: the row is then "
    "moved to its partition, one at a time"
)
STOP = """
CREATE FUNCTION store_is_being_upgraded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING MESSAGE = 'the store is being upgraded';
END $$
"""


def upgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    check_names(connection)
    check_dependents(connection, TABLES)
    op.create_unique_constraint("uq_run_benchmark_id_id", "run", ["benchmark_id", "id"])
    op.execute(
        "CREATE TABLE moved_run (table_name varchar NOT NULL, run_id integer NOT NULL, "
        "CONSTRAINT pk_moved_run PRIMARY KEY (table_name, run_id))"
    )
    for table in TABLES:
        former, partitioned = f"{table}_unpartitioned", f"{table}_partitioned"
        op.rename_table(table, former)
        op.execute(f"ALTER TABLE {former} RENAME CONSTRAINT pk_{table} TO pk_{former}")
        op.execute(
            f"CREATE TABLE {partitioned} (LIKE {former} INCLUDING CONSTRAINTS INCLUDING COMMENTS, "
            "benchmark_id integer NOT NULL DEFAULT 0) PARTITION BY LIST (benchmark_id)"
        )
        op.execute(f"COMMENT ON COLUMN {partitioned}.benchmark_id IS '{COMMENT}'")
        op.create_foreign_key(
            f"fk_{table}_run_id_run", partitioned, "run", ["benchmark_id", "run_id"], ["benchmark_id", "id"],
            ondelete="CASCADE",
        )  # fmt: skip
    op.create_foreign_key("fk_answer_prompt_id_prompt", "answer_partitioned", "prompt", ["prompt_id"], ["id"])
    for statement in format_functions(connection):
        connection.exec_driver_sql(statement.replace("%", "%%"))
    for table in TABLES:
        name = f"{table}_unrouted"
        op.execute(f"CREATE TABLE {name} PARTITION OF {table}_partitioned FOR VALUES IN (0)")
        op.execute(f"COMMENT ON TABLE {name} IS 'Empty: moves rows without benchmark_id to their partition'")
        op.execute(f"ALTER TABLE {name} ADD CONSTRAINT ck_{name} CHECK (false)")
        op.execute(
            f"CREATE TRIGGER {table}_moved BEFORE INSERT ON {name} "
            f"FOR EACH ROW EXECUTE FUNCTION move_to_partition('{table}')"
        )
        op.execute(f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {table}_moved")
        copy_rights(connection, f"{table}_unpartitioned", f"{table}_partitioned", [name])
    for function in FUNCTIONS:
        give_to_owner(connection, "score_unpartitioned", f"FUNCTION {function}")
    op.execute(STOP)
    for thing in ("TABLE moved_run", "FUNCTION store_is_being_upgraded()"):
        give_to_owner(connection, "score_unpartitioned", thing)
    for table in ("run", "benchmark"):
        op.execute(
            f"CREATE TRIGGER {table}_stopped BEFORE INSERT OR UPDATE OR DELETE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION store_is_being_upgraded()"
        )


def downgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    check_partition_views(connection, [f"{table}_partitioned" for table in TABLES])
    op.execute("DROP FUNCTION IF EXISTS store_is_being_upgraded() CASCADE")
    partitions = connection.exec_driver_sql(
        "SELECT quote_ident(relname) FROM pg_class WHERE relname ~ '^(score|answer)_[0-9]+$' AND NOT relispartition "
        "AND relnamespace = current_schema()::regnamespace AND relkind = 'r' "
        "AND obj_description(oid, 'pg_class') ~ '^Rows of (score|answer) of benchmark [0-9]+$'"
    )
    for partition in partitions.scalars().all():
        op.execute(f"DROP TABLE {partition}")
    for table in TABLES:
        former = f"{table}_unpartitioned"
        op.execute(f"DROP TABLE {table}_partitioned CASCADE")
        op.rename_table(former, table)
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT pk_{former} TO pk_{table}")
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION IF EXISTS {function}")
    op.drop_table("moved_run")
    op.drop_constraint("uq_run_benchmark_id_id", "run", type_="unique")
