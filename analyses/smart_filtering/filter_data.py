"""The data of the filter steps: scores, texts, evidence of the filter models, and vectors, by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.unanimity import Unanimity
from analyses.presentation.validation import collect_errors, validate
from analyses.smart_filtering.validation import check_directions, check_vectors
from tracker.queries.answers import AnswerMatrix
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.filtering.evidence import Evidence, combine_evidence
from tracker.queries.filtering.filter_models import FilterModels, select_best_models
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts


@dataclass(frozen=True, kw_only=True)
class FilterModelOptions:
    """Options of every step that goes by the filter models: which models filter, and when they are sure."""

    n_models: Annotated[int, ("Number of filter models, each of a different organization, if --models names none.")] = 7
    open_only: Annotated[bool, "Choose only models with open weights."] = False
    allow_unknown: Annotated[bool, "Treat each model of unknown organization as an organization."] = False
    confidence: Annotated[float, "Probability of the reference answer above which a model is confident."] = 0.8
    probability: Annotated[
        Literal["letters", "likelihoods"] | None,
        "Kind of probability, if both are stored. The paper's kind is letters.",
    ] = None
    without_confidence: Annotated[bool, "Use right and wrong alone, without probabilities."] = False


@dataclass(frozen=True, kw_only=True)
class FilterInputs:
    """The stored data of the analysis, as loaded.

    Attributes:
        prompts: texts and options.
        filter_models: the models that were named, and the makers of all.
        probabilities: of the reference answers in the runs of the scores.
        answer_only: runs that did not see the question.
        answers: the models' answers with their own probability of each.
        vectors: of the prompts.
    """

    prompts: PromptTexts
    filter_models: FilterModels
    probabilities: ReferenceProbabilities
    answer_only: AnswerOnlyRuns
    answers: AnswerMatrix
    vectors: StoredEmbeddings


@dataclass(frozen=True, kw_only=True)
class FilterData:
    """The data of all prompts with a score; rows are those of the scores.

    Attributes:
        scores: right (1) and wrong (0) of all models; gaps stay gaps.
        names: of the prompts.
        texts: of the prompts; None where unknown.
        choices: options of the prompts; None where unknown.
        n_unscored: prompts without any score, which are in none of these.
        models: the makers of all models.
        columns: of the filter models, the best first.
        kind: of the probabilities, ``letters`` or ``likelihoods``; '' where right and wrong alone decide.
        evidence: scores and probabilities, with the question and without.
        unanimity: the same under the chosen kind and confidence.
        answers: in the order of the scores.
        vectors: ``(n_prompts, d)``; None where no step needs them.
        seed: of all random draws.
    """

    scores: PerformanceMatrix
    names: Sequence[str]
    texts: Sequence[str | None]
    choices: Sequence[Sequence[str] | None]
    n_unscored: int
    models: FilterModels
    columns: NDArray[np.intp]
    kind: str
    evidence: Evidence
    unanimity: Unanimity
    answers: AnswerMatrix
    vectors: NDArray[np.float32] | None
    seed: int

    @property
    def filter_models(self) -> tuple[str, ...]:
        """Names, the best first."""
        return tuple(self.scores.models[column] for column in self.columns)

    @property
    def all_filter_models_get(self) -> str:
        """Subject and verb of a sentence about all filter models."""
        m = len(self.columns)
        return {1: "the one filter model gets", 2: "both filter models get"}.get(m, f"all {m} filter models get")

    @property
    def complete_columns(self) -> NDArray[np.intp]:
        """Of the models with a score for every prompt."""
        return np.flatnonzero(~np.isnan(self.scores.Q).any(axis=0))

    def choose_best(
        self, columns: NDArray[np.intp], options: FilterModelOptions, *, with_answer_only: bool
    ) -> NDArray[np.intp]:
        """Choose the filter models among some columns.

        Args:
            columns: of models with a score for every prompt.
            options: of the filter models.
            with_answer_only: whether they must have been run without the question.
        """
        known = self.evidence.is_known(self.kind, with_blind=with_answer_only)
        able = columns[known[columns]]
        makers = self.models.organizations([self.scores.models[j] for j in able], open_only=options.open_only)
        means = np.where([maker is None for maker in makers], np.nan, self.scores.Q[:, able].mean(axis=0))
        return able[select_best_models(means, [maker or "" for maker in makers], len(self.columns))]


def prepare_data(
    scores: PerformanceMatrix, inputs: FilterInputs, options: FilterModelOptions, *, needs_vectors: bool, seed: int
) -> FilterData:
    """Choose the filter models and align all data with the scores.

    Raises:
        NotFoundError: a model that was named has no scores.
        SelectionError: no probabilities, no vectors, or not of all; too few models.
    """
    known = combine_evidence(scores, inputs.probabilities, inputs.answer_only)

    def choose_models() -> tuple[NDArray[np.intp], str]:
        columns = inputs.filter_models.choose(
            scores, n_models=options.n_models, open_only=options.open_only, allow_unknown=options.allow_unknown
        )
        kind = "" if options.without_confidence else known.kind(columns, scores.models, options.probability)
        return columns, kind

    vectors, (columns, kind) = collect_errors(
        lambda: _load_vectors(inputs.vectors, scores) if needs_vectors else None, choose_models
    )
    answers = inputs.answers.align(scores.prompt_ids)
    rows = inputs.prompts.find_rows(scores.prompt_ids)
    return FilterData(
        scores=scores,
        names=[inputs.prompts.names[row] for row in rows],
        texts=[inputs.prompts.texts[row] for row in rows],
        choices=[inputs.prompts.choices[row] for row in rows],
        n_unscored=len(inputs.prompts.prompt_ids) - scores.n_prompts,
        models=inputs.filter_models,
        columns=columns,
        kind=kind,
        evidence=known,
        unanimity=_find_unanimity(known, answers, kind, options.confidence),
        answers=answers,
        vectors=vectors,
        seed=seed,
    )


def _load_vectors(vectors: StoredEmbeddings, scores: PerformanceMatrix) -> NDArray[np.float32]:
    """Return a vector of each prompt.

    Raises:
        SelectionError: some prompts have no vector, or a vector has no direction.
    """
    validate(check_vectors(vectors))
    assert vectors.vectors is not None
    E = vectors.vectors.align(scores.prompt_ids)
    validate(check_directions(E))
    return E


def _find_unanimity(known: Evidence, answers: AnswerMatrix, kind: str, confidence: float) -> Unanimity:
    nothing = np.full(known.right.shape, np.nan)
    return Unanimity(
        right=known.right,
        wrong=known.wrong,
        reference_probability=known.gold.get(kind) if kind else None,
        answer_probability=answers.probability if kind else None,
        blind_right=known.blind_right,
        blind_reference_probability=known.blind_gold.get(kind, nothing) if kind else None,
        confidence=confidence,
    )
