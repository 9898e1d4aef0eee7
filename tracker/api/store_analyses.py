"""The store in Python: run analyses, compare models, reproduce findings, write reports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tracker.api.options import (
    ANALYSIS_DEFAULTS,
    COMPARISON_DEFAULTS,
    SELECTION_DEFAULTS,
    DesignOptions,
    Names,
    WeightedOptions,
    as_tuple,
    named_options,
)
from tracker.api.result import AnalysisResult, make_result
from tracker.api.sealed_rows import loads_sealed_rows
from tracker.api.store_queries import StoreQueries, make_selection
from tracker.errors import SelectionError
from tracker.notebook.rows import BarChart, Rows

if TYPE_CHECKING:
    from tracker.queries.selection import Policy, Selection, TaskEffects
    from tracker.recording.reproduction.reproduction import Reproduction


@loads_sealed_rows
class StoreAnalyses(StoreQueries):
    """The analyses of a store."""

    def analyze(
        self,
        analysis: str,
        benchmark: str | None = None,
        *,
        workers: int | str = 1,
        device: str = "cpu",
        limit_hours: float | None = None,
        publish_to: str | None = None,
        metric: str | None = None,
        condition: str = "full",
        variant: str = "",
        models: Names = None,
        tasks: Names = None,
        split: Names = None,
        runs: int | Iterable[int] | None = None,
        as_of: datetime | None = None,
        filter: int | None = None,
        missing: Policy | None = None,
        min_coverage: float | None = None,
        task_effects: TaskEffects | None = None,
        cluster: str | None = None,
        weights: str | int | None = None,
        encoder: str | None = None,
        against: str | None = None,
        **parameters: Any,
    ) -> AnalysisResult:
        """Run an analysis of a benchmark; the result is recorded, and published only to ``publish_to``.

        Args:
            analysis: its name, such as ``prompt-correlation``.
            benchmark: its name; None for analyses of findings of several benchmarks.
            workers: number of parallel workers, or address of a Dask scheduler; without effect on the result.
            device: such as ``cuda``, for analyses that have the choice; without effect on the result.
            limit_hours: ends the analysis if one of its loops is expected to take longer; None for no limit.
            publish_to: MLflow's tracking URI, such as ``sqlite:///mlflow.db``.
            metric, condition, variant, models, tasks, split, runs, as_of, filter: the selection.
            missing, min_coverage, task_effects, cluster, weights, encoder, against: for analyses that use them.
            parameters: parameters of the analysis, such as ``seed``.

        Raises:
            SuffrageError: the analysis, data or a parameter does not exist, or the data do not suit the analysis.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> result = store.analyze("rank-intervals", "quiz", seed=0, n_resamples=100)
            >>> result.metrics["n_models"], result.undefined["n_clusters"]
            (2.0, 'prompts are not in clusters')
        """
        selected = {name: value for name, value in locals().items() if name in ANALYSIS_DEFAULTS}
        from tracker.recording.declaration import load_declaration
        from tracker.recording.pipeline import run_analysis

        options = {name: as_tuple(value) for name, value in parameters.items()}
        recorded = run_analysis(
            self.engine, load_declaration(analysis), _select_for_analysis(benchmark, selected), options,
            workers=workers, device=device, publish_to=publish_to, limit_hours=limit_hours,
        )  # fmt: skip
        return AnalysisResult.of(recorded)

    @named_options(DesignOptions, COMPARISON_DEFAULTS)
    def compare(
        self,
        benchmark: str,
        model_a: str,
        model_b: str,
        *,
        n_resamples: int = 9999,
        seed: int = 0,
        margin: float | None = None,
        record: bool = False,
        publish_to: str | None = None,
        **options: Unpack[DesignOptions],
    ) -> AnalysisResult:
        """Compare two models on their common prompts; positive differences mean that the first is better.

        Args:
            benchmark: name of the benchmark.
            model_a, model_b: names of the models, or ``run:7`` for a single run.
            n_resamples: number of bootstrap resamples, and of sign flips if not all are enumerated.
            seed: seed of the resamples.
            margin: largest difference that does not matter, for a test of equivalence; None for no test.
            record: whether to record the comparison as a finding.
            publish_to: MLflow's tracking URI, for a recorded comparison.
            options: the selection.

        Raises:
            SuffrageError: a benchmark, metric, model or run does not exist, or the scores do not suit a comparison.
            SelectionError: ``publish_to`` is set without ``record``, or ``models`` or ``runs`` is set.
        """
        from tracker.queries.comparing.named_pair import select_named_pair
        from tracker.recording.pipeline import compute_report, run_analysis

        if publish_to is not None and not record:
            raise SelectionError("publish_to needs record=True: only recorded findings are published.")
        if options.get("models") or options.get("runs"):
            raise SelectionError("compare takes two models, or run:7 for a run: leave out models and runs.")
        with self.session() as session:
            selection, names = select_named_pair(session, make_selection(benchmark, options), (model_a, model_b))
        parameters = {"model_a": names[0], "model_b": names[1], "n_resamples": n_resamples, "seed": seed}
        parameters["margin"] = margin
        if record:
            return AnalysisResult.of(
                run_analysis(self.engine, "comparison", selection, parameters, publish_to=publish_to)
            )
        return make_result("comparison", compute_report(self.engine, "comparison", selection, parameters))

    def reproduce(self, *finding_ids: int, benchmark: str | None = None, workers: int = 1) -> Rows[Reproduction]:
        """Run findings again on the data of their digests, and compare what they return with what is stored.

        Nothing is recorded.

        Args:
            finding_ids: keys of findings; none means every complete finding.
            benchmark: only the findings of this benchmark, if no keys are passed.
            workers: number of parallel workers; -1 means one per core.

        Raises:
            NotFoundError: a finding or the benchmark does not exist.

        Examples:
            >>> import tracker
            >>> store = tracker.open("sqlite:///quiz.db")
            >>> finding = store.analyze("rank-intervals", "quiz", seed=0, n_resamples=100)
            >>> [reproduction.result for reproduction in store.reproduce(finding.id)]
            ['equal']
        """
        from tracker.recording.reproduction.reproduction import list_reproducible, reproduce

        records = list_reproducible(self.engine, finding_ids, benchmark=benchmark)
        bars: BarChart[Reproduction] = BarChart(label=lambda row: row.result, length=lambda row: 1, quantity="findings")
        return Rows([*reproduce(self.engine, records, workers=workers)], "finding", bars)

    @named_options(WeightedOptions, SELECTION_DEFAULTS)
    def report(
        self,
        benchmark: str,
        path: str | os.PathLike[str],
        *,
        with_prompts: bool = True,
        replace: bool = False,
        **options: Unpack[WeightedOptions],
    ) -> Path:
        """Write the report of a benchmark as one self-contained HTML file.

        Args:
            benchmark: name of the benchmark.
            path: output file.
            with_prompts: whether to show texts of prompts.
            replace: whether an existing file may be replaced.
            options: the selection.

        Raises:
            OutputError: the file already exists, or cannot be written.
            NotFoundError, SelectionError: as for `leaderboard`.
        """
        from tracker.api.reports import build_report
        from tracker.exporting.output_paths import check_output_path, write_file

        check_output_path(Path(path), force=replace)
        benchmark_report = build_report(self.engine, make_selection(benchmark, options), with_prompts=with_prompts)
        write_file(Path(path), benchmark_report.page, force=replace)
        return Path(path)


def _select_for_analysis(benchmark: str | None, options: Mapping[str, Any]) -> Selection | None:
    """Return the selection of an analysis from the options that differ from their defaults.

    Raises:
        SelectionError: an option selects data, and there is no benchmark.
    """
    choices = {name: value for name, value in options.items() if value != ANALYSIS_DEFAULTS[name]}
    if benchmark is None and choices:
        raise SelectionError(f"{next(iter(choices))} selects data of a benchmark. Name the benchmark.")
    return None if benchmark is None else make_selection(benchmark, choices)
