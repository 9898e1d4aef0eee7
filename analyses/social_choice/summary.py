"""The summary of social choice: diversity and sensitivities of a benchmark."""

from __future__ import annotations

import numpy as np

from analyses.numerics.elections.largest_change import LargestChange
from analyses.numerics.elections.reranking import ChangedRanking, Reranking
from analyses.numerics.elections.sensitivity_results import CardinalResult, OrdinalResult
from analyses.presentation.name_lists import list_leaders
from analyses.social_choice.method import SocialChoice
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import Undefined

HEAVY_WEIGHT = 0.5
"""A task with at least this weight is named in the summary; the largest is 1."""


def summarize(finding: SocialChoice) -> Summary:
    """Summarize how far tasks disagree, and how far weights and added models change the ranking."""
    evidence = [_describe_diversity(finding)]
    if isinstance(finding.cardinal, Undefined):
        evidence.append(f"Cardinal sensitivity is undefined: {finding.cardinal.reason}.")
    elif finding.cardinal:
        evidence += _describe_cardinal(finding.cardinal)
    if finding.ordinal:
        evidence += _describe_ordinal(finding.ordinal)
    limits = "Worst cases over all changes, not likely ones; no number here is a significance test."
    if finding.method == "paper":
        limits = (
            "Gradient descent gives lower bounds only (`--method exact` proves more); nothing is a significance test."
        )
    return Summary(_headline(finding), tuple(evidence), (limits,))


def _headline(finding: SocialChoice) -> str:
    if finding.n_tasks == 1:
        return "With one task there is no disagreement to measure: diversity is 0 by definition."
    changes = []
    if isinstance(finding.cardinal, CardinalResult):
        share = _format_share(finding.cardinal.sensitivity.tau)
        changes.append(f"other task weights can reverse {share} of the pairs of models")
    if finding.ordinal:
        verb, pairs = ("", "") if changes else ("can reverse ", "of the pairs ")
        share, n_leading = _format_share(finding.ordinal.sensitivity.tau), len(finding.ordinal.sensitivity.leading)
        leading = f"the {n_leading} named models" if finding.ordinal.is_explicit else f"the first {n_leading}"
        changes.append(f"added models {verb}{share} {pairs}among {leading}")
    diversity = f"the diversity of tasks is {finding.diversities.whole.raw:.3f}"
    sentence = f"{', '.join(changes)}; {diversity}." if changes else f"{diversity}."
    return sentence[0].upper() + sentence[1:]


def _format_share(change: LargestChange) -> str:
    return f"{change.value:.1%}" if change.is_exact else f"at least {change.value:.1%}"


def _describe_diversity(finding: SocialChoice) -> str:
    """How far tasks disagree."""
    diversities, n_tasks, n_models = finding.diversities, finding.n_tasks, finding.n_models
    noun = "task" if n_tasks == 1 else "tasks"
    sentence = f"Diversity of {n_tasks} {noun} and {n_models} models: {diversities.whole.raw:.3f}"
    if n_tasks > 1:
        sentence += f" (0 if all tasks agree, about {1 - 1 / n_tasks:.3f} at random)"
    if not finding.n_missing:
        return f"{sentence}."
    variants = [
        f"{diversity.raw:.3f} on the {count} {label}"
        for diversity, count, label in (
            (diversities.complete_tasks, diversities.n_complete_tasks, "complete tasks"),
            (diversities.complete_models, diversities.n_complete_models, "complete models"),
        )
        if diversity
    ]
    without = "; ".join(variants) or "undefined (too few complete tasks and models)"
    return f"{sentence}, with {count_noun(finding.n_missing, 'missing score')} imputed. Without imputation: {without}."


