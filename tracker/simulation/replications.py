"""One analysis of several simulated tables, and its findings averaged."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.findings.summary import Summary
from tracker.queries.selection import Selection
from tracker.queries.task_matrix import TaskMatrix
from tracker.recording.declaration import Declaration
from tracker.recording.finding import Finding, Metric, Report, Undefined
from tracker.recording.mlflow.run_spec import MAX_METRICS
from tracker.recording.record import Provenance

SYSTEMS = ("cardinal", "ordinal")
SPREAD = ("diversity", *(f"{system}.{change}" for system in SYSTEMS for change in ("tau", "mrc")))
"""Numbers whose standard deviation over the trials is given too."""


@dataclass(frozen=True, kw_only=True)
class TrialFindings(Finding):
    """Findings of one analysis of tables of one kind.

    Attributes:
        description: of the tables.
        findings: one for each trial.
        search: how sensitivities were searched.
    """

    description: str
    findings: tuple[Finding, ...]
    search: str

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The mean of each number over the trials, the standard deviation of the main ones, the number of trials."""
        every = [finding.metrics for finding in self.findings]
        metrics: dict[str, Metric] = {"n_trials": float(len(every))}
        for name in every[0]:
            metrics[name] = mean = _mean([trial[name] for trial in every])
            if name in SPREAD:
                metrics[f"{name}.sd"] = _sd([trial[name] for trial in every], mean)
        return metrics

    @property
    def main_metrics(self) -> Sequence[str]:
        """Main numbers of the analysis, and the standard deviations."""
        names = [name for name in self.metrics if name in self.findings[0].main_metrics or name.endswith(".sd")]
        return ["n_trials", *names][:MAX_METRICS]

    def summarize(self) -> Summary:
        """Summarize the means over the trials."""
        numbers, n = self.metrics, len(self.findings)
        trials = f"means over {n} trials" if n > 1 else "one trial"
        evidence = []
        for system in SYSTEMS:
            if f"{system}.tau" in numbers:
                changes = (self._format_value(f"{system}.{change}") for change in ("tau", "mrc"))
                evidence.append(f"{system.capitalize()} sensitivity: {', '.join(changes)}.")
        return Summary(
            headline=f"{self.description}, {trials}: {self._format_value('diversity')}.",
            evidence=tuple(evidence),
            caveats=(
                "Everything here is simulated.",
                f"Search: {self.search}. The ends of an interval are the means of the lower and of the upper bounds.",
            ),
        )

    def _format_value(self, name: str) -> str:
        value, upper, sd = (self.metrics.get(f"{name}{suffix}") for suffix in ("", "_upper", ".sd"))
        label = name.rpartition(".")[2].replace("mrc", "MRC")
        if not isinstance(value, float):
            return f"{label} undefined"
        spread = f" (sd {sd:.4f})" if isinstance(sd, float) else ""
        if isinstance(upper, float) and upper > value:
            return f"{label} between {value:.4f}{spread} and {upper:.4f}"
        return f"{label} {value:.4f}{spread}"


def _mean(values: Sequence[Metric]) -> Metric:
    undefined = [value for value in values if isinstance(value, Undefined)]
    if undefined:
        return Undefined(f"undefined in {len(undefined)} of {len(values)} trials: {undefined[0].reason}")
    return math.fsum(value for value in values if not isinstance(value, Undefined)) / len(values)


def _sd(values: Sequence[Metric], mean: Metric) -> Metric:
    if isinstance(mean, Undefined):
        return mean
    if len(values) == 1:
        return Undefined("one trial has no spread")
    deviations = (value - mean for value in values if not isinstance(value, Undefined))
    return math.sqrt(math.fsum(deviation**2 for deviation in deviations) / (len(values) - 1))


def analyze_trials(
    declaration: Declaration,
    draw: Callable[..., TaskMatrix],
    *,
    simulated: str,
    description: str,
    n_trials: int,
    options: Mapping[str, Any],
    selection: Selection | None = None,
    benchmark_id: int | None = None,
    runs: Mapping[tuple[str, int], str] | None = None,
    progress: Callable[[int], None] = lambda trial: None,
) -> tuple[Provenance, Report]:
    """Analyze one simulated table after another, as something to record.

    Args:
        declaration: of an analysis of one `TaskMatrix`, with a parameter ``time_limit``.
        draw: makes the table of a ``trial``, counted from 0.
        simulated: kind of the tables in a word or two, as recorded.
        description: the same in a sentence, for the summary.
        n_trials: at least 1.
        options: of the analysis, where they are not the defaults, and the seed.
        selection: of the real scores that the tables were computed from, if any.
        benchmark_id: of the same.
        runs: the same, as in `Provenance`.
        progress: called with the number of each trial before it begins.

    Raises:
        SelectionError: a table or an option does not suit the analysis.
    """
    values = declaration.complete(options)
    digests: list[str] = []

    def reports() -> Iterator[Report]:
        for trial in range(n_trials):
            progress(trial)
            table = draw(trial=trial)
            digests.append(table.digest)
            yield declaration.function(table, **values)

    findings = tuple(report.finding for report in reports())
    question = Provenance(
        analysis=declaration.name,
        code_version=declaration.code_version,
        selection=selection,
        parameters={SIMULATED: simulated, "n_trials": n_trials, **values},
        benchmark_id=benchmark_id,
        input_digest=hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        runs=runs or {},
    )
    finding = TrialFindings(description=description, findings=findings, search=_describe_search(values))
    return question, Report(
        finding,
        summary=finding.summarize(),
        tables={"trials": _make_trial_table(findings)},
    )


def _describe_search(options: Mapping[str, Any]) -> str:
    if options.get("method") == "paper":
        return "the paper's gradient descent"
    limit = float(options["time_limit"])
    return f"{limit:g} s for each exact search" if limit else "no exact search"


def _make_trial_table(findings: Sequence[Finding]) -> Any:
    import pyarrow as pa

    rows = [
        {
            "trial": trial,
            "name": name,
            "value": None if isinstance(value, Undefined) else value,
            "reason": value.reason if isinstance(value, Undefined) else "",
        }
        for trial, finding in enumerate(findings, start=1)
        for name, value in finding.metrics.items()
    ]
    kinds = [("trial", pa.int64()), ("name", pa.string()), ("value", pa.float64()), ("reason", pa.string())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))
