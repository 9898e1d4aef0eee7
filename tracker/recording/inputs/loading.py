"""Load the inputs of an analysis for a selection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.database import transaction
from tracker.errors import PluginError
from tracker.plugins.parameters import CPU
from tracker.queries.catalogue.unverified_runs import list_unverified_warnings
from tracker.queries.embeddings import Embeddings, StoredEmbeddings
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.notices import get_default_metric, list_notices
from tracker.queries.performance import share_matrices
from tracker.queries.ranking.completions import Completion, load_completions
from tracker.queries.ranking.leaders import find_leaders
from tracker.queries.resolution import BenchmarkKey, find_benchmark
from tracker.queries.selection import AnalysisInput, Selection
from tracker.queries.sql import tables
from tracker.queries.weights import PromptWeights
from tracker.recording.declaration import DEVICE, Declaration, load_declaration
from tracker.recording.inputs.selection_choices import check_selection, choose_default_policy, choose_effects
from tracker.recording.inputs.time_limit import limit_time
from tracker.recording.inputs.workers import Progress, Workers, use_workers
from tracker.recording.record import Provenance
from tracker.recording.registry import discover_tests
from tracker.recording.verdict.leaders import find_report_leaders, name_leaders

if TYPE_CHECKING:
    from tracker.recording.finding import Report


@dataclass(frozen=True, kw_only=True)
class AnalysisInputs:
    """The loaded inputs of an analysis.

    Attributes:
        values: its inputs.
        completions: the same with a score in place of each missing one, see `load_completions`.
        warnings: about the inputs.
        missing_warnings: what the policy for missing scores did; not stated of a report on some of the models.
        leaders: those of the leaderboard.
    """

    declaration: Declaration
    values: Sequence[Any]
    completions: Sequence[Completion] = ()
    parameters: Mapping[str, Any]
    provenance: Provenance
    warnings: Sequence[str]
    missing_warnings: Sequence[str] = ()
    leaders: Sequence[str] = ()

    def compute(
        self, workers: Workers, progress: Progress | None = None, device: str = CPU, limit_hours: float | None = None
    ) -> Report:
        """Run the analysis.

        Args:
            workers: what computes the draws.
            progress: see `use_workers`.
            device: the device to compute on, for an analysis that has the choice.
            limit_hours: the analysis ends early if it is expected to take longer; None for no limit.
        """
        is_cluster = isinstance(workers, str)
        with use_workers(workers, progress), limit_time(None if is_cluster else limit_hours):
            options = {DEVICE: device} if self.declaration.has_device else {}
            report = self._compute_one(self.values, options)
            completed = {
                item.label: self._compute_one(list(item.inputs.values()), options) for item in self.completions
            }
        if self.provenance.selection is not None and completed:
            from tracker.recording.inputs.combined_report import combine_reports

            report = combine_reports(
                report,
                completed,
                policy=self.provenance.selection.missing or "bounds",
                tests=discover_tests().get(self.declaration.name, ()),
            )
        report = add_warnings((*self.warnings, *(() if report.compared else self.missing_warnings)), report)
        if self.provenance.selection is None or not self.declaration.score_units:
            return report
        if getattr(report.finding, "is_first_open", False):
            return report
        return name_leaders(report, self.values, self.provenance.selection, self.leaders)

    def _compute_one(self, values: Sequence[Any], options: Mapping[str, Any]) -> Report:
        """Run the analysis of some values of its inputs."""
        from tracker.recording.finding import Report

        report = self.declaration.function(*values, **self.parameters, **options)
        if not isinstance(report, Report):
            raise PluginError(f"The analysis {self.declaration.name} returned a {type(report).__name__}, not a Report.")
        return replace(report, leaders=find_report_leaders(report, values)) if self.completions else report


def load_inputs(
    engine: sa.Engine,
    analysis: str | Declaration,
    selection: Selection | None,
    explicit_parameters: Mapping[str, Any] | None,
    leaders: Sequence[str] | None = None,
    loaded: Mapping[str, AnalysisInput] | None = None,
) -> AnalysisInputs:
    """Load the inputs of an analysis, and what they were loaded from.

    Args:
        engine: the store.
        analysis: its name, or its declaration.
        selection: the selection; None for an analysis of findings of several benchmarks.
        explicit_parameters: those that differ from the defaults.
        leaders: what `find_leaders` returns for the selection; None if the caller does not know it.
        loaded: inputs of this selection that the caller has loaded, by name.

    Raises:
        SuffrageError: as for `run_analysis`.
    """
    declaration = analysis if isinstance(analysis, Declaration) else load_declaration(analysis)
    parameters = declaration.complete(explicit_parameters or {})
    check_selection(declaration, selection)
    run = tables.run.c
    with transaction(engine, write=False) as session:
        share_matrices(session)
        benchmark = find_benchmark(session, selection.benchmark) if selection else None
        chosen, selection = selection, choose_default_policy(session, declaration, selection)
        selection = choose_effects(session, declaration, selection)
        is_completed = selection is not None and selection.missing not in (None, *declaration.policies)
        measured = replace(selection, missing=declaration.missing) if selection and is_completed else selection
        inputs = _load_each(session, declaration, measured, loaded or {})
        used = {key for _, key in _list_runs(inputs)}
        warnings = (
            *list_notices(session),
            *_list_filter_warnings(session, declaration, selection, benchmark),
            *list_unverified_warnings(session, used),
        )
        if selection and benchmark and selection.metric is None:
            selection = replace(selection, metric=get_default_metric(session, benchmark.id))
        stored = sa.select(run.id, run.checksum, run.status).where(run.id.in_(used))
        if leaders is None and selection and chosen and declaration.score_units:
            leaders = _find_leaders(session, declaration, selection, chosen)
        load = partial(_load_each, session, declaration, loaded={})
        completions = load_completions(load, selection, inputs) if selection and is_completed else ()
        as_read = {key: (checksum, status) for key, checksum, status in session.execute(stored)}
    provenance = _describe_provenance(
        declaration, selection, parameters, inputs, benchmark.id if benchmark else None, as_read, completions
    )
    return AnalysisInputs(
        declaration=declaration,
        values=list(inputs.values()),
        completions=completions,
        parameters=parameters,
        provenance=provenance,
        warnings=warnings,
        missing_warnings=_list_missing_warnings(inputs),
        leaders=leaders or (),
    )


def _list_missing_warnings(inputs: Mapping[str, AnalysisInput | None]) -> tuple[str, ...]:
    """Return what the policy for missing scores did to the inputs, each once."""
    return tuple(dict.fromkeys(text for item in inputs.values() for text in getattr(item, "missing_warnings", ())))


def _list_filter_warnings(
    session: Session,
    declaration: Declaration,
    selection: Selection | None,
    benchmark: BenchmarkKey | None,
) -> tuple[str, ...]:
    """Return the warnings about a filter of the prompts."""
    if selection and benchmark and "filter" not in declaration.claimed_options:
        return tuple(list_filter_warnings(session, benchmark, selection))
    return ()


def _load_each(
    session: Session, declaration: Declaration, selection: Selection | None, loaded: Mapping[str, AnalysisInput]
) -> dict[str, AnalysisInput | None]:
    """Return each input by name, None for an optional one that is not chosen.

    Args:
        session: the store.
        declaration: of the analysis.
        selection: with the defaults of the analysis.
        loaded: inputs of it that are loaded already.
    """
    inputs: dict[str, AnalysisInput | None] = {}
    for name, kind in declaration.inputs.items():
        if name in loaded:
            inputs[name] = loaded[name]
        elif name in declaration.optional and not kind.is_chosen(selection):
            inputs[name] = None
        else:
            inputs[name] = kind.load(session, declaration.selection_for(kind, selection) if selection else None)
    return inputs


def _list_runs(inputs: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the runs behind each input, by its name."""
    return [(name, int(key)) for name, loaded in inputs.items() for key in getattr(loaded, "run_ids", ())]


