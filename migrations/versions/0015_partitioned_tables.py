"""Scores and answers on PostgreSQL are in a partition per benchmark; 0016 moves the rows there.

A store at this version is in the middle of its upgrade: its rows are in ``score_unpartitioned`` and
``answer_unpartitioned`` until all of them are in their partitions. No program reads or writes such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = ("score", "answer")
COMMENT = (
    "the benchmark of the run, whose partition holds the row; PostgreSQL only. It may be left out: the row is then "
    "moved to its partition, one at a time"
)

# Partitions belong to the owner of the tables, whoever inserts the benchmark or its first scores: a writer may not
# create tables. Both functions serve every role that may insert into the table, and nobody else.
FUNCTIONS = [
    """
CREATE FUNCTION start_partition(parent text, benchmark integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE partition text := parent || '_' || benchmark;
BEGIN
    IF parent NOT IN ('score', 'answer') OR NOT has_table_privilege(session_user, parent, 'INSERT') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%I may not add partitions to %I', session_user, parent);
    END IF;
    IF to_regclass(quote_ident(partition)) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING CONSTRAINTS INCLUDING COMMENTS)', partition, parent);
    EXECUTE format('ALTER TABLE %I ALTER benchmark_id SET DEFAULT %s', partition, benchmark);
    EXECUTE format('COMMENT ON TABLE %I IS %L', partition, format('Rows of %s of benchmark %s', parent, benchmark));
    EXECUTE format('GRANT SELECT, INSERT ON %I TO %I', partition, session_user);
    RETURN partition;
END $$
""",
    """
CREATE FUNCTION attach_partition(parent text, benchmark integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET maintenance_work_mem = '256MB' AS $$
DECLARE
    partition text := parent || '_' || benchmark;
    reference text;
    orphan bigint;
    filled boolean;
BEGIN
    IF parent NOT IN ('score', 'answer') OR NOT has_table_privilege(session_user, parent, 'INSERT') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%I may not add partitions to %I', session_user, parent);
    END IF;
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I PRIMARY KEY (%s)', partition, 'pk_' || partition,
        CASE parent WHEN 'score' THEN 'run_id, metric_id, prompt_id, trial'
                    ELSE 'run_id, prompt_id, extraction, trial' END);
    IF parent = 'score' THEN
        FOREACH reference IN ARRAY ARRAY['prompt', 'metric'] LOOP
            EXECUTE format('SELECT 1 FROM %1$I WHERE id IN (SELECT DISTINCT %1$s_id FROM %2$I) ORDER BY id '
                'FOR KEY SHARE', reference, partition);
            EXECUTE format('SELECT %1$s_id FROM (SELECT DISTINCT %1$s_id FROM %2$I) AS fresh '
                'WHERE NOT EXISTS (SELECT 1 FROM %1$I WHERE id = %1$s_id) LIMIT 1', reference, partition) INTO orphan;
            IF orphan IS NOT NULL THEN
                RAISE foreign_key_violation
                    USING MESSAGE = format('score refers to %s %s, which does not exist', reference, orphan);
            END IF;
        END LOOP;
        EXECUTE format('CREATE TRIGGER score_inserted AFTER INSERT ON %I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()', partition);
        EXECUTE format('CREATE TRIGGER score_updated AFTER UPDATE ON %I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()', partition);
    END IF;
    -- Checks the references to runs, and that every row is of the benchmark; only this table is locked for readers.
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', parent, partition, benchmark);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', partition) INTO filled;
    IF filled THEN
        EXECUTE format('ANALYZE %I', partition);
    END IF;
END $$
""",
    # Deferred by those who build the partitions of new benchmarks with their first rows.
    """
CREATE FUNCTION benchmark_has_partitions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['score', 'answer'] LOOP
        IF start_partition(parent, NEW.id) IS NOT NULL THEN
            PERFORM attach_partition(parent, NEW.id);
        END IF;
    END LOOP;
    RETURN NULL;
END $$
""",
    """
CREATE FUNCTION move_to_partition() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.benchmark_id := (SELECT benchmark_id FROM run WHERE id = NEW.run_id);
    IF NEW.benchmark_id IS NULL THEN
        RAISE foreign_key_violation
            USING MESSAGE = format('%s refers to run %s, which does not exist', TG_ARGV[0], NEW.run_id);
    END IF;
    EXECUTE format('INSERT INTO %I SELECT ($1).*', TG_ARGV[0]) USING NEW;
    RETURN NULL;
