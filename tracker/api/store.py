"""The store in Python: open it, ingest results, load arrays and findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

import sqlalchemy as sa

from tracker.api.options import (
    DataFrame,
    EvaluationOptions,
    IngestOptions,
    PromptImportOptions,
    as_tuple,
    limit_files,
    named_options,
)
from tracker.api.result import AnalysisResult
from tracker.api.sealed_rows import load_rows_for, loads_sealed_rows
from tracker.api.store_analyses import StoreAnalyses
from tracker.database import connect
from tracker.notebook.rows import BarChart, Rows

if TYPE_CHECKING:
    from tracker.evaluating.evaluation import Progress
    from tracker.evaluating.evaluation_result import EvaluationOutcome
    from tracker.ingest.datasets.ingest_prompts import PromptIngestResult
    from tracker.ingest.pipeline import IngestResult
    from tracker.ingest.write.stored_runs import OnConflict

__all__ = ["AnalysisResult", "Store", "open_store"]

_FILES: BarChart[IngestResult] = BarChart(
    label=lambda result: result.path.name,
    length=lambda result: result.changes.n_scores + result.changes.n_task_scores,
    quantity="new scores",
)
_EVALUATIONS: BarChart[EvaluationOutcome] = BarChart(
    label=lambda outcome: ", ".join([outcome.model, outcome.condition, *list(outcome.means)[:1]]),
    length=lambda outcome: next(iter(outcome.means.values()), 0.0),
    quantity="mean",
)


def open_store(url: str | None = None) -> Store:
    """Open a store; a missing or empty one is created.

    Args:
        url: such as ``sqlite:///results.db`` or ``postgresql://user@host/name``; else SUFFRAGE_DATABASE_URL, else
            DATABASE_URL, else ``sqlite:///suffrage.db``.

    Returns:
        The store, for use in a ``with`` statement or closed explicitly.

    Raises:
        DatabaseError: it cannot be reached, or has another version; the message names the command to run.

    Examples:
        >>> import tracker
        >>> with tracker.open("sqlite:///new.db") as store:
        ...     store.benchmarks()
        []
    """
    return Store(connect(url))


@loads_sealed_rows
class Store(StoreAnalyses):
    """A store of benchmarks, results and findings.

    Options are keyword parameters with the names of the options of the commands; those that choose scores are the
    fields of `tracker.queries.selection.Selection`. Errors that a user can fix are `tracker.SuffrageError`. Results
    have ``to_pandas()``, ``to_polars()`` and ``plot()``, and are shown with their verdict in notebooks.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        from tracker.connections.store_url import format_url

        return f"Store({format_url(self.engine.url)!r})"

    def close(self) -> None:
        """Close the connections; they open again at the next use."""
        self.engine.dispose()

    # --- writing ---

    @named_options(IngestOptions)
    def ingest(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | DataFrame,
        *,
        name: str = "dataframe",
        format: str | None = None,
        on_conflict: OnConflict = "rerun",
        partial: bool = False,
        strict: bool = False,
        new_metric: bool = False,
        dry_run: bool = False,
        limits: str | None = None,
        **options: Unpack[IngestOptions],
    ) -> Rows[IngestResult]:
        """Ingest files, the results in folders, or a data frame; each completely or not at all, and only once.

        Args:
            paths: one or several paths, or a data frame of pandas, Polars or Arrow with the columns of a file.
            name: name of the data frame, as the source of its runs.
            format: name of the format; None to detect it.
            on_conflict: how to treat scores that contradict stored ones: ``rerun``, ``skip``, ``update``, ``error``.
            partial: store the sound part of a damaged file; its runs are marked as partial.
            strict: reject a file whose reported scores differ from those computed from its rows.
            new_metric: store scores again that the benchmark has under another metric.
            dry_run: report the changes without making them.
            limits: limits on the files, such as ``columns=200000,value=200MB``; None for those of the settings.
            options: facts that the files do not contain: ``benchmark``, ``metric``, ``model``, ``condition``, and all
                other fields of `tracker.ingest.measurement.ReadOptions`.

        Returns:
            The result of each file, in the order in which they were read.

        Raises:
            SuffrageError: a file is damaged or invalid, or contradicts the store. Files before it are stored.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///results.db")
            >>> Path("scores.csv").write_text("prompt_id,model a,model b\\np1,1,0\\np2,1,1\\np3,0,0\\n") > 0
            True
            >>> print(store.ingest("scores.csv", benchmark="quiz", metric="accuracy")[0].summary())
            scores.csv (wide-table): 3 new prompts, 2 new models, 2 new runs, 6 scores
        """
        from tracker.api.data_frames import is_data_frame, written_frame
        from tracker.ingest.measurement import ReadOptions
        from tracker.ingest.parsing.detection import find_files
        from tracker.ingest.pipeline import ingest_file

        handling: dict[str, Any] = {"on_conflict": on_conflict, "partial": partial, "strict": strict}
        handling |= {"new_metric": new_metric, "dry_run": dry_run, "format": format}
        reading = ReadOptions(**{key: as_tuple(value) for key, value in options.items()})
        if is_data_frame(paths):
            with limit_files(limits), written_frame(paths, name) as path:
                result = ingest_file(self.engine, path, reading, **handling)
            return Rows([replace(result, path=Path(name))], "file", _FILES)
        path_list: Any = [paths] if isinstance(paths, str | os.PathLike) else list(cast(Iterable[Any], paths))
        with limit_files(limits):
            files = find_files([Path(item) for item in path_list], reading, format=format)
            results = [load_rows_for(ingest_file)(self.engine, path, reading, **handling) for path in files]
        return Rows(results, "file", _FILES)

    @named_options(PromptImportOptions)
    def prompts_from(
        self,
        benchmark: str,
        source: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        on_conflict: Literal["error", "skip", "update"] = "error",
        progress: Callable[[int, int], None] | None = None,
        limits: str | None = None,
        **options: Unpack[PromptImportOptions],
    ) -> PromptIngestResult:
        """Import a benchmark's prompts from published data, for evaluations.

        Args:
            benchmark: its name.
            source: a file, a folder, or a name on the hub.
            dry_run: report the changes without making them.
            on_conflict: what to do if reference answers contradict the stored ones: ``skip``, ``update``, ``error``.
            progress: called with the amount done and the total.
            limits: limits on the files, such as ``columns=200000,value=200MB``; None for those of the settings.
            options: fields of `tracker.ingest.datasets.ingest_prompts.PromptOptions`, such as ``preset``, ``fields``,
                ``splits``.

        Raises:
            SuffrageError: the data are missing, invalid, or contradict the store; nothing is stored.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///prompts.db")
            >>> row = '{"q": "Is %s?", "o": ["yes", "no"], "a": "B"}'
            >>> Path("rows.jsonl").write_text(f"{row % 'it'}\\n{row % 'he'}") > 0
            True
            >>> fields = {"text": "q", "choices": "o", "answer": "a"}
            >>> print(store.prompts_from("quiz", "rows.jsonl", fields=fields, answer_is="letter").summary())
            quiz: 2 prompts (no split 2); 2 new prompts
        """
        from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts

        one_or_several = ("splits", "configs")
        chosen: dict[str, Any] = {
            key: [value] if key in one_or_several and isinstance(value, str) else value
            for key, value in options.items()
        }
        with limit_files(limits):
            return ingest_prompts(
                self.engine,
                benchmark,
                os.fspath(source),
                PromptOptions(**chosen),
                on_conflict=on_conflict,
                dry_run=dry_run,
                progress=progress,
            )

    @named_options(EvaluationOptions)
    def evaluate(
        self,
        benchmark: str,
        model: str | os.PathLike[str],
        *,
        progress: Progress | None = None,
        **options: Unpack[EvaluationOptions],
    ) -> Rows[EvaluationOutcome]:
        """Evaluate a model on a benchmark's prompts, and store its scores as they arrive; a second call resumes.

        Args:
            benchmark: a benchmark with stored prompts.
            model: a folder, a name on the model hub, or with ``api_base`` its name on the server.
            progress: called with the number of finished prompts, of all prompts, and of tokens.
            options: fields of `tracker.evaluating.plan.Plan` and its parts, such as ``conditions=("full",
                "answer_only")``, ``template="smart"``, ``few_shot=5``, ``few_shot_split="dev"``, ``batch_size=8``,
                ``api_base=...``.

        Returns:
            One run per condition.

        Raises:
            SuffrageError: the plan is not valid, or the evaluation failed; responses received before are stored.
        """
        from tracker.evaluating.evaluation import evaluate
        from tracker.evaluating.plan import Plan

        plan = Plan.from_options(benchmark, os.fspath(model), **options)
        return Rows([*evaluate(self.engine, plan, progress=progress)], "run", _EVALUATIONS)
