"""Would a filter made by other models, or with another encoder, remove the same prompts?

A recorded filter is made anew by every subset of its filter models that lacks a few of them, to see how far the share
removed depends on who filters. And its similar step is taken with the vectors of every stored encoder, to see how many
of the prompts and pairs that one calls similar another does too.

Source: Gupta et al. 2024, section 5, tables 6 to 8; every number is defined in docs/statistics/filter-stability.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from analyses.filter_stability import figures, tables
from analyses.filter_stability import summary as wording
from analyses.numerics.filtering.effects.stability import SubsetDecisions, decisions, summarize_population
from analyses.numerics.filtering.similar_prompts.encoder_overlap import (
    EncoderOverlap,
    EncoderResult,
    compare_encoders,
    find_similar_by_encoder,
)
from analyses.numerics.filtering.step_flags import confident_answers
from analyses.presentation.validation import validate
from tracker.queries.embeddings import AllEmbeddings, Embeddings
from tracker.queries.filtering.evidence import evidence
from tracker.queries.filtering.prompt_filter import PromptFilter
from tracker.queries.filtering.reference_probabilities import AnswerOnlyRuns, ReferenceProbabilities
from tracker.queries.performance import PerformanceMatrix
from tracker.queries.prompts import Prompts
from tracker.recording.finding import Finding, Metric, Report, Undefined, analysis, finite_or_undefined

ANEW = ("easy", "contaminated")
"""Steps that ask the filter models, and are taken anew."""
OF_SIMILAR = (
    "n_neighbours",
    "bandwidth",
    "unimodal",
    "threshold",
    "groups",
    "protect_lexical",
    "largest_group",
    "seed",
)
"""Options of the filter that its similar step was taken with."""
OF_ENCODERS = ("prompts", "pairs")
MAX_FEWER_MODELS = 3
"""Models that subsets lack at most, where no sizes are named."""
MAX_HEADLINE_PAIRS = 3
"""Whose numbers are headlines."""


@dataclass(frozen=True, kw_only=True)
class FilterStability(Finding):
    """A filter beside those that others would have made.

    Attributes:
        filter_id: the finding that holds it.
        filter_models: who made it, the best first.
        recorded: ``(n_prompts,)`` whether it removes each prompt that it judged.
        decided: what every subset of its models decides; the last one is all of them.
        blind: why no prompt can be called contaminated; '' where some can.
        encoders: the similar step with each.
        encoder_ids: their keys.
        shared: of every two of them.
        alone: why there are no two encoders; '' where there are.
    """

    filter_id: int
    filter_models: tuple[str, ...]
    recorded: NDArray[np.bool_]
    decided: SubsetDecisions
    blind: str
    encoders: tuple[EncoderResult, ...]
    encoder_ids: tuple[int, ...]
    shared: tuple[EncoderOverlap, ...]
    alone: str

    @property
    def n_otherwise(self) -> int:
        """Prompts that the filter, made anew by all of its models, decides otherwise than recorded: 0 on equal data."""
        return int((self.decided.by_all != self.recorded).sum())

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The filter, subsets by size, encoders, and every two of them."""
        of_all = len(self.filter_models)
        sizes = self.decided.sizes
        metrics: dict[str, Metric] = {
            "n_prompts": float(len(self.recorded)),
            "n_filter_models": float(of_all),
            "n_subsets": float((sizes < of_all).sum()),
            "share_removed.recorded": float(self.recorded.mean()),
            "share_removed.all": float(self.decided.by_all.mean()),
            "n_otherwise": float(self.n_otherwise),
        }
        for size in np.unique(sizes[sizes < of_all]).tolist():
            for name, values in tables.shares(self.decided).items():
                told = summarize_population(values[sizes == size])
                absent = Undefined(self.blind) if name == "contaminated" and self.blind else None
                for what in ("mean", "sd", "min", "max"):
                    metrics[f"share_{name}.{what}.{size}"] = absent or float(getattr(told, what))
        metrics["n_encoders"] = float(sum(not encoder.reason for encoder in self.encoders))
        for key, one in zip(self.encoder_ids, self.encoders, strict=True):
            threshold = None if one.found is None else one.found.threshold
            metrics[f"threshold.{key}"] = Undefined(one.reason) if threshold is None else threshold
            flagged = None if one.found is None or one.found.reason else float(one.found.step.flagged.sum())
            metrics[f"n_flagged.{key}"] = Undefined(one.reason) if flagged is None else flagged
        if self.alone:
            return metrics | {f"overlap.{what}": Undefined(self.alone) for what in OF_ENCODERS}
        for pair in self.shared:
            keys = f"{self.encoder_ids[pair.first]}.{self.encoder_ids[pair.second]}"
            for what in OF_ENCODERS:
                found = getattr(pair, what)
                reason = pair.reason or wording.TOO_MANY_PAIRS
                for name in ("coefficient", "jaccard", "expected_coefficient"):
                    value = float("nan") if found is None else getattr(found, name)
                    shown = {"coefficient": "overlap", "expected_coefficient": "expected_overlap"}.get(name, name)
                    metrics[f"{shown}.{what}.{keys}"] = finite_or_undefined(value, reason)
        return metrics

    @property
    def arrays(self) -> Mapping[str, NDArray[np.float64]]:
        """None: every subset is a row of a table."""
        return {}

    @property
    def headline(self) -> Sequence[str]:
        """Shares by size, and the first encoders."""
        metrics = self.metrics
        alone = [name for name in metrics if not name.startswith(("share_", "threshold.", "n_flagged.", "overlap."))]
        shares = [name for name in metrics if name.startswith(("share_removed.", "share_changed.mean."))]
        shared = [name for name in metrics if name.startswith("overlap.")][: 2 * MAX_HEADLINE_PAIRS]
        return [*[name for name in alone if "jaccard" not in name and "expected" not in name], *shares[:36], *shared]

    def summary(self) -> str:
        """What was found, in plain words."""
        return wording.summary(
            self.decided,
            self.recorded,
            filter_id=self.filter_id,
            filter_models=self.filter_models,
            encoders=self.encoders,
            shared=self.shared,
            alone=self.alone,
        )


