"""The summary of a mixed model, and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from analyses.mixed_model.method import METRIC_NAMES, MixedModel
from analyses.numerics.mixed.effects import ModelEffects
from analyses.presentation.name_lists import list_leaders
from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary
from tracker.recording.finding import LeaderChange, VerdictLine, compare_leaders

MAX_NAMES = 3
FEW_MODELS = 10
"""With fewer models, Laplace's approximation underestimates the variance of prompts noticeably."""
EQUAL = 1e-6
"""Relative difference of log-likelihoods that are called equal."""
LABELS = {"model_task": "model × task"}


def summarize(finding: MixedModel) -> Summary:
    """Summarize who is first, where the variance lies, and what covariates do."""
    return Summary(
        headline=_headline(finding),
        evidence=tuple(_list_evidence(finding)),
        caveats=tuple(_list_caveats(finding)),
    )


def describe_verdict(finding: MixedModel, expected: Sequence[str]) -> list[VerdictLine]:
    """Return whether the mixed model leaves the first place to the leaders of the leaderboard.

    Args:
        finding: the result.
        expected: models that the leaderboard ranks first.
    """
    ranks, fit, topic = finding.on_tasks, finding.fit, "mixed model"
    leaders = list_leaders(ranks.rank, finding.models)
    n_rivals = int((ranks.rank_low == 1).sum()) - len(leaders)
    estimated = " with missing scores estimated" * (finding.n_missing > 0)
    first = f"{join_names(leaders, MAX_NAMES)} {'is' if len(leaders) == 1 else 'are'} first{estimated}"
    change = compare_leaders(leaders, expected)
    if change != "yes" and (fit.at_limit.any() or not fit.has_converged):
        text = f"{first}; which others may be is not known, because the likelihood has no maximum."
        return [VerdictLine(topic=topic, text=text, leader_changes="unknown")]
    rivals = f"{n_rivals} other model{'s' * (n_rivals != 1)} may be first too" if n_rivals else "no other may be first"
    changes: LeaderChange = "maybe" if n_rivals and change == "no" else change
    return [VerdictLine(topic=topic, text=f"{first}; {rivals}.", leader_changes=changes)]


def _headline(finding: MixedModel) -> str:
    leaders = list_leaders(finding.on_tasks.rank, finding.models)
    verb = "is" if len(leaders) == 1 else "are"
    first = finding.on_tasks.first
    text = f"{join_names(leaders, MAX_NAMES)} {verb} first by the mixed model"
    if finding.other_tasks is None:
        return f"{text} ({_format_ranks(finding.on_tasks, first)})."
    clustered = ""
    if finding.differs_from_clustered and finding.clustered_ranks is not None:
        clustered = f" ({_format_span(*finding.clustered_ranks)} on the leaderboard)"
    return (
        f"{text}: {_format_ranks(finding.on_tasks, first)} on these tasks, "
        f"{_format_ranks(finding.other_tasks, first)} on other tasks like these{clustered}."
    )


def _format_ranks(effects: ModelEffects, column: int) -> str:
    return _format_span(int(effects.rank_low[column]), int(effects.rank_high[column]))


def _format_span(low: int, high: int) -> str:
    return f"rank {low}" if low == high else f"ranks {low}–{high}"


def _list_evidence(finding: MixedModel) -> Iterator[str]:
    fit = finding.fit
    names = (*METRIC_NAMES, "residual")
    shares = [
        f"{LABELS.get(name, name)} {share:.1%}"
        for name, share in zip(names, fit.shares.tolist(), strict=True)
        if name not in finding.inactive_reasons
    ]
    scale = "in logits" if fit.response == "logistic" else "of the scores"
    yield f"Variance {scale}: {', '.join(shares)}."
    may_lead = int((finding.on_tasks.rank_low == 1).sum())
    k = len(finding.models)
    yield (
        f"{may_lead} of {k} models may be first on these tasks: all rank intervals hold together with probability "
        f"{finding.level:.0%}, approximately (Holm)."
    )
    if finding.n_missing:
        missing = f"{finding.n_missing:,} score{'s are' if finding.n_missing > 1 else ' is'} missing"
        yield (f"All {k} models are ranked, although {missing}. Assumption: missing at random, given the effects.")
    if finding.tests:
        yield _describe_tests(finding)
    is_confirmed = isinstance(confirmed := finding.by_statsmodels, float) and (
        abs(confirmed - fit.log_likelihood) <= EQUAL * abs(fit.log_likelihood)
    )
    yield (
        f"Data: {fit.design.n_scores:,} scores of {k} models on {finding.n_prompts:,} prompts in {len(finding.tasks)} "
        f"task{'s' * (len(finding.tasks) != 1)}.{' statsmodels fits the same likelihood.' * is_confirmed}"
    )


