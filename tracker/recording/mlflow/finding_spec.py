"""Build the MLflow run of a finding."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from io import StringIO
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.errors import NotFoundError
from tracker.queries.catalogue.prompt_names import load_prompt_names
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.findings.staleness import explain_staleness, list_stale_findings
from tracker.queries.findings.summary import Summary
from tracker.queries.resolution import benchmark_label
from tracker.queries.sql import tables
from tracker.recording.artifacts import PNG, decode_table, encode_table
from tracker.recording.mlflow.run_spec import (
    LAYOUT,
    STALE_MARK,
    STALE_TAG,
    MlflowRunSpec,
    allowed_names,
    build_names_file,
    format_parameter,
)
from tracker.recording.rerun_command import VERDICT
from tracker.recording.verdict.verdict_tags import CHOICES_FILE, make_verdict_tags
from tracker.schema import Benchmark, StoredFinding

MAX_WORD_LENGTH = 24


def finding_versions(session: Session, keys: Collection[int] | None = None) -> dict[int, str]:
    """Return the version of each complete finding's MLflow run: a finding never changes, only its display and its
    staleness.
    """
    analysis = tables.finding
    query = sa.select(analysis.c.id).where(analysis.c.status == "complete").order_by(analysis.c.id)
    finding_ids = session.scalars(query if keys is None else query.where(analysis.c.id.in_(keys))).all()
    stale = list_stale_findings(session, keys)
    return {key: _version(stale.get(key, "")) for key in finding_ids}


def build_finding_spec(session: Session, finding_id: int) -> MlflowRunSpec:
    """Build the MLflow run of a finding.

    Raises:
        NotFoundError: the finding does not exist.
    """
    analysis = session.get(StoredFinding, finding_id)
    if analysis is None:
        raise NotFoundError("finding", finding_id, finding_versions(session))
    stored = session.get(Benchmark, analysis.benchmark_id) if analysis.benchmark_id else None
    benchmark = benchmark_label(stored.name, stored.revision) if stored else ""
    number = tables.finding_metric
    metrics = session.execute(
        sa.select(number.c.name, number.c.value, number.c.reason, number.c.is_main)
        .where(number.c.finding_id == finding_id)
        .order_by(number.c.position, number.c.name)
    ).all()
    main = [row for row in metrics if row.is_main]
    defined = [row for row in main if row.value is not None]
    undefined = [row for row in main if row.value is None]
    names = allowed_names(row.name for row in defined)
    parameters = {name: format_parameter(value) for name, value in sorted(analysis.parameters.items())}
    selection = {name: format_parameter(value) for name, value in sorted(analysis.selection.items()) if value != ""}
    used = tables.finding_run
    runs = session.scalars(sa.select(used.c.run_id).where(used.c.finding_id == finding_id).distinct())
    stale = explain_staleness(session, finding_id)
    tags = {
        "suffrage.benchmark": benchmark,
        "suffrage.runs": format_parameter(sorted(runs)),
        "suffrage.metrics": f"{len(defined)} of {len(metrics)} are shown; metrics.csv has them all",
        **_finding_tags(analysis, undefined, stale),
    }
    if analysis.analysis == VERDICT:
        tags |= _verdict_tags(session, analysis, {row.name: row.value for row in metrics})
    parameter_names = allowed_names([*parameters, *(f"selection.{name}" for name in selection)])
    return MlflowRunSpec(
        kind="finding",
        ref_id=finding_id,
        version=_version(stale),
        experiment=f"suffrage/{analysis.analysis}",
        about_experiment=f"Findings of {analysis.analysis}, one run each.",
        run_name=" ".join(
            filter(None, [benchmark, *_words(analysis.parameters), f"{analysis.recorded:%Y-%m-%d}", f"#{finding_id}"])
        ),
        started=analysis.recorded - timedelta(seconds=sum((analysis.timings or {}).values())),
        ended=analysis.recorded,
        parameters={parameter_names[name]: value for name, value in parameters.items()}
        | {parameter_names[f"selection.{name}"]: value for name, value in selection.items()},
        metrics={names[row.name]: row.value for row in defined},
        tags=tags,
        description=_description(analysis, undefined, stale),
        page=f"/finding/{finding_id}",
        files=build_names_file(names | parameter_names)
        | {"metrics.csv": _metrics_csv(metrics)}
        | _stored_files(session, finding_id)
        | _tables(session, finding_id),
    )


def _finding_tags(analysis: StoredFinding, undefined: Sequence[sa.Row[*tuple[Any, ...]]], stale: str) -> dict[str, str]:
    """Return the tags: digest, version, leader, seed, undefined metrics and staleness."""
    tags = {"suffrage.input_digest": analysis.input_digest, "suffrage.version": analysis.code_version}
    if stale:
        tags[STALE_TAG] = stale
    if analysis.leader:
        tags["suffrage.leader"] = analysis.leader
    if analysis.seed is not None:
        tags["suffrage.seed"] = str(analysis.seed)
    if undefined:
        tags["suffrage.undefined"] = "; ".join(f"{row.name}: {row.reason}" for row in undefined)
    return tags


def _verdict_tags(session: Session, analysis: StoredFinding, metrics: Mapping[str, float | None]) -> dict[str, str]:
    """Return the tags of a recorded verdict, the same as those of a report."""
    file = tables.finding_artifact
    content = session.scalar(
        sa.select(file.c.content).where(file.c.finding_id == analysis.id, file.c.name == CHOICES_FILE)
    )
    choices = [] if content is None else decode_table(content).to_pylist()
    n_may_lead = metrics.get("n_may_lead")
    return make_verdict_tags(
        analysis.headline or "",
        [analysis.leader or ""],
        None if n_may_lead is None else int(n_may_lead),
        metrics.get("margin"),
        {choice["choice"]: choice["leader_changes"] for choice in choices if isinstance(choice["leader_changes"], str)},
    )


def _words(parameters: Mapping[str, Any]) -> list[str]:
    """Return the short parameters, which distinguish findings in a list; the simulation comes first."""
    names = sorted(parameters, key=lambda name: name != SIMULATED)
    words = [parameters[name] for name in names]
    return [value for value in words if isinstance(value, str) and 0 < len(value) <= MAX_WORD_LENGTH]


def _version(stale: str) -> str:
    return LAYOUT + (STALE_MARK + hashlib.sha256(stale.encode()).hexdigest()[:16] if stale else "")


def _description(analysis: StoredFinding, undefined: Sequence[Any], stale: str) -> str:
    paragraphs = [f"**Stale: {stale}.** Run the analysis again before you rely on it."] if stale else []
    summary = Summary.from_columns(analysis.headline, analysis.evidence, analysis.caveats)
    paragraphs.append(summary.format_markdown())
    if undefined:
        paragraphs.append("Undefined:\n" + "\n".join(f"- `{row.name}`: {row.reason}" for row in undefined))
    paragraphs.append(f"Finding {analysis.id} of the store; `suffrage show {analysis.id}` prints it.")
    return "\n\n".join(paragraphs)


def _metrics_csv(metrics: Sequence[Any]) -> bytes:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "value", "reason"])
    writer.writerows(["" if cell is None else cell for cell in row[:3]] for row in metrics)
    return text.getvalue().encode()


def _stored_files(session: Session, finding_id: int) -> dict[str, bytes]:
    file = tables.finding_artifact
    stored = session.execute(
        sa.select(file.c.name, file.c.media_type, file.c.content)
        .where(file.c.finding_id == finding_id)
        .order_by(file.c.name)
    )
    # MLflow's page that compares runs shows files at the top level side by side, and ignores folders.
    return {name if kind == PNG else f"data/{name}": content for name, kind, content in stored}


def _tables(session: Session, finding_id: int) -> dict[str, bytes]:
    by_task, ranking, task, model = tables.task_value, tables.ranking, tables.task, tables.model
    numbers = [ranking.c[name] for name in ("rank", "score", "low", "high", "rank_low", "rank_high")]
    queries = {
        "task_values": sa.select(by_task.c.name, task.c.name.label("task"), by_task.c.value)
        .join(task, task.c.id == by_task.c.task_id)
        .where(by_task.c.finding_id == finding_id)
        .order_by(by_task.c.name, task.c.name),
        "rankings": sa.select(ranking.c.scheme, model.c.name.label("model"), *numbers)
        .join(model, model.c.id == ranking.c.model_id)
        .where(ranking.c.finding_id == finding_id)
        .order_by(ranking.c.scheme, ranking.c.rank, model.c.name),
    }
    contents = {name: _table(session, query) for name, query in queries.items()}
    contents["prompt_values"] = _prompt_values(session, finding_id)
    contents["filter"] = _filter(session, finding_id)
    return {f"data/{name}.parquet": content for name, content in contents.items() if content is not None}


def _table(session: Session, query: sa.Select[Any]) -> bytes | None:
    import pyarrow as pa

    result = session.execute(query)
    names, rows = list(result.keys()), result.all()
    columns = [list(column) for column in zip(*rows, strict=True)]
    return encode_table(pa.table(dict(zip(names, columns, strict=True)))) if rows else None


def _prompt_values(session: Session, finding_id: int) -> bytes | None:
    """Return a table with one row per prompt and one column per metric; None without any."""
    number = tables.prompt_value.c
    values: dict[str, dict[int, float]] = {}
    for name, prompt_id, value in session.execute(
        sa.select(number.name, number.prompt_id, number.value).where(number.finding_id == finding_id)
    ):
        values.setdefault(name, {})[prompt_id] = value
    prompt_ids = sa.select(number.prompt_id).where(number.finding_id == finding_id)
    return _by_prompt(session, prompt_ids, dict(sorted(values.items()))) if values else None


def _filter(session: Session, finding_id: int) -> bytes | None:
    """Return a table with one row per prompt of a filter: whether it is kept, and the reasons; else None."""
    decision, reason = tables.filter_decision.c, tables.filter_reason.c
    of_finding = decision.finding_id == finding_id
    kept = dict(session.execute(sa.select(decision.prompt_id, decision.kept).where(of_finding)).all())
    steps: dict[str, dict[int, Any]] = {}
    for step, prompt_id, retained, group in session.execute(
        sa.select(reason.step, reason.prompt_id, reason.retained, reason.cluster)
        .where(reason.finding_id == finding_id)
        .order_by(reason.step)
    ):
        steps.setdefault(step, {})[prompt_id] = "retained" if retained else "removed"
        if group is not None:
            steps.setdefault(f"{step}.group", {})[prompt_id] = group
    prompt_ids = sa.select(decision.prompt_id).where(of_finding)
    return _by_prompt(session, prompt_ids, {"kept": kept, **dict(sorted(steps.items()))}) if kept else None


def _by_prompt(session: Session, prompt_ids: sa.Select[Any], columns: Mapping[str, Mapping[int, Any]]) -> bytes:
    """Return a table with a row for each of some prompts.

    Args:
        session: the store.
        prompt_ids: keys of the prompts.
        columns: values of each column, by name and key; a prompt may lack a value.
    """
    import pyarrow as pa

    prompt, task = tables.prompt, tables.task
    names = load_prompt_names(session, tables.prompt_alias.c.prompt_id.in_(prompt_ids))
    prompts = session.execute(
        sa.select(prompt.c.id, task.c.name)
        .join(task, task.c.id == prompt.c.task_id)
        .where(prompt.c.id.in_(prompt_ids))
        .order_by(prompt.c.id)
    ).all()
    head = {
        "prompt_id": [row[0] for row in prompts],
        "task": [row[1] for row in prompts],
        "key": pa.array([names.get(row[0]) for row in prompts], pa.string()),
    }
    return encode_table(
        pa.table(head | {name: [values.get(row[0]) for row in prompts] for name, values in columns.items()})
    )
