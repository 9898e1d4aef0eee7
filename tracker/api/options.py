"""Keyword options of the methods of a store: the options of the commands, by name and type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from datetime import datetime
from typing import Any, TypedDict, TypeVar, cast

from tracker.errors import SelectionError
from tracker.queries.selection import MIN_COVERAGE, Policy, Selection, TaskEffects
from tracker.suggestions import find_similar, format_guess

F = TypeVar("F", bound=Callable[..., Any])
DataFrame = Any
"""A table of pandas, Polars or Arrow, or another one with Arrow's interface."""
Names = str | Iterable[str] | None


class DataOptions(TypedDict, total=False):
    """Options that choose scores; see `tracker.queries.selection.Selection`."""

    metric: str | None
    condition: str
    variant: str
    models: Names
    tasks: Names
    split: Names
    runs: int | Iterable[int] | None
    as_of: datetime | None
    filter: int | None


class MissingOptions(DataOptions, total=False):
    """Options that choose scores and treat missing ones."""

    missing: Policy | None
    min_coverage: float | None


class DesignOptions(MissingOptions, total=False):
    """Options that choose scores, treat missing ones, and state the sampling design."""

    task_effects: TaskEffects | None
    cluster: str | None


class WeightedOptions(DesignOptions, total=False):
    """Options of a ranking: also weights of the prompts."""

    weights: str | int | None


class IngestOptions(TypedDict, total=False):
    """Facts that the files do not contain; see `tracker.ingest.measurement.ReadOptions`."""

    benchmark: str | None
    model: str | None
    metric: str | None
    condition: str | None
    orient: str | None
    values: str
    probability_kind: str | None
    higher_is_better: bool | None
    lower: float | None
    upper: float | None
    splits: Sequence[str]
    errored: str | None
    empty: str | None
    columns: Mapping[str, str]
    task_columns: Sequence[str]
    ignore_columns: Sequence[str]


class PromptImportOptions(TypedDict, total=False):
    """Options for importing prompts; see `tracker.ingest.datasets.ingest_prompts.PromptOptions`."""

    preset: str | None
    fields: Mapping[str, str] | None
    answer_is: str | None
    task_names: Mapping[str, str] | None
    splits: str | Sequence[str]
    test_fraction: float | None
    seed: int
    configs: str | Sequence[str]


_ExampleOptions = TypedDict(  # noqa: UP013 - its names are those of the options
    "_ExampleOptions", {"shots": str, "answer_only_shots": str}, total=False
)


class EvaluationOptions(_ExampleOptions, total=False):
    """Options of an evaluation; see `tracker.evaluating.plan.Plan` and its parts."""

    name: str | None
    engine: str
    conditions: str | Sequence[str]
    variant: str
    errored: str | None
    again: bool
    template: str | None
    labels: str | None
    method: str | None
    chat: bool
    system_prompt: str
    template_arguments: str | Sequence[str]
    few_shot: int
    few_shot_split: str | None
    split: str | None
    tasks: str | Sequence[str]
    limit: int | None
    seed: int
    too_long: str
    metrics: str | Sequence[str]
    preset: str | None
    extract: str | None
    extract_reference: str | None
    ignore: str | Sequence[str]
    max_tokens: int | None
    temperature: float
    top_p: float
    stop: str | Sequence[str]
    trials: int
    judge: str | None
    judge_template: str
    judge_api_base: str | None
    revision: str
    base_model: str | None
    device: str
    dtype: str
    device_count: int | None
    batch_size: int | None
    trust_remote_code: bool
    api_base: str | None
    api: str
    key_env: str
    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    tries: int
    extra_body: str | None
    budget: str | None
    price_read: float | None
    price_written: float | None


def limit_files(limits: str | None) -> AbstractContextManager[None]:
    """Apply limits such as ``columns=200000,value=200MB`` to the files that are read; None for those of the settings.

    Raises:
        SettingsError: a name or number is not valid.
    """
    from tracker.settings.input_limits import parse_limits, use_limits

    return nullcontext() if limits is None else use_limits(parse_limits(limits, "limits"))


class _CommandDefault:
    """Default of an option in a signature: that of the command."""

    def __repr__(self) -> str:
        return "<default>"


COMMAND_DEFAULT = _CommandDefault()


def named_options(kind: type, defaults: Mapping[str, Any] | None = None) -> Callable[[F], F]:
    """Give a method with ``**options: Unpack[kind]`` a signature that names each option.

    A call with an unknown option raises an error with the nearest name.

    Args:
        kind: the `TypedDict` of the options.
        defaults: defaults for the signature; `COMMAND_DEFAULT` for the rest.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        *parameters, _ = signature.parameters.values()
        positional = {parameter.name for parameter in parameters}
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=(defaults or {}).get(name, COMMAND_DEFAULT),
                annotation=getattr(hint, "__forward_arg__", hint),
            )
            for name, hint in kind.__annotations__.items()
            if name not in positional
        ]
        known = {parameter.name for parameter in parameters} - {"self"}

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if unknown := sorted(set(options) - known):
                guess = format_guess(find_similar(unknown[0], known))
                raise SelectionError(
                    f"{function.__name__} has no option {unknown[0]!r}. "
                    f"{guess + ' ' if guess else ''}Options: {', '.join(sorted(known))}."
                )
            return function(*arguments, **options)

        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return cast(F, call)

    return decorate


SELECTION_DEFAULTS: Mapping[str, Any] = {
    field.name: None if field.default == () else field.default
    for field in fields(Selection)
    if field.name not in ("benchmark", "preferred", "favoured")
} | {"min_coverage": MIN_COVERAGE}
"""Default of each option of a selection; None selects all."""
ANALYSIS_DEFAULTS: Mapping[str, Any] = {**SELECTION_DEFAULTS, "min_coverage": None}
"""The same for analyses, each of which has a default of the least coverage."""
COMPARISON_DEFAULTS: Mapping[str, Any] = {
    name: 0.0 if name == "min_coverage" else default
    for name, default in SELECTION_DEFAULTS.items()
    if name in DesignOptions.__annotations__
}
"""The same for comparisons of runs on the prompts that both have scores for."""


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, and anything else as it is."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