@analysis
def analyze(
    scores: PerformanceMatrix,
    prompts: Prompts,
    chosen: PromptFilter,
    probabilities: ReferenceProbabilities,
    answer_only: AnswerOnlyRuns,
    encoders: AllEmbeddings,
    *,
    sizes: Annotated[
        tuple[int, ...], "of the subsets of the filter models; else one, two and three fewer than all"
    ] = (),
) -> Report:
    """Make a filter anew by every subset of its models, and its similar step with every encoder.

    Args:
        scores: of the filter models at least, under the metric that the filter was made with.
        prompts: their texts.
        chosen: made by `smart-filtering`; its options are taken over.
        probabilities: of the gold answers in the same runs.
        answer_only: runs that did not see the question.
        encoders: vectors of the prompts, by whatever made them.
        sizes: each from 1 to the number of filter models.

    Raises:
        SelectionError: the filter was made without models, or they have no scores here; a size that is none; too many
            subsets.
    """
    validate(wording.filter_problems(chosen, scores, (*OF_SIMILAR, "confidence", "retain")))
    options, models = chosen.parameters, chosen.models
    wanted = sizes or tuple(range(max(1, len(models) - MAX_FEWER_MODELS), len(models)))
    validate(wording.size_problems(wanted, models))
    judged = np.isin(scores.prompt_ids, chosen.prompt_ids)
    validate(wording.row_problems(chosen, judged))
    kept = scores.rows(judged)
    columns = np.array([kept.models.index(name) for name in models], dtype=np.intp)

    known = evidence(kept, probabilities, answer_only)
    kind = "" if options["without_confidence"] else known.kind(columns, kept.models, options["probability"])
    blind = known.unblinded(columns, kept.models, kind or None)
    gold = known.gold[kind][:, columns] if kind else None
    blind_gold = known.blind_gold[kind][:, columns] if kind and not blind else None
    lasting = [chosen.removed(step, kept.prompt_ids) for step in chosen.reasons if step not in ANEW]
    decided = decisions(
        confident_answers(known.right[:, columns], gold, options["confidence"]),
        None if blind else confident_answers(known.blind_right[:, columns], blind_gold, options["confidence"]),
        np.logical_or.reduce([np.zeros(kept.n_prompts, dtype=np.bool_), *lasting]),
        sizes=(*sorted(set(wanted) - {len(models)}), len(models)),
        retain=options["retain"],
        seed=options["seed"],
    )

    texts = [prompts.texts[row] or "" for row in prompts.find_rows(kept.prompt_ids)]
    is_left_out = bool(options.get("without_similar"))
    stored = () if is_left_out else encoders.by_encoder
    steps = tuple(_step(one, kept.prompt_ids, texts, {name: options[name] for name in OF_SIMILAR}) for one in stored)
    found = FilterStability(
        filter_id=chosen.finding_id,
        filter_models=models,
        recorded=~chosen.align(kept.prompt_ids)[0],
        decided=decided,
        blind=blind,
        encoders=steps,
        encoder_ids=tuple(one.encoder_id for one in stored),
        shared=compare_encoders(steps),
        alone=wording.alone(steps, is_left_out=is_left_out, benchmark=chosen.benchmark),
    )
    flagged = chosen.flagged("similar", kept.prompt_ids)
    return Report(
        found,
        tables={
            "sizes": tables.by_size(decided),
            "subsets": tables.by_subset(decided, models),
            "encoders": tables.by_encoder(steps, found.encoder_ids, flagged),
            "overlaps": tables.by_pair(steps, found.shared),
        },
        figures={"subsets": lambda: figures.subsets(decided, float(found.recorded.mean()))},
        warnings=wording.warnings(
            chosen=chosen,
            n_judged=int(judged.sum()),
            n_new=int((~judged).sum()),
            metric=scores.metric,
            n_otherwise=found.n_otherwise,
            by_all=float(decided.by_all.mean()),
            recorded=float(found.recorded.mean()),
            blind=blind,
            steps=steps,
            flagged=flagged,
            threshold=options["threshold"],
        ),
    )


def _step(
    stored: Embeddings, prompt_ids: NDArray[np.int64], texts: Sequence[str], options: Mapping[str, object]
) -> EncoderResult:
    """The similar step with an encoder's vectors, or why it cannot be taken."""
    reason = wording.unusable(stored, prompt_ids)
    if reason:
        return EncoderResult(encoder=stored.encoder, found=None, reason=reason, pairs=None)
    return find_similar_by_encoder(stored.encoder, stored.align(prompt_ids), texts, **options)  # type: ignore[arg-type]
