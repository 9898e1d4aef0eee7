"""Move the scores and answers of a PostgreSQL store into partitions by benchmark, in steps that can be killed.

A store whose upgrade has begun is at version `BEGUN`: its rows are in tables that no longer change. Each step moves
some whole runs, records them in ``moved_run`` and commits; a later call continues with the runs that are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa

from tracker.errors import DatabaseError
from tracker.name_lists import MAX_NAMES, join_names

KEYS = {"score": "run_id, metric_id, prompt_id, trial", "answer": "run_id, prompt_id, extraction, trial"}
"""The columns of the key of each table."""
BEGUN, DONE = "0015", "0016"
"""Versions of a store whose rows are being moved, and whose rows are in partitions."""
ROWS_PER_STEP = 1_000_000
ROWS_OF_RUN = 2_000
"""Least number of rows to assume for a run: it may have answers without scores."""

Progress = Callable[[int, int], None]
Step = Callable[[], AbstractContextManager[sa.Connection]]


def convert_rows(connection: sa.Connection) -> None:
    """Move what remains, inside the transaction of a connection."""

    @contextmanager
    def step() -> Iterator[sa.Connection]:
        yield connection

    convert_in_steps(step)


def convert_in_steps(step: Step, progress: Progress | None = None) -> None:
    """Move the rows in steps of about `ROWS_PER_STEP` rows, and of the keys of one benchmark.

    Args:
        step: opens a transaction on a store at version `BEGUN` in which no other process converts it.
        progress: receives the number of runs whose scores or answers are moved, and the total.
    """
    with step() as connection:
        benchmarks = connection.exec_driver_sql("SELECT id FROM benchmark ORDER BY id").scalars().all()
        n_runs = int(connection.exec_driver_sql("SELECT count(*) FROM run").scalar_one())
    for table in KEYS:
        for benchmark in benchmarks:
            with step() as connection:
                portions = _start(connection, table, benchmark)
            for portion in portions:
                with step() as connection:
                    _move(connection, table, benchmark, portion)
                    n_moved = int(connection.exec_driver_sql("SELECT count(*) FROM moved_run").scalar_one())
                if progress is not None:
                    progress(n_moved, len(KEYS) * n_runs)
            with step() as connection:
                _attach(connection, table, benchmark)


def column_names(connection: sa.Connection, table: str) -> str:
    """Return the columns of a table, separated by commas."""
    names = connection.exec_driver_sql(
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
        "AND NOT attisdropped ORDER BY attnum",
        (table,),
    )
    return ", ".join(names.scalars())


def compare_counts(connection: sa.Connection, table: str) -> None:
    """Compare the number of rows of each run in the partitions with that before.

    Raises:
        DatabaseError: they differ.
    """
    counts = [
        f"SELECT run_id, count(*) FROM {table}_{name} GROUP BY run_id" for name in ("unpartitioned", "partitioned")
    ]
    query = "SELECT count(*) FROM ({} EXCEPT {}) AS differing"
    n_wrong = sum(
        int(connection.exec_driver_sql(query.format(first, second)).scalar_one())
        for first, second in (counts, counts[::-1])
    )
    if n_wrong:
        raise DatabaseError(
            f"Rows of {table} were changed by another program during the upgrade. Restore the backup that was made "
            "before: suffrage db restore FILE --replace"
        )


def copy_rights(connection: sa.Connection, former: str, table: str, parts: Sequence[str] = ()) -> None:
    """Give a table the comment, the owner and the privileges of the one that it replaces.

    Args:
        connection: an open transaction.
        former: the table that is replaced.
        table: the new one.
        parts: its partitions, which get the owner.
    """
    granted_by_default = connection.exec_driver_sql(
        "SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END "
        "FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = to_regclass(%s) AND grantee <> relowner",
        (table,),
    )
    for role in granted_by_default.scalars().all():
        connection.exec_driver_sql(f"REVOKE ALL ON {table} FROM {role}".replace("%", "%%"))
    grants = connection.exec_driver_sql(
        "SELECT format('GRANT %%s ON %%I TO %%s%%s', privilege_type, %s::text, CASE grantee WHEN 0 THEN 'PUBLIC' "
        "ELSE quote_ident(pg_get_userbyid(grantee)) END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) "
        "FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = to_regclass(%s)",
        (table, former),
    )
    for statement in grants.scalars().all():
        connection.exec_driver_sql(statement)
    comment = connection.exec_driver_sql("SELECT quote_nullable(obj_description(to_regclass(%s)))", (former,))
    connection.exec_driver_sql(f"COMMENT ON TABLE {table} IS {comment.scalar_one()}".replace("%", "%%"))
    for name in (table, *parts):
        give_to_owner(connection, former, f"TABLE {name}")


def give_to_owner(connection: sa.Connection, table: str, thing: str) -> None:
    """Give a table or function to the owner of a table, if another role created it."""
    query = (
        "SELECT CASE WHEN pg_get_userbyid(relowner) <> current_user THEN quote_ident(pg_get_userbyid(relowner)) END "
    )
    owner = connection.exec_driver_sql(f"{query}FROM pg_class WHERE oid = to_regclass(%s)", (table,)).scalar_one()
    if owner is not None:
        connection.exec_driver_sql(f"ALTER {thing} OWNER TO {owner}")


def give_objects_to_owner(connection: sa.Connection, relations: Sequence[str]) -> None:
    """Give views, tables and functions of a store to the owner of its runs, if another role has just created them.

    Args:
        connection: an open transaction.
        relations: names of the views and tables.
    """
    for relation in relations:
        give_to_owner(connection, "run", f"TABLE {relation}")  # of a view too
    functions = connection.exec_driver_sql(
        "SELECT pg_proc.oid::regprocedure::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace "
        "AND pg_get_userbyid(proowner) = current_user "
        "AND (proname = 'score_has_parents' OR proname ~ '^record_|partition')"
    )
    for function in functions.scalars().all():
        give_to_owner(connection, "run", f"FUNCTION {function}")


_DEPENDENTS = """
SELECT 'view ' || view.oid::regclass FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid
    JOIN pg_class AS view ON view.oid = ev_class WHERE refobjid = target AND view.oid <> target
