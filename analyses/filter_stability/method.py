"""A recorded filter compared with filters by fewer of its models or by other encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from analyses.filter_stability.validation import find_vector_problem
from analyses.numerics.filtering.effects.stability import SubsetDecisions, decide_by_subset, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import (
    EncoderOverlap,
    EncoderResult,
    compare_encoders,
    find_similar_by_encoder,
)
from analyses.numerics.filtering.similar_prompts.similar_step import SimilarSettings
from analyses.numerics.filtering.step_flags import find_confident_answers
from tracker.queries.embeddings import Embeddings
from tracker.queries.filtering.evidence import Evidence
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Finding, Metric, Undefined, finite_or_undefined

MODEL_STEPS: tuple[str, ...] = ("easy", "contaminated")
"""Steps that depend on the filter models and are recomputed."""
SIMILAR_SETTINGS = tuple(field.name for field in fields(SimilarSettings))
"""Options of the step `similar` of the filter."""
OVERLAPS = ("prompts", "pairs")
MAX_FEWER_MODELS = 3
"""Largest number of models that default subsets lack."""
MAX_HEADLINE_PAIRS = 3
"""Pairs of encoders whose numbers are main metrics."""
TOO_MANY_PAIRS = "one encoder has too many similar pairs to list them"


@dataclass(frozen=True, kw_only=True)
class FilterStability(Finding):
    """A filter compared with filters by fewer models or other encoders.

    Attributes:
        filter_id: the finding that holds it.
        filter_models: its filter models, the best first.
        recorded: ``(n_prompts,)`` whether it removes each prompt with a decision.
        recorded_similar: ``(n_prompts,)`` whether it flagged each of them as similar.
        decisions: what every subset of its models decides; the last one is all of them.
        not_contaminated: why no subset flags contaminated prompts; '' where they can.
        encoders: the similar step with each.
        encoder_ids: their keys.
        overlaps: of every two of them.
        no_overlap: why there are no two encoders; '' where there are.
    """

    filter_id: int
    filter_models: tuple[str, ...]
    recorded: NDArray[np.bool_]
    recorded_similar: NDArray[np.bool_]
    decisions: SubsetDecisions
    not_contaminated: str
    encoders: tuple[EncoderResult, ...]
    encoder_ids: tuple[int, ...]
    overlaps: tuple[EncoderOverlap, ...]
    no_overlap: str

    @property
    def n_otherwise(self) -> int:
        """Prompts whose recomputed decision by all models differs from the recorded one; 0 on equal data."""
        return int((self.decisions.by_all != self.recorded).sum())

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The filter, subsets by size, encoders, and every two of them."""
        n_models, sizes = len(self.filter_models), self.decisions.sizes
        return {
            "n_prompts": float(len(self.recorded)),
            "n_filter_models": float(n_models),
            "n_subsets": float((sizes < n_models).sum()),
            "share_removed.recorded": float(self.recorded.mean()),
            "share_removed.all": float(self.decisions.by_all.mean()),
            "n_otherwise": float(self.n_otherwise),
            **self._subset_metrics(),
            **self._encoder_metrics(),
            **self._overlap_metrics(),
        }

    def _subset_metrics(self) -> dict[str, Metric]:
        metrics: dict[str, Metric] = {}
        sizes = self.decisions.sizes
        for size in np.unique(sizes[sizes < len(self.filter_models)]).tolist():
            for name, values in self.decisions.shares.items():
                population = summarize_population(values[sizes == size])
                reason = self.not_contaminated if name == "contaminated" else ""
                undefined = Undefined(reason) if reason else None
                for statistic in ("mean", "sd", "min", "max"):
                    value = float(getattr(population, statistic))
                    metrics[f"share_{name}.{statistic}.{size}"] = undefined or value
        return metrics

    def _encoder_metrics(self) -> dict[str, Metric]:
        metrics: dict[str, Metric] = {"n_encoders": float(sum(not encoder.reason for encoder in self.encoders))}
        for key, encoder in zip(self.encoder_ids, self.encoders, strict=True):
            similar, undefined = encoder.similar, Undefined(encoder.reason)
            threshold = None if similar is None else similar.threshold
            metrics[f"threshold.{key}"] = undefined if threshold is None else threshold
            metrics[f"n_flagged.{key}"] = (
                undefined if similar is None or similar.reason else float(similar.flags.flagged.sum())
            )
        return metrics

    def _overlap_metrics(self) -> dict[str, Metric]:
        if self.no_overlap:
            return {f"overlap.{kind}": Undefined(self.no_overlap) for kind in OVERLAPS}
        metrics: dict[str, Metric] = {}
        names = {"coefficient": "overlap", "jaccard": "jaccard", "expected_coefficient": "expected_overlap"}
        for pair in self.overlaps:
            keys = f"{self.encoder_ids[pair.first]}.{self.encoder_ids[pair.second]}"
            for kind in OVERLAPS:
                overlap = getattr(pair, kind)
                for attribute, name in names.items():
                    value = float("nan") if overlap is None else getattr(overlap, attribute)
                    metrics[f"{name}.{kind}.{keys}"] = finite_or_undefined(value, pair.reason or TOO_MANY_PAIRS)
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[np.float64]]:
        """None: every subset is a row of a table."""
        return {}

    @property
    def main_metrics(self) -> Sequence[str]:
        """Shares by size, and the first encoders."""
        metrics = self.metrics
        counts = [name for name in metrics if not name.startswith(("share_", "threshold.", "n_flagged.", "overlap."))]
        shares = [name for name in metrics if name.startswith(("share_removed.", "share_changed.mean."))]
        overlaps = [name for name in metrics if name.startswith("overlap.")][: 2 * MAX_HEADLINE_PAIRS]
        return [*[name for name in counts if "jaccard" not in name and "expected" not in name], *shares[:36], *overlaps]


