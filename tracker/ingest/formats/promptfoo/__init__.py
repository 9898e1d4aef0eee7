"""Results of promptfoo, written with `promptfoo eval -o results.json` (or .jsonl, .yaml, .csv).

Each provider is a model, each prompt template a variant of its run, and each test a prompt; repeated tests are trials.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tracker.ingest.files.file_contents import report_progress_to
from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.formats.promptfoo import outputs
from tracker.ingest.formats.promptfoo.result_index import PromptfooResultIndex, iterate_results
from tracker.ingest.formats.promptfoo.rows import PASS, SCORE, PromptfooResult
from tracker.ingest.measurement import (
    PROMPTS_PER_BLOCK,
    Answers,
    Measurement,
    Prompts,
    ReadOptions,
    RunDescription,
    Scores,
)
from tracker.ingest.reported_score import ReportedCount, ReportedScore

SPECIFICITY = 31
RECOGNIZED_BY = ".json or .yaml that begins with results and their version, .jsonl with promptIdx and testIdx, .csv"
"""One more than other harnesses, because results of old versions start like those of lm-evaluation-harness."""
NAMESPACE = "promptfoo"
END_BYTES = 1 << 16
VERSION = re.compile(rb'"?promptfooVersion"?\s*:\s*"?([^"\\\s]{1,40})')
LETTERS_PER_BLOCK = 8_000_000


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a result file of promptfoo."""
    start = first_bytes(path)
    return start if isinstance(start, str) else outputs.mismatch_reason(path, start)


def harness_name(path: Path) -> str | None:
    """Return the program, with its version if the results name it."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END_BYTES))
            version = VERSION.findall(file.read())
    except OSError:
        version = []
    return f"promptfoo {version[-1].decode(errors='replace')}" if version else "promptfoo"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | ReportedCount | str]:
    """Yield scores and answers of each model and template."""
    with report_progress_to(None):  # the second pass reports the progress
        index = PromptfooResultIndex(path, options)
    yield from PromptfooBlocks(index).read()


class PromptfooBlocks:
    """A second pass over the results."""

    def __init__(self, index: PromptfooResultIndex) -> None:
        self.index, self.options, self.runs = index, index.options, index.runs()
        self.n_empty = 0

    def read(self) -> Iterator[Measurement | ReportedScore | ReportedCount | str]:
        """Yield the blocks and warnings; raise for damage at the end."""
        index = self.index
        rows: list[tuple[int, PromptfooResult]] = []
        letters = 0
        results = iterate_results(index.path, {})
        for n in range(index.n):
            result = next(results)
            if not index.superseded[n]:
                rows.append((n, result))
                letters += len(result.text or "") + len(result.output or "")
            if len(rows) >= PROMPTS_PER_BLOCK or letters >= LETTERS_PER_BLOCK:
                yield from self._measurements(rows)
                rows, letters = [], 0
        yield from self._measurements(rows)
        yield from index.reported_scores()
        yield from index.reported_counts()
        yield from index.warnings()
        if self.n_empty:
            counted = "missing (--empty missing)" if self.options.empty == "missing" else "scored by promptfoo"
            yield f"{self.n_empty:,} answers are empty; they count as {counted}"
        for _ in results:  # raises if the file is damaged
            pass

    def _measurements(self, rows: Sequence[tuple[int, PromptfooResult]]) -> Iterator[Measurement]:
        by_column: dict[int, list[tuple[int, PromptfooResult]]] = {}
        for n, result in rows:
            by_column.setdefault(self.index.columns[result.column], []).append((n, result))
        shared: dict[tuple[str, ...], Prompts] = {}
        for column, rows_of_column in by_column.items():
            keys = tuple(result.key for _, result in rows_of_column)
            if keys not in shared:
                shared[keys] = self._prompts([result for _, result in rows_of_column])
            yield from self._of_column(self.runs[column], shared[keys], rows_of_column)

    def _prompts(self, results: Sequence[PromptfooResult]) -> Prompts:
        known = [result.has_variables or self.index.one_template for result in results]
        return Prompts(
            keys=[result.key for result in results],
            namespace=NAMESPACE,
            # A prompt without variables has a different text in each template.
            text=[result.text if is_known else None for result, is_known in zip(results, known, strict=True)],
            answer=[result.gold for result in results],
            details=[result.details for result in results],
        )

    def _of_column(
        self, run: RunDescription, prompts: Prompts, rows: Sequence[tuple[int, PromptfooResult]]
    ) -> Iterator[Measurement]:
        index, results = self.index, [result for _, result in rows]
        trials = index.trials[[n for n, _ in rows]]
        metrics = index.metrics or ([SCORE, PASS] if self.options.errored == "wrong" else [])
        empty = np.array([result.output == "" and not result.errored for result in results])
        self.n_empty += int(empty.sum())
        scored = False
        for metric in metrics:
            values = np.array([self._value(result, metric) for result in results])
            if self.options.empty == "missing":
                values[empty] = math.nan
            logged = np.array([math.nan if result.errored else _value(result, metric) for result in results])
            if np.isnan(values).all() and np.isnan(logged).all():
                continue
            scored = True
            place = f"result of {run.model}"
            weights = np.array([result.weights.get(metric, math.nan) for result in results])
            is_weighted = metric not in (SCORE, PASS) and not np.isnan(weights[~np.isnan(logged)]).any()
            yield Scores(
                run=run,
                metric=index.metric(metric),
                prompts=prompts,
                values=values,
                trials=trials,
                places=place,
                logged=logged,
                weights={metric: weights} if is_weighted else {},
            )
        if any(result.output is not None for result in results):
            yield Answers(
                run=run,
                prompts=prompts,
                text=[None if result.errored else result.output or None for result in results],
                status=["error" if result.errored else "ok" if result.output else "empty" for result in results],
                trials=trials,
                predicted=np.array([result.errored or result.output is not None for result in results]),
            )
        elif not scored:
            yield prompts

    def _value(self, result: PromptfooResult, metric: str) -> float:
        if result.errored:
            return 0.0 if self.options.errored == "wrong" else math.nan
        return _value(result, metric)


def _value(result: PromptfooResult, metric: str) -> float:
    value = result.values.get(metric, math.nan)
    return math.nan if value is None else value
