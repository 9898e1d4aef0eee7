"""The summary of two models compared on all shared benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

from tracker.name_lists import join_names
from tracker.queries.findings.summary import Summary
from tracker.recording.comparing.shared_benchmarks import SharedBenchmarks
from tracker.statistics.pooling.random_effects import MIN_STUDIES, PooledDifference

LEVEL = 0.95
MAX_REASONS = 3


def summarize(shared: SharedBenchmarks) -> Summary:
    """Summarize which model is better overall, on how many benchmarks, and what is not pooled."""
    lines = [_describe_pooled(shared, bounds, pooled) for bounds, pooled in shared.pooled.items()]
    first, *further = lines or [_describe_unpooled(shared)]
    evidence = [*further[:2]]
    if shared.pooled:
        evidence.append(f"Single benchmarks (Holm's correction): {_count_better(shared)}.")
        evidence += list(_describe_spread(next(iter(shared.pooled.values()))))
    return Summary(first, tuple(evidence), tuple(_list_exclusions(shared)))


def _describe_pooled(shared: SharedBenchmarks, bounds: tuple[float, float], pooled: PooledDifference) -> str:
    ahead, behind = shared.models if pooled.mean >= 0 else shared.models[::-1]
    low, high = (pooled.low, pooled.high) if pooled.mean >= 0 else (-pooled.high, -pooled.low)
    is_significant = pooled.pvalue <= 1 - LEVEL
    verdict = f"is {'better than' if is_significant else 'ahead of'} {behind} by {abs(pooled.mean):.4f}"
    doubt = "" if is_significant else ", but not significantly"
    scores = "" if len(shared.pooled) == 1 else f" with scores from {bounds[0]:g} to {bounds[1]:g}"
    return (
        f"{ahead} {verdict} overall on {pooled.n_studies} benchmarks{scores}{doubt} ({LEVEL:.0%} interval {low:.4f} to "
        f"{high:.4f}, p = {pooled.pvalue:.2g})."
    )


def _describe_unpooled(shared: SharedBenchmarks) -> str:
    return (
        f"{_count_better(shared)}; no overall difference, because it needs {MIN_STUDIES} benchmarks with scores in the "
        "same bounds."
    )


def _count_better(shared: SharedBenchmarks) -> str:
    significant = [row for row in shared.rows if row.holm is not None and row.holm <= 1 - LEVEL]
    n_a = sum(row.difference > 0 for row in significant)
    a, b = shared.models
    n = len(shared.rows)
    benchmarks = f"{n} shared benchmark{'s' * (n != 1)}"
    return f"{a} is significantly better on {n_a} of {benchmarks}, {b} on {len(significant) - n_a}"


def _describe_spread(pooled: PooledDifference) -> Iterator[str]:
    yield (
        f"True differences vary between benchmarks with a standard deviation of {pooled.tau:.4f}; {LEVEL:.0%} "
        f"prediction interval for one more such benchmark: {pooled.predicted_low:.4f} to {pooled.predicted_high:.4f}."
    )
    yield (
        f"Random effects, benchmarks weighted equally; Student's t under their errors. Weighted by precision "
        f"(Hartung–Knapp), the difference is {pooled.weighted_mean:.4f} ({LEVEL:.0%} interval "
        f"{pooled.weighted_low:.4f} to {pooled.weighted_high:.4f}, which can be too narrow)."
    )


def _list_exclusions(shared: SharedBenchmarks) -> Iterator[str]:
    unpooled = [f"{row.benchmark} ({row.unpooled})" for row in shared.rows if row.unpooled]
    if unpooled and shared.pooled:
        yield f"Not in the overall difference: {join_names(unpooled, MAX_REASONS)}."
    if shared.failed:
        reasons = [f"{name} ({reason})" for name, reason in shared.failed.items()]
        yield f"Not compared: {join_names(reasons, MAX_REASONS)}."
