"""A simulated benchmark whose truth is known: models answer prompts by an item-response model.

A model of ability θ knows the answer to a prompt of difficulty b and discrimination a with probability
sigmoid(a (θ - b)), and guesses among the options where it does not. Into this are planted prompts that
every model answers with confidence, prompts that most models have seen in training, and groups of
near-duplicates, an original and its edits, with similar answers and nearly the same meaning. The same
design and seed give the same bytes.
Source: Birnbaum 1968, chapter 17 (three-parameter logistic model).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.simulation.embeddings import find_originals, simulate_vectors
from tracker.simulation.texts import LETTERS, N_CHOICES, TASKS, MultipleChoiceQuestion, make_questions

GUESSING = 1 / N_CHOICES
DUPLICATE_CORRELATION = 0.95
"""Share of the chance in an answer that near-duplicates have in common."""
REMEMBERED = 0.85
"""Probability that a model answers a prompt it has seen, when the question stands in front of it."""
TASK_DEVIATION = 0.5
"""Standard deviation of a model's ability between tasks."""
GROUP_SIZES = (4, 5, 6)
"""Prompts in a group, by turns: an original and its edits."""

MODELS: dict[str, float] = {
    "northlight/borealis-2-large": 1.75,
    "quillworks/folio-72b": 1.55,
    "tessera-lab/mosaic-pro": 1.35,
    "northlight/borealis-2-small": 1.1,
    "oakhollow/acorn-34b": 0.9,
    "saltmarsh/heron-3": 0.7,
    "paperlantern/kite-20b": 0.45,
    "quillworks/folio-14b": 0.2,
    "hexfield/comb-12b": -0.05,
    "marrowbyte/ossia-9b": -0.3,
    "tessera-lab/mosaic-mini": -0.6,
    "oakhollow/acorn-7b": -0.9,
    "saltmarsh/heron-3-nano": -1.25,
    "paperlantern/kite-3b": -1.6,
}
"""Ability of each invented model of an invented organization."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """What to simulate.

    Attributes:
        n_prompts: in six tasks of equal size.
        n_easy: prompts that every model answers with confidence.
        n_leaked: prompts that most models answer without seeing the question.
        n_groups: groups of near-duplicates, of 4, 5 and 6 prompts in turn.
        n_clean: the weakest models, which have not seen the leaked prompts.
    """

    n_prompts: int = 1200
    n_easy: int = 150
    n_leaked: int = 60
    n_groups: int = 36
    n_clean: int = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """What was planted.

    Attributes:
        ability: ``(n_models,)`` θ of each model over all tasks.
        task_ability: ``(n_tasks, n_models)`` θ in each task.
        difficulty: ``(n_prompts,)`` b of each prompt.
        discrimination: ``(n_prompts,)`` a of each prompt, positive.
        easy: ``(n_prompts,)`` whether every model is right and confident.
        leaked: ``(n_prompts,)`` whether it was seen in training.
        group: ``(n_prompts,)`` number of the group of near-duplicates, -1 = in none.
        remembers: ``(n_models,)`` whether the model has seen the leaked prompts.
    """

    ability: NDArray[np.float64]
    task_ability: NDArray[np.float64]
    difficulty: NDArray[np.float64]
    discrimination: NDArray[np.float64]
    easy: NDArray[np.bool_]
    leaked: NDArray[np.bool_]
    group: NDArray[np.int64]
    remembers: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedResponses:
    """The responses of every model under one condition.

    Attributes:
        predicted: ``(n_prompts, n_models)`` position of the option with the largest probability.
        gold_probability: ``(n_prompts, n_models)`` probability of the right option's letter, four decimals.
        right: ``(n_prompts, n_models)`` whether the prediction is the right option.
    """

    predicted: NDArray[np.int64]
    gold_probability: NDArray[np.float64]
    right: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """A benchmark, the models' responses, and the truth behind them; rows are prompts, columns are models.

    Attributes:
        seed: where the chance came from.
        keys: name of each prompt, such as ``dates-0007``.
        tasks: ``(n_prompts,)`` task of each prompt.
        questions: text, options and gold answer of each prompt.
        meaning: ``(n_prompts, n_dimensions)`` float32 vector of what each prompt means.
        models: name of each column.
        full: responses to the whole prompt.
        answer_only: responses to the options alone, the question withheld.
        truth: what was planted.
    """

    seed: int
    keys: tuple[str, ...]
    tasks: NDArray[np.str_]
    questions: tuple[MultipleChoiceQuestion, ...]
    meaning: NDArray[np.float32]
    models: tuple[str, ...]
    full: SimulatedResponses
    answer_only: SimulatedResponses
    truth: Truth


def knowledge_probability(
    ability: NDArray[np.float64], difficulty: NDArray[np.float64], discrimination: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Probability that a model knows the answer, before any guessing; the arguments are broadcast."""
    return np.asarray(1 / (1 + np.exp(-discrimination * (ability - difficulty))), dtype=np.float64)