def _describe_cardinal(result: CardinalResult) -> list[str]:
    """What weights of tasks can do to the ranking by means."""
    sensitivity, reranking, tasks = result.sensitivity, result.reranking, result.tasks
    if len(tasks) == 1:
        return ["Cardinal sensitivity is 0 by definition: one task has no other weights."]
    tau, mrc = sensitivity.tau, sensitivity.mrc
    noun = "standardized tasks" if result.is_standardised else "tasks"
    label = f"Cardinal sensitivity (weights of {noun} from {float(sensitivity.epsilon):.3g} to 1)"
    if tau.value == 0 and mrc.value == 0 and sensitivity.is_exact:
        return [f"{label}: other weights move no model."]
    items = [f"{label}: {_describe_changes(tau, mrc, len(reranking.models))}."]
    if tau.value:
        weights = dict(zip(tasks, tau.witness.tolist(), strict=True))
        heavy = sorted((name for name in tasks if weights[name] >= HEAVY_WEIGHT), key=lambda name: -weights[name])
        items.append(
            f"The worst weights rest on {len(heavy)} of {len(tasks)} tasks ({join_names(heavy)}): "
            f"{_describe_leader(reranking, reranking.tau)}{_describe_mover(reranking, mrc)}."
        )
    elif mrc.value:
        items.append(f"The worst weights change places{_describe_mover(reranking, mrc)}.")
    return items


def _describe_ordinal(result: OrdinalResult) -> list[str]:
    """What added models can do to the ranking by win rates."""
    sensitivity, reranking = result.sensitivity, result.reranking
    tau, mrc = sensitivity.tau, sensitivity.mrc
    n_leading, n_addable = len(sensitivity.leading), len(sensitivity.addable)
    leading = f"the {n_leading} named models" if result.is_explicit else f"the first {n_leading} models by win rate"
    label = f"Ordinal sensitivity ({leading}, {count_noun(n_addable, 'other model')} added or not)"
    if tau.value == 0 and mrc.value == 0 and sensitivity.is_exact:
        return [f"{label}: adding models moves none."]
    items = [f"{label}: {_describe_changes(tau, mrc, n_leading)}."]
    if tau.value:
        added = count_noun(int(tau.witness.sum()), "added model")
        items.append(
            f"With the worst {added}, {_describe_leader(reranking, reranking.tau)}{_describe_mover(reranking, mrc)}."
        )
    elif mrc.value:
        items.append(f"The worst added models change places{_describe_mover(reranking, mrc)}.")
    return items


def _describe_changes(tau: LargestChange, mrc: LargestChange, n_models: int) -> str:
    n_pairs, n_places = max_changes("tau", n_models), max_changes("mrc", n_models)
    return (
        f"tau {_describe_certainty(tau)} ({count_changes(tau.value, 'tau', n_models):,g} of "
        f"{count_noun(n_pairs, 'pair')} reversed). MRC {_describe_certainty(mrc)} "
        f"({count_changes(mrc.value, 'mrc', n_models):,g} of {count_noun(n_places, 'place')})"
    )


def _describe_certainty(change: LargestChange) -> str:
    if change.is_exact:
        return f"{change.value:.4f}, exact"
    return f"{change.value:.4f} to at most {change.upper_bound:.4f}"


def _describe_leader(reranking: Reranking, changed: ChangedRanking) -> str:
    before = list_leaders(reranking.rank, reranking.models)
    after = list_leaders(changed.change.ranks_after, reranking.models)
    winners = [name for name in after if name not in before]
    losers = [name for name in before if name not in after]
    if winners and losers:
        return f"{join_names(winners)} {_inflect('replace', len(winners))} {join_names(losers)} in first place"
    if winners:
        return f"{join_names(winners)} {_inflect('share', len(winners))} first place with {join_names(before)}"
    if losers:
        return f"{join_names(after)} {_inflect('keep', len(after))} first place, without {join_names(losers)}"
    return f"{join_names(after)} {_inflect('stay', len(after))} first"


def _describe_mover(reranking: Reranking, mrc: LargestChange) -> str:
    """The model that moves farthest; nothing if none moves."""
    if not mrc.value:
        return ""
    changed = reranking.mrc
    moves = changed.change.ranks_after - reranking.rank
    model = int(np.abs(moves).argmax())
    direction = "up" if moves[model] < 0 else "down"
    rank = f"from rank {reranking.rank[model]:g} to {changed.change.ranks_after[model]:g}"
    return f"; largest move: {reranking.models[model]} {direction} {rank}"


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
