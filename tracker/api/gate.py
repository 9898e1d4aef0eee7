"""Check new results against a baseline, for continuous integration: import both, compare, find regressions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import connect, transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.ingest.files.missing_files import explain_missing
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import find_files
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.store_changes import StoredRun
from tracker.private_files.temporary import temporary_folder
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.resolution import find_benchmark, find_metric
from tracker.queries.run_choice import choose_runs, measure_coverage
from tracker.queries.selection import Policy, Selection
from tracker.queries.sql import tables
from tracker.recording.comparing.regressions import REGRESSION, BaselineComparison, RunPair, compare_with_baselines

RunsByKey = Mapping[tuple[str, str, str], Sequence[StoredRun]]
"""Runs by benchmark, condition and variant."""


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What is compared, and what counts as a regression.

    Attributes:
        results: file or folder with the new results.
        baseline_results: file or folder with earlier results; None if the baseline is a model of the new ones.
        baseline: name of the baseline model; '' compares each model with its earlier results.
        models: names of the models to check; none means all.
        benchmark: name of the benchmark; None for that in the files.
        metric: name of the metric; None for the default of the benchmark.
        margin: largest loss that does not matter, in the unit of the scores.
        alpha: probability of at least one false regression.
        min_coverage: share of the prompts of either that both must have scores for.
        missing: policy for prompts that only one of the two has a score for.
    """

    results: Path
    baseline_results: Path | None = None
    baseline: str = ""
    models: tuple[str, ...] = ()
    benchmark: str | None = None
    metric: str | None = None
    margin: float = 0.0
    alpha: float = 0.05
    min_coverage: float = 0.95
    missing: Policy = "common"


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The comparisons of new results with their baselines.

    Attributes:
        options: what was compared.
        comparisons: one per model and benchmark.
        leads: who is first among the new results, a sentence per benchmark with several models.
    """

    options: GateOptions
    comparisons: tuple[BaselineComparison, ...]
    leads: Mapping[str, str]

    @property
    def regressions(self) -> tuple[BaselineComparison, ...]:
        """The comparisons that are regressions."""
        return tuple(item for item in self.comparisons if item.status == REGRESSION)


def check_results(options: GateOptions) -> GateResult:
    """Import new results and their baseline into a temporary store, and compare them.

    Args:
        options: paths, baseline and thresholds.

    Raises:
        SuffrageError: a file cannot be imported, a baseline does not exist, or too few prompts are shared.
    """
    for path in (options.results, options.baseline_results):
        if path is not None and not path.exists():
            raise explain_missing(path)
    with _temporary_store() as engine:
        earlier = None
        if options.baseline_results is not None:
            earlier = _import(engine, options.baseline_results, options)
            _separate(engine)
        new = _import(engine, options.results, options)
        pairs, leads = [], {}
        for key, runs in new.items():
            with transaction(engine, write=False) as session:
                pool = runs if earlier is None else earlier.get(key, ())
                chosen = _pair_runs(session, options, key, runs, pool)
                pairs += chosen
                if chosen and len(_models(runs)) > 1:
                    leads[chosen[0].benchmark] = _describe_lead(session, chosen, with_baselines=earlier is None)
        if options.models:
            _check_models(options, new)
        if not pairs:
            raise SelectionError(
                f"{options.results} has no model to check: it holds {options.baseline} alone, which is the baseline.\n"
                "Add results of another model, or name earlier results with --baseline-results."
            )
        comparisons = compare_with_baselines(
            engine, pairs, alpha=options.alpha, margin=options.margin, missing=options.missing
        )
    for item in comparisons:
        _check_coverage(item, options)
    return GateResult(options=options, comparisons=comparisons, leads=leads)


@contextmanager
def _temporary_store() -> Iterator[sa.Engine]:
    with temporary_folder() as folder:
        engine = connect(f"sqlite:///{folder}/store.db")
        try:
            yield engine
        finally:
            engine.dispose()


def _import(engine: sa.Engine, path: Path, options: GateOptions) -> dict[tuple[str, str, str], list[StoredRun]]:
    """Import a file or folder and return its runs by benchmark, condition and variant."""
    read = ReadOptions(benchmark=options.benchmark, metric=options.metric)
    runs: dict[tuple[str, str, str], list[StoredRun]] = defaultdict(list)
    for file in find_files([path], read):
        changes = ingest_file(engine, file, read).changes
        for run in (*changes.runs_new, *changes.runs_extended, *changes.runs_unchanged):
            runs[run.benchmark, run.condition, run.variant].append(run)
    if not runs:
        raise SelectionError(f"{path} has no results of models.\nList what is read: suffrage ingest {path} --dry-run")
    return runs


def _separate(engine: sa.Engine) -> None:
    """Relabel the stored files and runs, so that later files become separate runs even if their scores are the same."""
    with transaction(engine) as session:
        session.execute(sa.update(tables.run).values(label=sa.literal("baseline ") + tables.run.c.label))
        session.execute(sa.update(tables.source).values(identity=sa.literal("baseline ") + tables.source.c.identity))


def _pair_runs(
    session: Session,
    options: GateOptions,
    key: tuple[str, str, str],
    runs: Sequence[StoredRun],
    pool: Sequence[StoredRun],
) -> list[RunPair]:
    """Return each checked model's run with its baseline; of several runs, the most complete and latest.

    Raises:
        NotFoundError: a model has no baseline.
    """
    benchmark = find_benchmark(session, key[0])
    ids = tuple(dict.fromkeys(run.id for run in (*runs, *pool)))
    metric, _ = find_metric(
        session, benchmark, Selection(benchmark=key[0], metric=options.metric, runs=ids), ("prompt",)
    )
    coverage = measure_coverage(session, metric.id, ids)
    chosen, baselines = (
        choose_runs({name: [run.id for run in group if run.model == name] for name in _models(group)}, coverage)
        for group in (runs, pool)
    )
    pairs = []
    for model, run_id in chosen.items():
        is_baseline = model == options.baseline and options.baseline_results is None
        if is_baseline or (options.models and model not in options.models):
            continue
        name = options.baseline or model
        if name not in baselines:
            raise _explain_no_baseline(options, model, key[0], list(baselines))
        keys = {"run_id": run_id, "baseline_id": baselines[name]}
        pairs.append(RunPair(benchmark=benchmark.label, metric=metric.name, model=model, baseline=name, **keys))
    return pairs


def _models(runs: Sequence[StoredRun]) -> list[str]:
    return sorted({run.model for run in runs})


def _explain_no_baseline(options: GateOptions, model: str, benchmark: str, known: Sequence[str]) -> NotFoundError:
    path = options.baseline_results or options.results
    kind = f"baseline in {path} with results of {benchmark}"
    if options.baseline:
        return NotFoundError(kind, options.baseline, known, hint="Correct --baseline.")
    return NotFoundError(
        kind, model, known, hint="Name the baseline with --baseline, or the models to check with --model."
    )


def _check_models(options: GateOptions, runs: RunsByKey) -> None:
    known = sorted({run.model for group in runs.values() for run in group})
    for name in options.models:
        if name not in known:
            raise NotFoundError(f"model in {options.results}", name, known)


def _check_coverage(comparison: BaselineComparison, options: GateOptions) -> None:
    """Reject a comparison on a part of the prompts, which could hide a regression.

    Raises:
        SelectionError: fewer prompts are shared than required.
    """
    if comparison.coverage < options.min_coverage:
        pair, n = comparison.pair, comparison.n_prompts
        raise SelectionError(
            f"{pair.model} and its baseline {pair.baseline} share {n:,} of {n + comparison.n_unshared:,} prompts of "
            f"{pair.benchmark}, fewer than the required {options.min_coverage:.0%}.\n"
            "Evaluate both on the same prompts, or lower --min-coverage."
        )


def _describe_lead(session: Session, pairs: Sequence[RunPair], *, with_baselines: bool) -> str:
    """Return who is first among the checked runs, and their baselines if these are new results too."""
    runs = [pair.run_id for pair in pairs]
    runs += [pair.baseline_id for pair in pairs] if with_baselines else []
    chosen = tuple(dict.fromkeys(runs))
    selection = Selection(benchmark=pairs[0].benchmark, metric=pairs[0].metric, runs=chosen, min_coverage=0.0)
    return load_leaderboard(session, selection, n_resamples=0).describe_lead()