def simulate(design: Design | None = None, *, seed: int = 0) -> Simulation:
    """A benchmark by a design, with everything planted in it known.

    Raises:
        ValueError: the planted prompts do not fit into the tasks.
    """
    design = design or Design()
    task, easy, leaked, group = _plan(design, _stream(seed, "plan"))
    rng = _stream(seed, "items")
    ability = np.array(list(MODELS.values())) + rng.normal(0, 0.03, len(MODELS))
    deviation = rng.normal(0, TASK_DEVIATION, (len(TASKS), len(MODELS)))
    task_ability = ability + deviation - deviation.mean(axis=0)
    # An ordinary prompt is never so simple that every model is sure of it: that is what is planted.
    difficulty = 0.4 + np.abs(rng.normal(0.0, 1.0, len(task))) * rng.choice([-0.8, 1.2], len(task))
    difficulty = np.clip(difficulty, -1.6, 3.0)
    discrimination = np.exp(rng.normal(0.1, 0.25, len(task)))
    difficulty, discrimination = (_shared(values, group) for values in (difficulty, discrimination))
    truth = Truth(
        ability=ability,
        task_ability=task_ability,
        difficulty=difficulty,
        discrimination=discrimination,
        easy=easy,
        leaked=leaked,
        group=group,
        remembers=np.arange(len(MODELS)) < len(MODELS) - design.n_clean,
    )
    questions: list[MultipleChoiceQuestion] = []
    for number, name in enumerate(TASKS):
        questions.extend(make_questions(name, group[task == number], _stream(seed, f"texts of {name}")))
    gold = np.array([question.answer for question in questions])
    position = np.concatenate([np.arange(count) for count in np.bincount(task)])
    return Simulation(
        seed=seed,
        keys=tuple(f"{TASKS[t]}-{i:04}" for t, i in zip(task.tolist(), position.tolist(), strict=True)),
        tasks=np.array(TASKS)[task],
        questions=tuple(questions),
        meaning=simulate_vectors(task, group, _stream(seed, "meaning")),
        models=tuple(MODELS),
        full=_full(truth, task, gold, _stream(seed, "full")),
        answer_only=_answer_only(truth, gold, _stream(seed, "answer only")),
        truth=truth,
    )


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """Chance for one purpose, so that a change to one part leaves the others as they were."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode())]))


def _plan(
    design: Design, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Task of each prompt, whether it is easy, whether it is leaked, and its group."""
    sizes = [GROUP_SIZES[g // len(TASKS) % len(GROUP_SIZES)] for g in range(design.n_groups)]
    columns = []
    for number in range(len(TASKS)):
        n, n_easy, n_leaked, _ = (
            len(range(number, count, len(TASKS)))
            for count in (design.n_prompts, design.n_easy, design.n_leaked, design.n_groups)
        )
        groups = [g for g in range(number, design.n_groups, len(TASKS)) for _ in range(sizes[g])]
        n_planted = n_easy + n_leaked + len(groups)
        if n_planted > n:
            raise ValueError(f"{n_planted} planted prompts do not fit into a task of {n}")
        rows = np.zeros((n, 4), dtype=np.int64)
        rows[:, 0] = number
        rows[:n_easy, 1] = 1
        rows[n_easy : n_easy + n_leaked, 2] = 1
        rows[:, 3] = -1
        rows[n_easy + n_leaked : n_planted, 3] = groups
        columns.append(rows[rng.permutation(n)])
    task, easy, leaked, group = np.concatenate(columns).T
    return task, easy.astype(bool), leaked.astype(bool), group


def _shared(values: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same values, with every member of a group given those of its first member; works on rows."""
    return values[find_originals(group)]


def _noise(shape: tuple[int, int], group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Standard normal noise, which near-duplicates have in common but for a small rest."""
    common, individual = rng.standard_normal(shape), rng.standard_normal(shape)
    noise: NDArray[np.float64] = (
        DUPLICATE_CORRELATION**0.5 * _shared(common, group) + (1 - DUPLICATE_CORRELATION) ** 0.5 * individual
    )
    return noise


def _full(
    truth: Truth, task: NDArray[np.int64], gold: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedResponses:
    from scipy.special import ndtr

    knows = knowledge_probability(truth.task_ability[task], truth.difficulty[:, None], truth.discrimination[:, None])
    chance = GUESSING + (1 - GUESSING) * knows
    seen = truth.leaked[:, None] & truth.remembers
    chance[seen] = np.maximum(chance[seen], REMEMBERED)
    right = ndtr(_noise(knows.shape, truth.group, rng)) < chance
    right[truth.easy] = True
    # Confidence follows knowledge, but loosely: models are right without being sure, and sure without being right.
    doubt = _noise(knows.shape, truth.group, rng)
    top = 0.36 + 0.63 / (1 + np.exp(-(2.2 * (knows - 0.5) + 1.1 * doubt - 0.1)))
    top[truth.easy] = rng.uniform(0.86, 0.995, (int(truth.easy.sum()), len(truth.ability)))
    return _responses(right, top, gold, rng)


def _answer_only(truth: Truth, gold: NDArray[np.int64], rng: np.random.Generator) -> SimulatedResponses:
    """Chance, but for the prompts that a model has seen."""
    shape = (len(gold), len(truth.ability))
    right = rng.random(shape) < GUESSING
    top = rng.uniform(0.27, 0.6, shape)
    seen = truth.leaked[:, None] & truth.remembers
    right[seen] = True
    top[seen] = rng.uniform(0.84, 0.995, int(seen.sum()))
    return _responses(right, top, gold, rng)


def _responses(
    right: NDArray[np.bool_], top: NDArray[np.float64], gold: NDArray[np.int64], rng: np.random.Generator
) -> SimulatedResponses:
    """Letters and probabilities that agree with who is right.

    Args:
        right: ``(n_prompts, n_models)`` who is right.
        top: ``(n_prompts, n_models)`` probability of the option that is chosen, above 1/4.
        gold: ``(n_prompts,)`` position of the right option.
        rng: chance in which option misleads whom.
    """
    # Each prompt has wrong options of its own that attract; models that err tend to err alike.
    pull = rng.dirichlet(np.ones(N_CHOICES - 1), size=len(gold)).cumsum(axis=1)
    pull[:, -1] = 1
    astray = (rng.random(right.shape)[:, :, None] >= pull[:, None, :]).sum(axis=2) + 1
    predicted = (gold[:, None] + np.where(right, 0, astray)) % N_CHOICES
    rest = np.clip(rng.uniform(0.05, 0.9, right.shape) * (1 - top), 1 - 3 * top, 0.9 * top)  # no option above the top
    gold_probability = np.where(right, top, rest).round(4).astype(np.float64)
    return SimulatedResponses(predicted=predicted, gold_probability=gold_probability, right=right)


def format_letters(predicted: NDArray[np.int64]) -> NDArray[np.str_]:
    """Positions as the letters that the models print."""
    return np.array(list(LETTERS))[predicted]
