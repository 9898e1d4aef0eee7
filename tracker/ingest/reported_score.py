"""Scores that a harness reports about its rows, which a format yields beside the measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracker.ingest.measurement import MetricDescription, RunDescription

MEANS = ("mean",)
"""Mean over prompts, with trials averaged."""
CORPUS: tuple[str, ...] = ()
"""Computed from the responses of all prompts at once, such as BLEU, so that the rows do not determine it."""


@dataclass(frozen=True, kw_only=True)
class ReportedScore:
    """A number that a harness reports about a task.

    `tracker.ingest.parsing.reported_scores` compares it with the number computed from the rows. It becomes a task score
    if the rows do not average to it, or if there are none; without a task, it is only compared.

    Attributes:
        run: the run; None for all runs of the file.
        metric: its metric, under which a task score is stored.
        tasks: the tasks that it covers; empty for all tasks of the run.
        value: the number, in the unit of the stored scores.
        stderr: its standard error; NaN if unknown.
        has_sample_stderr: whether the standard error is that of a mean of independent scores. Other standard errors,
            such as those by bootstrap, are not compared.
        aggregations: how the harness may have computed it, as named in `tracker.ingest.parsing.aggregations`; one of
            them must agree. `CORPUS` if the rows do not determine it.
        statistic: what it is of the numbers that the aggregation averages; see
            `tracker.ingest.parsing.aggregations.summarize`.
        clusters: field of the prompts by whose values the standard error is clustered.
        group: field and value of the prompts that it covers; the rows are those of all tasks then.
        mean_of: field of the prompts; the number is the mean over the groups with equal values.
        rows: metric of the rows that it is computed from, if that is another one.
        split: split of the prompts that it covers; None for all.
        decimals: number of decimals to which it is rounded; None for full precision.
        n_prompts: number of prompts; None if unknown.
        is_stored: whether it may become a task score; False for summaries of several tasks.
        name: its name in the file, for messages; '' for that of the metric.
    """

    run: RunDescription | None
    metric: MetricDescription
    value: float
    tasks: tuple[str, ...] = ()
    stderr: float = math.nan
    has_sample_stderr: bool = False
    aggregations: tuple[str, ...] = MEANS
    statistic: str = "mean"
    clusters: str = ""
    group: tuple[str, str] | None = None
    mean_of: str = ""
    rows: MetricDescription | None = None
    split: str | None = None
    decimals: int | None = None
    n_prompts: int | None = None
    is_stored: bool = True
    name: str = ""

    @property
    def row_metric(self) -> str:
        """Return the name of the metric of the rows."""
        return (self.rows or self.metric).name

    @property
    def is_mean_of_rows(self) -> bool:
        """Return whether the rows, stored under its metric, average to it."""
        return self.rows is None and bool(self.aggregations) and set(self.aggregations) <= AVERAGES


@dataclass(frozen=True, kw_only=True)
class ReportedCount:
    """A number of rows that a harness reports.

    Attributes:
        run: the run; None for all runs of the file.
        name: what it counts, for messages.
        value: the number.
        counted: the numbers that the file holds, one of which must agree.
    """

    run: RunDescription | None
    name: str
    value: int
    counted: tuple[int, ...]


AVERAGES = frozenset({"mean", "row_mean", "trial_mean", "task_mean", "sum", "n_zeros"})
"""Aggregations that the stored rows reproduce, so that no task score is needed."""

LOGLIKELIHOOD = MetricDescription(name="loglikelihood", higher_is_better=True)
"""Metric of the rows of a perplexity: the logarithm of the probability of a text, natural."""

CORPUS_METRICS = {
    "perplexity": ("perplexity",),
    "ppl": ("perplexity",),
    "word_perplexity": ("weighted_perplexity",),
    "byte_perplexity": ("weighted_perplexity",),
    "bits_per_byte": ("bits_per_byte",),
    **dict.fromkeys(
        ("bleu", "chrf", "chrf++", "chrf_plus", "ter", "brier_score", "mcc", "matthews_corrcoef"),
        CORPUS,
    ),
}
"""Aggregations of metrics whose rows usually do not average to the reported score."""


def rows_of(metric: MetricDescription) -> MetricDescription:
    """Return the metric of the rows of a metric that is not their mean: under another name."""
    name, comma, filter_name = metric.name.partition(",")
    if CORPUS_METRICS.get(name):
        return MetricDescription(name=f"{LOGLIKELIHOOD.name}{comma}{filter_name}", higher_is_better=True)
    return MetricDescription(name=f"{name}_per_prompt{comma}{filter_name}", higher_is_better=metric.higher_is_better)
