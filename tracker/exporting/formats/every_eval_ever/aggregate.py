"""Build the aggregate file of a run in the format of Every Eval Ever: settings, and mean scores with uncertainty."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.exporting.formats.every_eval_ever.instances import (
    ExportedMetric,
    InstanceSource,
    PromptFields,
    PromptMeans,
    hash_result,
)
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.queries.catalogue.listing import to_utc
from tracker.queries.sql import tables
from tracker.run_fields import run_values
from tracker.statistics.grouping import group_rows
from tracker.statistics.intervals.means import LEVEL, estimate_means, name_interval_method

MAX_NAME_LENGTH = 100
GENERATION = ("temperature", "top_p")
EVERY_PROMPT = "the mean over the prompts of all tasks"


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportedBenchmark:
    """What the runs of one benchmark have in common.

    Attributes:
        name: its name, or name@revision.
        store: identity of the store.
        tasks: names by key.
        prompts: prompts to export.
        metrics: by key.
    """

    name: str
    store: str
    tasks: Mapping[int, str]
    prompts: PromptFields
    metrics: Mapping[int, ExportedMetric]

    @property
    def evaluation_names(self) -> dict[int, str]:
        """Name of each task's evaluation in the rows, by key."""
        return {key: f"{self.name}.{task}" if task else self.name for key, task in self.tasks.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFile:
    """A run to export.

    Attributes:
        rows: what its rows have in common.
        benchmark: what it has in common with other runs.
        path: path of the aggregate.
        head: the aggregate without results and instances.
        generation: generation settings, for each result.
        published: keys of the metrics under which scores of whole tasks are exported.
    """

    rows: InstanceSource
    benchmark: ExportedBenchmark
    path: str
    head: Mapping[str, Any]
    generation: Mapping[str, Any]
    published: Sequence[int]

    @property
    def samples_path(self) -> str:
        """Path of the instances."""
        return self.path.removesuffix(".json") + "_samples.jsonl"


def describe_run(
    row: Any,
    benchmark: ExportedBenchmark,
    *,
    scored: Sequence[int],
    published: Sequence[int],
    library: Mapping[str, str],
) -> RunFile:
    """Prepare a run for export.

    Args:
        row: the run and its model.
        benchmark: the benchmark of the run.
        scored, published: keys of the metrics with scores of prompts, and of whole tasks.
        library: evaluating program and its version.
    """
    # The schema's pattern of paths requires the digits of version 4, whatever the UUID is computed from.
    digest = hashlib.sha256(f"{benchmark.store}/{row.id}".encode()).digest()
    name = uuid.UUID(bytes=digest[:16], version=4)
    maker, slash, plain = row.name.partition("/")
    developer = row.organization or (maker if slash else "") or vocabulary.UNKNOWN
    folders = [_folder(part) for part in (benchmark.name, developer, plain if slash else row.name)]
    when = _seconds(row.started or row.ingested)
    evaluation_id = f"{_flat(benchmark.name)}/{_flat(row.name)}/{when}-run{row.id}"
    head = {
        "schema_version": vocabulary.VERSION,
        "evaluation_id": evaluation_id,
        **({"evaluation_timestamp": _seconds(row.started)} if row.started is not None else {}),
        "retrieved_timestamp": _seconds(row.ingested),
        "source_metadata": {
            "source_name": benchmark.name,
            "source_type": "evaluation_run" if scored else "documentation",
            "source_organization_name": vocabulary.UNKNOWN,
            "evaluator_relationship": "other",
            "additional_details": {vocabulary.BENCHMARK: benchmark.name, **_encode_run_fields(row)},
        },
        "eval_library": library,
        "model_info": _model_info(row, developer),
    }
    return RunFile(
        rows=InstanceSource(
            run_id=row.id,
            evaluation_id=evaluation_id,
            model=row.name,
            metrics=benchmark.metrics,
            names={
                key: f"{benchmark.name}.{task}" if task else benchmark.name for key, task in benchmark.tasks.items()
            },
            scored=sorted(scored),
        ),
        benchmark=benchmark,
        path="/".join(("data", *folders, f"{name}.json")),
        head=head,
        generation=_generation(row),
        published=published,
    )


def _encode_run_fields(row: Any) -> dict[str, str]:
    """Return the known fields of a run as texts, by the names under which `suffrage ingest` reads them."""
    encoded = {}
    for name, value in (run_values(row) | {"settings": _settings(row)}).items():
        if isinstance(value, datetime):
            encoded[vocabulary.PREFIX + name] = to_utc(value).isoformat()
        elif value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
            encoded[vocabulary.PREFIX + name] = text
    return encoded


def _model_info(row: Any, developer: str) -> dict[str, Any]:
    weights = {None: vocabulary.UNKNOWN, True: "open_weights", False: "closed_weights"}[row.open_weights]
    facts = {"parameters": row.parameters, "family": row.family, "released": row.released}
    details = {"deployment_type": vocabulary.UNKNOWN, "model_availability": weights}
    details |= {fact: str(value) for fact, value in facts.items() if value is not None}
    return {"name": row.name, "id": row.name, "developer": developer, "additional_details": details}


def _settings(row: Any) -> Mapping[str, Any]:
    return row.settings if isinstance(row.settings, dict) else {}


def build_results(
    session: Session, run: RunFile, means_by_result: Mapping[tuple[int, int], PromptMeans]
) -> Iterator[dict[str, Any]]:
    """Return a result per metric and task, one over all tasks if there are several, then the published ones."""
    by_metric: dict[int, dict[int, PromptMeans]] = defaultdict(dict)
    for (metric_id, task), prompt_means in sorted(means_by_result.items()):
        by_metric[metric_id][task] = prompt_means
    for metric_id, by_task in by_metric.items():
        metric = run.rows.metrics[metric_id]
        if len(by_task) > 1:
            whole = PromptMeans(
                means=array("d", [mean for prompt_means in by_task.values() for mean in prompt_means.means]),
                only_binary=all(prompt_means.only_binary for prompt_means in by_task.values()),
            )
            yield _result(run, metric, None, whole)
        for task, prompt_means in by_task.items():
            yield _result(run, metric, task, prompt_means)
    score: Any = tables.task_score.c
    query = sa.select(score.metric_id, score.task_id, score.value, score.stderr, score.n_prompts).where(
        score.run_id == run.rows.run_id,
        score.task_id.in_(list(run.benchmark.tasks)),
        score.metric_id.in_(run.published),
    )
    for metric_id, task, value, stderr, n_prompts in session.execute(query.order_by(score.metric_id, score.task_id)):
        doubt: dict[str, Any] = {} if n_prompts is None else {"num_samples": n_prompts}
        if stderr is not None:
            doubt["standard_error"] = {"value": stderr}
        also = (metric_id, task) in means_by_result
        yield _build_result(
            run, run.rows.metrics[metric_id], task, value, doubt, binary=False, end="/published" if also else ""
        )


def _result(run: RunFile, metric: ExportedMetric, task: int | None, prompt_means: PromptMeans) -> dict[str, Any]:
    means = np.array(prompt_means.means)
    n = len(means)
    mean = float(means.mean())
    doubt: dict[str, Any] = {"num_samples": n}
    binary = prompt_means.only_binary and (metric.lower, metric.upper) == (0.0, 1.0)
    if n > 1:
        bounds = metric.lower, metric.upper
        estimate = estimate_means(means[:, None], group_rows(np.full(n, "")), bounds=bounds)
        doubt |= {
            "standard_error": {"value": float(estimate.stderr[0]), "method": "analytic"},
            "standard_deviation": float(means.std(ddof=1)),
        }
        if np.isfinite([estimate.low[0], estimate.high[0]]).all():
            doubt["confidence_interval"] = {
                "lower": float(estimate.low[0]),
                "upper": float(estimate.high[0]),
                "confidence_level": LEVEL,
                "method": name_interval_method(means, bounds),
            }
    return _build_result(run, metric, task, mean, doubt, binary=binary)


def _build_result(
    run: RunFile,
    metric: ExportedMetric,
    task: int | None,
    value: float,
    doubt: Mapping[str, Any],
    *,
    binary: bool,
    end: str = "",
) -> dict[str, Any]:
    name = run.benchmark.name if task is None else run.rows.names[task]
    added = {vocabulary.TASK: "" if task is None else run.benchmark.tasks[task]}
    details: dict[str, Any] = {"score": value}
    if task is None:
        details["details"] = {vocabulary.SUMMARY: EVERY_PROMPT}
    if doubt:
        details["uncertainty"] = doubt
    return {
        "evaluation_result_id": hash_result(name, metric.name) + ("/all tasks" if task is None else end),
        "evaluation_name": name,
        "source_data": {"dataset_name": run.benchmark.name, "source_type": "other", "additional_details": added},
        "metric_config": {
            "metric_id": metric.name,
            "metric_name": metric.name,
            "lower_is_better": not metric.higher_is_better,
            "score_type": "binary" if binary else "continuous",
            "min_score": metric.lower,
            "max_score": metric.upper,
        },
        "score_details": details,
        "generation_config": run.generation,
    }


def _generation(row: Any) -> dict[str, Any]:
    """Return the generation settings: those with a field in the schema, and everything else as texts."""
    settings = _settings(row)
    details = {
        str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in settings.items()
    }
    details |= {"condition": row.condition, "variant": row.variant}
    if row.few_shot is not None:
        details["few_shot"] = str(row.few_shot)
    args = {
        name: settings[name]
        for name in GENERATION
        if isinstance(settings.get(name), (int, float)) and not isinstance(settings[name], bool)
    }
    return {**({"generation_args": args} if args else {}), "additional_details": details}


def _folder(name: str) -> str:
    """Return a name that every file system accepts."""
    plain = re.sub(r'[\x00-\x1f<>:"/\\|?*]+', "_", name).strip(". ")
    return plain[:MAX_NAME_LENGTH].strip(". ") or vocabulary.UNKNOWN


def _flat(name: str) -> str:
    return name.replace("/", "_")


def _seconds(when: datetime) -> str:
    return f"{to_utc(when).timestamp():.6f}".rstrip("0").rstrip(".")
