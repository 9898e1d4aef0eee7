"""What a filter step is: its options, what it needs, and what it contributes to the finding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from analyses.numerics.filtering.step_flags import StepFlags, make_flags
from analyses.presentation.validation import ValidationErrors
from analyses.smart_filtering.filter_data import FilterData
from tracker.queries.performance import PerformanceMatrix
from tracker.recording.finding import Metric

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What a step flags, and what it adds to the finding and its report.

    Attributes:
        flags: of every prompt.
        skipped: why nothing is flagged after all; '' where the step was taken.
        label: how the summary begins to count what it flags; '' leaves the step out of the summary.
        flag_by_models: what the step flags if models in other columns filter; None where it does not go by models.
        metrics, arrays: by full name, beside the counts that every step has.
        tables, figures: by name.
        warnings: for the person at the terminal.
    """

    flags: StepFlags
    skipped: str = ""
    label: str = ""
    flag_by_models: Callable[[NDArray[np.intp]], StepFlags] | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class FilterStep(ABC, Generic[Options]):
    """One reason to flag prompts.

    A step is a module of `analyses.smart_filtering.steps` that defines ``STEP``, an instance of a subclass. The fields
    of its options are options of the command. Steps that share options inherit them from one dataclass.

    Attributes:
        name: of the reason, as recorded; metrics begin with it.
        position: steps are listed in ascending order of it.
        options: a frozen dataclass, each field with its help and a default.
        removes: whether flagged prompts can be removed; otherwise they are only reported.
        needs_answer_only: whether the filter models must have runs without the question.
    """

    name: ClassVar[str]
    position: ClassVar[int]
    options: type[Options]
    removes: ClassVar[bool] = True
    needs_answer_only: ClassVar[bool] = False

    def needs_vectors(self, options: Options) -> bool:
        """Whether the step compares the prompts' vectors."""
        return False

    def check_options(self, options: Options, scores: PerformanceMatrix) -> ValidationErrors:
        """Which options cannot be used with these scores."""
        return {}

    def skip_reason(self, data: FilterData, options: Options) -> str:
        """Why the step cannot be taken with these data; '' where it can."""
        return ""

    @abstractmethod
    def apply(self, data: FilterData, options: Options) -> StepResult:
        """Flag prompts; called where there is no reason to skip the step."""


def flag_nothing(n_prompts: int) -> StepFlags:
    """The flags of a step that was not taken."""
    return make_flags(np.zeros(n_prompts, dtype=np.bool_))
