"""The result of an evaluation: run, means, usage and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracker.evaluating.responses import Response
from tracker.evaluating.warnings import list_cost_warnings
from tracker.ingest.measurement import metric_description
from tracker.name_lists import join_names

MAX_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class EvaluationOutcome:
    """A run created or continued by an evaluation, complete or not.

    Attributes:
        run_id, label: identify the run.
        benchmark, model, condition, variant: of the run.
        splits: splits of the prompts; empty if all splits are included.
        is_complete: whether the run is complete; if not, the same command resumes it.
        n_prompts: rendered prompts.
        n_new: prompts evaluated in this attempt.
        means: mean of every metric over the prompts; truncated responses count as 0.
        n_truncated: truncated responses.
        at_most: upper bound of the mean of each metric if the truncated responses had not ended there; empty without
            any.
        skipped: number of prompts that were not rendered, by reason.
        failed: reason of each prompt without an answer, by key.
        usage: tokens and cost, including earlier attempts.
        warnings: messages for the user.
    """

    run_id: int
    label: str
    benchmark: str
    model: str
    condition: str
    variant: str
    splits: Sequence[str]
    is_complete: bool
    n_prompts: int
    n_new: int
    means: Mapping[str, float]
    n_truncated: int = 0
    at_most: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def summary(self) -> str:
        """Return the result in one line."""
        means = ", ".join(
            f"{name} {value:.4f}" + (f" (at most {self.at_most[name]:.4f})" if name in self.at_most else "")
            for name, value in self.means.items()
        )
        means += f", {self.n_truncated:,} truncated" if self.n_truncated else ""
        done = f"{self.n_prompts:,} prompts{f' of {join_names(self.splits, 3)}' if self.splits else ''}"
        if self.n_new == 0 and self.is_complete and not self.failed:
            done += ", all already stored"
        elif self.n_new < self.n_prompts:
            done = f"{self.n_new:,} of {done} evaluated now"
        state = "" if self.is_complete else "; not complete"
        marks = [self.condition.replace("_", "-")] * (self.condition != "full") + [self.variant] * bool(self.variant)
        suffix = f" ({', '.join(marks)})" if marks else ""
        return f"{self.benchmark}, {self.model}{suffix}: run {self.run_id}, {done}{': ' if means else ''}{means}{state}"


def bound_means(means: Mapping[str, float], n_truncated: int, n_prompts: int, n_trials: int) -> dict[str, float]:
    """Return the largest mean of each metric that truncated responses could have, which count as 0.

    A mean over trials gains at most the share of truncated responses, and a metric of all trials (``pass@k``) at most
    one per truncated response.
    """
    if not n_truncated or not n_prompts:
        return {}
    metrics = {name: metric_description(name) for name in means}
    gains = {name: n_truncated / (n_prompts * (1 if name.startswith("pass@") else n_trials)) for name in means}
    uppers = {name: 1.0 if metric.upper is None else metric.upper for name, metric in metrics.items()}
    return {name: min(uppers[name], mean + uppers[name] * gains[name]) for name, mean in means.items()}


def list_result_warnings(
    skipped: Mapping[str, int],
    failed: Mapping[int, Response],
    usage: Mapping[str, float],
    n_examples: int,
    backend_warnings: Sequence[str],
) -> Iterator[str]:
    """Return the warnings about a run.

    Args:
        skipped: number of prompts that were not rendered, by reason.
        failed: responses without an answer, by prompt.
        usage: tokens and cost of the run.
        n_examples: few-shot examples requested per prompt.
        backend_warnings: warnings of the model or server.
    """
    for reason, n in skipped.items():
        yield f"{n:,} prompts were skipped: {reason}"
    if fewer := int(usage.get("with_fewer_shots", 0)):
        yield f"{fewer:,} prompts have fewer than {n_examples} few-shot examples, because not all fit the context"
    if n_long := sum(response.is_too_long for response in failed.values()):
        yield f"{n_long:,} prompts are longer than the model's context and have no score"
    yield from backend_warnings
    yield from list_cost_warnings(usage)
    reasons = Counter(response.error for response in failed.values() if not response.is_too_long)
    yield from (f"{n:,} prompts got no answer: {reason}" for reason, n in reasons.most_common(MAX_NAMES))
