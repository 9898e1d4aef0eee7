"""Group the models of a performance matrix into families."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracker.queries.answers import AnswerMatrix
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.related_models.family_labels import FamilyLabels
from tracker.statistics.related.answer_agreement import AnswerAgreement, compare_answers
from tracker.statistics.related.error_agreement import MIN_MODELS, ErrorAgreement, compare_errors
from tracker.statistics.related.families import ModelFamilies, compute_priority, compute_typicality, group_models

Representative = Literal["best", "typical"]

MAX_MODELS = 2000
"""Models whose pairs are compared."""


@dataclass(frozen=True, kw_only=True)
class RelatedModels:
    """The families of some models, and how far their pairs agree.

    Attributes:
        models: names of the columns.
        labels: family of each by stored facts or name.
        errors: agreement on errors; None where pairs cannot be compared.
        answers: agreement on wrong answers; None without stored answers.
        families: the groups.
        reason: why errors are not compared; '' if they are.
        warnings: prompts and models that are left out, because scores are missing.
        completed: the same on extreme completions of the table, if there are any; see `load_completions`.
    """

    models: tuple[str, ...]
    labels: tuple[str, ...]
    errors: ErrorAgreement | None
    answers: AnswerAgreement | None
    families: ModelFamilies
    reason: str = ""
    warnings: tuple[str, ...] = ()
    completed: tuple[RelatedModels, ...] = ()

    @property
    def near_copies(self) -> NDArray[np.bool_]:
        """``(k, k)`` whether two models are near-copies, by errors or by wrong answers; False if not compared.

        With completions, near-copies are such on each of them.
        """
        copies = np.zeros((len(self.models), len(self.models)), dtype=np.bool_)
        for agreement in (self.errors, self.answers):
            if agreement is not None:
                copies |= agreement.near_copies
        for related in self.completed:
            copies &= related.near_copies
        return copies

    @property
    def n_families(self) -> int:
        """Number of families."""
        return self.families.kept.size

    @property
    def are_unrelated(self) -> bool:
        """Whether every model is a separate family."""
        return self.n_families == len(self.models)

    def list_closest(self) -> list[tuple[int, int]]:
        """Return all pairs of columns that are compared, the largest excess agreement first."""
        if self.errors is None:
            return []
        i, j = np.triu_indices(len(self.models), 1)
        excess = self.errors.excess[i, j]
        order = np.argsort(-np.nan_to_num(excess, nan=-np.inf), kind="stable")
        return [(int(i[pair]), int(j[pair])) for pair in order.tolist() if not np.isnan(excess[pair])]


def relate_models(
    scores: PerformanceMatrix,
    labels: FamilyLabels | None = None,
    answers: AnswerMatrix | None = None,
    *,
    representative: Representative = "best",
    completed: tuple[RelatedModels, ...] = (),
) -> RelatedModels:
    """Compare all pairs of models, and group them.

    Args:
        scores: of the models; pairs are compared where all scores are 0 or 1.
        labels: stored families; None for names only.
        answers: of the same models; None to compare scores only.
        representative: the model that stands for a family: the one with the best mean, or the most typical one, whose
            scores correlate most with those of the other models.
        completed: the same models on completions of the table.
    """
    labels = labels or FamilyLabels()
    names = tuple(labels.find(model) for model in scores.models)
    k = scores.n_models
    reason = _explain_uncompared(scores)
    errors = None if reason else compare_errors(scores.Q if scores.higher_is_better else 1 - scores.Q)
    agreement = None
    if errors is not None and answers is not None:
        matched = answers.align(scores.prompt_ids)
        is_wrong = np.asarray((0 if scores.higher_is_better else 1) == scores.Q)
        agreement = compare_answers(matched.codes, is_wrong)
    related = RelatedModels(
        models=scores.models,
        labels=names,
        errors=errors,
        answers=agreement,
        families=ModelFamilies(representative=np.arange(k)),
        reason=reason,
        completed=completed,
    )
    families = group_models(
        names,
        None if errors is None else errors.excess,
        None if errors is None else related.near_copies,
        compute_typicality(scores.Q)
        if representative == "typical"
        else compute_priority(scores.Q, higher_is_better=scores.higher_is_better),
    )
    return replace(related, families=families)


def _explain_uncompared(scores: PerformanceMatrix) -> str:
    if not scores.is_binary:
        return "scores are not 0 and 1"
    if scores.n_models < MIN_MODELS:
        return f"near-copies are found among {MIN_MODELS} models or more"
    if scores.n_models > MAX_MODELS:
        return f"pairs of at most {MAX_MODELS:,} models are compared"
    return ""
