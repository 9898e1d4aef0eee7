"""Record custom weights of prompts as a finding, so that they can be selected like computed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.queries.findings.summary import Summary
from tracker.queries.resolution import BenchmarkKey
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.weights import CUSTOM, PREFIX, PromptWeights
from tracker.recording.finding import Finding, PromptValues, Report
from tracker.recording.record import Provenance
from tracker.statistics.standard_errors import effective_sample_size
from tracker.version import __version__


@dataclass(frozen=True, kw_only=True)
class CustomWeights(Finding):
    """Weights from a file.

    Attributes:
        file: its name.
        benchmark: of the prompts.
        n_prompts: prompts with a weight.
        n_zero: prompts with weight 0.
        n_without_weight: prompts of the benchmark that the file does not name.
        n_effective: Kish's effective number of prompts, (Σw)² / Σw².
    """

    file: str
    benchmark: str
    n_prompts: int
    n_zero: int
    n_without_weight: int
    n_effective: float


def make_custom_weights(
    session: Session,
    benchmark: BenchmarkKey,
    prompt_ids: NDArray[np.int64],
    values: NDArray[np.float64],
    *,
    name: str,
    file: str,
) -> tuple[Provenance, Report]:
    """Return provenance and report of the weights.

    Args:
        session: the store.
        benchmark: of the prompts.
        prompt_ids: ``(n,)`` ascending.
        values: ``(n,)``, not negative, some positive.
        name: name of the scheme.
        file: source of the weights.
    """
    prompt, task = tables.prompt.c, tables.task.c
    of_benchmark = sa.select(sa.func.count()).select_from(tables.prompt).join(tables.task, task.id == prompt.task_id)
    every = session.scalar(of_benchmark.where(task.benchmark_id == benchmark.id)) or 0
    finding = CustomWeights(
        file=file,
        benchmark=benchmark.label,
        n_prompts=len(prompt_ids),
        n_zero=int((values == 0).sum()),
        n_without_weight=every - len(prompt_ids),
        n_effective=effective_sample_size(values),
    )
    provenance = Provenance(
        analysis=CUSTOM,
        code_version=f"suffrage {__version__}",
        selection=Selection(benchmark=benchmark.label),
        parameters={"name": name, "file": file},
        benchmark_id=benchmark.id,
        input_digest=PromptWeights(name=name, finding_id=0, prompt_ids=prompt_ids, values=values).digest,
        runs={},
    )
    return provenance, Report(
        finding,
        summary=_summarize(finding),
        prompt_values={f"{PREFIX}{name}": PromptValues(prompt_ids=prompt_ids, values=values)},
    )


def _summarize(finding: CustomWeights) -> Summary:
    every = finding.n_prompts + finding.n_without_weight
    caveats = tuple(
        f"{n:,} {'prompt' if n == 1 else 'prompts'} {reason}: every command excludes them when it uses these weights."
        for n, reason in (
            (finding.n_without_weight, "without a weight in the file"),
            (finding.n_zero, "with weight 0"),
        )
        if n
    )
    return Summary(
        headline=f"{finding.file} gives weights to {finding.n_prompts:,} of {every:,} prompts of {finding.benchmark}.",
        evidence=(f"The effective number of prompts is {finding.n_effective:,.1f}.",),
        caveats=caveats,
    )
