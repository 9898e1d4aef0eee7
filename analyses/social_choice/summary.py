"""Diversity and sensitivities of a benchmark, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.elections.diversity.diversity_variants import DiversityVariants
from analyses.numerics.elections.exact_scores import ExactScores
from analyses.numerics.elections.largest_change import CardinalSensitivity, LargestChange, OrdinalSensitivity
from analyses.numerics.elections.reranking import ChangedRanking, Reranking
from analyses.presentation.name_lists import MAX_NAMES, first_ranked, join_names
from analyses.presentation.validation import ValidationErrors, check_minimum, check_time_limit

CHOICES = {
    "system": ("both", "cardinal", "ordinal"),
    "columns": ("standardised", "raw"),
    "win_rate": ("pairwise", "per-task"),
    "method": ("exact", "paper"),
}
"""What the options of a few words may be."""
HEAVY = 0.5
"""A task with at least this weight is named in the summary; the largest is 1."""
DESCENT = (
    "Algorithms 1 and 2 of the paper find lower bounds; the upper bounds beside them are the largest of any ranking."
)
"""What --method paper leaves open."""
BOUNDS_ONLY = (
    "With missing scores, a win rate averaged per task does not add up over rivals: the largest change lies between "
    "the witness found and the bound, and more time does not bring them closer."
)
"""What --win-rate per-task leaves open where scores are missing."""


def problems(
    models: Sequence[str], *, top: float, top_models: Sequence[str], time_limit: float, seed: int
) -> ValidationErrors:
    """Why the leading models, or the search, cannot be what was asked for, and what to do about it."""
    m, distinct = len(models), set(top_models)
    absent = [name for name in top_models if name not in set(models)]
    counts = not isfinite(top) or top <= 0 or (top >= 1 and top != int(top))
    return {
        f"top is {top:g}; it must be a share between 0 and 1, or a number of models, such as 10.": counts,
        f"top is {top:g}; at least 2 and at most {m - 1} of the {m} models can lead.": top == 1 or m <= top,
        f"{absent[0] if absent else ''!r} is not among the models here. Choose --top-models from: "
        f"{', '.join(models[:5])}{' …' if m > 5 else ''}.": bool(absent),
        f"{_counted(len(distinct), 'model')} named as leading; at least 2 and at most {m - 1} of the {m} can lead.": (
            len(top_models) > 0 and not 2 <= len(distinct) < m
        ),
        **check_time_limit(time_limit),
        **check_minimum(0, seed=seed),
    }


def unknown(**chosen: str) -> ValidationErrors:
    """Choices that are none of those there are."""
    return {
        f"No {name.replace('_', ' ')} {value!r}. Known: {', '.join(CHOICES[name])}.": value not in CHOICES[name]
        for name, value in chosen.items()
    }


def diversity(found: DiversityVariants, n_models: int, n_tasks: int, n_missing: int) -> list[str]:
    """How far tasks disagree."""
    whole = found.whole.raw
    if n_tasks == 1:
        return [
            f"One task ranks {n_models} models: there is nothing to disagree with, and diversity is 0 by definition."
        ]
    said = f"{n_tasks} tasks rank {n_models} models with a diversity of {whole:.3f}"
    said += f" (0 if all rank alike, about {1 - 1 / n_tasks:.3f} at random)"
    if not n_missing:
        return [f"{said}."]
    said += f", {_counted(n_missing, 'missing score')} filled in from the nearest models"
    others = [
        f"{one.raw:.3f} by the {count} {name}"
        for one, count, name in (
            (found.complete_tasks, found.n_complete_tasks, "tasks that have all models"),
            (found.complete_models, found.n_complete_models, "models that have all tasks"),
        )
        if one
    ]
    return [f"{said}; {' and '.join(others) or 'too few tasks and models are complete to do without'}."]


def cardinal(found: CardinalSensitivity, r: Reranking, tasks: Sequence[str], *, is_standardised: bool) -> list[str]:
    """What weights of tasks can do to the ranking by means."""
    if len(tasks) == 1:
        return ["With one task there is nothing to weigh: cardinal sensitivity is 0 by definition."]
    what = "standardised tasks" if is_standardised else "tasks"
    span = f"{what} from {float(found.epsilon):.3g} to 1"
    if found.tau.value == 0 and found.mrc.value == 0 and found.is_exact:
        return [f"No weights of {span} move any model."]
    heavy = sorted(
        (name for name, weight in zip(tasks, found.tau.witness.tolist(), strict=True) if weight >= HEAVY),
        key=lambda name: -found.tau.witness[tasks.index(name)],
    )
    said = [f"Weights of {span} can {_both(found.tau, found.mrc, len(r.models))}."]
    if found.tau.value:
        said.append(
            f"The weights that make the reversals rest on {join_names(heavy)} ({len(heavy)} of {len(tasks)} tasks with "
            f"at least half the largest weight); {_leader(r, r.tau)}."
        )
    if found.mrc.value:
        same = np.array_equal(found.tau.witness, found.mrc.witness, equal_nan=True)
        which = "They" if same else "Other weights" if found.tau.value else "Some"
        said.append(f"{which} move {_mover(r, r.mrc)}.")
    return said


def ordinal(found: OrdinalSensitivity, r: Reranking, *, is_explicit: bool) -> list[str]:
    """What added models can do to the ranking by win rates."""
    k, n_others = len(found.leading), len(found.others)
    among = (
        f"Among the {k} named models, ranked by win rate" if is_explicit else f"Among the first {k} models by win rate"
    )
    others = f"the other {n_others}" if n_others > 1 else "the one other model"
    if found.tau.value == 0 and found.mrc.value == 0 and found.is_exact:
        return [f"{among}, none is moved by the presence of {'any of ' * (n_others > 1)}{others}."]
    said = [f"{among}, the presence of {'some of ' * (n_others > 1)}{others} can {_both(found.tau, found.mrc, k)}."]
    if found.tau.value:
        make = "makes" if found.tau.witness.sum() == 1 else "make"
        said.append(f"With the {int(found.tau.witness.sum())} added that {make} the reversals, {_leader(r, r.tau)}.")
    if found.mrc.value:
        said.append(f"Adding {int(found.mrc.witness.sum())} moves {_mover(r, r.mrc)}.")
    return said


def no_test(method: str) -> str:
    """What the numbers are not."""
    if method == "paper":
        return "Gradient descent finds no more than lower bounds; method exact proves more. Nothing here is a test."
    return "These are worst cases, not likely ones, and nothing here is a test."


def titles(found: CardinalSensitivity | OrdinalSensitivity) -> tuple[str, str]:
    """What the two panels show: each change in counts, and how sure it is that nothing does more."""
    m = len(found.before)
    return _title(found.tau, "tau", m), _title(found.mrc, "mrc", m)


def _title(change: LargestChange, name: str, m: int) -> str:
    what, unit = ("most reversals", "pairs") if name == "tau" else ("largest change of rank", "places")
    sure = "proven" if change.is_exact else f"at most {_count(change.upper_bound, name, m):,g}"
    return f"{what}: {_count(change.value, name, m):,g} of {_most(name, m):,} {unit} ({sure})"


def added(found: OrdinalSensitivity) -> tuple[str, str]:
    """What models are ranked by after each change."""
    counts = (int(change.witness.sum()) for change in (found.tau, found.mrc))
    first, second = (f"with {count}\nmodel{'s' * (count != 1)} added" for count in counts)
    return first, second


def _most(name: str, m: int) -> int:
    return m * (m - 1) // 2 if name == "tau" else m - 1


def _count(share: float, name: str, m: int) -> float:
    """A share as a number of pairs, or of places in halves."""
    return round(2 * share * _most(name, m)) / 2


def _both(tau: LargestChange, mrc: LargestChange, m: int) -> str:
    reversed_, pairs, places = _count(tau.value, "tau", m), _most("tau", m), _most("mrc", m)
    return (
        f"reverse {f'{reversed_:,g}' if reversed_ else 'none'} of {_counted(pairs, 'pair')} of models "
        f"(tau {_sure(tau)}) and move a model by {_count(mrc.value, 'mrc', m):,g} of {_counted(places, 'place')} "
        f"(MRC {_sure(mrc)})"
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _sure(change: LargestChange) -> str:
    if change.is_exact:
        return f"{change.value:.4f}, proven to be the largest"
    return f"at least {change.value:.4f}, at most {change.upper_bound:.4f}"


def _leader(r: Reranking, to: ChangedRanking) -> str:
    before, after = first_ranked(r.rank, r.models), first_ranked(to.change.after, r.models)
    won = [name for name in after if name not in before]
    lost = [name for name in before if name not in after]
    if won and lost:
        return f"{join_names(won)} {_s('take', won)} the first place of {join_names(lost)}"
    if won:
        return f"{join_names(won)} {_s('share', won)} the first place with {join_names(before)}"
    if lost:
        return f"{join_names(after)} {_s('keep', after)} the first place, without {join_names(lost)}"
    return f"{join_names(after)} {_s('stay', after)} first"


def _s(verb: str, who: Sequence[str]) -> str:
    return verb if len(who) > 1 else f"{verb}s"


def _mover(r: Reranking, to: ChangedRanking) -> str:
    moves = to.change.after - r.rank
    model = int(np.abs(moves).argmax())
    way = "up" if moves[model] < 0 else "down"
    return f"{r.models[model]} {way} from rank {r.rank[model]:g} to {to.change.after[model]:g}"


def warnings(scores: ExactScores, tasks: Sequence[str], n_complete: int) -> list[str]:
    """What the reader of the numbers should know of the tasks behind them.

    Args:
        scores: as they were ranked.
        tasks: name of each row.
        n_complete: tasks that have a score from every model.
    """
    said = []
    missing = int((~scores.present).sum())
    if missing:
        said.append(
            f"{missing:,} of {scores.T.size:,} scores are missing. Diversity has them filled in, which makes models "
            "resemble their neighbours; read it beside diversity.complete_tasks and diversity.complete_models. "
            f"Cardinal sensitivity and diversity.tie_corrected are of the {n_complete} of {scores.n_tasks} tasks "
            "without gaps. Win rates need no filling in."
        )
    constant: list[str] = []
    same: dict[tuple[tuple[int, ...], bytes], list[str]] = {}
    for name, row, there in zip(tasks, scores.numerators.tolist(), scores.present, strict=True):
        if len({value for value, has in zip(row, there.tolist(), strict=True) if has}) == 1:
            constant.append(name)
        else:
            same.setdefault((tuple(row), there.tobytes()), []).append(name)
    if len(constant) == scores.n_tasks:
        said.append(
            "Every task ties all models. No two tasks disagree, but diversity counts ties as disagreement and is 1 by "
            "its formula; the tie-corrected one is not defined, and no change moves any model."
            if scores.n_tasks > 1
            else "The task ties all models: there is no ranking."
        )
    elif constant:
        said.append(
            f"The same score for all models, so without weight: {join_names(constant)}. Diversity counts their ties as "
            "disagreement; diversity.tie_corrected does not."
        )
    if copies := [" = ".join(names) for names in same.values() if len(names) > 1]:
        said.append(f"Tasks with the same scores, which count as often as they come: {'; '.join(copies[:MAX_NAMES])}.")
    return said


def boundary(rates: Sequence[Fraction], leading: NDArray[np.int64], models: Sequence[str]) -> list[str]:
    """That the last of the leading models owes its place to its name.

    Args:
        rates: win rate of every model over the whole field.
        leading: columns, best first.
        models: name of each column.
    """
    last, inside = int(leading[-1]), set(leading.tolist())
    tied = [name for model, name in enumerate(models) if model not in inside and rates[model] == rates[last]]
    if not tied:
        return []
    return [
        f"The last of the leading models, {models[last]}, has the same win rate as {join_names(tied)}; names decide "
        "who leads. Another --top may draw the line where there is none."
    ]


def unproven(found: CardinalSensitivity | OrdinalSensitivity, system: str, time_limit: float) -> list[str]:
    """That an upper bound is not the largest change, and what makes it smaller."""
    if found.is_exact:
        return []
    after = f"after {time_limit:g} second{'s' * (time_limit != 1)}"
    searched = after if time_limit else "without an exact search (--time-limit 0)"
    return [
        f"{system} sensitivity is not proven {searched}: it lies between the witness found and the bound. How close "
        "the two come depends on the machine; a larger --time-limit brings them closer."
    ]
