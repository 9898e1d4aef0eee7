"""Changes made by storing a file: runs, counts and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracker.name_lists import join_names
from tracker.schema import Run


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run of a file in the store.

    Attributes:
        id: its key.
        benchmark, model, condition, variant, label: identity of the run.
    """

    id: int
    benchmark: str
    model: str
    condition: str
    variant: str
    label: str

    @classmethod
    def describe(cls, run: Run, model: str, benchmark_names: Mapping[int, str]) -> StoredRun:
        """Return the description of a stored run, with the model's name in the file."""
        assert run.id is not None
        return cls(
            id=run.id,
            benchmark=benchmark_names[run.benchmark_id],
            model=model,
            condition=run.condition,
            variant=run.variant,
            label=run.label,
        )


@dataclass(frozen=True, kw_only=True)
class StoreChanges:
    """Changes made by storing a file.

    Attributes:
        source_id: key of the file; None for a merged store, which gets no source row.
        already_known: whether the same file was ingested before with the same options, so that nothing changed.
        benchmarks: names of the file's benchmarks.
        runs_new, runs_extended, runs_unchanged: runs of the file; extended ones gained or changed a value.
        n_scores, n_task_scores: number of new prompt scores and task scores.
        n_scores_unchanged, n_scores_skipped, n_scores_updated: number of scores of both types that were equal, that
        were different and kept, and that were overwritten.
        n_answers: number of new answers.
        n_runs_partial: number of its runs that are partial.
        newly_bounded: stored metrics that had no bound, or only one, and were given it.
        damage: why only a part of the file was stored; '' if all of it was.
        warnings: messages for the user.
    """

    source_id: int | None
    already_known: bool = False
    benchmarks: tuple[str, ...] = ()
    n_prompts_new: int = 0
    n_models_new: int = 0
    runs_new: tuple[StoredRun, ...] = ()
    runs_extended: tuple[StoredRun, ...] = ()
    runs_unchanged: tuple[StoredRun, ...] = ()
    n_scores: int = 0
    n_task_scores: int = 0
    n_scores_unchanged: int = 0
    n_scores_skipped: int = 0
    n_scores_updated: int = 0
    n_answers: int = 0
    n_runs_partial: int = 0
    newly_bounded: tuple[str, ...] = ()
    damage: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def run_ids(self) -> list[int]:
        """Return the keys of the new and extended runs."""
        return [run.id for run in (*self.runs_new, *self.runs_extended)]

    def summary(self) -> str:
        """Return the changes in one line."""
        if self.already_known:
            return "ingested before, nothing changed"
        counts = (
            (self.n_prompts_new, "new prompt"),
            (self.n_models_new, "new model"),
            (len(self.runs_new), "new run"),
            (len(self.runs_extended), "extended run"),
            (self.n_scores, "score"),
            (self.n_task_scores, "task score"),
            (self.n_scores_updated, "overwritten score"),
            (self.n_scores_skipped, "stored score kept"),
            (self.n_answers, "answer"),
        )
        parts = [_format_count(n, noun) for n, noun in counts if n]
        if self.newly_bounded:
            parts.append(f"bounds of {join_names(self.newly_bounded)}")
        return ", ".join(parts) if parts else "nothing new"


def _format_count(n: int, noun: str) -> str:
    if n == 1:
        return f"{n:,} {noun}"
    stem, mark, rest = noun.partition(" kept")
    return f"{n:,} {stem}s{mark}{rest}"
