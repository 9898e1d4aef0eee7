"""The analyses of the demo: their parameters, the findings to expect, and their computation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from tracker.database import connect
from tracker.errors import SuffrageError
from tracker.recording.declaration import load_declaration
from tracker.recording.finding import Finding
from tracker.recording.pipeline import ComputedFinding, compute_finding
from tracker.recording.registry import discover_analyses
from tracker.simulation.truth_comparison import select_scores

N_PROCESSES = 2
FILTER_ANALYSIS = "smart-filtering"
"""It comes first: other analyses are about the filter that it makes."""
PARAMETERS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "prompt-correlation": ({}, {"null": "margins"}),
    "prompt-clusters": ({"n_permutations": 19}, {"n_permutations": 19, "null": "margins"}),
    "semantic-similarity": ({"similarity": "hamming"},),
    "comparison": (
        {"model_a": "northlight/borealis-2-large", "model_b": "quillworks/folio-72b"},
        {"model_a": "northlight/borealis-2-large", "model_b": "oakhollow/acorn-7b"},
    ),
}
"""Parameters of each run of an analysis, where one run with the defaults does not show every planted effect."""

EXPECTED_FINDINGS: Mapping[str, str] = {
    "prompt-correlation": (
        "prompts agree more than chance because of their difficulty. They also do with difficulties held fixed "
        "(margins), because of near-duplicates and tasks."
    ),
    "prompt-clusters": (
        "clusters are clearer than chance because of difficulty. With difficulties held fixed (margins) they are not: "
        "no large groups were planted."
    ),
    "prompt-weighting": "weights move means, and ranks only among models with close abilities.",
    "benchmark-growth": "the most informative prompts come first and are hard; their mean starts below that of all.",
    "semantic-similarity": (
        "models perform similarly on prompts of similar meaning. The effect is weak: few pairs are near-duplicates."
    ),
    "task-subsets": "a few tasks keep distant models in order and swap neighbours.",
    "social-choice": "diversity is above 0 and below that of random ranks. Neighbours can be swapped.",
    "sensitivity-sweep": "a larger minimum weight allows fewer reversals, and equal weights allow none.",
    "voting-rules": "rules agree on most pairs. A close first place can depend on the rule or on one task.",
    "smart-filtering": "it flags the planted easy, leaked and near-duplicate prompts. The ranking stays.",
    "filter-baselines": "models agree less on the kept prompts than on random subsets. The ranking stays.",
    "filter-stability": "fewer filter models remove slightly more prompts.",
    "comparison": "the two best models are not distinguishable; the best and a distant model are.",
    "rank-intervals": "distant models are distinguishable, neighbours are not. Few tasks give wide intervals.",
    "drift": "one model improved between its two runs, in nearly every task.",
    "weight-robustness": "distant models keep their order in every draw, neighbours do not.",
    "mixed-model": "the order of the models is that of their abilities; prompts explain much of the variance.",
    "trials": "the variance between trials is unknown: every prompt has one trial.",
}
"""The finding that the planted truth should give, for each analysis."""


@dataclass(frozen=True, kw_only=True)
class DemoFinding:
    """One run of an analysis in the demo.

    Attributes:
        analysis: name of the analysis.
        parameters: those that differ from the defaults.
        result: the finding, ready to be recorded, or the error of the analysis.
    """

    analysis: str
    parameters: Mapping[str, Any]
    result: ComputedFinding | str


def start_processes() -> ProcessPoolExecutor:
    """Start the two processes that compute. They import the analyses while the caller fills the store."""
    n_processes = min(N_PROCESSES, os.cpu_count() or 1)
    pool = ProcessPoolExecutor(n_processes, mp_context=get_context("spawn"))
    for _ in range(n_processes):
        pool.submit(_import_analyses)
    return pool


def _import_analyses() -> None:
    for name in discover_analyses():
        with suppress(SuffrageError):  # running it reports the problem
            load_declaration(name)


def compute_findings(
    pool: ProcessPoolExecutor, database_url: str, analyses: Sequence[str], of_filters: Sequence[str]
) -> Iterator[list[DemoFinding]]:
    """Compute the findings of each analysis, in the order of the names.

    Args:
        pool: the processes of `start_processes`.
        database_url: the store with the simulated benchmark.
        analyses: names of analyses of one benchmark; the first one makes a filter.
        of_filters: names of analyses of that filter. They start once the first finding is recorded, which the caller
            does before it takes the second.
    """

    def submit(names: Sequence[str]) -> list[Future[list[DemoFinding]]]:
        return [pool.submit(compute_demo_findings, database_url, name) for name in names]

    return _collect(submit(analyses), partial(submit, of_filters))


def _collect(
    futures: Sequence[Future[list[DemoFinding]]], submit_more: Callable[[], list[Future[list[DemoFinding]]]]
) -> Iterator[list[DemoFinding]]:
    """Yield the results in order; submit more when the second one is requested."""
    first, *following = futures
    yield first.result()
    for future in following + submit_more():
        yield future.result()


def compute_demo_findings(database_url: str, analysis: str) -> list[DemoFinding]:
    """Run an analysis with each of its parameters in the demo."""
    engine = connect(database_url)
    findings = []
    for parameters in PARAMETERS.get(analysis, ({},)):
        result: ComputedFinding | str
        try:
            computed = compute_finding(engine, analysis, select_scores(), parameters)
            recorded = replace(computed.report, finding=Finding(), figures={}, tables={})  # the parts that are recorded
            result = replace(computed, report=recorded)
        except SuffrageError as error:
            result = str(error)
        findings.append(DemoFinding(analysis=analysis, parameters=parameters, result=result))
    engine.dispose()
    return findings
