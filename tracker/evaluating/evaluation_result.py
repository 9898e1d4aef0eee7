"""The result of an evaluation: run, means, usage and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracker.evaluating.responses import Response
from tracker.evaluating.warnings import list_cost_warnings
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
        means: mean of every metric over the prompts.
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
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def summary(self) -> str:
        """Return the result in one line."""
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.means.items())
        done = f"{self.n_prompts:,} prompts{f' of {join_names(self.splits, 3)}' if self.splits else ''}"
        if self.n_new == 0 and self.is_complete and not self.failed:
            done += ", all already stored"
        elif self.n_new < self.n_prompts:
            done = f"{self.n_new:,} of {done} evaluated now"
        state = "" if self.is_complete else "; not complete"
        marks = [self.condition.replace("_", "-")] * (self.condition != "full") + [self.variant] * bool(self.variant)
        suffix = f" ({', '.join(marks)})" if marks else ""
        return f"{self.benchmark}, {self.model}{suffix}: run {self.run_id}, {done}{': ' if means else ''}{means}{state}"


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
