"""Run the migrations on a passed connection, else on the store of the environment."""

import re

import sqlalchemy as sa
from alembic import context
from sqlmodel.sql.sqltypes import AutoString

import tracker.schema
from tracker.connections.partition_conversion import give_objects_to_owner
from tracker.connections.partitions import PARTITIONED
from tracker.connections.schema_versions import VERSION_TABLE, known_versions, migrating
from tracker.database import create_unchecked_engine
from tracker.integrity.change_triggers import create_postgresql_triggers, drop_postgresql_triggers
from tracker.integrity.stored_checksums import replace_checksums, replace_local_checksums
from tracker.schema.partition_functions import format_functions
from tracker.schema.search_index import TABLE as SEARCH_INDEX
from tracker.schema.search_index import restore_search_index
from tracker.schema.views import VIEWS, format_views

# PostgreSQL enforces the first two by triggers on whole statements; see 0001. The others name the benchmark there, by
# which the tables are partitioned; see 0015.
ON_SQLITE = {
    "fk_score_prompt_id_prompt", "fk_score_metric_id_metric", "fk_score_run_id_run", "fk_answer_run_id_run",
}  # fmt: skip
ON_POSTGRESQL = re.compile(r"uq_run_benchmark_id_id|(score|answer)_(\d+|unrouted|unpartitioned)")


def include(item, name, kind, reflected, compare_to):
    """Return whether the comparison of models and database includes an object."""
    if kind == "foreign_key_constraint" and name in ON_SQLITE:
        return context.get_context().dialect.name == "sqlite"
    if context.get_context().dialect.name == "postgresql":
        if kind == "column" and name == "benchmark_id" and item.table.name in PARTITIONED:
            return False
        if kind in {"table", "unique_constraint"} and ON_POSTGRESQL.fullmatch(name):
            return False
    return not (kind == "table" and (name in VIEWS or name.startswith(SEARCH_INDEX)))


def number(migration_context, revisions, directives):
    """Give a new migration the next number, by which the versions are ordered."""
    directives[0].rev_id = f"{int(known_versions()[-1]) + 1:04d}"


def render(kind, item, autogenerate):
    """Return the types of the tables as a migration writes them; False leaves it to Alembic."""
    if kind == "type" and isinstance(item, AutoString):
        return "sa.String()"
    if kind == "type" and isinstance(item, sa.JSON):
        autogenerate.imports.add("from sqlalchemy.dialects import postgresql")
        return 'sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")'
    return False


def run(connection):
    """Migrate on an open connection; the caller commits.

    Views hold no data: they are dropped before and, at the newest version, created again after, unless the caller only
    compares. A search index with faults is made anew.
    """
    comparing = context.config.attributes.get("comparing", False)
    if not comparing:
        for view in VIEWS:
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {view}")
        if connection.dialect.name == "postgresql":
            drop_postgresql_triggers(connection)
    context.configure(
        connection=connection,
        target_metadata=tracker.schema.metadata,
        version_table=VERSION_TABLE,
        include_object=include,
        compare_type=True,
        render_as_batch=True,
        process_revision_directives=number,
        render_item=render,
    )
    before = context.get_context().get_current_heads()
    with context.begin_transaction():
        context.run_migrations()
    after = context.get_context().get_current_heads()
    if not comparing and after == (known_versions()[-1],):
        for statement in format_views(connection.dialect.name):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        restore_search_index(connection)
        if connection.dialect.name == "postgresql":
            for statement in format_functions(connection):
                connection.exec_driver_sql(statement.replace("%", "%%"))
            create_postgresql_triggers(connection)
            give_objects_to_owner(connection, [*VIEWS, SEARCH_INDEX])
        if after != before:
            replace_checksums(connection)
        else:
            replace_local_checksums(connection)


open_connection = context.config.attributes.get("connection")
if open_connection is not None:
    run(open_connection)
else:
    with migrating(create_unchecked_engine()) as opened:
        run(opened)
