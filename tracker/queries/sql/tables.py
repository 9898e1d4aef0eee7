"""The tables as queries name them: columns, not attributes of rows.

Written by `make tables` from `tracker.schema`; do not edit. The schema's classes need sqlmodel and pydantic, which take
longer to import than most queries take to run.
"""

import sqlalchemy as sa

answer = sa.table(
    "answer",
    sa.column("run_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("extraction", sa.String()),
    sa.column("trial", sa.Integer()),
    sa.column("text", sa.String()),
    sa.column("probability", sa.Double()),
    sa.column("status", sa.String()),
)
benchmark = sa.table(
    "benchmark",
    sa.column("id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("revision", sa.String()),
    sa.column("default_metric_id", sa.Integer()),
)
checksum = sa.table(
    "checksum",
    sa.column("table_name", sa.String()),
    sa.column("key", sa.BigInteger()),
    sa.column("high", sa.BigInteger()),
    sa.column("low", sa.BigInteger()),
)
database = sa.table("database", sa.column("id", sa.String()), sa.column("created", sa.DateTime(timezone=True)))
embedding = sa.table(
    "embedding",
    sa.column("id", sa.Integer()),
    sa.column("encoder_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("vector", sa.LargeBinary()),
)
encoder = sa.table(
    "encoder",
    sa.column("id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("revision", sa.String()),
    sa.column("template", sa.String()),
    sa.column("dimensions", sa.Integer()),
)
evaluation_lease = sa.table(
    "evaluation_lease",
    sa.column("run_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("holder", sa.String()),
    sa.column("expires", sa.Double()),
)
filter_decision = sa.table(
    "filter_decision",
    sa.column("finding_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("kept", sa.Boolean()),
)
filter_reason = sa.table(
    "filter_reason",
    sa.column("finding_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("step", sa.String()),
    sa.column("cluster", sa.Integer()),
    sa.column("retained", sa.Boolean()),
)
finding = sa.table(
    "finding",
    sa.column("id", sa.Integer()),
    sa.column("benchmark_id", sa.Integer()),
    sa.column("analysis", sa.String()),
    sa.column("parameters", sa.JSON(none_as_null=True)),
    sa.column("selection", sa.JSON(none_as_null=True)),
    sa.column("seed", sa.BigInteger()),
    sa.column("input_digest", sa.String()),
    sa.column("code_version", sa.String()),
    sa.column("filter_id", sa.Integer()),
    sa.column("weights_id", sa.Integer()),
    sa.column("encoder_id", sa.Integer()),
    sa.column("status", sa.String()),
    sa.column("error", sa.String()),
    sa.column("stale", sa.String()),
    sa.column("headline", sa.String()),
    sa.column("leader", sa.String()),
    sa.column("evidence", sa.JSON(none_as_null=True)),
    sa.column("caveats", sa.JSON(none_as_null=True)),
    sa.column("warnings", sa.JSON(none_as_null=True)),
    sa.column("timings", sa.JSON(none_as_null=True)),
    sa.column("recorded", sa.DateTime(timezone=True)),
)
finding_artifact = sa.table(
    "finding_artifact",
    sa.column("finding_id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("media_type", sa.String()),
    sa.column("content", sa.LargeBinary()),
)
finding_metric = sa.table(
    "finding_metric",
    sa.column("finding_id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("value", sa.Double()),
    sa.column("reason", sa.String()),
    sa.column("is_main", sa.Boolean()),
    sa.column("position", sa.Integer()),
)
finding_run = sa.table(
    "finding_run",
    sa.column("finding_id", sa.Integer()),
    sa.column("run_id", sa.Integer()),
    sa.column("role", sa.String()),
    sa.column("checksum", sa.String()),
    sa.column("status", sa.String()),
)
metric = sa.table(
    "metric",
    sa.column("id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("higher_is_better", sa.Boolean()),
    sa.column("lower", sa.Double()),
    sa.column("upper", sa.Double()),
)
model = sa.table(
    "model",
    sa.column("id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("organization", sa.String()),
    sa.column("family", sa.String()),
    sa.column("parameters", sa.BigInteger()),
    sa.column("released", sa.Date()),
    sa.column("open_weights", sa.Boolean()),
)
model_alias = sa.table("model_alias", sa.column("name", sa.String()), sa.column("model_id", sa.Integer()))
prompt = sa.table(
    "prompt",
    sa.column("id", sa.Integer()),
    sa.column("task_id", sa.Integer()),
    sa.column("content_hash", sa.String()),
    sa.column("occurrence", sa.Integer()),
    sa.column("text", sa.String()),
    sa.column("choices", sa.JSON(none_as_null=True)),
    sa.column("answer", sa.String()),
    sa.column("split", sa.String()),
    sa.column("details", sa.JSON(none_as_null=True)),
)
prompt_alias = sa.table(
    "prompt_alias",
    sa.column("task_id", sa.Integer()),
    sa.column("namespace", sa.String()),
    sa.column("key", sa.String()),
    sa.column("prompt_id", sa.Integer()),
)
prompt_value = sa.table(
    "prompt_value",
    sa.column("finding_id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("value", sa.Double()),
)
publication = sa.table(
    "publication",
    sa.column("tracking_uri", sa.String()),
    sa.column("kind", sa.String()),
    sa.column("ref_id", sa.Integer()),
    sa.column("mlflow_run_id", sa.String()),
    sa.column("version", sa.String()),
    sa.column("published", sa.DateTime(timezone=True)),
)
ranking = sa.table(
    "ranking",
    sa.column("finding_id", sa.Integer()),
    sa.column("scheme", sa.String()),
    sa.column("model_id", sa.Integer()),
    sa.column("rank", sa.Double()),
    sa.column("score", sa.Double()),
    sa.column("low", sa.Double()),
    sa.column("high", sa.Double()),
    sa.column("rank_low", sa.Double()),
    sa.column("rank_high", sa.Double()),
)
run = sa.table(
    "run",
    sa.column("id", sa.Integer()),
    sa.column("benchmark_id", sa.Integer()),
    sa.column("model_id", sa.Integer()),
    sa.column("condition", sa.String()),
    sa.column("variant", sa.String()),
    sa.column("label", sa.String()),
    sa.column("few_shot", sa.Integer()),
    sa.column("settings", sa.JSON(none_as_null=True)),
    sa.column("limited", sa.Boolean()),
    sa.column("status", sa.String()),
    sa.column("superseded_by", sa.Integer()),
    sa.column("reason", sa.String()),
    sa.column("unverified", sa.String()),
    sa.column("n_scores", sa.BigInteger()),
    sa.column("checksum", sa.String()),
    sa.column("started", sa.DateTime(timezone=True)),
    sa.column("ingested", sa.DateTime(timezone=True)),
)
run_source = sa.table("run_source", sa.column("run_id", sa.Integer()), sa.column("source_id", sa.Integer()))
score = sa.table(
    "score",
    sa.column("run_id", sa.Integer()),
    sa.column("metric_id", sa.Integer()),
    sa.column("prompt_id", sa.Integer()),
    sa.column("trial", sa.Integer()),
    sa.column("value", sa.Double()),
)
sealed_metric = sa.table(
    "sealed_metric",
    sa.column("run_id", sa.Integer()),
    sa.column("metric_id", sa.Integer()),
    sa.column("n_scores", sa.BigInteger()),
    sa.column("mean", sa.Double()),
)
sealed_run = sa.table(
    "sealed_run",
    sa.column("run_id", sa.Integer()),
    sa.column("address", sa.String()),
    sa.column("digest", sa.String()),
    sa.column("checksum", sa.String()),
    sa.column("answer_checksum", sa.String()),
    sa.column("n_answers", sa.BigInteger()),
    sa.column("rows_in_store", sa.Boolean()),
    sa.column("sealed", sa.DateTime(timezone=True)),
)
source = sa.table(
    "source",
    sa.column("id", sa.Integer()),
    sa.column("identity", sa.String()),
    sa.column("digest", sa.String()),
    sa.column("path", sa.String()),
    sa.column("format", sa.String()),
    sa.column("harness", sa.String()),
    sa.column("ingested", sa.DateTime(timezone=True)),
)
source_metric = sa.table(
    "source_metric",
    sa.column("source_id", sa.Integer()),
    sa.column("benchmark_id", sa.Integer()),
    sa.column("metric_id", sa.Integer()),
)
task = sa.table(
    "task", sa.column("id", sa.Integer()), sa.column("benchmark_id", sa.Integer()), sa.column("name", sa.String())
)
task_alias = sa.table(
    "task_alias",
    sa.column("benchmark_id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("task_id", sa.Integer()),
)
task_score = sa.table(
    "task_score",
    sa.column("run_id", sa.Integer()),
    sa.column("metric_id", sa.Integer()),
    sa.column("task_id", sa.Integer()),
    sa.column("value", sa.Double()),
    sa.column("stderr", sa.Double()),
    sa.column("n_prompts", sa.Integer()),
)
task_value = sa.table(
    "task_value",
    sa.column("finding_id", sa.Integer()),
    sa.column("name", sa.String()),
    sa.column("task_id", sa.Integer()),
    sa.column("value", sa.Double()),
)
undo_record = sa.table(
    "undo_record",
    sa.column("id", sa.Integer()),
    sa.column("source_id", sa.Integer()),
    sa.column("path", sa.String()),
    sa.column("changes", sa.LargeBinary()),
    sa.column("ingested", sa.DateTime(timezone=True)),
)
