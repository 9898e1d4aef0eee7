"""What became of an evaluation, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracker.evaluating.responses import Reply
from tracker.evaluating.warnings import of_cost
from tracker.name_lists import join_names

N_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A run that was made, or as far as it came.

    Attributes:
        run_id, label: which run it is.
        benchmark, model, condition, variant: of whom it tells what.
        splits: from which the prompts are; none where they all are.
        is_complete: whether it has ended; else the same command goes on with it.
        n_prompts: that were to be asked.
        n_new: that were asked now.
        means: of every metric over its prompts.
        left_out: why prompts were not asked, and how many.
        failed: why prompts got no answer, by key.
        usage: what it took, with what it took before.
        warnings: what the reader should be told.
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
    left_out: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def summary(self) -> str:
        """What came of it, in one line."""
        means = ", ".join(f"{name} {value:.4f}" for name, value in self.means.items())
        done = f"{self.n_prompts:,} prompts{f' of {join_names(self.splits, 3)}' if self.splits else ''}"
        if self.n_new == 0 and self.is_complete and not self.failed:
            done += ", all stored before"
        elif self.n_new < self.n_prompts:
            done = f"{self.n_new:,} of {done} asked now"
        state = "" if self.is_complete else "; not finished"
        marks = [self.condition.replace("_", "-")] * (self.condition != "full") + [self.variant] * bool(self.variant)
        shown = f" ({', '.join(marks)})" if marks else ""
        return f"{self.benchmark}, {self.model}{shown}: run {self.run_id}, {done}{': ' if means else ''}{means}{state}"


def notes_of(
    left_out: Mapping[str, int],
    failed: Mapping[int, Reply],
    usage: Mapping[str, float],
    n_shots: int,
    remarks: Sequence[str],
) -> Iterator[str]:
    """What the reader should be told of a run, in sentences.

    Args:
        left_out: why prompts were not asked, and how many.
        failed: replies without an answer, by prompt.
        usage: what the run took.
        n_shots: worked examples that were to stand before each prompt.
        remarks: of who answered.
    """
    for why, n in left_out.items():
        yield f"{n:,} prompts were not asked: {why}"
    if fewer := int(usage.get("with_fewer_shots", 0)):
        yield f"{fewer:,} prompts were asked with fewer than {n_shots} examples, since all did not fit"
    if n_long := sum(reply.is_too_long for reply in failed.values()):
        yield f"{n_long:,} prompts are longer than the model reads, and have no score"
    yield from remarks
    yield from of_cost(usage)
    reasons = Counter(reply.error for reply in failed.values() if not reply.is_too_long)
    yield from (f"{n:,} prompts got no answer: {why}" for why, n in reasons.most_common(N_NAMED))
