"""Import of results into a fresh store, and comparison of every reported number with what the store holds."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from click.testing import CliRunner

from drift.harness import Harness, Reported, mean
from tracker.cli import suffrage

TOLERANCE = 1e-6
"""Largest difference, relative above 1, from a number of full precision."""
RUNS = """
    SELECT run.id, model.name, benchmark.name, run.unverified
    FROM run JOIN model ON model.id = run.model_id JOIN benchmark ON benchmark.id = run.benchmark_id
"""
SCORES = """
    SELECT score.run_id, task.name, metric.name, score.prompt_id, score.value
    FROM score JOIN metric ON metric.id = score.metric_id JOIN prompt ON prompt.id = score.prompt_id
    JOIN task ON task.id = prompt.task_id
    ORDER BY score.run_id, score.prompt_id, score.trial
"""
TASK_SCORES = """
    SELECT task_score.run_id, task.name, metric.name, task_score.value, task_score.stderr, task_score.n_prompts
    FROM task_score JOIN metric ON metric.id = task_score.metric_id JOIN task ON task.id = task_score.task_id
"""
DETAILS = "SELECT id, details FROM prompt"
LOWER_IS_BETTER = ("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "ppl", "ter")
"""Metrics whose smallest value has rank 1."""

Place = tuple[str, str, str]
"""A model, a benchmark and a metric."""


class ImportFailedError(Exception):
    """Results that the importer rejects; the text is its message."""


@dataclass
class TaskComparison:
    """The numbers that a harness reports about a task, and those that differ in the store."""

    n_compared: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class StoredScores:
    """What a store holds.

    Attributes:
        rows: by model, benchmark and metric, then task: the scores of each prompt.
        task_scores: likewise, the columns of the task score.
        details: of each prompt.
        unverified: why runs are marked as unverified.
    """

    rows: dict[Place, dict[str, dict[int, list[float]]]]
    task_scores: dict[Place, dict[str, dict[str, float | None]]]
    details: dict[int, dict[str, Any]]
    unverified: list[str]

    @classmethod
    def read(cls, database: Path) -> StoredScores:
        rows: dict[Place, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(dict))
        task_scores: dict[Place, dict[str, dict[str, float | None]]] = defaultdict(dict)
        engine = sa.create_engine(f"sqlite:///{database}")
        with engine.connect() as connection:
            runs = {run: (model, benchmark, why) for run, model, benchmark, why in connection.execute(sa.text(RUNS))}
            for run, task, metric, prompt, value in connection.execute(sa.text(SCORES)):
                rows[*runs[run][:2], metric][task].setdefault(prompt, []).append(value)
            for run, task, metric, *columns in connection.execute(sa.text(TASK_SCORES)):
                pairs = zip(("value", "stderr", "n_prompts"), columns, strict=True)
                task_scores[*runs[run][:2], metric][task] = dict(pairs)
            details = {prompt: json.loads(text or "{}") or {} for prompt, text in connection.execute(sa.text(DETAILS))}
        engine.dispose()
        unverified = [f"{model} on {benchmark}: {why}" for model, benchmark, why in runs.values() if why]
        return cls(rows, task_scores, details, unverified)

    def values(self, reported: Reported) -> list[float]:
        """Every stored or recomputed value of a reported number."""
        of_tasks = self.rows.get((reported.model, reported.benchmark, reported.rows or reported.metric), {})
        scores = {prompt: of for task in reported.tasks or of_tasks for prompt, of in of_tasks.get(task, {}).items()}
        recomputed = []
        if scores and not reported.detail:
            recomputed = [reported.statistic(list(scores.values()))]
        elif scores and all(reported.detail in self.details[prompt] for prompt in scores):
            groups: dict[str, list[list[float]]] = defaultdict(list)
            for prompt, trials in scores.items():
                groups[str(self.details[prompt][reported.detail])].append(trials)
            recomputed = [reported.statistic(groups)]
        if reported.column is None:
            return recomputed
        columns = self.task_scores.get((reported.model, reported.benchmark, reported.metric), {})
        tasks = (reported.task_score,) if reported.task_score else reported.tasks
        stored = [columns[task][reported.column] for task in tasks or columns if task in columns]
        if len(stored) > 1 and not tasks:
            stored = []
        return [*recomputed, *(value for value in stored if value is not None)]


def compare(harness: Harness, results: Path, database: Path) -> dict[str, TaskComparison]:
    """Import a folder of results into a fresh store; return by task how the reported numbers compare.

    Raises:
        ImportFailedError: the importer rejects the results.
    """
    options = ["--database", f"sqlite:///{database}", "--no-mlflow", *harness.ingest_options]
    done = CliRunner().invoke(suffrage, ["ingest", str(results), *options])
    if done.exit_code:
        raise ImportFailedError(done.output.strip() or repr(done.exception))
    stored = StoredScores.read(database)
    comparisons: dict[str, TaskComparison] = defaultdict(TaskComparison)
    reported = list(harness.reported(results))
    for number in reported:
        comparison = comparisons[", ".join(number.tasks) or number.benchmark]
        comparison.n_compared += 1
        values = stored.values(number)
        if not values or not all(_agree(number, value) for value in values):
            stored_values = ", ".join(f"{value:.8g}" for value in values) or "nothing"
            text = f"{number.model}: reported {number.name} = {number.value:.8g}, stored {stored_values}"
            comparison.differences.append(text)
    for text in stored.unverified:
        comparisons["(unverified)"].differences.append(text)
    _compare_leaderboards(reported, database, comparisons)
    return dict(comparisons)


def _compare_leaderboards(reported: Sequence[Reported], database: Path, comparisons: dict[str, TaskComparison]) -> None:
    """Compare the leaderboard of each benchmark that is one task with the harness's numbers: means and ranks."""
    boards: dict[tuple[str, str], dict[str, Reported]] = defaultdict(dict)
    for number in reported:
        if number.tasks == (number.benchmark,) and number.column == "value" and number.statistic is mean:
            boards[number.benchmark, number.metric][number.model] = number
    for (benchmark, metric), numbers in boards.items():
        comparison = comparisons[benchmark]
        rows = _leaderboard(database, benchmark, metric)
        for model, number in numbers.items():
            comparison.n_compared += 2
            row = rows.get(model, {})
            if not _agree(number, row.get("mean", math.nan)):
                text = f"{model}: reported {number.name} = {number.value:.8g}, leaderboard {row.get('mean')}"
                comparison.differences.append(text)
            if (rank := _rank(number, numbers.values())) != row.get("rank"):
                text = f"{model}: rank {rank:g} by the reported {number.name}, leaderboard {row.get('rank')}"
                comparison.differences.append(text)


