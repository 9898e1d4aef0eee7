"""Select the data of an analysis: the same options everywhere, and inputs that load themselves for a selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_args

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

ALL_SPLITS = "all"
"""Name that selects the prompts of every split."""

Policy = Literal["bounds", "common", "worst", "impute", "fail"]
"""Policy for missing scores; see `tracker.queries.ranking.missing`."""

POLICIES: tuple[Policy, ...] = get_args(Policy)

MIN_COVERAGE = 0.95
"""Default share of the prompts that a model must have scores for to take part."""

WHOLE: Mapping[str, Any] = {"condition": "full", "variant": "", "min_coverage": MIN_COVERAGE}
"""Recorded fields that equal the defaults of every command."""

Unit = Literal["prompt", "task"]

TaskEffects = Literal["random", "fixed", "none"]
"""What a mean stands for: other tasks like these (``random``), these tasks (``fixed``), or prompts alone (``none``)."""

TASK_EFFECTS: tuple[TaskEffects, ...] = get_args(TaskEffects)

SelectionOption = Literal["weights", "encoder", "against", "cluster"]
ClaimableOption = Literal["filter", "models"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A selection of data from one benchmark.

    Attributes:
        benchmark: its name, or name@revision.
        metric: name of the metric; None for the default of the benchmark.
        condition: ``full`` or ``answer_only``.
        variant: template or perturbation of the prompts.
        models: names; none means all.
        tasks: names; none means all.
        split: names of splits of the prompts; ``all`` uses every split, ``unknown`` prompts without one. None means the
            splits that most models cover; see `tracker.queries.splits`.
        runs: keys of runs, of any condition; none means one complete run of each model that has scores under the
            metric: the one with the most prompts, among equal ones the latest.
        as_of: only runs ingested by that time; UTC without a time zone.
        weights: weights of the prompts: the key of a finding with weights, with the name of a scheme if it has several
            (``12`` or ``12:distance``), or ``task-equal``; None for equal weights.
        encoder: encoder of the vectors: name, name@revision or key; None if the benchmark has vectors of only one.
        filter: key of the finding whose kept prompts are used; None for all prompts.
        against: another benchmark to compare scores of the same models with: its name or name@revision, with
            ``:metric`` if it has several.
        cluster: field of the prompts whose equal values define a cluster, such as ``passage``; ``task`` is their task,
            ``none`` makes each prompt a separate cluster. None is ``task`` if task effects are random, else ``none``.
        missing: policy for missing scores; see `tracker.queries.ranking.missing`. None is the default of the command or
            analysis, see `choose_policy`; matrices loaded with it have the scores as stored.
        preferred: policy that is used where it can be, such as that of a setting, if ``missing`` is None.
        favoured: names of models whose missing scores are the best ones under ``worst``, for an extreme completion:
            there, every missing score of a model that takes part is filled in. None is no completion.
        min_coverage: share of the prompts, in [0, 1], that a model must have scores for; others take no part. A task of
            which a model has a smaller share counts as missing. Not used without a policy. None is the default of the
            command or analysis; see `least_coverage`.
        task_effects: ``random``: tasks are a sample of others like them, and clusters of prompts; ``fixed``: these
            tasks are meant, as strata; ``none``: tasks are ignored. None is ``fixed`` for two named tasks or more, else
            ``none``; ``random`` if ``cluster`` is ``task``.
    """

    benchmark: str
    metric: str | None = None
    condition: str = "full"
    variant: str = ""
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()
    as_of: datetime | None = None
    weights: str | None = None
    encoder: str | None = None
    filter: int | None = None
    against: str | None = None
    cluster: str | None = None
    missing: Policy | None = None
    preferred: Policy | None = None
    favoured: tuple[str, ...] | None = None
    min_coverage: float | None = None
    task_effects: TaskEffects | None = None

    @property
    def least_coverage(self) -> float:
        """The least share of prompts; `MIN_COVERAGE` if none is selected."""
        return MIN_COVERAGE if self.min_coverage is None else self.min_coverage

    def as_json(self) -> dict[str, Any]:
        """The fields that differ from the defaults, in JSON types; with a policy also the least coverage."""
        values = asdict(self) | {"min_coverage": None if self.missing is None else self.least_coverage}
        del values["preferred"], values["favoured"]
        choices = {name: value for name, value in values.items() if value not in (None, ())}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in choices.items()}


def restricts_split(split: Sequence[str]) -> bool:
    """Return whether the names of a selection's splits leave some splits out."""
    return bool(split) and ALL_SPLITS not in split


class AnalysisInput(Protocol):
    """Data that an analysis declares as the type of a positional parameter.

    The class attributes name the options of the command that select what is loaded.

    Attributes:
        SELECTION_OPTION: an option that only such inputs use: the command has it if an input names it.
        CLAIMED_OPTION: an option that this input reserves; all other inputs are loaded without it.
        CLAIMED_OPTION_HELP: help of the claimed option.
        SCORE_UNITS: units of scores that this input treats by the policy for missing scores, the preferred one first;
            empty if it holds none. The command has ``--missing`` if an input names any.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = None
    CLAIMED_OPTION: ClassVar[ClaimableOption | None] = None
    CLAIMED_OPTION_HELP: ClassVar[str] = ""
    SCORE_UNITS: ClassVar[tuple[Unit, ...]] = ()

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Self:
        """Load the data of a selection.

        Args:
            session: the store.
            selection: the user's options, without those that another input claims.
        """
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of the loaded data: equal data, equal digest."""
        ...


class OptionalInput(AnalysisInput, Protocol):
    """An input that may be None (``weights: PromptWeights | None``): it is loaded if the selection names it."""

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Return whether the selection names such data."""
        ...
