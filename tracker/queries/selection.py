"""Which data an analysis is run on: the same choices everywhere, and inputs that load themselves for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_args

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

WHOLE: Mapping[str, str] = {"condition": "full", "variant": ""}
"""Choices, as recorded with a finding, that are no choice: those of every plain run."""

Policy = Literal["unranked", "fail", "complete", "worst", "impute"]
"""What becomes of scores that were not measured; see `tracker.queries.ranking.missing`."""

POLICIES: tuple[Policy, ...] = get_args(Policy)

SelectionOption = Literal["weights", "encoder", "against", "cluster"]
ClaimableOption = Literal["filter", "models"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A choice of data from one benchmark.

    Attributes:
        benchmark: its name, or name@revision.
        metric: name of the metric; None where the benchmark has only one.
        condition: ``full`` or ``answer_only``.
        variant: wording or perturbation of the prompts.
        models: names; none means all.
        tasks: names; none means all.
        runs: keys of runs, of any condition; none means the latest complete run of each model that has scores under
            the metric.
        as_of: only runs that were taken in by that time; UTC where it names no time zone.
        weights: how much each prompt counts: the key of a finding that weighs prompts, with the name of a scheme
            where it holds several (``12`` or ``12:distance``), or ``task-equal``; None counts all the same.
        encoder: whose vectors to use: name, name@revision or key; None where the benchmark has those of only one.
        filter: key of the finding whose kept prompts count; None counts all.
        against: another benchmark whose scores of the same models are compared with: its name, name@revision, with
            ``:metric`` where it has several.
        cluster: the field of the prompts whose equal values make a cluster, such as ``passage``; ``task`` is their
            task, ``none`` makes each prompt its own. None leaves it to the question.
    """

    benchmark: str
    metric: str | None = None
    condition: str = "full"
    variant: str = ""
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    runs: tuple[int, ...] = ()
    as_of: datetime | None = None
    weights: str | None = None
    encoder: str | None = None
    filter: int | None = None
    against: str | None = None
    cluster: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The choices that differ from the defaults, in types that JSON knows."""
        choices = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in choices.items()}


class AnalysisInput(Protocol):
    """Data that an analysis declares as the type of a positional parameter.

    The class attributes say which options of the command choose what is loaded.

    Attributes:
        SELECTION_OPTION: an option that only such inputs look at: the command has it where an input names it.
        CLAIMED_OPTION: an option that this input keeps for itself; all other inputs are loaded as if it was not given.
        CLAIMED_OPTION_HELP: what the claimed option then means, as the command's help says it.
    """

    SELECTION_OPTION: ClassVar[SelectionOption | None] = None
    CLAIMED_OPTION: ClassVar[ClaimableOption | None] = None
    CLAIMED_OPTION_HELP: ClassVar[str] = ""

    @classmethod
    def load(cls, session: Session, selection: Selection) -> Self:
        """Load the data that a selection chooses.

        Args:
            session: the store.
            selection: the user's choices, without those that another input claims.
        """
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of what was loaded: equal data, equal digest."""
        ...


class OptionalInput(AnalysisInput, Protocol):
    """An input that may be None (``weights: PromptWeights | None``): it is loaded where the selection chooses it."""

    @staticmethod
    def is_chosen(selection: Selection) -> bool:
        """Whether the selection names such data."""
        ...