def decide_anew(
    scores: PerformanceMatrix, recorded: PromptFilter, evidence: Evidence, sizes: Sequence[int]
) -> tuple[SubsetDecisions, str]:
    """Recompute a filter with every subset of its models.

    Args:
        scores: of the prompts with a decision.
        recorded: the filter.
        evidence: of all models on these prompts.
        sizes: of the subsets; that of all models is added.

    Returns:
        The decisions, and why no subset flags contaminated prompts; '' where they can.
    """
    options, models = recorded.parameters, recorded.models
    columns = np.array([scores.models.index(name) for name in models], dtype=np.intp)
    kind = "" if options["without_confidence"] else evidence.kind(columns, scores.models, options["probability"])
    not_contaminated, repeated = evidence.unblinded(columns, scores.models, kind or None), MODEL_STEPS
    if options.get("contaminated_models"):
        not_contaminated = "that step has its own models (contaminated_models), so its decisions stay"
        repeated = ("easy",)
    probabilities = evidence.gold[kind][:, columns] if kind else None
    blind = evidence.blind_gold[kind][:, columns] if kind and not not_contaminated else None
    other_steps = [recorded.removed(step, scores.prompt_ids) for step in recorded.reasons if step not in repeated]
    decisions = decide_by_subset(
        find_confident_answers(evidence.right[:, columns], probabilities, options["confidence"]),
        None
        if not_contaminated
        else find_confident_answers(evidence.blind_right[:, columns], blind, options["confidence"]),
        np.logical_or.reduce([np.zeros(scores.n_prompts, dtype=np.bool_), *other_steps]),
        sizes=(*sorted(set(sizes) - {len(models)}), len(models)),
        retain=options["retain"],
        seed=options["seed"],
    )
    return decisions, not_contaminated


def apply_encoders(
    encoders: Sequence[Embeddings], recorded: PromptFilter, prompt_ids: NDArray[np.int64], texts: Sequence[str]
) -> tuple[EncoderResult, ...]:
    """Apply the step `similar` of a filter with every encoder's vectors."""
    settings = SimilarSettings(**{name: recorded.parameters[name] for name in SIMILAR_SETTINGS})
    results = []
    for encoder in encoders:
        if reason := find_vector_problem(encoder, prompt_ids):
            results.append(EncoderResult(encoder=encoder.encoder, similar=None, reason=reason, pairs=None))
            continue
        E = encoder.align(prompt_ids)
        result = find_similar_by_encoder(encoder.encoder, E, texts, settings, seed=recorded.parameters["seed"])
        results.append(result)
    return tuple(results)


def compare_filters(
    scores: PerformanceMatrix,
    recorded: PromptFilter,
    evidence: Evidence,
    encoders: Sequence[Embeddings],
    texts: Sequence[str],
    *,
    sizes: Sequence[int],
) -> FilterStability:
    """Recompute a filter with every subset of its models, and its step `similar` with every encoder.

    Args:
        scores: of the prompts with a decision.
        recorded: the filter.
        evidence: of all models on these prompts.
        encoders: vectors of the prompts.
        texts: of the prompts.
        sizes: of the subsets.
    """
    decisions, not_contaminated = decide_anew(scores, recorded, evidence, sizes)
    is_left_out = bool(recorded.parameters.get("without_similar"))
    used = () if is_left_out else tuple(encoders)
    results = apply_encoders(used, recorded, scores.prompt_ids, texts)
    return FilterStability(
        filter_id=recorded.finding_id,
        filter_models=recorded.models,
        recorded=~recorded.align(scores.prompt_ids)[0],
        recorded_similar=recorded.flagged("similar", scores.prompt_ids),
        decisions=decisions,
        not_contaminated=not_contaminated,
        encoders=results,
        encoder_ids=tuple(encoder.encoder_id for encoder in used),
        overlaps=compare_encoders(results),
        no_overlap=_explain_no_overlap(results, is_left_out=is_left_out, benchmark=recorded.benchmark),
    )


def _explain_no_overlap(results: Sequence[EncoderResult], *, is_left_out: bool, benchmark: str) -> str:
    """Return why there are no two encoders to compare; '' if there are."""
    if is_left_out:
        return "the filter skips the step `similar`"
    if len(results) >= 2:
        return ""
    first = (
        f"the prompts have vectors by only one encoder, {results[0].encoder}" if results else "no vectors are stored"
    )
    return f"{first}; add another with `suffrage embed {benchmark}`"
