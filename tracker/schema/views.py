"""What people query: the views, their SQL in one place.

Views block changes of the tables below them: a migration drops them, alters, and creates them again.
"""

# The scores of each prompt averaged over trials, then over prompts; the latest complete run of each model.
LEADERBOARD = """
CREATE VIEW leaderboard AS
WITH latest AS (
    SELECT run.benchmark_id, run.model_id, run.condition, run.variant, max(run.id) AS run_id
    FROM run
    WHERE run.status = 'complete'
    GROUP BY run.benchmark_id, run.model_id, run.condition, run.variant
), asked AS (
    SELECT task.benchmark_id, count(*) AS n
    FROM prompt JOIN task ON task.id = prompt.task_id
    GROUP BY task.benchmark_id
), tasks AS (
    SELECT run.benchmark_id, task_score.metric_id, count(DISTINCT task_score.task_id) AS n
    FROM task_score JOIN run ON run.id = task_score.run_id
    GROUP BY run.benchmark_id, task_score.metric_id
), averaged AS (
    SELECT score.run_id, score.metric_id, score.prompt_id, avg(score.value) AS value
    FROM score JOIN latest ON latest.run_id = score.run_id
    GROUP BY score.run_id, score.metric_id, score.prompt_id
), summary AS (
    SELECT latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.run_id,
           averaged.metric_id, 'prompt' AS unit, count(*) AS n,
           CAST(count(*) AS DOUBLE PRECISION) / max(asked.n) AS coverage, avg(averaged.value) AS mean
    FROM averaged
    JOIN latest ON latest.run_id = averaged.run_id
    JOIN asked ON asked.benchmark_id = latest.benchmark_id
    GROUP BY latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.run_id, averaged.metric_id
    UNION ALL
    SELECT latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.run_id,
           task_score.metric_id, 'task' AS unit, count(*) AS n,
           CAST(count(*) AS DOUBLE PRECISION) / max(tasks.n) AS coverage, avg(task_score.value) AS mean
    FROM task_score
    JOIN latest ON latest.run_id = task_score.run_id
    JOIN tasks ON tasks.benchmark_id = latest.benchmark_id AND tasks.metric_id = task_score.metric_id
    GROUP BY latest.benchmark_id, latest.model_id, latest.condition, latest.variant, latest.run_id, task_score.metric_id
)
SELECT benchmark.name AS benchmark, benchmark.revision AS revision, metric.name AS metric,
       summary.condition AS condition, summary.variant AS variant, model.name AS model,
       summary.run_id AS run_id, summary.unit AS unit, summary.n AS n, summary.coverage AS coverage,
       summary.mean AS mean,
       CASE WHEN summary.coverage >= 1 THEN rank() OVER (
           PARTITION BY summary.benchmark_id, summary.metric_id, summary.condition, summary.variant, summary.unit,
                        CASE WHEN summary.coverage >= 1 THEN 1 ELSE 0 END
           ORDER BY CASE WHEN metric.higher_is_better THEN -summary.mean ELSE summary.mean END
       ) END AS rank
FROM summary
JOIN benchmark ON benchmark.id = summary.benchmark_id
JOIN model ON model.id = summary.model_id
JOIN metric ON metric.id = summary.metric_id
"""

RUN_HISTORY = """
CREATE VIEW run_history AS
SELECT benchmark.name AS benchmark, model.name AS model, run.id AS run_id, run.condition AS condition,
       run.variant AS variant, run.label AS label, run.few_shot AS few_shot, run.status AS status,
       run.started AS started, run.ingested AS ingested, run.n_scores AS n_scores,
       metric.name AS metric, summary.n AS n, summary.mean AS mean
FROM run
JOIN benchmark ON benchmark.id = run.benchmark_id
JOIN model ON model.id = run.model_id
JOIN (
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean FROM score GROUP BY run_id, metric_id
    UNION ALL
    SELECT run_id, metric_id, count(*) AS n, avg(value) AS mean FROM task_score GROUP BY run_id, metric_id
) AS summary ON summary.run_id = run.id
JOIN metric ON metric.id = summary.metric_id
"""

PROMPT_WEIGHT = """
CREATE VIEW prompt_weight AS
SELECT analysis_id, substr(name, 8) AS scheme, prompt_id, value AS weight
FROM prompt_value
WHERE name LIKE 'weight.%'
"""

VIEWS = {"leaderboard": LEADERBOARD, "run_history": RUN_HISTORY, "prompt_weight": PROMPT_WEIGHT}
