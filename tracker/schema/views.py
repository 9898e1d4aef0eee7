"""The views for users, with their SQL in one place.

Views block changes of the tables below them. They are dropped before any migration and created again after the last, so
that a change here needs no more than an empty migration.
"""

# As `suffrage leaderboard`: of each model the complete run with the most prompts under the metric, among equal ones the
# latest; averaged over trials, then prompts. As with --missing bounds, a model needs scores for 0.95 of what any model
# has to be ranked; where the metric has no bounds, for all of it. That run is the remainder of the greatest
# n * 2**32 + run.id: with a window function instead, PostgreSQL expects one row, and reads all scores once for each.
LEADERBOARD = """
CREATE VIEW leaderboard AS
SELECT benchmark.name AS benchmark, benchmark.revision AS revision, board.metric AS metric,
       board.condition AS condition, board.variant AS variant, board.model AS model, board.run_id AS run_id,
       board.unit AS unit, board.n AS n, board.coverage AS coverage, board.mean AS mean,
       board.unverified AS unverified, board.rank AS rank
FROM benchmark {join} (
    WITH scored AS (
        SELECT run_id, metric_id, 'prompt' AS unit, count(DISTINCT prompt_id) AS n
        FROM score {of_benchmark}
        GROUP BY run_id, metric_id
        UNION ALL
        SELECT run_id, metric_id, 'task' AS unit, count(*) AS n
        FROM task_score {of_runs}
        GROUP BY run_id, metric_id
    ), latest AS (
        SELECT run.benchmark_id, run.model_id, run.condition, run.variant, scored.metric_id, scored.unit,
               CAST(max(scored.n * 4294967296 + run.id) % 4294967296 AS INTEGER) AS run_id
        FROM run JOIN scored ON scored.run_id = run.id
        WHERE run.status = 'complete'
        GROUP BY run.benchmark_id, run.model_id, run.condition, run.variant, scored.metric_id, scored.unit
    ), measured AS (
        SELECT score.run_id, score.metric_id, 'prompt' AS unit, score.prompt_id AS item, avg(score.value) AS value
        FROM score {of_benchmark}
        GROUP BY score.run_id, score.metric_id, score.prompt_id
        UNION ALL
        SELECT task_score.run_id, task_score.metric_id, 'task' AS unit, task_score.task_id AS item, task_score.value
        FROM task_score {of_runs}
    ), chosen AS (
        SELECT latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.metric_id, latest.unit,
               latest.run_id, measured.item, measured.value
        FROM latest
        JOIN measured ON measured.run_id = latest.run_id AND measured.metric_id = latest.metric_id
                     AND measured.unit = latest.unit
    ), expected AS (
        SELECT benchmark_id, condition, variant, metric_id, unit, count(DISTINCT item) AS n
        FROM chosen
        GROUP BY benchmark_id, condition, variant, metric_id, unit
    ), summary AS (
        SELECT chosen.benchmark_id, chosen.model_id, chosen.condition, chosen.variant, chosen.metric_id, chosen.unit,
               chosen.run_id, count(*) AS n, avg(chosen.value) AS mean
        FROM chosen
        GROUP BY chosen.benchmark_id, chosen.model_id, chosen.condition, chosen.variant, chosen.metric_id,
                 chosen.unit, chosen.run_id
    ), compared AS (
        SELECT summary.*, CAST(summary.n AS DOUBLE PRECISION) / expected.n AS coverage,
               CASE WHEN summary.n = expected.n THEN 1
                    WHEN metric.lower IS NULL OR metric.upper IS NULL THEN 0
                    WHEN summary.n >= 0.95 * expected.n THEN 1
                    ELSE 0 END AS ranked,
               CASE WHEN metric.higher_is_better THEN -summary.mean ELSE summary.mean END AS badness,
               metric.name AS metric
        FROM summary
        JOIN metric ON metric.id = summary.metric_id
        JOIN expected ON expected.benchmark_id = summary.benchmark_id AND expected.condition = summary.condition
                  AND expected.variant = summary.variant AND expected.metric_id = summary.metric_id
                  AND expected.unit = summary.unit
    )
    SELECT compared.benchmark_id, compared.metric, compared.condition, compared.variant, model.name AS model,
           compared.run_id, compared.unit, compared.n, compared.coverage, compared.mean, run.unverified,
           CASE WHEN compared.ranked = 1 THEN
               rank() OVER (
                   PARTITION BY compared.benchmark_id, compared.metric_id, compared.condition, compared.variant,
                                compared.unit, compared.ranked
                   ORDER BY compared.badness
               ) + (count(*) OVER (
                   PARTITION BY compared.benchmark_id, compared.metric_id, compared.condition, compared.variant,
                                compared.unit, compared.ranked, compared.badness
               ) - 1) / 2.0
           END AS rank
    FROM compared
    JOIN model ON model.id = compared.model_id
    JOIN run ON run.id = compared.run_id
) AS board
WHERE board.benchmark_id = benchmark.id
"""

# Hidden, superseded and partial runs are not part of a model's history; `run` lists them.
RUN_HISTORY = """
CREATE VIEW run_history AS
SELECT benchmark.name AS benchmark, model.name AS model, run.id AS run_id, run.condition AS condition,
       run.variant AS variant, run.label AS label, run.few_shot AS few_shot, run.status AS status,
       run.started AS started, run.ingested AS ingested, run.n_scores AS n_scores,
       metric.name AS metric, summary.n AS n, summary.mean AS mean, run.unverified AS unverified
FROM benchmark {join} (
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean
    FROM score {of_benchmark}
    GROUP BY run_id, metric_id
    UNION ALL
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean
    FROM task_score {of_runs}
    GROUP BY run_id, metric_id
) AS summary
JOIN run ON run.id = summary.run_id AND run.benchmark_id = benchmark.id
JOIN model ON model.id = run.model_id
JOIN metric ON metric.id = summary.metric_id
WHERE run.status = 'complete'
"""

PROMPT_WEIGHT = """
CREATE VIEW prompt_weight AS
SELECT finding_id, substr(name, 8) AS scheme, prompt_id, value AS weight
FROM prompt_value
WHERE name LIKE 'weight.%'
"""

# Scores of PostgreSQL are partitioned by benchmark. A subquery that depends on the benchmark reads its partition alone:
# with a join on the run, PostgreSQL would read those of all benchmarks.
PARTS = {
    "sqlite": {"join": "JOIN", "of_benchmark": "", "of_runs": ""},
    "postgresql": {
        "join": "CROSS JOIN LATERAL",
        "of_benchmark": "WHERE score.benchmark_id = benchmark.id",
        "of_runs": "WHERE task_score.run_id IN (SELECT id FROM run WHERE run.benchmark_id = benchmark.id)",
    },
}

VIEWS = ("leaderboard", "run_history", "prompt_weight")


def format_views(dialect: str) -> list[str]:
    """Return the statements that create the views.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
    """
    return [
        LEADERBOARD.format(**PARTS[dialect]),
        RUN_HISTORY.format(**PARTS[dialect]),
        PROMPT_WEIGHT,
    ]
