"""CSV or Parquet table with one row per answer: model, prompt, metric, score, and what else is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracker.errors import BadInputError
from tracker.ingest.cells import (
    check_bounds,
    codes,
    compressed,
    condition,
    is_missing,
    numbers,
    shortened,
    told_condition,
    whole_numbers,
)
from tracker.ingest.headings import is_row_number, plain, roles
from tracker.ingest.measurement import (
    KNOWN_METRICS,
    Answers,
    Measurement,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
    metric_description,
)
from tracker.ingest.prompt_columns import NamedPrompts, named_prompts, subset
from tracker.ingest.sniffing import head
from tracker.ingest.tables import Problems, Table, read_table
from tracker.schema.measurements import CONDITIONS

SPECIFICITY = 30
PROBABILITY = "gold_probability"


def declines(path: Path, options: ReadOptions) -> str | None:
    """Why the file is no long table."""
    top = head(path)
    return top if isinstance(top, str) else _lacks(roles(top.names), _score_columns(top.names), options)


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """Blocks of one run, metric and trial each; they share their prompts where they are asked most of them."""
    table = read_table(path)
    role = roles(table.names)
    scored = _score_columns(table.names)
    if lack := _lacks(role, scored, options):
        raise BadInputError(path, f"{lack}.")
    problems = Problems(table)
    prompts = named_prompts(table, role, options, problems)
    runs = _runs(table, role, options, problems)
    trials = np.zeros(len(table), dtype=np.int64)
    if "trial" in role:
        trials = np.maximum(whole_numbers(table, role["trial"], problems, what="trial"), 0)
    asked = _Asked(table, prompts, runs, trials, problems)
    blocks: list[Measurement] = [
        *_scores(asked, role, scored, options),
        *_gold_probabilities(asked, role, options),
        *_answers(asked, role, scored, options),
    ]
    problems.check()
    yield from blocks
    used = {*role.values(), *scored}
    if ignored := [name for name in table.names if name not in used and not is_row_number(name)]:
        yield f"columns that mean nothing here were passed over: {', '.join(ignored)}"


def _score_columns(names: tuple[str, ...] | list[str]) -> dict[str, str | None]:
    """Columns that hold scores, and the metric each names; None where a column metric, or nobody, names it."""
    role = roles(names)
    if "score" in role:
        return {role["score"]: "accuracy" if "correct" in plain(role["score"]) else None}
    return {name: plain(name) for name in names if plain(name) in KNOWN_METRICS and name not in role.values()}


def _lacks(role: Mapping[str, str], scored: Mapping[str, str | None], options: ReadOptions) -> str | None:
    if "model" not in role and not options.model:
        return "no column model"
    if options.orient == "models":
        return "the rows are said to be models"
    if "prompt" not in role and "text" not in role:
        return "no column prompt_id, and no column text"
    if not scored and "predicted" not in role and PROBABILITY not in role:
        return "no column score, predicted or gold_probability"
    return None


@dataclass(frozen=True)
class _Runs:
    rows: NDArray[np.int64]
    described: list[RunDescription]


def _runs(table: Table, role: Mapping[str, str], options: ReadOptions, problems: Problems) -> _Runs:
    """Which run each row is of: benchmark, model, condition, variant, name of the run and shots."""
    parts = [part for part in ("benchmark", "model", "condition", "variant", "run", "few_shot") if part in role]
    if options.benchmark and "benchmark" in parts:
        parts.remove("benchmark")
    columns = {part: codes(table, role[part]) for part in parts}
    rows, size = np.zeros(len(table), dtype=np.int64), 1
    first = np.zeros(1, dtype=np.int64)
    for column in columns.values():
        rows, first = compressed(rows * len(column.names) + column.rows, size * len(column.names))
        size = len(first)
    if "model" in columns:
        names = columns["model"].names
        if "" in names:
            problems.add(
                np.flatnonzero(columns["model"].rows == names.index("")), role["model"], ["the model has no name"]
            )
        if options.model and len(names) > 1:
            text = f"holds {len(names)} models; --model names the model of a file of one."
            raise BadInputError(table.path, text)
    if "condition" in columns:
        column = columns["condition"]
        for code, name in enumerate(column.names):
            if condition(name) is None:
                unknown = f"no condition {shortened(name)!r}; known: {', '.join(CONDITIONS)}"
                problems.add(np.flatnonzero(column.rows == code), role["condition"], [unknown])
    shots = whole_numbers(table, role["few_shot"], problems, what="number of shots") if "few_shot" in role else None
    told = told_condition(table, options)
    described = []
    for row in first.tolist():
        said = {part: column.names[column.rows[row]] for part, column in columns.items()}
        described.append(
            RunDescription(
                model=options.model or said["model"],
                benchmark=options.benchmark or said.get("benchmark") or None,
                condition=(condition(said["condition"]) or told) if said.get("condition") else told,
                variant=said.get("variant", ""),
                label=said.get("run", ""),
                few_shot=None if shots is None or shots[row] < 0 else int(shots[row]),
            )
        )
    return _Runs(rows, described)


class _Asked:
    """Rows of a long table as blocks: who was asked what, in which trial."""

    def __init__(
        self, table: Table, prompts: NamedPrompts, runs: _Runs, trials: NDArray[np.int64], problems: Problems
    ) -> None:
        self.table, self.prompts, self.runs, self.trials, self.problems = table, prompts, runs, trials, problems
        self._subsets: dict[tuple[int, bytes], Prompts] = {}

    def blocks(
        self,
        rows: NDArray[np.int64],
        kinds: NDArray[np.int64],
        n_kinds: int,
        differ: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
        what: str,
        column: str,
    ) -> Iterator[tuple[int, RunDescription, int, NDArray[np.int64], Prompts, NDArray[np.int64]]]:
        """Rows grouped by run, kind and trial, each prompt once.

        Args:
            rows: those that say something.
            kinds: ``(len(rows),)`` what is said of them, such as the metric, below ``n_kinds``.
            differ: whether rows contradict other rows, pairwise.
            what: what they would contradict, for messages.
            column: where they stand, for messages.

        Yields:
            kind, run, trial, rows, their prompts, and the place of each row among the prompts.
        """
        n_trials = int(self.trials.max(initial=0)) + 1
        code = (self.runs.rows[rows] * n_kinds + kinds) * n_trials + self.trials[rows]
        groups, first = compressed(code, len(self.runs.described) * n_kinds * n_trials)
        cell = groups * len(self.prompts) + self.prompts.rows[rows]
        order = np.argsort(cell, kind="stable")
        cell, rows, groups = cell[order], rows[order], groups[order]
        again = np.concatenate([[False], cell[1:] == cell[:-1]])
        if again.any():
            self._check_repeats(rows, again, differ, what, column)
            rows, groups = rows[~again], groups[~again]
        bounds = np.searchsorted(groups, np.arange(len(first) + 1))
        sources = np.asarray(code[first])
        for group, source in enumerate(sources.tolist()):
            kind = source // n_trials % n_kinds
            run = self.runs.described[source // n_trials // n_kinds]
            part = rows[bounds[group] : bounds[group + 1]]
            prompts, places = self._prompts_of(part)
            yield kind, run, source % n_trials, part, prompts, places

    def _check_repeats(
        self,
        rows: NDArray[np.int64],
        again: NDArray[np.bool_],
        differ: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
        what: str,
        column: str,
    ) -> None:
        starts = np.flatnonzero(~again)
        earlier = rows[starts[np.cumsum(~again) - 1]][again]
        wrong = np.flatnonzero(differ(rows[again], earlier))
        if len(wrong):
            later, earlier = rows[again][wrong], earlier[wrong]
            texts = [
                f"another {what} for prompt {self.prompts.name(int(self.prompts.rows[row]))!r} of "
                f"{self.runs.described[self.runs.rows[row]].model!r} than in {self.table.place(before)}"
                for row, before in zip(later[: BadInputError.shown], earlier, strict=False)
            ]
            self.problems.add(later, column, texts)

    def _prompts_of(self, rows: NDArray[np.int64]) -> tuple[Prompts, NDArray[np.int64]]:
        """The prompts of a benchmark, all where half of them are among the rows, and the rows' places in them."""
        numbers = self.prompts.rows[rows]
        starts = self.prompts.starts
        block = int(np.searchsorted(starts, numbers[0], side="right")) - 1
        everything, places = self.prompts.blocks[block], numbers - starts[block]
        if 2 * len(rows) >= len(everything):
            return everything, places
        identity = (block, places.tobytes())
        if identity not in self._subsets:
            self._subsets[identity] = subset(everything, places)
        return self._subsets[identity], np.arange(len(rows))


