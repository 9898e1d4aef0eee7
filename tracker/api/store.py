"""The store from Python: open it, take results in, get arrays and findings out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from tracker.api.result import AnalysisResult
from tracker.api.store_queries import CHOICES, StoreQueries, make_selection
from tracker.database import connect
from tracker.errors import SelectionError

if TYPE_CHECKING:
    from tracker.evaluating.evaluation import Progress
    from tracker.evaluating.evaluation_result import EvaluationOutcome
    from tracker.ingest.datasets.ingest_prompts import PromptIngestResult
    from tracker.ingest.pipeline import IngestResult
    from tracker.ingest.write.stored_runs import OnConflict
    from tracker.queries.selection import Policy

__all__ = ["AnalysisResult", "Store", "open_store"]


def open_store(url: str | None = None) -> Store:
    """Open a store; an empty one is made on the spot.

    Args:
        url: such as ``sqlite:///results.db`` or ``postgresql://user@host/name``; else SUFFRAGE_DATABASE_URL, else
            DATABASE_URL, else ``sqlite:///suffrage.db``.

    Returns:
        the store, to be used in a ``with`` statement or closed by hand.

    Raises:
        DatabaseError: it cannot be reached, or is of another version; the message says what to run.

    Examples:
        >>> import tracker
        >>> with tracker.open("sqlite:///new.db") as store:
        ...     store.benchmarks()
        []
    """
    return Store(connect(url))


class Store(StoreQueries):
    """Everything known of benchmarks, and what was concluded.

    Where a method takes ``**choices``, they say which data: ``metric``, ``models``, ``tasks``, ``runs``, ``condition``,
    ``variant``, ``as_of``, ``filter``, ``weights``, ``encoder``, ``cluster``, ``against``, as the options of the
    command line do (`tracker.queries.selection.Selection`). What a user can mend is a `tracker.SuffrageError`.
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
        from tracker.database import format_url

        return f"Store({format_url(self.engine.url)!r})"

    def close(self) -> None:
        """Let go of the database; it opens again when it is next used."""
        self.engine.dispose()

    # --- in ---

    def ingest(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        format: str | None = None,
        on_conflict: OnConflict = "rerun",
        partial: bool = False,
        dry_run: bool = False,
        **options: Any,
    ) -> list[IngestResult]:
        """Take in files, or the results in folders; each file whole or not at all, and the same file only once.

        Args:
            paths: one, or several.
            format: name of the format; None to recognise it.
            on_conflict: what becomes of scores that contradict the stored ones: ``rerun``, ``skip``, ``update``,
                ``error``.
            partial: of a damaged file, store what is sound; its runs are marked as partial.
            dry_run: say what would change, and change nothing.
            options: what the files do not say: ``benchmark``, ``metric``, ``model``, ``condition``, and all other
                fields of `tracker.ingest.measurement.ReadOptions`.

        Returns:
            what became of each file, in the order in which they were read.

        Raises:
            SuffrageError: a file is not sound, or contradicts the store. Files before it are stored.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///results.db")
            >>> Path("scores.csv").write_text("prompt_id,model a,model b\\np1,1,0\\np2,1,1\\np3,0,0\\n") > 0
            True
            >>> print(store.ingest("scores.csv", benchmark="quiz", metric="accuracy")[0].summary())
            scores.csv (wide-table): 3 new prompts, 2 new models, 2 new runs, 6 scores
        """
        from tracker.ingest.measurement import ReadOptions
        from tracker.ingest.parsing.detection import find_files
        from tracker.ingest.pipeline import ingest_file

        known = [field.name for field in fields(ReadOptions)]
        if unknown := sorted(set(options) - set(known)):
            raise SelectionError(f"ingest takes no {unknown[0]!r}. It takes: {', '.join(known)}.")
        read_options = ReadOptions(**options)
        path_list = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        return [
            ingest_file(
                self.engine,
                path,
                read_options,
                format=format,
                on_conflict=on_conflict,
                partial=partial,
                dry_run=dry_run,
            )
            for path in find_files([Path(item) for item in path_list], read_options, format=format)
        ]

    def prompts_from(
        self, benchmark: str, source: str | os.PathLike[str], *, dry_run: bool = False, **options: Any
    ) -> PromptIngestResult:
        """Take in a benchmark's prompts from published data, so that models can be asked.

        Args:
            benchmark: what it is called.
            source: a file, a folder, or a name on the hub.
            dry_run: say what would change, and change nothing.
            options: ``on_conflict``, ``progress`` and the fields of
                `tracker.ingest.datasets.ingest_prompts.PromptOptions`, such as ``preset``, ``fields``, ``splits``.

        Raises:
            SuffrageError: the data are not there, not sound, or contradict the store; then nothing is stored.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///asked.db")
            >>> row = '{"q": "Is %s?", "o": ["yes", "no"], "a": "B"}'
            >>> Path("rows.jsonl").write_text(f"{row % 'it'}\\n{row % 'he'}") > 0
            True
            >>> fields = {"text": "q", "choices": "o", "answer": "a"}
            >>> print(store.prompts_from("quiz", "rows.jsonl", fields=fields, answer_is="letter").summary())
            quiz: 2 prompts (no split 2); 2 new prompts
        """
        from tracker.ingest.datasets.ingest_prompts import PromptOptions, ingest_prompts

        how = ("on_conflict", "progress")
        known = [*(field.name for field in fields(PromptOptions)), *how]
        if unknown := sorted(set(options) - set(known)):
            raise SelectionError(f"prompts_from takes no {unknown[0]!r}. It takes: {', '.join(known)}.")
        one_or_several = ("splits", "configs")
        chosen: dict[str, Any] = {
            name: [value] if name in one_or_several and isinstance(value, str) else value
            for name, value in options.items()
            if name not in how
        }
        handling = {name: value for name, value in options.items() if name in how}
        return ingest_prompts(
            self.engine, benchmark, os.fspath(source), PromptOptions(**chosen), dry_run=dry_run, **handling
        )

    def evaluate(
        self, benchmark: str, model: str | os.PathLike[str], *, progress: Progress | None = None, **options: Any
    ) -> tuple[EvaluationOutcome, ...]:
        """Ask a model a benchmark's prompts, and store what it answers as it comes; called again it goes on.

        Args:
            benchmark: one whose prompts are stored.
            model: a folder, a name on the model hub, or with ``api_base`` what the server calls it.
            progress: told how many prompts are done, of how many, and the tokens that took.
            options: fields of `tracker.evaluating.plan.Plan` and its parts, such as
                ``conditions=("full", "answer_only")``, ``template="smart"``,
                ``few_shot=5``, ``few_shot_split="dev"``, ``batch_size=8``, ``api_base=...``.

        Returns:
            a run for each condition.

        Raises:
            SuffrageError: the plan cannot be carried out; what was answered before is stored.
        """
        from tracker.evaluating.evaluation import evaluate
        from tracker.evaluating.plan import Plan

        return evaluate(self.engine, Plan.from_options(benchmark, os.fspath(model), **options), progress=progress)

    def analyze(
        self,
        analysis: str,
        benchmark: str | None = None,
        *,
        workers: int = 1,
        publish_to: str | None = None,
        **options: Any,
    ) -> AnalysisResult:
        """Run an analysis of a benchmark; the result is recorded, and published only where ``publish_to`` says so.

        Args:
            analysis: its name, such as ``prompt-correlation``.
            benchmark: which; None for analyses of findings of several.
            workers: how many may compute at once; -1 means one for each core. The answer does not depend on it.
            publish_to: MLflow's tracking URI, such as ``sqlite:///mlflow.db``.
            options: parameters of the analysis, such as ``seed``, and choices of data, such as ``metric``.

        Raises:
            SuffrageError: there is no such analysis, data or parameter, or the data do not suit the analysis.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> answer = store.analyze("rank-intervals", "quiz", seed=0, n_resamples=100)
            >>> answer.metrics["n_models"], answer.undefined["n_clusters"]
            (2.0, 'no prompt names a cluster')
        """
        from tracker.recording.declaration import load_declaration
        from tracker.recording.pipeline import run_analysis

        declaration = load_declaration(analysis)
        own_parameters = {parameter.name for parameter in declaration.parameters}
        choices = {name: value for name, value in options.items() if name in CHOICES - own_parameters}
        if benchmark is None and choices:
            raise SelectionError(f"{next(iter(choices))} is a choice of a benchmark's data. Name the benchmark.")
        recorded = run_analysis(
            self.engine,
            declaration,
            None if benchmark is None else make_selection(benchmark, choices),
            {name: _as_tuple(value) for name, value in options.items() if name not in choices},
            workers=workers,
            publish_to=publish_to,
        )
        return AnalysisResult.of(recorded)

    def compare(self, benchmark: str, model_a: str, model_b: str, **options: Any) -> AnalysisResult:
        """Compare two models on the prompts they share; positive differences mean that the first is better.

        Args:
            benchmark: on which.
            model_a, model_b: their names.
            options: as for `analyze`.

        Raises:
            SuffrageError: as for `analyze`.
        """
        return self.analyze("comparison", benchmark, model_a=model_a, model_b=model_b, **options)

    def report(
        self,
        benchmark: str,
        path: str | os.PathLike[str],
        *,
        missing: Policy = "unranked",
        with_prompts: bool = True,
        replace: bool = False,
        **choices: Any,
    ) -> Path:
        """Write the report of a benchmark: one HTML file that needs nothing else.

        Args:
            benchmark: on which.
            path: where to.
            missing: as for `leaderboard`.
            with_prompts: whether texts of prompts may be shown.
            replace: whether a file that is there may be replaced.
            choices: which data.

        Raises:
            OutputError: the file is there already, or cannot be written.
            NotFoundError, SelectionError: as for `leaderboard`.
        """
        from tracker.api.reports import build_report
        from tracker.exporting.table_files import check_output_path, write_file

        check_output_path(Path(path), force=replace)
        benchmark_report = build_report(
            self.engine, make_selection(benchmark, choices), missing=missing, with_prompts=with_prompts
        )
        write_file(Path(path), benchmark_report.page, force=replace)
        return Path(path)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
