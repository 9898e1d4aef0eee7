"""SmallBenchmark simulated benchmarks for filters: everything that the store would hand to the question, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyses.smart_filtering import analyze
from tracker.plugins.parameters import accept_flat_options
from tracker.queries.answers import AnswerMatrix
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.embeddings import Embeddings, StoredEmbeddings
from tracker.queries.filtering.filter_models import FilterModels, ModelOrigin
from tracker.queries.filtering.reference_probabilities import KINDS, AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import PromptTexts
from tracker.recording.finding import Report

run_filter = accept_flat_options(analyze)
FEW: dict[str, Any] = {"n_subsets": 3, "n_splits": 3, "n_draws": 20}
"""Draws of the evidence, where a test is of the steps."""
USUAL: dict[str, Any] = {"n_models": 3, "n_neighbours": 4, "allow_unknown": True, "largest_group": 0.3}
"""Options under which most small benchmarks are answered."""
FIRST_ID = 1000


@dataclass(frozen=True, kw_only=True)
class SmallBenchmark:
    """A benchmark; rows are prompts, columns are models.

    Attributes:
        models: names.
        makers: organization and whether weights are open, of some models.
        tasks, texts, choices: of each prompt.
        scores: 0, 1, NaN.
        gold: probability of the gold answer by kind.
        blind: scores without the question; None where there is no such run at all.
        blind_gold: as ``gold``.
        codes, answer_probability: number and probability of each answer.
        vectors: None where there are none.
        named_models: models that are to filter; empty where the question chooses.
        external_scores: scores on another benchmark.
        prompt_ids: keys; the rows may be in any order of them.
    """

    models: tuple[str, ...]
    makers: dict[str, ModelOrigin]
    tasks: list[str]
    texts: list[str | None]
    choices: list[list[str] | None]
    scores: np.ndarray
    gold: dict[str, np.ndarray]
    blind: np.ndarray | None
    blind_gold: dict[str, np.ndarray]
    codes: np.ndarray
    answer_probability: np.ndarray
    vectors: np.ndarray | None
    prompt_ids: np.ndarray
    named_models: tuple[str, ...] = ()
    external_scores: dict[str, float] | None = None

    def but(self, **changes: Any) -> SmallBenchmark:
        """The same with other contents."""
        return replace(self, **changes)

    def run(self, **options: Any) -> Report:
        """The report of the question, with few draws of the evidence."""
        return run_filter(*self.inputs(), **FEW | options)

    def inputs(self) -> tuple[Any, ...]:
        """What the store would hand to the question."""
        runs, order = np.arange(len(self.models), dtype=np.int64), np.argsort(self.prompt_ids)
        scores = self._matrix(self.scores)
        blind = None if self.blind is None else self._matrix(self.blind, first_run=100)
        vectors = StoredEmbeddings(
            vectors=None, problem="The prompts of b have no vectors yet. Compute them: suffrage embed b."
        )
        if self.vectors is not None:
            embedded = Embeddings(
                E=self.vectors[order].astype(np.float32),
                prompt_ids=self.prompt_ids[order],
                encoder_id=1,
                encoder="planted@1:question",
                benchmark="b",
            )
            vectors = StoredEmbeddings(vectors=embedded)
        benchmark_scores = self.external_scores and BenchmarkScores(
            benchmark="arena",
            metric="elo",
            scores=self.external_scores,
            higher_is_better=True,
            run_ids=np.empty(0, np.int64),
        )
        answers = AnswerMatrix(
            codes=self.codes.astype(np.int32),
            probability=self.answer_probability,
            texts=tuple("ABCDEFGH"),
            prompt_ids=self.prompt_ids,
            models=self.models,
            run_ids=runs,
        )
        return (
            scores,
            self._prompts(order),
            FilterModels(selected=self.named_models, makers=self.makers),
            self._probabilities(self.gold),
            AnswerOnlyRuns(
                scores=blind,
                probabilities=self._probabilities(self.blind_gold, first_run=100),
                problem="" if blind else "b has no answer-only runs (answer_only).",
            ),
            answers,
            vectors,
            benchmark_scores,
        )

    def _matrix(self, Q: np.ndarray, metric: str = "accuracy", first_run: int = 0) -> PerformanceMatrix:
        """Rows without any score and models without any are left out, as the store leaves them out."""
        rows = ~np.isnan(Q).all(axis=1)
        columns = (
            np.flatnonzero(~np.isnan(Q).all(axis=0)) if first_run or metric != "accuracy" else np.arange(Q.shape[1])
        )
        return PerformanceMatrix(
            Q=np.ascontiguousarray(Q[rows][:, columns]),
            prompt_ids=self.prompt_ids[rows],
            tasks=np.array(self.tasks)[rows],
            models=tuple(self.models[j] for j in columns),
            run_ids=columns.astype(np.int64) + first_run,
            benchmark="b",
            metric=metric,
        )

    def _probabilities(self, kinds: dict[str, np.ndarray], first_run: int = 0) -> ReferenceProbabilities:
        stored = {kind: P for kind, P in kinds.items() if not np.isnan(P).all()}
        return ReferenceProbabilities(
            kinds={kind: self._matrix(P, KINDS[kind], first_run) for kind, P in stored.items()},
            run_ids=np.empty(0, np.int64),
        )

    def _prompts(self, order: np.ndarray) -> PromptTexts:
        return PromptTexts(
            prompt_ids=self.prompt_ids[order],
            tasks=tuple(self.tasks[i] for i in order),
            names=tuple(f"p{i}" for i in order),
            texts=tuple(self.texts[i] for i in order),
            choices=tuple(self.choices[i] for i in order),
            answers=(None,) * len(order),
            details=({},) * len(order),
        )


def small(seed: int, n: int | None = None, m: int | None = None) -> SmallBenchmark:
    """A random benchmark with easy, contaminated, repeated and mislabelled prompts, and gaps."""
    rng = np.random.default_rng(seed)
    n = n or 60 + int(140 * rng.random() ** 3)
    m = m or int(rng.integers(5, 10))
    like = _draw_repeats(rng, n)  # the first prompt that each repeats in meaning
    texts, choices = _words(rng, like)
    easy, leaked = rng.random(n) < 0.25, rng.random(n) < 0.1
    odds = rng.normal(0.3, 1, (1, m)) - rng.normal(0, 1, (n, 1))
    right = (rng.random((n, m)) < 1 / (1 + np.exp(-odds))) | easy[:, None] | leaked[:, None]
    hopeless = rng.random(n) < 0.1
    right &= ~hopeless[:, None]
    blind_right = (rng.random((n, m)) < 0.3) | leaked[:, None]
    scores, blind = right.astype(float), blind_right.astype(float)
    gap = np.zeros((n, m), dtype=bool)
    gap[:, rng.integers(m)] = rng.random(n) < 0.1
    scores[gap] = np.nan
    blind[rng.random((n, m)) < 0.01] = np.nan
    codes = np.where(right, 0, rng.integers(1, 4, (n, m)))
    gold = {kind: _sure(rng, right, easy | leaked) for kind in KINDS}
    for P in gold.values():
        P[np.isnan(scores)] = np.nan
        P[rng.random((n, m)) < 0.005] = np.nan
    answer_probability = np.where(right, gold["letters"], _sure(rng, np.ones((n, m), bool), hopeless))
    models = tuple(f"model {j}" for j in range(m))
    return SmallBenchmark(
        models=models,
        makers={
            name: ModelOrigin(organization=f"maker {rng.choice([j, j // 2])}", open_weights=bool(rng.random() < 0.8))
            for j, name in enumerate(models)
        },
        tasks=[f"task {t}" for t in np.sort(rng.integers(0, 6, n))],
        texts=texts,
        choices=choices,
        scores=scores,
        gold=gold,
        blind=blind,
        blind_gold={kind: _sure(rng, blind_right, leaked) for kind in KINDS},
        codes=np.where(np.isnan(scores), -1, codes),
        answer_probability=np.where(np.isnan(scores), np.nan, answer_probability),
        vectors=_vectors(rng, like),
        prompt_ids=FIRST_ID + rng.permutation(n),
    )


def complete_benchmark() -> SmallBenchmark:
    """Nine models of nine makers and 120 prompts, without gaps in the scores and the answers."""
    b = small(1, n=120, m=9)
    makers = {name: ModelOrigin(organization=f"maker of {name}", open_weights=True) for name in b.models}
    return b.but(scores=np.nan_to_num(b.scores), codes=np.where(b.codes < 0, 3, b.codes), makers=makers)


def _sure(rng: np.random.Generator, right: np.ndarray, by_all: np.ndarray) -> np.ndarray:
    """Probabilities: high where right and where all are sure of it, at times exactly 0.8, which is not above 0.8."""
    n, m = right.shape
    high = rng.choice([0.8, np.nextafter(0.8, 1), 0.85, 0.95, 1.0], (n, m), p=[0.01, 0.02, 0.07, 0.8, 0.1])
    P = np.where(right, rng.uniform(0.3, 1, (n, m)), rng.uniform(0, 0.5, (n, m)))
    return np.where(by_all[:, None] & right, high, P)


def _draw_repeats(rng: np.random.Generator, n: int) -> np.ndarray:
    like = np.arange(n)
    for i in range(1, n):
        if rng.random() < 0.25:
            like[i] = like[rng.integers(0, i)]
    return like


def _vectors(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    n = len(like)
    meaning = rng.normal(0, 1, (n, 10))
    E = meaning[like] + rng.normal(0, 0.1, (n, 10))
    equal = rng.random(n) < 0.05
    E[equal] = meaning[like[equal]]
    return np.asarray(E * rng.uniform(0.5, 2, (n, 1)))


def _words(rng: np.random.Generator, like: np.ndarray) -> tuple[list[str | None], list[list[str] | None]]:
    """Questions: those alike in meaning are often nearly or wholly alike in words; some are not known."""
    vocabulary = ["river", "stone", "engine", "garden", "seven", "paper", "orbit", "silver", "market", "winter"]
    texts: list[str | None] = []
    choices: list[list[str] | None] = []
    for i, first in enumerate(like.tolist()):
        text = f"What is {' '.join(rng.choice(vocabulary, 3))} {i}?"
        offered: list[str] | None = [f"{w}" for w in rng.choice(vocabulary, 4)]
        if first != i and texts[first]:
            text = str(texts[first])
            kind = rng.integers(5)
            if kind < 2:
                offered = choices[first]
                text = text.upper().replace(" ", "  ") + "\n" if kind else text
            elif kind == 2:
                text = text.replace("What", "Who")
            elif kind == 3:
                text = f"Say {' '.join(rng.choice(vocabulary, 3))} {i}."
        if rng.random() < 0.05:
            text = ["", "  \n"][rng.integers(2)]
        if rng.random() < 0.1:
            offered = None
        texts.append(None if rng.random() < 0.04 else text)
        choices.append(offered)
    return texts, choices