def _scores(
    asked: _Asked, role: Mapping[str, str], scored: Mapping[str, str | None], options: ReadOptions
) -> Iterator[Scores]:
    table, problems = asked.table, asked.problems
    for column, named in scored.items():
        values = numbers(table, column, problems)
        rows = np.flatnonzero(~np.isnan(values))
        names, kinds = [named or ""], np.zeros(len(rows), dtype=np.int64)
        if "metric" in role:
            coded = codes(table, role["metric"])
            names, kinds = coded.names, coded.rows[rows]
        default = options.metric or named or "score"
        metrics = [metric_description(name if "metric" in role and name else default, options) for name in names]
        for kind, metric in enumerate(metrics):
            chosen = rows if len(metrics) == 1 else rows[kinds == kind]
            check_bounds(values[chosen], metric, column, problems, chosen)
        differ = _differences(values)
        for kind, run, trial, part, prompts, places in asked.blocks(rows, kinds, len(names), differ, "score", column):
            found = np.full(len(prompts), np.nan)
            found[places] = values[part]
            where = f"column {column!r}"
            yield Scores(run=run, metric=metrics[kind], prompts=prompts, values=found, trials=trial, places=where)


def _gold_probabilities(asked: _Asked, role: Mapping[str, str], options: ReadOptions) -> Iterator[Scores]:
    if PROBABILITY not in role:
        return
    column = role[PROBABILITY]
    values = numbers(asked.table, column, asked.problems)
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return
    if options.probability_kind not in ("letters", "likelihoods"):
        raise BadInputError(
            asked.table.path,
            f"column {column!r}: add --probability-kind letters if the probabilities are those of the options' "
            "letters, or --probability-kind likelihoods if they come from the likelihoods of the options' texts.",
        )
    metric = metric_description(f"{PROBABILITY}_{options.probability_kind}")
    check_bounds(values, metric, column, asked.problems)
    kinds = np.zeros(len(rows), dtype=np.int64)
    differ = _differences(values)
    for _, run, trial, part, prompts, places in asked.blocks(rows, kinds, 1, differ, "probability", column):
        found = np.full(len(prompts), np.nan)
        found[places] = values[part]
        where = f"column {column!r}"
        yield Scores(run=run, metric=metric, prompts=prompts, values=found, trials=trial, places=where)


