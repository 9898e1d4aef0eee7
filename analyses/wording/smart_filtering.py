"""What a filter removed, by whose answers, and what it does, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.anomalous_tasks import Anomaly
from analyses.numerics.filtering.consequences import Consequences
from analyses.numerics.filtering.correlation_change import CorrelationChange
from analyses.numerics.filtering.similar import SimilarPath, SimilarStep
from analyses.numerics.filtering.steps import Step
from analyses.numerics.filtering.subset_error import spread
from analyses.wording.names import listed
from analyses.wording.refusals import Problems, below
from tracker.queries.embeddings import StoredEmbeddings
from tracker.queries.other_scores import OtherScores
from tracker.queries.performance import PerformanceMatrix

LEAST_IN_COMMON = 3
"""Models that another benchmark must have too: of two, every correlation is 1 or -1."""
FEW_IN_COMMON = 10
"""Models in common below which a correlation is next to nothing, which is said."""


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
) -> Problems:
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
        f"bandwidth is {bandwidth:g}; it must be above 0.": not 0 < bandwidth < np.inf,
        f"threshold is {threshold}; cosine distances are from 0 to 2, and below 0 there are none.": (
            threshold is not None and not 0 < threshold <= 2
        ),
        f"No task {unknown[0] if unknown else ''!r} to exclude. Known: {', '.join(tasks)}.": bool(unknown),
        **below(1, **counts, n_draws=n_draws),
        **below(0, seed=seed),
    }


def without_vectors(vectors: StoredEmbeddings) -> Problems:
    """There are no vectors to compare, and what to do without them."""
    return {f"{vectors.problem} Or leave that step out: --without-similar.": vectors.found is None}


def unusable(E: NDArray[np.float32]) -> Problems:
    """Vectors that have no direction."""
    broken, zero = int((~np.isfinite(E).all(axis=1)).sum()), int((~E.any(axis=1)).sum())
    return {
        f"{broken:,} prompts have a vector that is not finite. Make the vectors again.": broken > 0,
        f"{zero:,} prompts have a vector of zeros, which has no direction and so no cosine. Make them again from text "
        "that is not empty, or choose tasks without them.": zero > 0,
    }


def too_few(
    complete: NDArray[np.intp],
    other: NDArray[np.float64] | None,
    scores: PerformanceMatrix,
    against: OtherScores | None,
) -> Problems:
    """Nobody to rank before and after, or too few to compare with another benchmark."""
    shared = 0 if other is None else int((~np.isnan(other)).sum())
    named = against.benchmark if against else ""
    return {
        "No model has a score for every prompt, so none can be ranked before and after. Choose --tasks or --runs that "
        "are complete.": not len(complete),
        f"{named} has scores of {shared} of the {len(complete)} models that are ranked here; at least "
        f"{LEAST_IN_COMMON} are needed. If it calls them by other names, say so in a file with a column alias: "
        "suffrage models --facts FILE.": against is not None and shared < LEAST_IN_COMMON,
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
        "suspect-label": f"no probability of its own answers is stored of {listed(own_unknown)}" if own_unknown else "",
    }
    return {name: reason for name, reason in reasons.items() if reason}


def summary(
    steps: Mapping[str, Step],
    kept: NDArray[np.bool_],
    skipped: Mapping[str, str],
    effects: Consequences,
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
    said = [f"{stays:,} of {n:,} prompts stay; {1 - stays / n:.1%} could be left out."]
    sure = f"give the gold answer a probability above {confidence:g} (of the option {kind})" if kind else "are right"
    what = {
        "duplicate": "repeat another one word for word",
        "anomalous": "are in excluded tasks",
        "easy": f"are easy: all {len(filter_models)} filter models {sure}",
        "contaminated": "are answered so without the question (contaminated)",
        "similar": "are similar to another one"
        + (f", nearer than {similar.threshold:.3g}" if similar and similar.threshold is not None else ""),
        "suspect-label": "all filter models get wrong" + (" while sure of their own answer" if kind else ""),
    }
    for name, words in what.items():
        flagged, removed = int(steps[name].flagged.sum()), int(steps[name].removed.sum())
        if name in skipped or (name in ("anomalous", "duplicate") and not flagged):
            continue
        gone = f"; {removed:,} of them are removed" if flagged else ""
        gone = "; their gold answers may be wrong, and they stay" if name == "suspect-label" and flagged else gone
        said.append(f"{flagged:,} ({flagged / n:.1%}) {words}{gone}.")
    said += [f"Not taken: {name}, since {reason}." for name, reason in skipped.items()]
    return " ".join(
        [*said, *_ranks(effects), _agreement(effects, agreement_of), *_correlations(effects, against), *_error(effects)]
    )


def _ranks(effects: Consequences) -> list[str]:
    ranking = effects.ranking
    if np.isnan(ranking.tau):
        return []
    without = "" if np.isnan(ranking.tau_others) else f" ({ranking.tau_others:.3f} among those that did not filter)"
    moved = int((ranking.rank_before != ranking.rank_after).sum())
    return [
        f"The {len(ranking.rank_before)} ranked models keep their order with a tau-b of {ranking.tau:.3f}{without}; "
        f"{moved} change their rank."
    ]


def _agreement(effects: Consequences, of: str) -> str:
    before, after, drawn = effects.before, effects.after, spread(effects.random.share)
    if np.isnan(before.mean_share) or np.isnan(after.mean_share):
        return "Agreement between models is not defined."
    what = "give the same answer" if of == "answers" else "are both right or both wrong"
    chance = f"; on random subsets of that size {drawn.mean:.1%}" if drawn.n else ""
    return (
        f"Two models {what} on {before.mean_share:.1%} of all prompts and on {after.mean_share:.1%} of those that stay"
        f"{chance} (kappa {before.mean_kappa:.3f} and {after.mean_kappa:.3f})."
    )


def _correlations(effects: Consequences, against: str) -> list[str]:
    return [_correlation(name, change, against) for name, change in effects.changes.items()]


def _correlation(name: str, change: CorrelationChange, against: str) -> str:
    if np.isnan(change.change):
        return f"{name.capitalize()}'s correlation with {against} is not defined."
    verdict = (
        "the change may be noise" if change.low <= 0 <= change.high else "the change is more than resampling gives"
    )
    return (
        f"{name.capitalize()}'s correlation with {against} over {change.n_models} models goes from {change.before:.3f} "
        f"to {change.after:.3f}: a change of {change.change:+.3f}, 95 % interval {change.low:+.3f} to "
        f"{change.high:+.3f} with the models drawn again, so {verdict}."
    )


def _error(effects: Consequences) -> list[str]:
    error = effects.error
    if error.reason:
        return []
    chosen, random = spread(error.chosen.fitted), spread(error.random.fitted)
    tau, random_tau = spread(error.chosen.tau), spread(error.random.tau)
    if not (chosen.n and random.n and tau.n):
        return []
    return [
        f"For models that had no part in filtering, what stays foretells the full score to {chosen.mean:.4f} on "
        f"average (a random subset of that size: {random.mean:.4f}) and the ranking with a tau-b of {tau.mean:.3f} "
        f"({random_tau.mean:.3f})."
    ]


def notes(
    *,
    filter_models: Sequence[str],
    makers: Sequence[str | None],
    kind: str,
    models: Sequence[str],
    scores: PerformanceMatrix,
    n_unscored: int,
    unknown_texts: int,
    odd: Sequence[Anomaly],
    skipped: Mapping[str, str],
    path: SimilarPath | None,
    effects: Consequences,
) -> list[str]:
    """What the reader of the numbers should know of how they came about."""
    said = [f"The models that filter: {listed(filter_models, most=len(filter_models))}."]
    unknown = [name for name, maker in zip(filter_models, makers, strict=True) if not maker]
    if unknown:
        said.append(
            f"Of {len(unknown)} of them the organization is not known; several may be of one. Say who made them: "
            "suffrage models --facts FILE."
        )
    known = [maker for maker in makers if maker]
    if twice := sorted({maker for maker in known if known.count(maker) > 1}):
        said.append(f"Several are of one organization: {listed(twice)}; they may have been trained on the same data.")
    if not kind:
        said.append(
            "Right and wrong alone decided, whatever the models' confidence: more prompts are called easy than by the "
            "paper's rule."
        )
    elif kind == "likelihoods":
        said.append(
            "The probabilities are those of the options' texts by their likelihoods. The paper's are of the option "
            "letters; the same threshold does not mean the same."
        )
    gaps = [name for name in scores.models if name not in set(models)]
    if gaps:
        said.append(f"Not ranked, since scores are missing: {listed(gaps)}.")
    lacking = [name for name in filter_models if name in gaps]
    if lacking:
        said.append(f"A prompt that {listed(lacking)} was not asked is never called easy.")
    if n_unscored:
        said.append(f"{n_unscored:,} prompts without any score were not judged.")
    if unknown_texts:
        said.append(f"{unknown_texts:,} prompts have no text, so that no duplicate of them can be found.")
    if odd:
        named = "; ".join(f"{one.task} ({_odd(one)})" for one in odd[:5])
        said.append(
            f"Tasks that stand out and may not belong: {named}. None was dropped for it; --exclude-task drops one."
        )
    if path is not None and "similar" not in skipped:
        said.append(_swing(path))
    if effects.error.reason:
        said.append(f"No error of the subset: {effects.error.reason}.")
    for name, change in effects.changes.items():
        if name == "pearson" and change.n_models < FEW_IN_COMMON:
            said.append(f"A correlation over {change.n_models} models says next to nothing.")
    return said


def _odd(one: Anomaly) -> str:
    what = {
        "length": f"{one.value:,.0f} characters a prompt, against {one.median:,.0f}",
        "n_choices": f"{one.value:.1f} options, against {one.median:.1f}",
        "distance": f"{one.value:.2f} from the other prompts in meaning, against {one.median:.2f}",
    }
    return what[one.measure]


def _swing(path: SimilarPath) -> str:
    shares = path.shares[np.isfinite(path.shares)]
    return (
        f"The threshold hangs on the bandwidth and the number of neighbours: from {np.nanmin(path.thresholds):.3g} to "
        f"{np.nanmax(path.thresholds):.3g} over the settings tried, which would remove from {shares.min():.1%} to "
        f"{shares.max():.1%} of the prompts. See the table and the picture path."
    )
