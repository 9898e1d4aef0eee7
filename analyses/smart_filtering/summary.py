"""What a filter removed, by whose answers, and what it does, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.filtering.anomalous_tasks import AnomalousTask
from analyses.numerics.filtering.effects.filter_effects import FilterEffects
from analyses.numerics.filtering.similar_prompts.similar_step import SimilarPath, SimilarStep
from analyses.numerics.filtering.step_flags import StepFlags
from analyses.presentation.filter_effects import describe_effects
from analyses.presentation.name_lists import join_names
from analyses.presentation.other_scores import validate_shared_models, warn_of_few_models, warn_of_narrow_draws
from analyses.presentation.validation import ValidationErrors, check_minimum
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.performance import PerformanceMatrix

BANDWIDTHS = (0.01, 10)
"""Bandwidths below follow single distances, and make a grid without end; those above smooth everything away."""
MAX_SIMILAR_SHARE = 0.5
"""Share of the prompts; where more have a similar one, similar prompts are hardly repetitions."""


def problems(
    scores: PerformanceMatrix,
    *,
    shares: Mapping[str, float],
    counts: Mapping[str, int],
    n_draws: int,
    confidence: float,
    bandwidth: float,
    threshold: float | None,
    seed: int,
    exclude_task: Sequence[str],
) -> ValidationErrors:
    """Why these scores or options cannot be used, and what to do about it."""
    tasks = sorted(set(scores.tasks.tolist()))
    unknown = [task for task in exclude_task if task not in tasks]
    return {
        "Filtering asks which prompts were answered right and which wrong, that is for scores of 1 and 0; these are "
        "others. Choose a metric that says so with --metric.": not scores.is_binary,
        f"Under {scores.metric} smaller scores are better; filtering takes 1 as right. Choose another metric.": (
            not scores.higher_is_better
        ),
        "The scores are of runs without the question; filtering starts from full ones and looks at those beside them. "
        "Leave --condition out.": scores.condition != "full",
        "Filtering compares prompts; here is only one.": scores.n_prompts < 2,
        **{f"{name} is {value:g}; it must be from 0 to 1.": not 0 <= value <= 1 for name, value in shares.items()},
        f"confidence is {confidence:g}; it must be from 0 to below 1: a probability cannot exceed more.": (
            not 0 <= confidence < 1
        ),
        f"bandwidth is {bandwidth:g}; it must be from {BANDWIDTHS[0]:g} to {BANDWIDTHS[1]:g}.": (
            not BANDWIDTHS[0] <= bandwidth <= BANDWIDTHS[1]
        ),
        f"threshold is {threshold}; cosine distances are from 0 to 2, and below 0 there are none.": (
            threshold is not None and not 0 < threshold <= 2
        ),
        f"No task {unknown[0] if unknown else ''!r} to exclude. Known: {', '.join(tasks)}.": bool(unknown),
        **check_minimum(1, **counts, n_draws=n_draws),
        **check_minimum(0, seed=seed),
    }


def without_vectors(vectors: StoredEmbeddings) -> ValidationErrors:
    """There are no vectors to compare, and what to do without them."""
    return {f"{vectors.problem} Or leave that step out: --without-similar.": vectors.found is None}


def unusable(E: NDArray[np.float32]) -> ValidationErrors:
    """Vectors that have no direction."""
    broken, zero = int((~np.isfinite(E).all(axis=1)).sum()), int((~E.any(axis=1)).sum())
    return {
        f"{broken:,} prompts have a vector that is not finite. Make the vectors again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no direction and so no cosine. Make them again from text "
        "that is not empty, or choose tasks without them.": zero > 0,
    }


def too_few(
    models: Sequence[str], elsewhere: NDArray[np.float64] | None, against: BenchmarkScores | None
) -> ValidationErrors:
    """Nobody to rank before and after, or too few to compare with another benchmark."""
    return {
        "No model has a score for every prompt, so none can be ranked before and after. Choose --tasks or --runs that "
        "are complete.": not models,
        **validate_shared_models(against, elsewhere),
    }


def skipped(*, blind: str, own_unknown: Sequence[str], has_vectors: bool) -> dict[str, str]:
    """Why steps are not taken, by their names.

    Args:
        blind: why the runs without the question cannot be used; '' where they can.
        own_unknown: filter models of which the probability of their own answers is not stored.
        has_vectors: whether prompts can be compared.
    """
    reasons = {
        "contaminated": blind,
        "similar": "" if has_vectors else "left out, as asked",
        "suspect-label": (
            f"how sure they were of their own answers is not stored of {join_names(own_unknown)}" if own_unknown else ""
        ),
    }
    return {name: reason for name, reason in reasons.items() if reason}


def summary(
    steps: Mapping[str, StepFlags],
    kept: NDArray[np.bool_],
    skipped: Mapping[str, str],
    effects: FilterEffects,
    *,
    filter_models: Sequence[str],
    kind: str,
    confidence: float,
    similar: SimilarStep | None,
    agreement_of: str,
    against: str,
) -> str:
    """What was found, with its numbers."""
    n, stays = len(kept), int(kept.sum())
    said = [f"{stays:,} of {n:,} prompts stay; {(n - stays) / n:.1%} could be left out."]
    m = len(filter_models)
    judges = {1: "the one filter model gets", 2: "both filter models get"}.get(m, f"all {m} filter models get")
    what = {
        "duplicate": "Repeated word for word",
        "anomalous": "In excluded tasks",
        "easy": f"Easy, which {judges} right"
        + (f" with a probability above {confidence:g} (by option {kind})" if kind else ""),
        "contaminated": "Contaminated, likewise right without the question",
        "similar": "Similar" + (_below(similar) if similar else ""),
        "suspect-label": f"Suspect labels, which {judges} wrong{' though sure of it' if kind else ''}",
    }
    for name, words in what.items():
        flagged, removed = int(steps[name].flagged.sum()), int(steps[name].removed.sum())
        if name in skipped or (name in ("anomalous", "duplicate") and not flagged):
            continue
        gone = "all" if removed == flagged else f"{removed:,}" if removed else "none"
        said.append(f"{words}: {flagged:,} ({flagged / n:.1%}), {gone} removed." if flagged else f"{words}: none.")
    said += [f"The step {name} was not taken: {reason}." for name, reason in skipped.items()]
    return " ".join([*said, *describe_effects(effects, agreement_of=agreement_of, against=against)])


def _below(similar: SimilarStep) -> str:
    if similar.threshold is None:
        return ""
    n_maxima = int((similar.density.maxima > 0).sum())
    chosen = {
        "given": "as given",
        "half of the only maximum": "half of the density's only maximum",
        "first maximum": f"the first of {n_maxima} maxima of the density"
        if n_maxima > 1
        else "the density's only maximum",
    }
    return f", nearer to another one than {similar.threshold:.3g} ({chosen[similar.chosen_by]})"


def warnings(
    *,
    filter_models: Sequence[str],
    makers: Sequence[str | None],
    kind: str,
    models: Sequence[str],
    scores: PerformanceMatrix,
    n_unscored: int,
    unknown_texts: int,
    odd: Sequence[AnomalousTask],
    skipped: Mapping[str, str],
    blind: pa.Table,
    similar: SimilarStep | None,
    path: SimilarPath | None,
    effects: FilterEffects,
) -> list[str]:
    """What the reader of the numbers should know of how they came about."""
    said = [f"The models that filter: {join_names(filter_models, most=len(filter_models))}."]
    unknown = [name for name, maker in zip(filter_models, makers, strict=True) if not maker]
    if unknown:
        said.append(
            f"Of {len(unknown)} of them the organization is not known; several may be of one. Say who made them: "
            "suffrage models import FILE."
        )
    known = [maker for maker in makers if maker]
    if twice := sorted({maker for maker in known if known.count(maker) > 1}):
        said.append(
            f"Several are of one organization: {join_names(twice)}; they may have been trained on the same data."
        )
    if not kind:
        said.append(
            "Right and wrong alone decided, whatever the models' confidence: more prompts are called easy than by the "
            "paper's rule, and a suspect label is merely a prompt that all of them got wrong, as hard ones are."
        )
    elif kind == "likelihoods":
        said.append(
            "The probabilities are those of the options' texts by their likelihoods. The paper's are of the option "
            "letters; the same threshold does not mean the same."
        )
    gaps = [name for name in scores.models if name not in set(models)]
    if gaps:
        said.append(f"Not ranked, since scores are missing: {join_names(gaps)}.")
    lacking = [name for name in filter_models if name in gaps]
    if lacking:
        said.append(f"A prompt that {join_names(lacking)} was not asked is never called easy.")
    if n_unscored:
        said.append(f"{n_unscored:,} prompts without any score were not judged.")
    if unknown_texts and "duplicate" not in skipped:
        said.append(f"{unknown_texts:,} prompts have no text, so that no duplicate of them can be found.")
    if odd:
        named = "; ".join(f"{one.task} ({_odd(one)})" for one in odd[:5])
        said.append(
            f"Tasks that stand out and may not belong: {named}. None was dropped for it; --exclude-task drops one."
        )
    if "contaminated" not in skipped:
        said += _power(blind)
    if similar is not None and similar.step.flagged.mean() > MAX_SIMILAR_SHARE:
        said.append(
            f"{similar.step.flagged.mean():.0%} of the prompts have another one below the threshold, in groups "
            "small enough: it may tell topics apart rather than repetitions. See the picture of the density; a smaller "
            "--bandwidth or --threshold asks for more likeness."
        )
    if path is not None:
        said += _swing(path) if "similar" not in skipped else _instead(path)
    if effects.error.reason:
        said.append(f"No error of the subset: {effects.error.reason}.")
    for n_models in {change.n_models for change in effects.changes.values()}:  # the same for every correlation
        said += [*warn_of_few_models(n_models), *warn_of_narrow_draws(n_models)]
    return said


def _odd(one: AnomalousTask) -> str:
    what = {
        "length": f"{one.value:,.0f} characters a prompt, against {one.median:,.0f}",
        "n_choices": f"{one.value:.1f} options, against {one.median:.1f}",
        "distance": f"{one.value:.2f} from the other prompts in meaning, against {one.median:.2f}",
    }
    return what[one.measure]


def _swing(path: SimilarPath) -> list[str]:
    known = np.isfinite(path.thresholds)
    if not known.any():
        return []
    thresholds, refused = path.thresholds[known], path.refused[known]
    shares, n_refused = path.shares[known][~refused], int(refused.sum())
    said = (
        "The first maximum of the density hangs on the bandwidth and the number of neighbours: in the "
        f"{len(refused)} settings tried it is from {thresholds.min():.3g} to {thresholds.max():.3g}."
    )
    if shares.size:
        said += f" Connected components would lose from {shares.min():.1%} to {shares.max():.1%} of the prompts"
        said += f", and in {n_refused} settings one is too large." if n_refused else "."
    return [f"{said} See the table and the picture path."]


def _instead(path: SimilarPath) -> list[str]:
    """Bandwidths by which the step would not have been refused, with as many neighbours."""
    j = len(path.n_neighbours) - 1
    possible = [
        f"--bandwidth {path.bandwidths[i]:g} (threshold {path.thresholds[i, j]:.3g}, {path.shares[i, j]:.1%} removed)"
        for i in range(len(path.bandwidths))
        if np.isfinite(path.thresholds[i, j]) and not path.refused[i, j]
    ]
    tried = f"{path.bandwidths[0]:g} to {path.bandwidths[-1]:g}"
    if not possible:
        return [f"No bandwidth tried, from {tried}, gives a threshold that would do. See the picture of the density."]
    return [f"Of the bandwidths tried, from {tried}, these would do: {'; '.join(possible)}."]


def _power(blind: pa.Table) -> list[str]:
    """Whether models that filter do better without the question than by guessing."""
    rows = [row for row in blind.to_pylist() if row["filters"]]
    if not rows:
        return []
    known = [row["accuracy"] for row in rows]
    span = f"{min(known):.1%} to {max(known):.1%}" if len(rows) > 1 else f"{known[0]:.1%}"
    chance = sum(row["chance"] for row in rows) / len(rows)
    guessing = [row["model"] for row in rows if row["above_chance"] <= 2 * row["stderr_of_chance"]]
    so = f" {join_names(guessing)} can hardly be told from that, so that the step has little power." if guessing else ""
    return [f"Without the question, filter models are right on {span} of the prompts; guessing is on {chance:.1%}.{so}"]
