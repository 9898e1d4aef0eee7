"""Read the declaration of an analysis from its signature: inputs, parameters and help."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from tracker.errors import PluginError, SelectionError
from tracker.plugins.discovery import PluginModule
from tracker.plugins.parameters import (
    REQUIRED,
    Device,
    Parameter,
    accept_flat_options,
    format_hint,
    group_parameters,
    is_option_group,
    parse_parameter,
    unwrap_optional,
)
from tracker.queries.findings.latest_findings import Findings
from tracker.queries.ranking.completions import accepted_policies
from tracker.queries.selection import MIN_COVERAGE, POLICIES, ClaimableOption, Policy, SelectionOption, Unit
from tracker.recording.registry import KIND, MARK, find_analysis

if TYPE_CHECKING:
    from tracker.queries.selection import Selection
    from tracker.recording.finding import Report

SELECTION_OPTIONS: tuple[str, ...] = get_args(SelectionOption)
CLAIMABLE_OPTIONS: tuple[str, ...] = get_args(ClaimableOption)
DEVICE = "device"
"""Name of the parameter for a `Device`."""
MAX_INTEGER = 2**53
"""Largest integer parameter: every database, file and program can store it exactly."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """An analysis, ready to run.

    Attributes:
        name: such as ``prompt-correlation``.
        function: takes arrays and returns a `Report`; it takes every parameter by its name, see `accept_flat_options`.
        inputs: type of each positional parameter; it loads itself for a selection.
        optional: inputs that may be None (``weights: PromptWeights | None``); they are loaded if the selection names
            them.
        parameters: the keyword-only parameters.
        missing: default policy for missing scores.
        policies: policies for missing scores that it treats itself.
        min_coverage: default share of the prompts that a model must have scores for.
        help: docstring of its module.
        code_version: version of the package, and checksum of the module's source.
        has_device: whether the function takes a `Device`.
    """

    name: str
    function: Callable[..., Report]
    inputs: Mapping[str, Any]
    optional: frozenset[str]
    parameters: Sequence[Parameter]
    help: str
    code_version: str
    missing: Policy = "common"
    policies: Sequence[Policy] = POLICIES
    min_coverage: float = MIN_COVERAGE
    has_device: bool = False

    def has_option(self, choice: str) -> bool:
        """Return whether an input uses a selection option that only such inputs use, so that the command has the
        option.

        Args:
            choice: ``weights``, ``encoder``, ``against`` or ``cluster``: the `SELECTION_OPTION` of the input's class.
        """
        return any(getattr(kind, "SELECTION_OPTION", None) == choice for kind in self.inputs.values())

    def requires_option(self, choice: str) -> bool:
        """Return whether such an input is required; without the option, the only possible one is used."""
        kinds = [kind for name, kind in self.inputs.items() if name not in self.optional]
        return any(getattr(kind, "SELECTION_OPTION", None) == choice for kind in kinds)

    @property
    def score_units(self) -> tuple[Unit, ...]:
        """Return the units of scores that the policy for missing scores treats; empty without such scores."""
        units = [kind.SCORE_UNITS for kind in self.inputs.values() if getattr(kind, "SCORE_UNITS", ())]
        return min(units, key=len, default=())

    @property
    def accepted_policies(self) -> tuple[Policy, ...]:
        """Return the policies for missing scores that a user can choose."""
        return accepted_policies(self.policies)

    @property
    def claimed_options(self) -> Mapping[str, str]:
        """Return the selection options that one input reserves, with their help.

        They are ``filter`` and ``models``: `CLAIMED_OPTION` and `CLAIMED_OPTION_HELP` of `AnalysisInput`. All other
        inputs are loaded without that option.
        """
        claiming = [kind for kind in self.inputs.values() if getattr(kind, "CLAIMED_OPTION", None)]
        return {kind.CLAIMED_OPTION: kind.CLAIMED_OPTION_HELP for kind in claiming}

    def selection_for(self, kind: Any, selection: Selection) -> Selection:
        """Return the selection for which an input of this type is loaded."""
        return self.unclaimed(selection, {getattr(kind, "CLAIMED_OPTION", None)})

    def unclaimed(self, selection: Selection, kept: Collection[str | None] = ()) -> Selection:
        """Return a selection without the options that inputs reserve, except some."""
        claimed_elsewhere = set(self.claimed_options) - set(kept)
        defaults: dict[str, Any] = {
            field.name: field.default for field in fields(selection) if field.name in claimed_elsewhere
        }
        return replace(selection, **defaults)

    @property
    def is_of_one_benchmark(self) -> bool:
        """Whether any input is data of a benchmark; findings cover all benchmarks."""
        return not all(isinstance(kind, type) and issubclass(kind, Findings) for kind in self.inputs.values())

    def complete(self, explicit: Mapping[str, Any]) -> dict[str, Any]:
        """Return every parameter with its value: the user's, else its default.

        Raises:
            SelectionError: a parameter is unknown, is required and missing, or is too large to store.
        """
        known = {parameter.name: parameter.default for parameter in self.parameters}
        if unknown := sorted(set(explicit) - set(known)):
            raise SelectionError(
                f"{self.name} has no parameter {unknown[0]!r}. Parameters: {', '.join(known) or 'none'}."
            )
        values = known | dict(explicit)
        if missing := [name for name, value in values.items() if value is REQUIRED]:
            raise SelectionError(f"{self.name} needs a value for {missing[0]}.")
        for name, value in values.items():
            if isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise SelectionError(f"{name} is {value}; it must be at most {MAX_INTEGER}.")
        return values


def load_declaration(name: str) -> Declaration:
    """Import an analysis by name and read its signature.

    Raises:
        NotFoundError: no analysis has this name.
        PluginError: it cannot be imported, or its signature is invalid.
    """
    plugin = find_analysis(name)
    return declare(plugin.load_function(KIND, MARK), plugin)


def declare(function: Callable[..., Report], plugin: PluginModule) -> Declaration:
    """Read a function's signature.

    Raises:
        PluginError: the signature is not that of an analysis.
    """
    error = partial(plugin.error, KIND)
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as problem:
        raise error(f"an annotation cannot be resolved ({problem}); import it outside TYPE_CHECKING") from problem
    inputs: dict[str, Any] = {}
    optional: set[str] = set()
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise error(f"it takes *{name}; each input and parameter must be named")
        if hint is None:
            raise error(f"{name} has no annotation")
        if parameter.kind is parameter.KEYWORD_ONLY:
            parameters += _read_options(error, name, hint, parameter.default)
            continue
        kind = unwrap_optional(hint)
        if not callable(getattr(kind, "load", None)) or not hasattr(kind, "digest"):
            type_name = format_hint(hint)
            raise error(f"the input {name} is a {type_name}, which has no load and digest; parameters come after *")
        if kind is not hint:
            if not callable(getattr(kind, "is_chosen", None)):
                raise error(f"the input {name} may be None, but {format_hint(kind)} has no is_chosen")
            optional.add(name)
        _check_choices(error, kind)
        inputs[name] = kind
    if not inputs:
        raise error("it has no input; the first parameter declares its data, such as scores: PerformanceMatrix")
    missing: Policy
    missing, policies, min_coverage = getattr(function, "__suffrage_missing__", ("common", POLICIES, MIN_COVERAGE))
    if missing not in policies or not set(policies) <= set(POLICIES):
        raise error(f"its policies for missing scores are {missing!r} of {list(policies)}; known: {list(POLICIES)}")
    names = [parameter.name for parameter in parameters]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise error(f"the parameter {repeated[0]} is declared {names.count(repeated[0])} times")
    doc = inspect.getdoc(inspect.getmodule(function)) or ""
    return Declaration(
        name=plugin.name,
        function=accept_flat_options(function),
        inputs=inputs,
        optional=frozenset(optional),
        parameters=tuple(parameters),
        missing=missing,
        policies=policies,
        min_coverage=min_coverage,
        help=doc,
        code_version=hash_sources(plugin),
        has_device=hints.get(DEVICE) is Device,
    )


def _read_options(error: Callable[[str], PluginError], name: str, hint: Any, default: Any) -> list[Parameter]:
    """Return the parameters that a keyword-only parameter declares: none for a device, several for an option group."""
    if hint is Device:
        if name != DEVICE:
            raise error(f"its Device is called {name}; call it {DEVICE}")
        return []
    return group_parameters(error, hint) if is_option_group(hint) else [parse_parameter(error, name, hint, default)]


def _check_choices(error: Callable[[str], PluginError], kind: Any) -> None:
    """Raise an error if an input uses or claims an unknown selection option."""
    for attribute, possible in (("SELECTION_OPTION", SELECTION_OPTIONS), ("CLAIMED_OPTION", CLAIMABLE_OPTIONS)):
        option = getattr(kind, attribute, None)
        if option is not None and option not in possible:
            raise error(f"{format_hint(kind)}.{attribute} is {option!r}; it can be {' or '.join(possible)}")
    if getattr(kind, "CLAIMED_OPTION", None) and not getattr(kind, "CLAIMED_OPTION_HELP", ""):
        reason = "and has no CLAIMED_OPTION_HELP, the help of that option"
        raise error(f"{format_hint(kind)} claims {kind.CLAIMED_OPTION} {reason}")


def hash_sources(plugin: PluginModule) -> str:
    """Return the version of an analysis's package, and the checksum of its sources.

    The checksum covers one file, or all modules of a package, in the order of their names.
    """
    version = plugin.distribution or plugin.module
    if plugin.path is None:
        return version
    if plugin.path.name != "__init__.py":
        return f"{version}, {plugin.path.name} {hashlib.sha256(plugin.path.read_bytes()).hexdigest()[:12]}"
    hashed = hashlib.sha256()
    for path in sorted(plugin.path.parent.glob("*.py")):
        hashed.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"{version}, {plugin.path.parent.name} {hashed.hexdigest()[:12]}"