def _has_better_fit(finding: MixedModel) -> bool:
    """Return whether statsmodels reaches a higher likelihood."""
    value, best = finding.fit.log_likelihood, finding.by_statsmodels
    return isinstance(best, float) and best > value + EQUAL * abs(value)


def _describe_tests(finding: MixedModel) -> str:
    level = 1 - finding.level
    significant = [test for test in finding.tests if test.holm <= level]
    names = join_names([test.name for test in finding.tests])
    if not significant:
        return f"No covariate is significant ({names}; Holm, level {level:.3g})."
    parts = [f"{test.name} {test.estimate:+.3g} for {test.unit}" for test in significant if np.isfinite(test.stderr)]
    parts += [f"{test.name}" for test in significant if not np.isfinite(test.stderr)]
    return f"Significant covariates, of {names}: {join_names(parts, separator='; ')} (Holm, level {level:.3g})."


def _list_caveats(finding: MixedModel) -> Iterator[str]:
    if finding.fit.response == "logistic":
        yield "The likelihood is Laplace's approximation. Errors add the uncertainty of the variances to first order."
    else:
        yield (
            "Errors on these tasks assume normal effects and one residual variance; they add the uncertainty of the "
            "variances to first order."
        )
    if finding.differs_from_clustered:
        yield (
            "On other tasks, the mixed model counts tasks about equally and pools variances of pairs that agree; the "
            "leaderboard counts prompts equally and takes each pair alone."
        )
    raw = finding.completed if finding.higher_is_better else -finding.completed
    leaders = list_leaders(finding.on_tasks.rank, finding.models)
    by_mean = [finding.models[column] for column in np.flatnonzero(raw == raw.max()).tolist()]
    if not set(leaders) & set(by_mean):
        yield f"By the mean with missing scores predicted, {join_names(by_mean, MAX_NAMES)} is first."
    if any(test.name == "few_shot" for test in finding.tests):
        yield "Few-shot examples differ between models, not within them: their coefficient is no causal effect."


def list_warnings(finding: MixedModel, dropped: Sequence[str]) -> list[str]:
    """List what was left out, and where the fit is weak.

    Args:
        finding: the result.
        dropped: models without a score.
    """
    fit, names = finding.fit, METRIC_NAMES
    warnings = []
    if dropped:
        warnings.append(f"Models without a score are left out: {join_names(dropped)}.")
    if not fit.has_converged:
        warnings.append("The likelihood did not converge: variances and errors are rough.")
    if _has_better_fit(finding):
        warnings.append(f"statsmodels reaches the log-likelihood {finding.by_statsmodels:.6g}: variances are rough.")
    if fit.at_limit.any():
        limited = join_names([names[row] for row in np.flatnonzero(fit.at_limit).tolist()])
        warnings.append(f"The variance of {limited} grows without bound: its levels separate scores of 0 from 1.")
    if fit.response == "logistic" and len(finding.models) < FEW_MODELS:
        warnings.append(
            f"With {len(finding.models)} models, Laplace's approximation underestimates the variance of prompts."
        )
    zero = [names[row] for row in np.flatnonzero(fit.design.is_active & (fit.sd == 0)).tolist()]
    if zero:
        labels = join_names([LABELS.get(name, name) for name in zero])
        warnings.append(f"The estimated variance is 0 for {labels}. Errors of effects allow for a small variance.")
    reasons = [f"{name} ({reason})" for name, reason in finding.coded.excluded.items() if "disabled" not in reason]
    if reasons:
        warnings.append(f"Covariates that are not used: {'; '.join(reasons)}.")
    return warnings
