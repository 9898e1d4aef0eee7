"""Which prompts could this benchmark do without?

Prompts that all of the best models answer with confidence, prompts they answer without seeing the question, and
prompts that repeat each other are singled out; every prompt gets a decision, with all reasons that applied. Beside the
filter stands what it does to scores, ranks and agreement of the models, and how well what stays foretells the whole.

Source: Gupta et al. 2024 (SMART filtering); every step and number is defined in docs/statistics/smart-filtering.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.anomalous_tasks import anomalous_tasks
from analyses.numerics.filtering.duplicates import duplicate_groups
from analyses.numerics.filtering.effects.filter_effects import FilterEffects, measure_effects
from analyses.numerics.filtering.removal import remove_all_but_one
from analyses.numerics.filtering.similar_prompts.neighbours import nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_step import SimilarStep, find_similar, trace_similar_path
from analyses.numerics.filtering.step_flags import StepFlags, find_kept, make_flags
from analyses.numerics.filtering.unanimity import Unanimity, unanimous_steps
from analyses.presentation import filter_model_tables as model_tables
from analyses.presentation.validation import collect_errors, validate
from analyses.smart_filtering import figures, tables
from analyses.smart_filtering import summary as wording
from tracker.queries.answers import Answers
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.filtering.evidence import Evidence, answers_or_outcomes, evidence
from tracker.queries.filtering.filter_models import FilterModels, select_best_models
from tracker.queries.filtering.prompt_filter import FILTER_MODELS
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.recording.finding import (
    FilterDecisions,
    Finding,
    FlaggedPrompts,
    Metric,
    RankedModels,
    Report,
    Undefined,
    analysis,
    finite_or_undefined,
)
from tracker.statistics.ranking import mean_ranks

SUSPECT = "suspect-label"
"""The step that is reported only."""
INTERVALS = (".n_removed", ".random_low", ".random_high", ".raw.mean", "random.tau.mean", "n_maxima")
"""Ends of the names of numbers that are no headlines."""


@dataclass(frozen=True, kw_only=True)
class SmartFiltering(Finding):
    """A filter, and what it does to the benchmark.

    Attributes:
        steps: by name.
        skipped: why a step was not taken, by its name.
        kept: ``(n_prompts,)`` whether the prompt stays.
        filter_models: who filtered, the best first.
        kind: of the probabilities, ``letters`` or ``likelihoods``; '' where right and wrong alone decided.
        confidence: what a probability had to exceed.
        similar: the step as computed; None where it was left out.
        models: those with a score for every prompt, which are ranked.
        agreement_of: ``answers``, or ``right or wrong`` where not every model's answers are stored.
        against: the other benchmark and its metric; '' where none was named.
        effects: on these models.
    """

    steps: Mapping[str, StepFlags]
    skipped: Mapping[str, str]
    kept: NDArray[np.bool_]
    filter_models: tuple[str, ...]
    kind: str
    confidence: float
    similar: SimilarStep | None
    models: tuple[str, ...]
    agreement_of: str
    against: str
    effects: FilterEffects

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Counts, shares by step, then the effects."""
        n = len(self.kept)
        metrics: dict[str, Metric] = {
            "n_prompts": float(n),
            "n_kept": float(self.kept.sum()),
            "share_removed": float((~self.kept).mean()),
            "n_models": float(len(self.models)),
            "n_filter_models": float(len(self.filter_models)),
        }
        for name, one in self.steps.items():
            counted = {"flagged": one.flagged} if name == SUSPECT else {"flagged": one.flagged, "removed": one.removed}
            numbers: dict[str, Metric] = {}
            for what, marked in counted.items():
                numbers |= {f"n_{what}": float(marked.sum()), f"share_{what}": float(marked.mean())}
            if name in self.skipped:  # why stands once
                numbers = dict.fromkeys(numbers, Undefined("the step was not taken"))
                numbers["n_flagged"] = Undefined(self.skipped[name])
            metrics |= {f"{name.replace('-', '_')}.{number}": value for number, value in numbers.items()}
        if self.similar is not None:
            found = self.similar
            metrics["similar.threshold"] = Undefined(found.reason) if found.threshold is None else found.threshold
            metrics["similar.n_maxima"] = float(len(found.density.maxima))
            metrics["similar.n_pairs"] = float(found.n_pairs)
            metrics["similar.largest_group_share"] = found.largest_group / n
        return metrics | {name: finite_or_undefined(*number) for name, number in self.effects.numbers.items()}

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The density of distances, random subsets, splits of the models."""
        if self.similar is None:
            return self.effects.arrays
        found = self.similar.density
        density = {"density.grid": found.grid, "density.density": found.density, "density.maxima": found.maxima}
        return {**self.effects.arrays, **density}

    @property
    def headline(self) -> Sequence[str]:
        """Counts, shares, effects; not the ends of every interval."""
        main = [name for name in self.metrics if not name.endswith(INTERVALS)]
        return [name for name in main if not (name.startswith("subset_error") and name.endswith((".low", ".high")))]

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(
            self.steps,
            self.kept,
            self.skipped,
            self.effects,
            filter_models=self.filter_models,
            kind=self.kind,
            confidence=self.confidence,
            similar=self.similar,
            agreement_of=self.agreement_of,
            against=self.against,
        )


@analysis
def analyze(
    scores: PerformanceMatrix,
    prompts: Prompts,
    filter_models: FilterModels,
    probabilities: ReferenceProbabilities,
    answer_only: AnswerOnlyRuns,
    answers: Answers,
    vectors: StoredEmbeddings,
    against: BenchmarkScores | None,
    *,
    duplicates: Annotated[
        Literal["full", "question"], "what makes prompts equal: question and options, or the question alone"
    ] = "full",
    exclude_task: Annotated[tuple[str, ...], "anomalous tasks, removed whole"] = (),
    n_models: Annotated[int, "how many filter, each of another organization, where --models names none"] = 7,
    open_only: Annotated[bool, "choose only models whose weights can be downloaded"] = False,
    allow_unknown: Annotated[bool, "a model of unknown organization counts as one of its own"] = False,
    confidence: Annotated[float, "probability of the gold answer that a sure model exceeds"] = 0.8,
    probability: Annotated[
        Literal["letters", "likelihoods"] | None, "which kind, where both are stored; letters are the paper's"
    ] = None,
    without_confidence: Annotated[bool, "go by right and wrong alone"] = False,
    retain: Annotated[float, "share of the easy prompts that stay, at random"] = 0.1,
    without_similar: Annotated[bool, "leave the step out that needs vectors of the prompts"] = False,
    n_neighbours: Annotated[int, "nearest neighbours of each prompt whose distances make the density"] = 100,
    bandwidth: Annotated[float, "of the density, as a factor of the standard deviation of the distances"] = 0.15,
    unimodal: Annotated[
        Literal["keep", "half"], "what to do with the only maximum: the authors' code halves it"
    ] = "keep",
    threshold: Annotated[
        float | None, "cosine distance below which prompts are similar; else the first maximum"
    ] = None,
    groups: Annotated[Literal["components", "stars"], "of similar prompts: connected ones, or the authors' stars"] = (
        "components"
    ),
    protect_lexical: Annotated[float, "with stars: questions more alike than this ratio are not called similar"] = 0.8,
    largest_group: Annotated[float, "share of all prompts that one group may hold; else the step is refused"] = 0.05,
    n_subsets: Annotated[int, "random subsets that the agreement of the models is compared with"] = 200,
    n_splits: Annotated[int, "random halves of the models for the error of the subset"] = 100,
    n_draws: Annotated[int, "draws of the models for the change of a correlation"] = 10_000,
    seed: Annotated[int, "of all random draws"] = 0,
) -> Report:
    """Judge every prompt by every step, and put together what the filter does.

    Args:
        scores: right (1) and wrong (0) of all models; gaps stay gaps.
        prompts: their texts and options.
        filter_models: who filters, or who made whom.
        probabilities: of the gold answers in the same runs.
        answer_only: runs that did not see the question.
        answers: what the models answered, with their own probability of it.
        vectors: of the prompts.
        against: scores of the same models on another benchmark.
        duplicates, exclude_task: pre-filter.
        n_models, open_only, allow_unknown: choice of the filter models.
        confidence, probability, without_confidence, retain: the steps that ask whether all of them are sure.
        without_similar, n_neighbours, bandwidth, unimodal, threshold, groups, protect_lexical, largest_group: the
            step that compares meanings.
        n_subsets, n_splits, n_draws: of the evidence.
        seed: the same seed gives the same decisions, whatever the number of workers.

    Raises:
        NotFoundError: a task or model that was named is not there.
        SelectionError: scores other than 0 and 1; no probabilities, no vectors, or not of all; too few models.
    """
    validate(
        wording.problems(
            scores,
            shares={"retain": retain, "protect_lexical": protect_lexical, "largest_group": largest_group},
            counts={"n_models": n_models, "n_neighbours": n_neighbours, "n_subsets": n_subsets, "n_splits": n_splits},
            n_draws=n_draws,
            confidence=confidence,
            bandwidth=bandwidth,
            threshold=threshold,
            seed=seed,
            exclude_task=exclude_task,
        )
    )
    known = evidence(scores, probabilities, answer_only)

    def choose_models() -> tuple[NDArray[np.intp], str]:
        """Who filters, and the kind of probability that is known of them; '' where it needs none."""
        chosen = filter_models.choose(scores, n_models=n_models, open_only=open_only, allow_unknown=allow_unknown)
        return chosen, "" if without_confidence else known.kind(chosen, scores.models, probability)

    E, (columns, kind) = collect_errors(lambda: _vectors(vectors, scores, without_similar), choose_models)
    answers = answers.align(scores.prompt_ids)
    said = _unanimity(known, answers, kind, confidence)
    own_unknown = [scores.models[j] for j in columns if said.own is not None and np.isnan(said.own[:, j]).all()]
    skipped = wording.skipped(
        blind=known.unblinded(columns, scores.models, kind or None), own_unknown=own_unknown, has_vectors=E is not None
    )
    rows = prompts.find_rows(scores.prompt_ids)
    texts, choices = [prompts.texts[row] for row in rows], [prompts.choices[row] for row in rows]
    if not any(texts):
        skipped["duplicate"] = "no text of these prompts is stored"
    with_blind = "contaminated" not in skipped
    has_all = known.is_known(kind, with_blind=with_blind)
    similar, path = None, None
    if E is not None:
        near = nearest_neighbours(E, n_neighbours)
        similar = find_similar(
            E,
            [text or "" for text in texts],
            n_neighbours=n_neighbours,
            bandwidth=bandwidth,
            unimodal=unimodal,
            threshold=threshold,
            groups=groups,
            protect_lexical=protect_lexical,
            largest_group=largest_group,
            seed=seed,
            neighbours=near,
        )
        path = trace_similar_path(
            E,
            near,
            n_neighbours=n_neighbours,
            bandwidth=bandwidth,
            unimodal=unimodal,
            largest_group=largest_group,
            is_step=threshold is None and groups == "components",
        )
        skipped |= {"similar": similar.reason} if similar.reason else {}
    same = duplicate_groups(texts, choices, by=duplicates)
    nothing = make_flags(np.zeros(scores.n_prompts, dtype=np.bool_))
    steps = {
        "duplicate": make_flags(same >= 0, remove_all_but_one(same, seed=seed), same),
        "anomalous": make_flags(np.isin(scores.tasks, exclude_task)),
        **unanimous_steps(said, columns, retain=retain, with_blind=with_blind, seed=seed),
        "similar": similar.step if similar else nothing,
    }
    stays = find_kept(steps.values(), scores.n_prompts)
    suspect = nothing if SUSPECT in skipped else make_flags(said.suspect(columns), nothing.removed)
    complete = np.flatnonzero(~np.isnan(scores.Q).any(axis=0))
    models = tuple(scores.models[column] for column in complete)
    elsewhere = None if against is None else against.align(models)
    validate(wording.too_few(models, elsewhere, against))

    def choose(some: NDArray[np.intp]) -> NDArray[np.bool_]:
        """What would stay if the best of these ranked models alone had filtered."""
        able = complete[some][has_all[complete[some]]]
        makers = filter_models.organizations([scores.models[j] for j in able], open_only=open_only)
        means = np.where([maker is None for maker in makers], np.nan, scores.Q[:, able].mean(axis=0))
        best = able[select_best_models(means, [maker or "" for maker in makers], len(columns))]
        if not len(best):
            return nothing.flagged  # nothing is kept: the split has no error
        again = unanimous_steps(said, best, retain=retain, with_blind=with_blind, seed=seed)
        return find_kept({**steps, **again}.values(), scores.n_prompts)

    coded, agreement_of = answers_or_outcomes(answers, scores, complete)
    assert coded is not None  # scores are 0 and 1
    is_filter_model = np.isin(complete, columns)
    effects = measure_effects(
        np.ascontiguousarray(scores.Q[:, complete]),
        stays,
        is_filter_model,
        coded,
        elsewhere,
        choose,
        n_subsets=n_subsets,
        n_splits=n_splits,
        n_draws=n_draws,
        seed=seed,
    )
    found = SmartFiltering(
        steps={**steps, SUSPECT: suspect},
        skipped=skipped,
        kept=stays,
        filter_models=tuple(scores.models[column] for column in columns),
        kind=kind,
        confidence=confidence,
        similar=similar,
        models=models,
        agreement_of=agreement_of,
        against="" if against is None else against.label,
        effects=effects,
    )
    odd = anomalous_tasks(
        scores.tasks,
        np.array([np.nan if text is None else len(text) for text in texts], dtype=np.float64),
        np.array(
            [np.nan if text is None else len(offered or ()) for text, offered in zip(texts, choices, strict=True)],
            dtype=np.float64,
        ),
        E,
    )
    blind = model_tables.answer_only(scores, known, choices, found.filter_models)
    return Report(
        found,
        filter=_decisions(scores.prompt_ids, found.steps, stays),
        rankings=_rankings(found, scores, columns),
        tables={
            "steps": tables.by_step(steps, stays, skipped),
            "models": tables.by_model(found.models, effects.ranking, is_filter_model),
            "tasks": tables.by_task(scores.tasks, found.steps, stays),
            "decisions": tables.decisions([prompts.names[row] for row in rows], scores.tasks, found.steps, stays),
            "filter_models": model_tables.filter_models(found.filter_models, filter_models, kind),
            "answer_only": blind,
            "agreement": tables.agreement(found.models, effects.before, effects.after),
            **({"correlations": tables.correlations(effects.changes)} if effects.changes else {}),
            **({"path": model_tables.path(path)} if path else {}),
        },
        figures=figures.pictures(
            models,
            effects,
            found.steps,
            stays,
            scores.tasks,
            is_filter_model,
            what="answer" if agreement_of == "answers" else "outcome",
            similar=similar,
            path=path,
        ),
        warnings=wording.warnings(
            filter_models=found.filter_models,
            makers=filter_models.organizations(found.filter_models),
            kind=kind,
            models=found.models,
            scores=scores,
            n_unscored=len(prompts.prompt_ids) - scores.n_prompts,
            unknown_texts=sum(text is None for text in texts),
            odd=[one for one in odd if one.task not in exclude_task],
            skipped=skipped,
            blind=blind,
            similar=similar,
            path=path,
            effects=effects,
        ),
    )


def _vectors(vectors: StoredEmbeddings, scores: PerformanceMatrix, without_similar: bool) -> NDArray[np.float32] | None:
    """A vector of each prompt; None where they are not wanted.

    Raises:
        SelectionError: they are wanted, and not there for all, or have no direction.
    """
    if without_similar:
        return None
    validate(wording.without_vectors(vectors))
    assert vectors.found is not None
    E = vectors.found.align(scores.prompt_ids)
    validate(wording.unusable(E))
    return E


def _unanimity(known: Evidence, answers: Answers, kind: str, confidence: float) -> Unanimity:
    nothing = np.full(known.right.shape, np.nan)
    return Unanimity(
        right=known.right,
        wrong=known.wrong,
        gold=known.gold.get(kind) if kind else None,
        own=answers.probability if kind else None,
        blind_right=known.blind_right,
        blind_gold=known.blind_gold.get(kind, nothing) if kind else None,
        confidence=confidence,
    )


def _decisions(
    prompt_ids: NDArray[np.int64], steps: Mapping[str, StepFlags], stays: NDArray[np.bool_]
) -> FilterDecisions:
    reasons = {}
    for name, one in steps.items():
        at = np.flatnonzero(one.flagged)
        groups = one.groups[at] if (one.groups[at] >= 0).any() else None
        reasons[name] = FlaggedPrompts(prompt_ids=prompt_ids[at], retained=~one.removed[at], groups=groups)
    return FilterDecisions(prompt_ids=prompt_ids, kept=stays, reasons=reasons)


def _rankings(found: SmartFiltering, scores: PerformanceMatrix, columns: NDArray[np.intp]) -> dict[str, RankedModels]:
    """Models before and after; the filter models by their mean over the prompts they have a score for."""
    ranking, means = found.effects.ranking, np.nanmean(scores.Q[:, columns], axis=0)
    return {
        "before": RankedModels(models=found.models, score=ranking.score_before, rank=ranking.rank_before),
        "after": RankedModels(models=found.models, score=ranking.score_after, rank=ranking.rank_after),
        FILTER_MODELS: RankedModels(models=found.filter_models, score=means, rank=mean_ranks(means)),
    }
