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
        skipped: why the step flags nothing; '' if it was applied.
        rule: the rule of the step as a sentence of the summary; '' if the name of the step is enough.
        flag_by_models: what the step flags with models in other columns; None if it does not depend on models.
        metrics, arrays: by full name, besides the counts that every step has.
        tables, figures: by name.
        warnings: of the finding.
    """

    flags: StepFlags
    skipped: str = ""
    rule: str = ""
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
        """Check the options for these scores."""
        return {}

    def skip_reason(self, data: FilterData, options: Options) -> str:
        """Return why the step cannot be applied to these data; '' if it can."""
        return ""

    @abstractmethod
    def apply(self, data: FilterData, options: Options) -> StepResult:
        """Flag prompts; runs only if there is no reason to skip the step."""


def flag_nothing(n_prompts: int) -> StepFlags:
    """Return the flags of a skipped step."""
    return make_flags(np.zeros(n_prompts, dtype=np.bool_))
