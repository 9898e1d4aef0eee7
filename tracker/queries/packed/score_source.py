"""Where PostgreSQL reads the scores of a large matrix: without terms that are true of every row.

Each such term costs a tenth of a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracker.queries.sql.arrow import Reading, number_columns
from tracker.queries.sql.run_terms import join_keys


@dataclass(frozen=True, kw_only=True)
class ScoreSource:
    """Scores of some benchmarks under one metric.

    Attributes:
        table: ``score``, or the partition of the only benchmark.
        terms: that select them.
        n_runs: all runs of the benchmarks; None if the user may not see them all, or they may change meanwhile.
    """

    table: str
    terms: str
    n_runs: int | None

    def of_runs(self, run_ids: Sequence[int], percent: float = 100.0) -> str:
        """Return the part of a query that reads the scores of some runs of the benchmarks.

        Args:
            run_ids: keys of the runs.
            percent: share of the table's pages that is read.
        """
        sample = f" TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)" if percent < 100 else ""
        terms = self.terms if len(set(run_ids)) == self.n_runs else f"{self.terms} AND run_id IN ({join_keys(run_ids)})"
        return f"FROM {self.table} AS score{sample} WHERE {terms}"


def find_source(reading: Reading, metric_id: int, run_ids: Sequence[int]) -> ScoreSource:
    """Return where the scores of some runs are.

    Args:
        reading: a connection to PostgreSQL.
        metric_id: key of the metric.
        run_ids: keys of the runs.
    """
    of_benchmarks = f"benchmark_id IN (SELECT benchmark_id FROM run WHERE id IN ({join_keys(run_ids)}))"
    hides_runs = "SELECT relrowsecurity::int FROM pg_class WHERE oid = to_regclass('run')"
    sql = f"SELECT benchmark_id, count(*), ({hides_runs}) FROM run WHERE {of_benchmarks} GROUP BY benchmark_id"
    ids, n_runs, is_hiding = number_columns(reading.table(sql))
    benchmarks = sorted(ids.tolist())
    partition = _find_partition(reading, benchmarks[0]) if len(benchmarks) == 1 else None
    terms = f"metric_id = {metric_id}"
    return ScoreSource(
        table=partition or "score",
        terms=terms if partition else f"{terms} AND benchmark_id IN ({join_keys(benchmarks)})",
        n_runs=int(n_runs.sum()) if reading.is_snapshot and not is_hiding.any() else None,
    )


def _find_partition(reading: Reading, benchmark_id: int) -> str | None:
    """Return the partition of a benchmark if the user may read it by itself; None if only the whole table.

    Owners of the store may. Policies for rows of the whole table do not hold for its partitions, so it is read whole.
    """
    names = reading.table(
        "SELECT part.oid::regclass::text FROM pg_class AS part JOIN pg_inherits ON inhrelid = part.oid "
        f"JOIN pg_class AS whole ON whole.oid = inhparent WHERE part.oid = to_regclass('score_{benchmark_id}') "
        "AND whole.oid = to_regclass('score') AND NOT whole.relrowsecurity AND NOT part.relrowsecurity "
        f"AND pg_get_expr(part.relpartbound, part.oid) = 'FOR VALUES IN ({benchmark_id})' "
        "AND has_table_privilege(part.oid, 'SELECT')"
    )
    return str(names.column(0)[0].as_py()) if names.num_rows else None
