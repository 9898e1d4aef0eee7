"""CSV, Parquet or JSON Lines with one row per answer: model, prompt, metric, score and further columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.files.tabular.cells import (
    check_bounds,
    factorize,
    is_missing,
    parse_number_column,
    parse_numbers,
    parse_whole_numbers,
)
from tracker.ingest.files.tabular.json_lines import read_rows
from tracker.ingest.files.tabular.prompt_columns import parse_prompts
from tracker.ingest.files.tabular.run_rows import RowGrouper, parse_runs
from tracker.ingest.files.tabular.table import TableProblems
from tracker.ingest.measurement import (
    Answers,
    Measurement,
    ReadOptions,
    Scores,
    metric_description,
)
from tracker.ingest.tables import find_layout
from tracker.ingest.tables.layout import metric_of_columns
from tracker.ingest.tables.read_layout import describe_layout, require_layout
from tracker.ingest.tables.scores.scales import unify_percentages
from tracker.ingest.tables.table_rows import describe_filled, drop_filled, select_splits

NAME = "long-table"
SPECIFICITY = 28
SUPPORTS_SPLITS = True
READS_COLUMNS = True
REPORTS_SCORES = False
RECOGNIZED_BY = "columns for model, prompt, and score, predicted answer or gold probability"
PROBABILITY = "gold_probability"


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a long table."""
    return find_layout.mismatch_reason(path, options, NAME)


def describe_reading(path: Path, options: ReadOptions) -> str | None:
    """Return what the columns of the file are."""
    return describe_layout(path, options, NAME)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Yield blocks of one run, metric and trial each; runs on mostly the same prompts share them."""
    layout = require_layout(path, options, NAME)
    role, scored = layout.roles, metric_of_columns(layout)
    table, n_filled = drop_filled(select_splits(read_rows(path), role, options, is_single=False), role)
    problems = TableProblems(table)
    prompts = parse_prompts(table, role, options, problems)
    runs = parse_runs(table, role, options, problems)
    trials = np.zeros(len(table), dtype=np.int64)
    if "trial" in role:
        trials = np.maximum(parse_whole_numbers(table, role["trial"], problems, noun="trial"), 0)
    rows_of_runs = RowGrouper(table, prompts, runs, trials, problems)
    blocks: list[Measurement] = [
        *_scores(rows_of_runs, role, scored, options),
        *_gold_probabilities(rows_of_runs, role, options),
        *_answers(rows_of_runs, role, scored, options),
    ]
    problems.check()
    yield from blocks
    if n_filled:
        yield describe_filled(n_filled, role)
    if layout.skipped:
        yield f"skipped unknown columns: {', '.join(layout.skipped)}"


def _scores(
    rows_of_runs: RowGrouper, role: Mapping[str, str], scored: Mapping[str, str | None], options: ReadOptions
) -> Iterator[Scores]:
    table, problems = rows_of_runs.table, rows_of_runs.problems
    for column, metric_name in scored.items():
        default = options.metric or metric_name or "score"
        (numbers,) = unify_percentages(
            [parse_number_column(table, column, problems)], metric_description(default, options)
        )
        if numbers.stderr is not None:
            wrong = np.flatnonzero(~np.isnan(numbers.stderr))
            problems.add(wrong, column, ["the score of a prompt has no standard error"])
        values = numbers.values
        rows = np.flatnonzero(~np.isnan(values))
        names, kinds = [metric_name or ""], np.zeros(len(rows), dtype=np.int64)
        if "metric" in role:
            coded = factorize(table, role["metric"])
            names, kinds = coded.names, coded.rows[rows]
        metrics = [metric_description(name if "metric" in role and name else default, options) for name in names]
        for kind, metric in enumerate(metrics):
            chosen = rows if len(metrics) == 1 else rows[kinds == kind]
            check_bounds(values[chosen], metric, column, problems, chosen)
        differ = _differences(values)
        for kind, run, trial, part, prompts, places in rows_of_runs.blocks(
            rows, kinds, len(names), differ, "score", column
        ):
            values_of_block = np.full(len(prompts), np.nan)
            values_of_block[places] = values[part]
            where = f"column {column!r}"
            yield Scores(
                run=run, metric=metrics[kind], prompts=prompts, values=values_of_block, trials=trial, places=where
            )


def _gold_probabilities(rows_of_runs: RowGrouper, role: Mapping[str, str], options: ReadOptions) -> Iterator[Scores]:
    if PROBABILITY not in role:
        return
    column = role[PROBABILITY]
    values = parse_numbers(rows_of_runs.table, column, rows_of_runs.problems)
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return
    if options.probability_kind not in ("letters", "likelihoods"):
        raise BadInputError(
            rows_of_runs.table.path,
            f"column {column!r}: add --probability-kind letters if the probabilities are those of the options' "
            "letters, or --probability-kind likelihoods if they are those of the options' texts.",
        )
    metric = metric_description(f"{PROBABILITY}_{options.probability_kind}")
    check_bounds(values, metric, column, rows_of_runs.problems)
    kinds = np.zeros(len(rows), dtype=np.int64)
    differ = _differences(values)
    for _, run, trial, part, prompts, places in rows_of_runs.blocks(rows, kinds, 1, differ, "probability", column):
        values_of_block = np.full(len(prompts), np.nan)
        values_of_block[places] = values[part]
        where = f"column {column!r}"
        yield Scores(run=run, metric=metric, prompts=prompts, values=values_of_block, trials=trial, places=where)


def _answers(
    rows_of_runs: RowGrouper, role: Mapping[str, str], scored: Mapping[str, str | None], options: ReadOptions
) -> Iterator[Answers]:
    if "predicted" not in role:
        return
    column = role["predicted"]
    predicted = factorize(rows_of_runs.table, column)
    spelled = np.array([bool(name) and is_missing(name) for name in predicted.names], dtype=bool)
    rows = np.flatnonzero(~spelled[predicted.rows])
    texts = np.array([name or None for name in predicted.names], dtype=object)
    probability = None
    if "probability" in role:
        probability = parse_numbers(rows_of_runs.table, role["probability"], rows_of_runs.problems)
        check_bounds(
            probability,
            replace(metric_description("probability"), lower=0.0, upper=1.0),
            role["probability"],
            rows_of_runs.problems,
        )
    metric = None if scored else metric_description(options.metric or "exact_match", options)
    kinds = np.zeros(len(rows), dtype=np.int64)
    differ = _differences(predicted.rows)
    for _, run, trial, part, prompts, places in rows_of_runs.blocks(rows, kinds, 1, differ, "answer", column):
        whole = len(part) == len(prompts)
        answer_texts = np.full(len(prompts), None, dtype=object)
        answer_texts[places] = texts[predicted.rows[part]]
        present = np.zeros(len(prompts), dtype=bool)
        present[places] = True
        sure = None
        if probability is not None:
            sure = np.full(len(prompts), np.nan)
            sure[places] = probability[part]
        yield Answers(
            run=run,
            prompts=prompts,
            text=answer_texts.tolist(),
            probability=sure,
            trials=trial,
            scored_as=metric,
            predicted=None if whole else present,
            places=f"column {column!r}",
        )


def _differences(
    values: NDArray[np.float64] | NDArray[np.int64],
) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
    return lambda rows, earlier: values[rows] != values[earlier]