def _answers(
    asked: _Asked, role: Mapping[str, str], scored: Mapping[str, str | None], options: ReadOptions
) -> Iterator[Answers]:
    if "predicted" not in role:
        return
    column = role["predicted"]
    predicted = codes(asked.table, column)
    spelled = np.array([bool(name) and is_missing(name) for name in predicted.names], dtype=bool)
    rows = np.flatnonzero(~spelled[predicted.rows])
    texts = np.array([name or None for name in predicted.names], dtype=object)
    probability = None
    if "probability" in role:
        probability = numbers(asked.table, role["probability"], asked.problems)
        check_bounds(
            probability,
            replace(metric_description("probability"), lower=0.0, upper=1.0),
            role["probability"],
            asked.problems,
        )
    metric = None if scored else metric_description(options.metric or "exact_match", options)
    kinds = np.zeros(len(rows), dtype=np.int64)
    differ = _differences(predicted.rows)
    for _, run, trial, part, prompts, places in asked.blocks(rows, kinds, 1, differ, "answer", column):
        whole = len(part) == len(prompts)
        said = np.full(len(prompts), None, dtype=object)
        said[places] = texts[predicted.rows[part]]
        present = np.zeros(len(prompts), dtype=bool)
        present[places] = True
        sure = None
        if probability is not None:
            sure = np.full(len(prompts), np.nan)
            sure[places] = probability[part]
        yield Answers(
            run=run,
            prompts=prompts,
            text=said.tolist(),
            probability=sure,
            trials=trial,
            scored_as=metric,
            predicted=None if whole else present,
            places=f"column {column!r}",
        )


def _differences(
    values: NDArray[np.float64] | NDArray[np.int64],
) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
    return lambda rows, others: values[rows] != values[others]
