"""Effects of a filter as tables: by step, by task, by model and by prompt.

Columns of a step begin with its name, hyphens as underscores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analyses.numerics.filtering.effects.agreement import ModelAgreement
from analyses.numerics.filtering.effects.correlation_change import CorrelationChange
from analyses.numerics.filtering.effects.ranking_change import RankingChange
from analyses.numerics.filtering.effects.removal_parts import count_by_task, split_removed
from analyses.numerics.filtering.step_flags import StepFlags
from analyses.presentation.filter_model_tables import list_answer_only_scores, list_filter_models
from analyses.presentation.table_columns import number_column
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.method import SmartFiltering
from tracker.queries.filtering.prompt_filter import FILTER_MODELS
from tracker.recording.finding import FilterDecisions, FlaggedPrompts, RankedModels
from tracker.statistics.ranking import mean_ranks

ALL_STEPS = "all steps"
"""Name of the row of all steps together."""
BETWEEN = "; "
"""Between reasons."""


def list_tables(finding: SmartFiltering, data: FilterData, is_filter_model: NDArray[np.bool_]) -> dict[str, pa.Table]:
    """Return all tables of a filter, by their names.

    Args:
        finding: the filter.
        data: its inputs.
        is_filter_model: ``(n_models,)`` of the ranked models.
    """
    effects, tasks = finding.effects, data.scores.tasks
    tables = {
        "steps": list_by_step(finding.removing_steps, finding.kept, finding.skipped),
        "models": list_by_model(finding.models, effects.ranking, is_filter_model),
        "tasks": list_by_task(tasks, finding.steps, finding.kept),
        "decisions": tabulate_decisions(data.names, tasks, finding.steps, finding.kept),
        "filter_models": list_filter_models(finding.filter_models, data.models, data.kind),
        "answer_only": list_answer_only_scores(data.scores, data.evidence, data.choices, finding.filter_models),
        "agreement": list_agreement(finding.models, effects.before, effects.after),
    }
    if effects.changes:
        tables["correlations"] = list_correlations(effects.changes)
    for result in finding.results.values():
        tables |= result.tables
    return tables


def list_decisions(finding: SmartFiltering, prompt_ids: NDArray[np.int64]) -> FilterDecisions:
    """Every prompt with its decision and all reasons that apply, as recorded."""
    reasons = {}
    for name, flags in finding.steps.items():
        places = np.flatnonzero(flags.flagged)
        groups = flags.groups[places] if (flags.groups[places] >= 0).any() else None
        reasons[name] = FlaggedPrompts(prompt_ids=prompt_ids[places], retained=~flags.removed[places], groups=groups)
    return FilterDecisions(prompt_ids=prompt_ids, kept=finding.kept, reasons=reasons)


def list_rankings(finding: SmartFiltering, data: FilterData) -> dict[str, RankedModels]:
    """Models before and after; the filter models by their mean over the prompts they have a score for."""
    ranking, means = finding.effects.ranking, np.nanmean(data.scores.Q[:, data.columns], axis=0)
    return {
        "before": RankedModels(models=finding.models, score=ranking.score_before, rank=ranking.rank_before),
        "after": RankedModels(models=finding.models, score=ranking.score_after, rank=ranking.rank_after),
        FILTER_MODELS: RankedModels(models=finding.filter_models, score=means, rank=mean_ranks(means)),
    }


def list_by_step(steps: Mapping[str, StepFlags], kept: NDArray[np.bool_], skipped: Collection[str] = ()) -> pa.Table:
    """List one row for each step, and one for all of them together.

    A prompt is retained if it is flagged and not removed; together, if some step flags it and none removes it. Shares
    are of all prompts. The last columns count what no other step removes.

    Args:
        steps: by name, at least one.
        kept: ``(n_prompts,)`` what they leave.
        skipped: names of skipped steps; their cells are empty.
    """
    flagged, removed = (np.array([getattr(step, name) for step in steps.values()]) for name in ("flagged", "removed"))
    alone = np.array([part.sum() for part in split_removed(steps).values()][:-1])
    counts = {
        "flagged": np.append(flagged.sum(axis=1), flagged.any(axis=0).sum()),
        "retained": np.append((flagged & ~removed).sum(axis=1), (flagged.any(axis=0) & kept).sum()),
        "removed": np.append(removed.sum(axis=1), (~kept).sum()),
    }
    n = flagged.shape[1]
    shares = {f"share_{name}": _shares(count, np.full(len(count), n)) for name, count in counts.items()}
    empty = np.array([*(name in skipped for name in steps), False])
    whole = {f"n_{name}": pa.array(count, pa.int64(), mask=empty) for name, count in counts.items()}
    parts = {name: pa.array(share, pa.float64(), mask=empty) for name, share in shares.items()}
    empty[-1] = True  # all steps together have no other
    return pa.table(
        {"step": pa.array([*steps, ALL_STEPS], pa.string())}
        | whole
        | parts
        | {
            "n_removed_alone": pa.array(np.append(alone, 0), pa.int64(), mask=empty),
            "share_removed_alone": pa.array(np.append(alone / max(n, 1), 0.0), pa.float64(), mask=empty),
        }
    )


def list_by_task(tasks: NDArray[np.str_], steps: Mapping[str, StepFlags], kept: NDArray[np.bool_]) -> pa.Table:
    """List one row for each task, those that lose most of their prompts first.

    Args:
        tasks: ``(n_prompts,)`` name of each prompt's task.
        steps: by name.
        kept: ``(n_prompts,)`` what they leave.
    """
    parts = {"kept": kept}
    for name, flags in steps.items():
        parts |= {f"{_column(name)}_flagged": flags.flagged, f"{_column(name)}_removed": flags.removed}
    names, size, inside = count_by_task(tasks, parts)
    removed = size - inside["kept"]
    share = removed / size
    order = np.lexsort((names, -share))
    columns: dict[str, Any] = {"n_prompts": size} | {f"n_{part}": count for part, count in inside.items()}
    columns |= {"n_removed": removed, "share_removed": share}
    return pa.table(
        {"task": pa.array(names[order].tolist(), pa.string())}
        | {name: column[order] for name, column in columns.items()}
    )


def list_by_model(models: Sequence[str], change: RankingChange, is_filter_model: NDArray[np.bool_]) -> pa.Table:
    """List one row for each model, best before first; ``rank_change`` is positive for those that fall.

    Args:
        models: names.
        change: of the models in the same order.
        is_filter_model: ``(n_models,)``.
    """
    order = np.lexsort((np.array(models), change.rank_before))
    columns = {
        "score_before": change.score_before,
        "score_after": change.score_after,
        "score_change": change.score_after - change.score_before,
        "rank_before": change.rank_before,
        "rank_after": change.rank_after,
        "rank_change": change.rank_after - change.rank_before,
    }
    return pa.table(
        {
            "model": pa.array([models[place] for place in order.tolist()], pa.string()),
            "is_filter_model": is_filter_model[order],
        }
        | {name: number_column(column[order]) for name, column in columns.items()}
    )


def list_agreement(models: Sequence[str], before: ModelAgreement, after: ModelAgreement) -> pa.Table:
    """List one row for each two models, the agreement of their answers before and after.

    Args:
        models: names, in the order of both agreements.
        before, after: on all prompts and on the kept ones.
    """
    i, j = np.triu_indices(len(models), 1)
    names = np.array(models, dtype=object)
    columns = {
        f"{measure}_{when}": number_column(getattr(measured, measure)[i, j])
        for measure in ("share", "kappa")
        for when, measured in (("before", before), ("after", after))
    }
    return pa.table(
        {"model": pa.array(names[i].tolist(), pa.string()), "other": pa.array(names[j].tolist(), pa.string())} | columns
    )


def list_correlations(changes: Mapping[str, CorrelationChange]) -> pa.Table:
    """List one row for each correlation, by its name."""
    attributes = ("before", "after", "change", "low", "high", "share_not_above")
    rows = list(changes.values())
    columns: dict[str, Any] = {
        "correlation": pa.array([*changes], pa.string()),
        "n_models": pa.array([change.n_models for change in rows], pa.int64()),
    }
    columns |= {name: number_column([getattr(change, name) for change in rows]) for name in attributes}
    columns |= {
        name: pa.array([getattr(change, name) for change in rows], pa.int64()) for name in ("n_draws", "n_undefined")
    }
    return pa.table(columns)


def tabulate_decisions(
    names: Sequence[str], tasks: NDArray[np.str_], steps: Mapping[str, StepFlags], kept: NDArray[np.bool_]
) -> pa.Table:
    """List one row for each prompt: whether it is kept, the steps that flag it and those that remove it.

    Each step that knows groups of like prompts has a column with the number of the prompt's group.

    Args:
        names: of the prompts.
        tasks: ``(n_prompts,)`` name of each prompt's task.
        steps: by name.
        kept: ``(n_prompts,)`` what they leave.
    """
    columns: dict[str, Any] = {
        "prompt": pa.array(names, pa.string()),
        "task": pa.array(tasks.tolist(), pa.string()),
        "kept": kept,
        "reasons": _joined([*steps], [step.flagged for step in steps.values()], len(tasks)),
        "removed_by": _joined([*steps], [step.removed for step in steps.values()], len(tasks)),
    }
    for name, flags in steps.items():
        if (flags.groups >= 0).any():
            columns[f"{_column(name)}_group"] = pa.array(flags.groups, pa.int32(), mask=flags.groups < 0)
    return pa.table(columns)


def _joined(names: Sequence[str], chosen: Sequence[NDArray[np.bool_]], n: int) -> pa.Array:
    """Join the names of the steps that flag each prompt; equal choices share one text."""
    flags = np.array(chosen, dtype=np.bool_).reshape(len(names), n)
    kinds, place = np.unique(flags, axis=1, return_inverse=True)
    texts = [BETWEEN.join(name for name, is_there in zip(names, kind, strict=True) if is_there) for kind in kinds.T]
    return pa.array(texts, pa.string()).take(pa.array(place.ravel()))


def _column(step: str) -> str:
    return step.replace("-", "_").replace(" ", "_")


def _shares(count: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Zero where there are no prompts at all."""
    return count / np.maximum(of, 1)
