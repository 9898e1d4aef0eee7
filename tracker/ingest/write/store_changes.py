"""What storing a file changed: its runs, its counts and its warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracker.schema import Run


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run that a file belongs to.

    Attributes:
        id: its key.
        benchmark, model, condition, variant, label: which run it is.
    """

    id: int
    benchmark: str
    model: str
    condition: str
    variant: str
    label: str

    @classmethod
    def describe(cls, run: Run, model: str, benchmark_names: Mapping[int, str]) -> StoredRun:
        """Describe a run of the store, with the model's name as the file has it."""
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
    """What storing a file changed.

    Attributes:
        source_id: key of the file; None where it leaves no row, as an archive does.
        already_known: whether the same file was taken in before with the same options; then nothing changed.
        benchmarks: names of those it concerns.
        runs_new, runs_extended, runs_unchanged: its runs; extended ones gained or changed a value.
        n_scores, n_task_scores: scores of prompts, and of whole tasks, written anew.
        n_scores_unchanged, n_scores_skipped, n_scores_updated: of both kinds: stored before, different ones kept,
            different ones overwritten.
        n_answers: answers written anew.
        n_runs_partial: how many of its runs are partial.
        damage: why the file was stored in part only; '' where it was stored whole.
        warnings: what the reader should be told.
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
    damage: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def run_ids(self) -> list[int]:
        """Keys of the runs that are new or were extended."""
        return [run.id for run in (*self.runs_new, *self.runs_extended)]

    def summary(self) -> str:
        """What changed, in one line."""
        if self.already_known:
            return "taken in before, nothing changed"
        counts = (
            (self.n_prompts_new, "new prompt"),
            (self.n_models_new, "new model"),
            (len(self.runs_new), "new run"),
            (len(self.runs_extended), "extended run"),
            (self.n_scores, "score"),
            (self.n_task_scores, "score of a whole task"),
            (self.n_scores_updated, "overwritten score"),
            (self.n_scores_skipped, "score left as stored"),
            (self.n_answers, "answer"),
        )
        parts = [_format_count(n, noun) for n, noun in counts if n]
        return ", ".join(parts) if parts else "nothing new"


def _format_count(n: int, noun: str) -> str:
    if n == 1:
        return f"{n:,} {noun}"
    stem, mark, rest = noun.partition(" left")
    return f"{n:,} {stem}s{mark}{rest}" if stem != "score of a whole task" else f"{n:,} scores of whole tasks"
