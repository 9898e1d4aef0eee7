"""Run a command; if it needs rows that are in sealed files only, copy them back into the store and run it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tracker.errors import SealedRowsError

if TYPE_CHECKING:
    from tracker.recording.sealing.loading import LoadedRows

T = TypeVar("T")


def run_with_sealed_rows(run: Callable[[], T]) -> T:
    """Return what a command returns.

    Args:
        run: the command, which has no effect before it needs the rows.
    """
    try:
        return run()
    except SealedRowsError as error:
        from tracker.recording.sealing.loading import with_sealed_rows

        first = error
    return with_sealed_rows(run, _load, first)


def _load(load: Callable[[Callable[[int, int], None]], LoadedRows]) -> None:
    """Load rows with a bar, and report what was copied."""
    from tracker.cli.output import inform
    from tracker.cli.progress import progress
    from tracker.recording.sealing.loading import ignore_progress
    from tracker.report.number_format import format_count

    with progress("reading sealed files") as update:
        result = load(update or ignore_progress)
    rows = f"{format_count(result.n_scores, 'score')} and {format_count(result.n_answers, 'answer')}"
    if result.n_runs:
        inform(f"Copied {rows} of {format_count(result.n_runs, 'run')} from sealed files into the store.")
