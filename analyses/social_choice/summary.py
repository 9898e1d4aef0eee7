"""Diversity and sensitivities of a benchmark, in plain words."""

from __future__ import annotations

import numpy as np

from analyses.numerics.elections.largest_change import LargestChange
from analyses.numerics.elections.reranking import ChangedRanking, Reranking
from analyses.numerics.elections.sensitivity_results import CardinalResult, OrdinalResult
from analyses.presentation.name_lists import join_names, list_leaders
from analyses.social_choice.method import SocialChoice
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined

HEAVY_WEIGHT = 0.5
"""A task with at least this weight is named in the summary; the largest is 1."""


def summarize(finding: SocialChoice) -> Summary:
    """The result in one paragraph."""
    sentences = _describe_diversity(finding)
    if isinstance(finding.cardinal, Undefined):
        sentences.append(f"Cardinal sensitivity is not given: {finding.cardinal.reason}.")
    elif finding.cardinal:
        sentences += _describe_cardinal(finding.cardinal)
    if finding.ordinal:
        sentences += _describe_ordinal(finding.ordinal)
    return Summary.from_sentences([*sentences, _describe_limits(finding.method)])


def _describe_diversity(finding: SocialChoice) -> list[str]:
    """How far tasks disagree."""
    diversities, n_tasks, n_models = finding.diversities, finding.n_tasks, finding.n_models
    if n_tasks == 1:
        return [
            f"One task ranks {n_models} models: there is nothing to disagree with, and diversity is 0 by definition."
        ]
    sentence = f"{n_tasks} tasks rank {n_models} models with a diversity of {diversities.whole.raw:.3f}"
    sentence += f" (0 if all rank alike, about {1 - 1 / n_tasks:.3f} at random)"
    if not finding.n_missing:
        return [f"{sentence}."]
    sentence += f", {count_noun(finding.n_missing, 'missing score')} filled in from the nearest models"
    variants = [
        f"{diversity.raw:.3f} by the {count} {label}"
        for diversity, count, label in (
            (diversities.complete_tasks, diversities.n_complete_tasks, "tasks that have all models"),
            (diversities.complete_models, diversities.n_complete_models, "models that have all tasks"),
        )
        if diversity
    ]
    return [f"{sentence}; {' and '.join(variants) or 'too few tasks and models are complete to do without'}."]


def _describe_cardinal(result: CardinalResult) -> list[str]:
    """What weights of tasks can do to the ranking by means."""
    sensitivity, reranking, tasks = result.sensitivity, result.reranking, result.tasks
    if len(tasks) == 1:
        return ["With one task there is nothing to weigh: cardinal sensitivity is 0 by definition."]
    tau, mrc = sensitivity.tau, sensitivity.mrc
    noun = "standardised tasks" if result.is_standardised else "tasks"
    weight_range = f"{noun} from {float(sensitivity.epsilon):.3g} to 1"
    if tau.value == 0 and mrc.value == 0 and sensitivity.is_exact:
        return [f"No weights of {weight_range} move any model."]
    heavy_tasks = sorted(
        (name for name, weight in zip(tasks, tau.witness.tolist(), strict=True) if weight >= HEAVY_WEIGHT),
        key=lambda name: -tau.witness[tasks.index(name)],
    )
    sentences = [f"Weights of {weight_range} can {_describe_changes(tau, mrc, len(reranking.models))}."]
    if tau.value:
        sentences.append(
            f"The weights that make the reversals rest on {join_names(heavy_tasks)} ({len(heavy_tasks)} of "
            f"{len(tasks)} tasks with at least half the largest weight); {_describe_leader(reranking, reranking.tau)}."
        )
    if mrc.value:
        is_same = np.array_equal(tau.witness, mrc.witness, equal_nan=True)
        subject = "They" if is_same else "Other weights" if tau.value else "Some"
        sentences.append(f"{subject} move {_describe_mover(reranking, reranking.mrc)}.")
    return sentences