END $$
""",
]
TRIGGERS = [
    "CREATE CONSTRAINT TRIGGER benchmark_inserted AFTER INSERT ON benchmark DEFERRABLE INITIALLY IMMEDIATE "
    "FOR EACH ROW EXECUTE FUNCTION benchmark_has_partitions()",
    *(
        f"CREATE TRIGGER score_{done} AFTER {verb} ON score REFERENCING NEW TABLE AS fresh "
        "FOR EACH STATEMENT EXECUTE FUNCTION score_has_parents()"
        for verb, done in (("INSERT", "inserted"), ("UPDATE", "updated"))
    ),
]
# Who may read and write a table: it is replaced by another one of its name.
GRANTS = """
SELECT format('GRANT %s ON %I TO %s%s', privilege_type, '{table}',
              CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
              CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = '{former}'::regclass
"""


def upgrade():
    if op.get_bind().dialect.name != "postgresql":
        return
    op.create_unique_constraint("uq_run_benchmark_id_id", "run", ["benchmark_id", "id"])
    for table in TABLES:
        former = f"{table}_unpartitioned"
        op.rename_table(table, former)
        op.execute(f"ALTER TABLE {former} RENAME CONSTRAINT pk_{table} TO pk_{former}")
        op.execute(
            f"CREATE TABLE {table} (LIKE {former} INCLUDING CONSTRAINTS INCLUDING COMMENTS, "
            "benchmark_id integer NOT NULL DEFAULT 0) PARTITION BY LIST (benchmark_id)"
        )
        op.execute(f"COMMENT ON COLUMN {table}.benchmark_id IS '{COMMENT}'")
        copy_comment(former, table)
        copy_grants(former, table)
        op.create_foreign_key(
            f"fk_{table}_run_id_run", table, "run", ["benchmark_id", "run_id"], ["benchmark_id", "id"],
            ondelete="CASCADE",
        )  # fmt: skip
    op.create_foreign_key("fk_answer_prompt_id_prompt", "answer", "prompt", ["prompt_id"], ["id"])
    for name in ("inserted", "updated"):
        op.execute(f"DROP TRIGGER score_{name} ON score_unpartitioned")
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for statement in (*FUNCTIONS, *TRIGGERS):
        op.execute(statement.replace("{schema}", schema))  # a temporary table of the caller must not be found first
    for table in TABLES:
        op.execute(f"CREATE TABLE {table}_unrouted PARTITION OF {table} FOR VALUES IN (0)")
        op.execute(f"COMMENT ON TABLE {table}_unrouted IS 'Empty: moves rows without benchmark_id to their partition'")
        op.execute(f"ALTER TABLE {table}_unrouted ADD CONSTRAINT ck_{table}_unrouted CHECK (false)")
        op.execute(
            f"CREATE TRIGGER {table}_moved BEFORE INSERT ON {table}_unrouted "
            f"FOR EACH ROW EXECUTE FUNCTION move_to_partition('{table}')"
        )
        op.execute(f"ALTER TABLE {table}_unrouted ENABLE ALWAYS TRIGGER {table}_moved")


def downgrade():
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        former = f"{table}_unpartitioned"
        op.execute(f"DROP TABLE {table} CASCADE")
        op.rename_table(former, table)
        op.execute(f"ALTER TABLE {table} RENAME CONSTRAINT pk_{former} TO pk_{table}")
    for function in ("benchmark_has_partitions", "move_to_partition"):
        op.execute(f"DROP FUNCTION {function}() CASCADE")
    for function in ("start_partition", "attach_partition"):
        op.execute(f"DROP FUNCTION {function}(text, integer)")
    for statement in TRIGGERS[1:]:
        op.execute(statement)
    op.drop_constraint("uq_run_benchmark_id_id", "run", type_="unique")


def copy_comment(former, table):
    """Describe a table as a former one."""
    comment = op.get_bind().exec_driver_sql(f"SELECT obj_description('{former}'::regclass)").scalar_one()
    op.create_table_comment(table, comment)


def copy_grants(former, table):
    """Let those use a table who may use a former one."""
    for statement in op.get_bind().scalars(sa.text(GRANTS.format(former=former, table=table))).all():
        op.execute(statement)