UNION SELECT 'index ' || indexrelid::regclass FROM pg_index WHERE indrelid = target AND NOT indisprimary
UNION SELECT 'privileges on the column ' || attname FROM pg_attribute WHERE attrelid = target AND attacl IS NOT NULL
UNION SELECT 'policy ' || polname FROM pg_policy WHERE polrelid = target
UNION SELECT 'row security' FROM pg_class WHERE oid = target AND relrowsecurity
UNION SELECT 'statistics ' || stxname FROM pg_statistic_ext WHERE stxrelid = target
UNION SELECT 'rule ' || rulename FROM pg_rewrite WHERE ev_class = target
UNION SELECT 'function ' || objid::regprocedure FROM pg_depend WHERE classid = 'pg_proc'::regclass AND refobjid = target
UNION SELECT 'publication ' || pubname FROM pg_publication_rel JOIN pg_publication ON pg_publication.oid = prpubid
    WHERE prrelid = target
UNION SELECT 'foreign key ' || conname FROM pg_constraint WHERE confrelid = target
UNION SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = target AND NOT tgisinternal
    AND tgname NOT IN ('score_inserted', 'score_updated', 'record_insert', 'record_update', 'record_delete')
"""


def check_dependents(connection: sa.Connection, tables: Sequence[str]) -> None:
    """Check that users have put nothing of theirs on tables that are replaced.

    Raises:
        DatabaseError: with the names.
    """
    dependents = [
        f"{text} of {table}"
        for table in tables
        for text in connection.exec_driver_sql(_DEPENDENTS.replace("target", f"'{table}'::regclass")).scalars()
    ]
    if dependents:
        names = join_names(dependents, MAX_NAMES)
        raise DatabaseError(
            f"The tables {' and '.join(tables)} are replaced, and would lose: {names}. Drop them, run the command "
            "again, and create them anew."
        )


def check_partition_views(connection: sa.Connection, tables: Sequence[str]) -> None:
    """Check that users have no views on partitions of tables that are removed.

    Raises:
        DatabaseError: with the names.
    """
    views = connection.exec_driver_sql(
        "SELECT DISTINCT view.oid::regclass || ' on ' || refobjid::regclass FROM pg_depend "
        "JOIN pg_rewrite ON pg_rewrite.oid = objid JOIN pg_class AS view ON view.oid = ev_class "
        "WHERE view.oid <> refobjid AND refobjid IN (SELECT inhrelid FROM pg_inherits "
        "WHERE inhparent = ANY (%s::text[]::regclass[])) ORDER BY 1",
        (list(tables),),
    )
    if names := views.scalars().all():
        raise DatabaseError(
            f"Partitions are removed, and with them views: {join_names(names, MAX_NAMES)}. Drop these, run the command "
            "again, and create them anew."
        )


def check_names(connection: sa.Connection) -> None:
    """Check that nothing of another program has the name of a partition, or of a table of the upgrade.

    Raises:
        DatabaseError: with the names.
    """
    conflicting = connection.exec_driver_sql(
        "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
        "AND (relname = 'moved_run' OR relname IN (SELECT prefix || '_' || part FROM unnest(ARRAY['score', 'answer']) "
        "AS prefix, (SELECT id::text FROM benchmark UNION SELECT unnest(ARRAY['unrouted', 'unpartitioned', "
        "'partitioned'])) AS known (part))) ORDER BY 1"
    )
    if names := conflicting.scalars().all():
        raise DatabaseError(
            f"Tables of other programs have names that the upgrade needs: {join_names(names, MAX_NAMES)}. Rename or "
            "drop them, and run the command again."
        )


def _is_attached(connection: sa.Connection, table: str, benchmark: int) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass(%s))"
    return bool(connection.exec_driver_sql(query, (f"{table}_{benchmark}",)).scalar_one())


def _start(connection: sa.Connection, table: str, benchmark: int) -> list[list[int]]:
    """Create a partition if it does not exist, and return the runs to move into it, in portions."""
    if _is_attached(connection, table, benchmark):
        return []
    if connection.exec_driver_sql("SELECT to_regclass(%s)", (f"{table}_{benchmark}",)).scalar_one() is None:
        parameters = f"{table}_partitioned", table, benchmark
        connection.exec_driver_sql("SELECT create_partition(%s::regclass, %s, %s)", parameters)
    runs = connection.exec_driver_sql(
        "SELECT id, greatest(n_scores, %s) FROM run WHERE benchmark_id = %s AND NOT EXISTS "
        "(SELECT 1 FROM moved_run WHERE table_name = %s AND run_id = run.id) ORDER BY id",
        (ROWS_OF_RUN, benchmark, table),
    ).all()
    portions: list[list[int]] = []
    n_rows = ROWS_PER_STEP
    for run_id, n_scores in runs:
        if n_rows >= ROWS_PER_STEP:
            portions.append([])
            n_rows = 0
        portions[-1].append(run_id)
        n_rows += n_scores
    return portions


def _move(connection: sa.Connection, table: str, benchmark: int, run_ids: Sequence[int]) -> None:
    """Copy the rows of those of some runs into a partition that are not there yet."""
    recorded = connection.exec_driver_sql(
        "INSERT INTO moved_run (table_name, run_id) SELECT %s, unnest(%s::int[]) ON CONFLICT DO NOTHING "
        "RETURNING run_id",
        (table, list(run_ids)),
    )
    new = recorded.scalars().all()
    columns = column_names(connection, f"{table}_unpartitioned")
    connection.exec_driver_sql(
        f"INSERT INTO {table}_{benchmark} ({columns}) SELECT {columns} FROM {table}_unpartitioned "
        "WHERE run_id = ANY (%s)",
        (list(new),),
    )


def _attach(connection: sa.Connection, table: str, benchmark: int) -> None:
    """Check a partition and attach it, unless another process was faster."""
    if not _is_attached(connection, table, benchmark):
        parameters = f"{table}_partitioned", table, benchmark
        connection.exec_driver_sql("SELECT finish_partition(%s::regclass, %s, %s)", parameters)
        give_to_owner(connection, f"{table}_partitioned", f"TABLE {table}_{benchmark}")
