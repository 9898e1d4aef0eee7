"""Counts of the measurements read from a file, and the mean of each run and metric."""

from __future__ import annotations

from collections import defaultdict
from weakref import WeakSet

import numpy as np

from tracker.ingest.measurement import Answers, Measurement, Prompts, Scores

MAX_NAMES = 10


class IngestCounter:
    """Counts of the added blocks."""

    def __init__(self) -> None:
        self.n_prompts = self.n_scores = self.n_answers = self.n_task_scores = 0
        self._counted: WeakSet[Prompts] = WeakSet()
        self._runs: set[tuple[str | None, ...]] = set()
        self._sums: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(self, block: Measurement) -> None:
        """Count a block."""
        prompts = block if isinstance(block, Prompts) else getattr(block, "prompts", None)
        if prompts is not None and prompts not in self._counted:
            self._counted.add(prompts)
            self.n_prompts += len(prompts)
        if isinstance(block, Prompts):
            return
        run = block.run
        self._runs.add((run.benchmark, run.model, run.condition, run.variant, run.label))
        if isinstance(block, Answers):
            self.n_answers += len(block.text) if block.predicted is None else int(np.count_nonzero(block.predicted))
            return
        values = np.asarray(block.values, dtype=np.float64)
        measured = values[np.isfinite(values)]
        if isinstance(block, Scores):
            self.n_scores += len(measured)
        else:
            self.n_task_scores += len(measured)
        total = self._sums[block.run.model, block.run.label, block.metric.name]
        with np.errstate(over="ignore"):
            total[0] += float(measured.sum())
        total[1] += len(measured)

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self._runs)

    def summary(self) -> str:
        """Return the counts in one line, and a line for the mean of each run and metric; '' if there is nothing."""
        counts = (
            (self.n_prompts, "prompt", "prompts"),
            (self.n_scores, "score", "scores"),
            (self.n_answers, "answer", "answers"),
            (self.n_task_scores, "task score", "task scores"),
        )
        parts = [f"{n:,} {singular if n == 1 else plural}" for n, singular, plural in counts if n]
        if not parts:
            return ""
        lines = [
            f"  {model}{f' ({label})' if label else ''}, {metric}: mean {total / n:.6g} of {int(n):,}"
            for (model, label, metric), (total, n) in self._sums.items()
            if n
        ]
        if len(lines) > MAX_NAMES:
            lines = [*lines[:MAX_NAMES], f"  and {len(lines) - MAX_NAMES} more"]
        return "\n".join([", ".join(parts), *lines])
