"""On PostgreSQL every score and answer is in the partition of its benchmark.

`suffrage db upgrade` moves the rows before, in steps that can be interrupted; this migration moves what remains.
"""

import sqlalchemy as sa
from alembic import op

from tracker.connections.partition_conversion import convert_rows

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

KEYS = {"score": "run_id, metric_id, prompt_id, trial", "answer": "run_id, prompt_id, extraction, trial"}

GRANTS = """
SELECT format('GRANT %s ON %I TO %s', privilege_type, '{former}',
              CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = '{table}'::regclass
"""


def upgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    convert_rows(connection)
    for table in KEYS:
        query = f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM {table}_unpartitioned)"
        n_rows, n_former = connection.exec_driver_sql(query).one()
        if n_rows != n_former:
            raise RuntimeError(f"{n_rows} rows of {table} are in partitions, of {n_former}")
        op.drop_table(f"{table}_unpartitioned")


def downgrade():
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    for table, key in KEYS.items():
        former = f"{table}_unpartitioned"
        op.execute(f"CREATE TABLE {former} (LIKE {table} INCLUDING CONSTRAINTS INCLUDING COMMENTS)")
        op.drop_column(former, "benchmark_id")
        columns = ", ".join(
            connection.exec_driver_sql(
                "SELECT quote_ident(attname) FROM pg_attribute "
                f"WHERE attrelid = '{former}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            ).scalars()
        )
        op.execute(f"INSERT INTO {former} ({columns}) SELECT {columns} FROM {table}")
        op.execute(f"ALTER TABLE {former} ADD CONSTRAINT pk_{former} PRIMARY KEY ({key})")
        op.create_foreign_key(f"fk_{table}_run_id_run", former, "run", ["run_id"], ["id"], ondelete="CASCADE")
        comment = connection.exec_driver_sql(f"SELECT obj_description('{table}'::regclass)").scalar_one()
        op.create_table_comment(former, comment)
        for statement in connection.scalars(sa.text(GRANTS.format(table=table, former=former))).all():
            op.execute(statement)
    op.create_foreign_key("fk_answer_prompt_id_prompt", "answer_unpartitioned", "prompt", ["prompt_id"], ["id"])
