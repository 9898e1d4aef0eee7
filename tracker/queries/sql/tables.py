"""The tables as queries name them: columns, not attributes of rows."""

from __future__ import annotations

from tracker.schema import metadata

answer = metadata.tables["answer"]
benchmark = metadata.tables["benchmark"]
database = metadata.tables["database"]
embedding = metadata.tables["embedding"]
encoder = metadata.tables["encoder"]
filter_decision = metadata.tables["filter_decision"]
filter_reason = metadata.tables["filter_reason"]
finding = metadata.tables["finding"]
finding_artifact = metadata.tables["finding_artifact"]
finding_metric = metadata.tables["finding_metric"]
finding_run = metadata.tables["finding_run"]
metric = metadata.tables["metric"]
model = metadata.tables["model"]
model_alias = metadata.tables["model_alias"]
prompt = metadata.tables["prompt"]
prompt_alias = metadata.tables["prompt_alias"]
prompt_value = metadata.tables["prompt_value"]
publication = metadata.tables["publication"]
ranking = metadata.tables["ranking"]
run = metadata.tables["run"]
run_source = metadata.tables["run_source"]
score = metadata.tables["score"]
source = metadata.tables["source"]
task = metadata.tables["task"]
task_score = metadata.tables["task_score"]
task_value = metadata.tables["task_value"]