def _rank(number: Reported, numbers: Iterable[Reported]) -> float:
    """The rank of a model by the reported numbers, from 1; models with equal numbers share the mean of their ranks."""
    sign = -1.0 if number.metric.partition(",")[0] in LOWER_IS_BETTER else 1.0
    gains = [sign * (competitor.value - number.value) for competitor in numbers]
    n_better, n_equal = (sum(gain > TOLERANCE for gain in gains), sum(abs(gain) <= TOLERANCE for gain in gains))
    return n_better + (n_equal + 1) / 2


def _leaderboard(database: Path, benchmark: str, metric: str) -> dict[str, dict[str, Any]]:
    command = ["leaderboard", benchmark, "--metric", metric, "--split", "all", "--format", "json"]
    done = CliRunner().invoke(suffrage, [*command, "--database", f"sqlite:///{database}"])
    if done.exit_code:
        return {}
    return {row["model"]: row for row in json.loads(done.stdout)}


def _agree(reported: Reported, value: float) -> bool:
    if math.isnan(reported.value) or math.isnan(value):
        return math.isnan(reported.value) and math.isnan(value)
    if reported.value == value:
        return True
    if reported.decimals is not None:
        return abs(reported.value - value) <= 0.5 * 10.0**-reported.decimals + 1e-9 * max(1.0, abs(value))
    return abs(reported.value - value) <= TOLERANCE * max(1.0, abs(reported.value))
