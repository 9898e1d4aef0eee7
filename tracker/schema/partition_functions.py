"""Functions of a PostgreSQL store that add partitions to ``score`` and ``answer``, one for each benchmark.

Partitions belong to the owner of the tables, whoever inserts the benchmark or its first scores: a writer may not create
tables. `start_partition` and `attach_partition` run with the rights of the owner for every role that may insert into
the table, and for nobody else. Every name in them is written with its schema, and nothing is looked up elsewhere.
"""

from __future__ import annotations

import sqlalchemy as sa

from tracker.errors import DatabaseError

FUNCTIONS = (
    "start_partition(text, integer)",
    "attach_partition(text, integer)",
    "benchmark_has_partitions()",
    "move_to_partition()",
    "create_partition(regclass, text, integer)",
    "finish_partition(regclass, text, integer)",
    "keep_for_owner(text)",
    "check_partition_right(text)",
)
"""The functions with the types of their arguments, callers first."""

_SAFE = "SET search_path = pg_catalog, pg_temp"
_STATEMENTS = (
    # Privileges belong to the partitioned table. Defaults of the owner, and those of the importer, end here.
    f"""
CREATE OR REPLACE FUNCTION @.keep_for_owner(name text) RETURNS void
LANGUAGE plpgsql {_SAFE} AS $$
DECLARE grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
        FROM pg_class, aclexplode(relacl) AS acl
        WHERE pg_class.oid = to_regclass(format('@.%I', name)) AND acl.grantee <> relowner
    LOOP
        EXECUTE format('REVOKE ALL ON @.%I FROM %s', name, grantee);
    END LOOP;
END $$
""",
    # A table without keys, to be filled. It belongs to whoever runs this: the owner.
    f"""
CREATE OR REPLACE FUNCTION @.create_partition(parent regclass, prefix text, benchmark integer) RETURNS text
LANGUAGE plpgsql {_SAFE} AS $$
DECLARE name text := pg_catalog.concat(prefix, '_', benchmark);
BEGIN
    EXECUTE format('CREATE TABLE @.%I (LIKE %s INCLUDING CONSTRAINTS INCLUDING COMMENTS)', name, parent);
    PERFORM @.keep_for_owner(name);
    EXECUTE format('ALTER TABLE @.%I ALTER benchmark_id SET DEFAULT %s', name, benchmark);
    EXECUTE format('COMMENT ON TABLE @.%I IS %L', name, format('Rows of %s of benchmark %s', prefix, benchmark));
    RETURN name;
END $$
""",
    # Builds the key, checks every reference, and makes a filled table a partition.
    f"""
CREATE OR REPLACE FUNCTION @.finish_partition(parent regclass, prefix text, benchmark integer) RETURNS void
LANGUAGE plpgsql {_SAFE} AS $$
DECLARE
    name text := pg_catalog.concat(prefix, '_', benchmark);
    prompts integer[];
    metrics integer[];
    orphan text;
    filled boolean;
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM pg_class AS built, pg_class AS whole
        WHERE built.oid = to_regclass(format('@.%I', name)) AND whole.oid = parent
            AND built.relkind = 'r' AND built.relowner IN (whole.relowner, current_user::regrole)
    ) THEN
        RAISE duplicate_table USING MESSAGE = format('the table %s of another program takes the name of a partition '
            'of %s: rename or drop it', name, prefix);
    END IF;
    IF pg_size_bytes(current_setting('maintenance_work_mem')) < 268435456 THEN
        PERFORM set_config('maintenance_work_mem', '256MB', true);
    END IF;
    EXECUTE format('ALTER TABLE @.%I ADD CONSTRAINT %I PRIMARY KEY (%s)', name, concat('pk_', name),
        CASE prefix WHEN 'score' THEN 'run_id, metric_id, prompt_id, trial'
                    ELSE 'run_id, prompt_id, extraction, trial' END);
    IF prefix = 'score' THEN
        -- One pass over the rows; several processes read them, which they do not for FOR KEY SHARE.
        EXECUTE format('SELECT array_agg(DISTINCT prompt_id), array_agg(DISTINCT metric_id) '
            'FROM (SELECT DISTINCT prompt_id, metric_id FROM @.%I) AS pair', name) INTO prompts, metrics;
        PERFORM 1 FROM @.prompt WHERE id = ANY (prompts) ORDER BY id FOR KEY SHARE;
        PERFORM 1 FROM @.metric WHERE id = ANY (metrics) ORDER BY id FOR KEY SHARE;
        SELECT concat('prompt ', key) INTO orphan FROM unnest(prompts) AS key
            WHERE NOT EXISTS (SELECT 1 FROM @.prompt WHERE id = key) LIMIT 1;
        IF orphan IS NULL THEN
            SELECT concat('metric ', key) INTO orphan FROM unnest(metrics) AS key
                WHERE NOT EXISTS (SELECT 1 FROM @.metric WHERE id = key) LIMIT 1;
        END IF;
        IF orphan IS NOT NULL THEN
            RAISE foreign_key_violation
                USING MESSAGE = format('score refers to %s, which does not exist', orphan);
        END IF;
        EXECUTE format('CREATE TRIGGER score_inserted AFTER INSERT ON @.%I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents()', name);
        EXECUTE format('CREATE TRIGGER score_updated AFTER UPDATE ON @.%I REFERENCING NEW TABLE AS fresh '
            'FOR EACH STATEMENT EXECUTE FUNCTION @.score_has_parents()', name);
    END IF;
    PERFORM @.keep_for_owner(name);
    -- Checks the references to runs, and that every row is of the benchmark.
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION @.%I FOR VALUES IN (%s)', parent, name, benchmark);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM @.%I)', name) INTO filled;
    IF filled THEN
        EXECUTE format('ANALYZE @.%I', name);
    END IF;
END $$
""",
    # The caller, as SET ROLE has it, and not the owner, with whose rights the functions below run.
    f"""
CREATE OR REPLACE FUNCTION @.check_partition_right(parent text) RETURNS name
LANGUAGE plpgsql {_SAFE} AS $$
DECLARE caller name := coalesce(nullif(current_setting('role'), 'none'), session_user::text);
BEGIN
    IF parent NOT IN ('score', 'answer') OR NOT has_table_privilege(caller, format('@.%I', parent), 'INSERT') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s may not add partitions to %s', caller, parent);
    END IF;
    RETURN caller;
END $$
""",
    f"""
CREATE OR REPLACE FUNCTION @.start_partition(parent text, benchmark integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER {_SAFE} AS $$
DECLARE caller name := @.check_partition_right(parent); name text := concat(parent, '_', benchmark);
BEGIN
    PERFORM 1 FROM @.benchmark AS known WHERE known.id = start_partition.benchmark FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE foreign_key_violation USING MESSAGE = format('benchmark %s does not exist', benchmark);
    END IF;
    IF EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(format('@.%I', name))
               AND inhparent = to_regclass(format('@.%I', parent))) THEN
        RETURN NULL;
    END IF;
    IF to_regclass(format('@.%I', name)) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('the table %s of another program takes the name of a partition '
            'of %s: rename or drop it', name, parent);
    END IF;
    PERFORM @.create_partition(format('@.%I', parent)::regclass, parent, benchmark);
    EXECUTE format('GRANT SELECT, INSERT ON @.%I TO %I', name, caller);
    RETURN name;
END $$
""",
    f"""
CREATE OR REPLACE FUNCTION @.attach_partition(parent text, benchmark integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER {_SAFE} AS $$
BEGIN
    PERFORM @.check_partition_right(parent);
    PERFORM @.finish_partition(format('@.%I', parent)::regclass, parent, benchmark);
END $$
""",
    # Deferred by those who fill the partitions of new benchmarks. What they have not attached is attached at the end.
    f"""
CREATE OR REPLACE FUNCTION @.benchmark_has_partitions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER {_SAFE} AS $$
DECLARE prefix text; relation regclass;
BEGIN
    FOREACH prefix IN ARRAY ARRAY['score', 'answer'] LOOP
        relation := to_regclass(format('@.%I', concat(prefix, '_', NEW.id)));
        IF relation IS NULL THEN
            PERFORM @.create_partition(format('@.%I', prefix)::regclass, prefix, NEW.id);
        END IF;
        IF NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = relation
                       AND inhparent = to_regclass(format('@.%I', prefix))) THEN
            PERFORM @.finish_partition(format('@.%I', prefix)::regclass, prefix, NEW.id);
        END IF;
    END LOOP;
    RETURN NULL;
END $$
""",
    # With the rights and the search path of the caller, for the triggers of the partition.
    """
CREATE OR REPLACE FUNCTION @.move_to_partition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.benchmark_id := (SELECT benchmark_id FROM @.run WHERE id = NEW.run_id);
    IF NEW.benchmark_id IS NULL THEN
        RAISE foreign_key_violation
            USING MESSAGE = format('%s refers to run %s, which does not exist', TG_ARGV[0], NEW.run_id);
    END IF;
    EXECUTE format('INSERT INTO @.%I SELECT ($1).*', TG_ARGV[0]) USING NEW;
    RETURN NULL;
END $$
""",
    *(
        f"REVOKE ALL ON FUNCTION @.{function} FROM PUBLIC"
        for function in FUNCTIONS
        if function.startswith(("create_", "finish_", "check_", "keep_", "benchmark_"))
    ),
)


def format_functions(connection: sa.Connection) -> list[str]:
    """Return the statements that create the functions in the schema of a store, or replace them.

    Raises:
        DatabaseError: the name of the schema cannot be written inside the functions.
    """
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    if unsuitable := sorted(set(schema) & set("'%$\\")):
        raise DatabaseError(
            f"The schema {schema} has {' '.join(unsuitable)} in its name, which a store cannot use. Choose another "
            "schema by the search path of the role."
        )
    return [statement.replace("@.", f"{schema}.") for statement in _STATEMENTS]
