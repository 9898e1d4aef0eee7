"""All filter steps, found as modules of `analyses.smart_filtering.steps`, and the options that they declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from analyses.presentation.validation import ValidationErrors
from analyses.smart_filtering import steps
from analyses.smart_filtering.filter_data import FilterData
from analyses.smart_filtering.filter_step import FilterStep, StepResult, flag_nothing
from tracker.queries.performance import PerformanceMatrix


def load_steps() -> tuple[FilterStep[Any], ...]:
    """Import the modules of `steps`; a new file there is a new step."""
    modules = [import_module(f"{steps.__name__}.{module.name}") for module in iter_modules(steps.__path__)]
    return tuple(sorted((module.STEP for module in modules), key=lambda step: step.position))


STEPS = load_steps()
"""In ascending order of their positions."""


def _option_classes() -> tuple[type, ...]:
    """Return the options of all steps, the last step's first; a class that another one extends is left out."""
    classes = list(dict.fromkeys(step.options for step in reversed(STEPS)))
    return tuple(base for base in classes if not any(issubclass(sub, base) for sub in classes if sub is not base))


@dataclass(frozen=True, kw_only=True)
class FilterOptions(*_option_classes()):  # type: ignore[misc]
    """The options of all steps, in the order of the steps; it is an instance of each step's options."""


def check_options(options: FilterOptions, scores: PerformanceMatrix) -> ValidationErrors:
    """Check the options of every step."""
    return {problem: is_so for step in STEPS for problem, is_so in step.check_options(options, scores).items()}


def needs_vectors(options: FilterOptions) -> bool:
    """Return whether any step compares the prompts' vectors."""
    return any(step.needs_vectors(options) for step in STEPS)


def needs_answer_only(results: Mapping[str, StepResult]) -> bool:
    """Return whether any applied step needs runs without the question from whatever models filter."""
    return any(step.needs_answer_only and results[step.name].flag_by_models is not None for step in STEPS)


def apply_steps(data: FilterData, options: FilterOptions) -> tuple[dict[str, StepResult], dict[str, str]]:
    """Apply every step that the data allow.

    Returns:
        The result of every step, by its name, in the order of the steps; and why steps were skipped, by their names:
        first those that the data do not allow.
    """
    nothing = flag_nothing(data.scores.n_prompts)
    skipped = {step.name: reason for step in STEPS if (reason := step.skip_reason(data, options))}
    results = {
        step.name: StepResult(flags=nothing) if step.name in skipped else step.apply(data, options) for step in STEPS
    }
    return results, skipped | {name: result.skipped for name, result in results.items() if result.skipped}
