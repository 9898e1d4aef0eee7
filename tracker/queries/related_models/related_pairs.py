"""Pairs of related models as rows, and what they show as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from tracker.name_lists import join_names
from tracker.notebook.result import NotebookResult, make_table
from tracker.queries.answers import AnswerMatrix, load_answers
from tracker.queries.performance import PerformanceMatrix, load_performance_matrix
from tracker.queries.ranking.completions import load_completions
from tracker.queries.ranking.policy_choice import choose_policy
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.queries.related_models.related import MAX_MODELS, RelatedModels, relate_models
from tracker.queries.selection import Selection
from tracker.statistics.related.families import ModelFamilies, group_models

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

MAX_NAMES = 5
MAX_DRAWN_PAIRS = 30


@dataclass(frozen=True, kw_only=True)
class RelatedPair:
    """Two models, and how far they agree.

    Attributes:
        model, other_model: their names.
        agreement: share of prompts that both get wrong, of those that at least one gets wrong; None without any.
        expected: the same for independent models with these accuracies on prompts of these difficulties.
        excess: share of the expected disagreements that do not occur; None if none is expected.
        pvalue: one-sided, adjusted by Holm for all pairs; with completions, the largest.
        excess_low, excess_high: range of ``excess`` over measured scores and completions; None without completions.
        same_answer: share of equal answers where both are wrong; None without answers.
        expected_same_answer: the same for two wrong answers of any models.
        n: prompts with a score from both.
        near_copy: whether the excess is significant and large.
        same_family: whether both are in one family.
    """

    model: str
    other_model: str
    agreement: float | None
    expected: float | None
    excess: float | None
    pvalue: float | None
    excess_low: float | None
    excess_high: float | None
    same_answer: float | None
    expected_same_answer: float | None
    n: int | None
    near_copy: bool
    same_family: bool


NUMBERS = (
    "agreement",
    "expected",
    "excess",
    "pvalue",
    "excess_low",
    "excess_high",
    "same_answer",
    "expected_same_answer",
)
"""Fields of `RelatedPair` with one number for each pair of columns."""


@dataclass(frozen=True, kw_only=True)
class RelatedPairs(NotebookResult):
    """The pairs of a benchmark's models.

    Attributes:
        related: the models, their families and agreement.
        pairs: every pair, the largest excess agreement first.
    """

    related: RelatedModels
    pairs: tuple[RelatedPair, ...]

    def to_arrow(self) -> pa.Table:
        """Return a row for each pair."""
        return make_table(self.pairs)

    def plot(self) -> Figure:
        """Draw the observed and the expected agreement of the closest pairs."""
        from tracker.figures.charts import draw_intervals

        pairs = self.pairs[:MAX_DRAWN_PAIRS]
        agreement, expected = (
            np.array([getattr(pair, name) for pair in pairs], dtype=np.float64) for name in ("agreement", "expected")
        )
        return draw_intervals(
            [f"{pair.model}, {pair.other_model}" for pair in pairs],
            agreement,
            np.fmin(agreement, expected),
            np.fmax(agreement, expected),
            xlabel="share of errors in common, closest pairs first",
            legend=("observed", "from observed to expected"),
            title=self.describe(),
        )

    def describe(self) -> str:
        """Return the number of families, and the closest pair."""
        return describe_related(self.related)

    def list_details(self) -> Sequence[str]:
        """Return the families of several models, and the warnings."""
        return (*describe_families(self.related), *self.related.warnings)


def load_related_pairs(session: Session, selection: Selection) -> RelatedPairs:
    """Load the related models of a selection with all pairs.

    Raises:
        NotFoundError, SelectionError: as for `load_related`.
    """
    related = load_related(session, selection)
    return RelatedPairs(related=related, pairs=tuple(list_pairs(related)))


def load_related(session: Session, selection: Selection) -> RelatedModels:
    """Load the scores and answers of a selection, and group its models.

    Raises:
        NotFoundError: a benchmark, metric, model, task or run does not exist.
        SelectionError: the selection is empty, or scores are missing under ``fail``.
    """
    selection = choose_policy(session, selection, default="common", subject="the comparison of related models")
    families, answers = FamilyLabels.load(session, selection), load_answers(session, selection)
    relate = partial(_relate, families=families, answers=answers)
    if selection.missing != "bounds":
        return relate(load_performance_matrix(session, selection).without_imputed())

    def load(chosen: Selection) -> dict[str, PerformanceMatrix]:
        return {"scores": load_performance_matrix(session, chosen)}

    measured = load(replace(selection, missing="common"))
    extremes = load_completions(load, selection, measured)
    completed = tuple(relate(item.inputs["scores"]) for item in extremes)
    related = relate(measured["scores"], completed=completed)
    if not completed or related.errors is None:
        return related
    n = len(completed)
    return replace(
        related,
        warnings=(
            *related.warnings,
            f"Near-copies are such on {n} extreme completion{'s' * (n != 1)} of the table too; excess_low, excess_high "
            "and pvalue are over all of them. Other completions were not computed.",
        ),
    )


def _relate(
    scores: PerformanceMatrix,
    *,
    families: FamilyLabels,
    answers: AnswerMatrix,
    completed: tuple[RelatedModels, ...] = (),
) -> RelatedModels:
    """Group the models of some scores.

    Args:
        scores: after a policy for missing ones.
        families: as stored.
        answers: of these models, and perhaps of others.
        completed: the same models on completions of the table.
    """
    chosen = answers.select(scores.run_ids)
    has_answers = bool((chosen.codes >= 0).any())
    related = relate_models(scores, families, chosen if has_answers else None, completed=completed)
    return replace(related, warnings=scores.missing_warnings)


def list_pairs(related: RelatedModels, *, every: bool = True) -> list[RelatedPair]:
    """List pairs: those that are compared by their excess, the largest first, then the others.

    Args:
        related: the models.
        every: all pairs; if False, near-copies and pairs of one family, or all if there are none. Where there are too
            many models to compare pairs, only each representative with the members of its family.
    """
    errors, answers = related.errors, related.answers
    if len(related.models) > MAX_MODELS:
        pairs = [(first, member) for first, *members in related.families.groups for member in members]
        copies = None
    else:
        pairs, copies = _order_pairs(related), related.near_copies
        if not every:
            pairs = [pair for pair in pairs if copies[pair] or _is_one_family(related, *pair)] or pairs
    arrays: dict[str, NDArray[np.float64]] = {}
    if errors is not None:
        arrays |= {"agreement": errors.agreement, "expected": errors.expected_agreement}
        arrays |= {"excess": errors.excess, "pvalue": errors.holm, **_find_ranges(related)}
    if answers is not None:
        arrays |= {"same_answer": answers.agreement, "expected_same_answer": answers.expected_agreement}
    return [
        RelatedPair(
            model=related.models[i],
            other_model=related.models[j],
            **{name: _number(arrays.get(name), i, j) for name in NUMBERS},
            n=None if errors is None else int(errors.n[i, j]),
            near_copy=copies is not None and bool(copies[i, j]),
            same_family=_is_one_family(related, i, j),
        )
        for i, j in pairs
    ]


def _find_ranges(related: RelatedModels) -> dict[str, NDArray[np.float64]]:
    """Return the range of excesses and the largest p-values over measured scores and completions, ``(k, k)`` each."""
    every = [item.errors for item in (related, *related.completed) if item.errors is not None]
    if len(every) < 2:
        return {}
    excess = [errors.excess for errors in every]
    low, high = (np.asarray(extreme.reduce(excess)) for extreme in (np.fmin, np.fmax))
    return {"excess_low": low, "excess_high": high, "pvalue": np.asarray(np.maximum.reduce([e.holm for e in every]))}


def _order_pairs(related: RelatedModels) -> list[tuple[int, int]]:
    """Return all pairs of columns, the largest excess agreement first, those without one last."""
    compared = related.list_closest()
    every = set(zip(*(side.tolist() for side in np.triu_indices(len(related.models), 1)), strict=True))
    return [*compared, *sorted(every - set(compared))]


def _is_one_family(related: RelatedModels, i: int, j: int) -> bool:
    families = related.families.representative
    return bool(families[i] == families[j])


def _number(array: NDArray[np.float64] | None, i: int, j: int) -> float | None:
    return None if array is None or np.isnan(array[i, j]) else float(array[i, j])


def describe_related(related: RelatedModels) -> str:
    """Return the verdict: the number of families, and the closest pair."""
    families = f"{_count(related.n_families, 'family', 'families')} of {_count(len(related.models), 'model', 'models')}"
    closest = related.list_closest()
    if not closest:
        return f"{families}, by name and stored facts alone: {related.reason or 'no disagreement is expected'}."
    i, j = closest[0]
    return (
        f"{families}; the closest pair is {related.models[i]} and {related.models[j]}: {describe_pair(related, i, j)}."
    )


def describe_pair(related: RelatedModels, i: int, j: int) -> str:
    """Return how far two models agree on errors, as a clause."""
    assert related.errors is not None
    observed, expected = related.errors.agreement[i, j], related.errors.expected_agreement[i, j]
    if np.isnan(observed) or np.isnan(expected):
        return "they make too few errors to compare"
    return f"they agree on {observed:.0%} of errors, {expected:.0%} expected"


def describe_families(related: RelatedModels) -> Iterator[str]:
    """Yield a line for each family of several models."""
    for representative, *members in related.families.groups:
        if members:
            names = join_names([related.models[column] for column in members], MAX_NAMES)
            yield f"{related.models[representative]} represents {names}"


def group_near_copies(related: RelatedModels) -> ModelFamilies:
    """Return groups of near-copies alone, whatever the names; the same model stands for a group."""
    k = len(related.models)
    priority = np.zeros(k)
    priority[related.families.kept] = 1.0
    if related.errors is None:
        return group_models(("",) * k, None, None, priority)
    return group_models(("",) * k, related.errors.excess, related.near_copies, priority)


def format_command(related: RelatedModels, families: ModelFamilies, benchmark: str) -> str:
    """Return the command that ranks the representatives of some families alone."""
    names = ",".join(related.models[column].partition(" (run ")[0] for column in families.kept.tolist())
    return f"suffrage leaderboard {shlex.quote(benchmark)} --models {shlex.quote(names)}"


def _count(n: int, singular: str, plural: str) -> str:
    return f"{n:,} {singular if n == 1 else plural}"