def _find_leaders(
    session: Session, declaration: Declaration, selection: Selection, chosen: Selection
) -> tuple[str, ...]:
    """Return the models that the leaderboard ranks first, by its own default of the least coverage.

    Args:
        session: the store.
        declaration: of the analysis.
        selection: with the defaults of the analysis.
        chosen: as the user made it; the analysis's default of the least coverage is no choice.
    """
    coverage = None if chosen.min_coverage == declaration.min_coverage else chosen.min_coverage
    return find_leaders(session, replace(declaration.unclaimed(selection), min_coverage=coverage))


def _describe_provenance(
    declaration: Declaration,
    selection: Selection | None,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, Any],
    benchmark_id: int | None,
    as_read: Mapping[int, tuple[str, str]],
    completions: Sequence[Completion],
) -> Provenance:
    """Return what a finding is computed from.

    Args:
        declaration: the analysis.
        selection: with every choice.
        parameters: with every default.
        inputs: as loaded; None for optional ones that are not selected.
        benchmark_id: key of the benchmark; None for findings of several.
        as_read: checksum and status of each run.
        completions: of the inputs.
    """
    used = _list_runs(inputs)
    loaded_inputs = list(inputs.values())
    digests = [loaded.digest for loaded in loaded_inputs if loaded is not None]
    digests += [digest for completion in completions for digest in completion.digests]
    weights = [loaded for loaded in loaded_inputs if isinstance(loaded, PromptWeights)]
    encoders = [loaded for loaded in loaded_inputs if isinstance(loaded, Embeddings | StoredEmbeddings)]
    filters = [loaded.finding_id for loaded in loaded_inputs if isinstance(loaded, PromptFilter)]
    if selection and filters:
        selection = replace(selection, filter=filters[0])  # the latest one, if none was named
    return Provenance(
        analysis=declaration.name,
        code_version=declaration.code_version,
        selection=selection,
        parameters=parameters,
        benchmark_id=benchmark_id,
        input_digest=digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        runs={(role, key): as_read[key][0] for role, key in used},
        statuses={key: status for key, (_, status) in as_read.items()},
        weights_id=weights[0].finding_id if weights else None,
        encoder_id=encoders[0].encoder_id if encoders else None,
        filter_id=selection.filter if selection else None,
    )


def add_warnings(warnings: Sequence[str], report: Report) -> Report:
    """Add warnings to a report; they fill the places for caveats that its summary leaves free."""
    summary, further = report.summary.add_caveats((*warnings, *report.warnings))
    return replace(report, summary=summary, warnings=further)