def _describe_ordinal(result: OrdinalResult) -> list[str]:
    """What added models can do to the ranking by win rates."""
    sensitivity, reranking = result.sensitivity, result.reranking
    tau, mrc = sensitivity.tau, sensitivity.mrc
    n_leading, n_addable = len(sensitivity.leading), len(sensitivity.addable)
    among = (
        f"Among the {n_leading} named models, ranked by win rate"
        if result.is_explicit
        else f"Among the first {n_leading} models by win rate"
    )
    addable = f"the other {n_addable}" if n_addable > 1 else "the one other model"
    if tau.value == 0 and mrc.value == 0 and sensitivity.is_exact:
        return [f"{among}, none is moved by the presence of {'any of ' * (n_addable > 1)}{addable}."]
    changes = _describe_changes(tau, mrc, n_leading)
    sentences = [f"{among}, the presence of {'some of ' * (n_addable > 1)}{addable} can {changes}."]
    if tau.value:
        n_added = int(tau.witness.sum())
        leader = _describe_leader(reranking, reranking.tau)
        sentences.append(f"With the {n_added} added that {_inflect('make', n_added)} the reversals, {leader}.")
    if mrc.value:
        sentences.append(f"Adding {int(mrc.witness.sum())} moves {_describe_mover(reranking, reranking.mrc)}.")
    return sentences


def _describe_limits(method: str) -> str:
    """What the numbers do not prove."""
    if method == "paper":
        return "Gradient descent finds no more than lower bounds; method exact proves more. Nothing here is a test."
    return "These are worst cases, not likely ones, and nothing here is a test."


def _describe_changes(tau: LargestChange, mrc: LargestChange, n_models: int) -> str:
    n_reversed, n_pairs = count_changes(tau.value, "tau", n_models), max_changes("tau", n_models)
    n_places = count_changes(mrc.value, "mrc", n_models)
    return (
        f"reverse {f'{n_reversed:,g}' if n_reversed else 'none'} of {count_noun(n_pairs, 'pair')} of models "
        f"(tau {_describe_certainty(tau)}) and move a model by {n_places:,g} of "
        f"{count_noun(max_changes('mrc', n_models), 'place')} (MRC {_describe_certainty(mrc)})"
    )


def _describe_certainty(change: LargestChange) -> str:
    if change.is_exact:
        return f"{change.value:.4f}, proven to be the largest"
    return f"at least {change.value:.4f}, at most {change.upper_bound:.4f}"


def _describe_leader(reranking: Reranking, changed: ChangedRanking) -> str:
    before = list_leaders(reranking.rank, reranking.models)
    after = list_leaders(changed.change.ranks_after, reranking.models)
    winners = [name for name in after if name not in before]
    losers = [name for name in before if name not in after]
    if winners and losers:
        return f"{join_names(winners)} {_inflect('take', len(winners))} the first place of {join_names(losers)}"
    if winners:
        return f"{join_names(winners)} {_inflect('share', len(winners))} the first place with {join_names(before)}"
    if losers:
        return f"{join_names(after)} {_inflect('keep', len(after))} the first place, without {join_names(losers)}"
    return f"{join_names(after)} {_inflect('stay', len(after))} first"


def _describe_mover(reranking: Reranking, changed: ChangedRanking) -> str:
    moves = changed.change.ranks_after - reranking.rank
    model = int(np.abs(moves).argmax())
    direction = "up" if moves[model] < 0 else "down"
    rank = f"from rank {reranking.rank[model]:g} to {changed.change.ranks_after[model]:g}"
    return f"{reranking.models[model]} {direction} {rank}"


def max_changes(measure: str, n_models: int) -> int:
    """Pairs of models for tau, places that a model can move for MRC."""
    return n_models * (n_models - 1) // 2 if measure == "tau" else n_models - 1


def count_changes(share: float, measure: str, n_models: int) -> float:
    """A share as a number of pairs, or of places in halves."""
    return round(2 * share * max_changes(measure, n_models)) / 2


def count_noun(number: int, noun: str) -> str:
    """A number with its noun, such as ``3 models``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _inflect(verb: str, n_subjects: int) -> str:
    return verb if n_subjects > 1 else f"{verb}s"
