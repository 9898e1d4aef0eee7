"""Prompts with nearly the same meaning; half of each group is removed.

Source: Gupta et al. 2024, section 3.4, appendix A.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from analyses.numerics.filtering.similar_prompts.neighbours import find_nearest_neighbours
from analyses.numerics.filtering.similar_prompts.similar_step import (
    SimilarPath,
    SimilarSettings,
    SimilarStep,
    find_similar,
    trace_similar_path,
)
from analyses.presentation import similar_prompts_figures as figures
from analyses.presentation.filter_model_tables import list_path
from analyses.presentation.validation import ValidationErrors, check_minimum
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.filter_step import FilterStep, StepResult
from analyses.smart_filtering.validation import check_shares
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Metric, Undefined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDWIDTHS = (0.01, 10)
"""Smaller bandwidths follow single distances; larger ones remove all maxima."""
MAX_SIMILAR_SHARE = 0.5
"""Share of similar prompts above which they are unlikely to be repetitions."""


@dataclass(frozen=True, kw_only=True)
class SimilarSwitch:
    """Whether the step is applied; separate from the settings so that its option comes first."""

    without_similar: Annotated[bool, "Omit the step that needs vectors of the prompts."] = False


@dataclass(frozen=True, kw_only=True)
class SimilarOptions(SimilarSettings, SimilarSwitch):
    """Whether and how the step finds similar prompts."""


class SimilarPromptsStep(FilterStep[SimilarOptions]):
    """Needs vectors of all prompts; reads their texts."""

    name = "similar"
    position = 50
    options = SimilarOptions

    def needs_vectors(self, options: SimilarOptions) -> bool:
        """Return whether the step is applied."""
        return not options.without_similar

    def check_options(self, options: SimilarOptions, scores: PerformanceMatrix) -> ValidationErrors:
        """Check the ranges of the settings."""
        low, high = BANDWIDTHS
        threshold = options.threshold
        return {
            **check_shares(protect_lexical=options.protect_lexical, largest_group=options.largest_group),
            f"bandwidth is {options.bandwidth:g}; it must be from {low:g} to {high:g}.": (
                not low <= options.bandwidth <= high
            ),
            f"threshold is {threshold}; it must be above 0 and at most 2, the range of cosine distances.": (
                threshold is not None and not 0 < threshold <= 2
            ),
            **check_minimum(1, n_neighbours=options.n_neighbours),
        }

    def skip_reason(self, data: FilterData, options: SimilarOptions) -> str:
        """Return why the step is skipped."""
        return "" if data.vectors is not None else "the option --without-similar is set"

    def apply(self, data: FilterData, options: SimilarOptions) -> StepResult:
        """Flag prompts nearer to another one than the threshold, and remove half of each group."""
        E = data.vectors
        assert E is not None
        neighbours = find_nearest_neighbours(E, options.n_neighbours)
        texts = [text or "" for text in data.texts]
        similar = find_similar(E, texts, options, seed=data.seed, neighbours=neighbours)
        path = trace_similar_path(E, neighbours, options)
        warnings = _warn_of_share(similar) + (_suggest_bandwidths(path) if similar.reason else _describe_range(path))
        return StepResult(
            flags=similar.flags,
            skipped=similar.reason,
            rule=_describe_rule(similar),
            metrics=_make_metrics(similar),
            arrays={
                "density.grid": similar.density.grid,
                "density.density": similar.density.density,
                "density.maxima": similar.density.maxima,
            },
            tables={"path": list_path(path)},
            figures=_make_figures(similar, path),
            warnings=warnings,
        )


def _make_metrics(similar: SimilarStep) -> dict[str, Metric]:
    threshold = Undefined(similar.reason) if similar.threshold is None else similar.threshold
    return {
        "similar.threshold": threshold,
        "similar.n_maxima": float(len(similar.density.maxima)),
        "similar.n_pairs": float(similar.n_pairs),
        "similar.largest_group_share": similar.largest_group / len(similar.flags.flagged),
    }


def _make_figures(similar: SimilarStep, path: SimilarPath) -> Mapping[str, Callable[[], Figure]]:
    chosen_by = f"{similar.chosen_by}, rejected" if similar.reason else similar.chosen_by
    shares = np.where(path.is_too_large, np.nan, path.shares)
    return {
        "density": lambda: figures.draw_density(similar.density, similar.threshold, chosen_by),
        "path": lambda: figures.draw_path(path.bandwidths, path.n_neighbours, path.thresholds, shares, path.chosen),
    }


def _describe_rule(similar: SimilarStep) -> str:
    """Describe the threshold and its choice."""
    if similar.threshold is None:
        return ""
    n_maxima = int((similar.density.maxima > 0).sum())
    chosen = {
        "given": "the option --threshold",
        "half of the only maximum": "half of the density's only maximum",
        "first maximum": f"the first of {n_maxima} maxima of the density"
        if n_maxima > 1
        else "the density's only maximum",
    }
    return f"Similar: cosine distance below {similar.threshold:.3g} ({chosen[similar.chosen_by]})."


def _warn_of_share(similar: SimilarStep) -> list[str]:
    share = similar.flags.flagged.mean()
    if share <= MAX_SIMILAR_SHARE:
        return []
    return [
        f"{share:.0%} of the prompts are similar to another one, so the threshold may separate topics rather than "
        "repetitions. Try a smaller `--bandwidth` or `--threshold`."
    ]


def _describe_range(path: SimilarPath) -> list[str]:
    """Describe how far the threshold and the share removed depend on the settings."""
    known = np.isfinite(path.thresholds)
    if not known.any():
        return []
    thresholds, is_too_large = path.thresholds[known], path.is_too_large[known]
    shares, n_too_large = path.shares[known][~is_too_large], int(is_too_large.sum())
    text = (
        "The threshold depends on the bandwidth and the number of neighbours: "
        f"{thresholds.min():.3g} to {thresholds.max():.3g} in {len(is_too_large)} settings."
    )
    if shares.size:
        text += f" They remove {shares.min():.1%} to {shares.max():.1%} of the prompts"
        text += f"; in {n_too_large} settings a group is too large." if n_too_large else "."
    return [f"{text} See the table `path`."]


def _suggest_bandwidths(path: SimilarPath) -> list[str]:
    """Suggest bandwidths whose groups are small enough, with as many neighbours."""
    j = len(path.n_neighbours) - 1
    possible = [
        f"--bandwidth {path.bandwidths[i]:g} (threshold {path.thresholds[i, j]:.3g}, {path.shares[i, j]:.1%} removed)"
        for i in range(len(path.bandwidths))
        if np.isfinite(path.thresholds[i, j]) and not path.is_too_large[i, j]
    ]
    tried = f"{path.bandwidths[0]:g} to {path.bandwidths[-1]:g}"
    if not possible:
        return [f"No bandwidth from {tried} gives a usable threshold. See the figure of the density."]
    return [f"Usable bandwidths from {tried}: {'; '.join(possible)}."]


STEP = SimilarPromptsStep()
