"""What an analysis declares by its signature: its inputs, its parameters, its help."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tracker.errors import PluginError, SelectionError
from tracker.queries.findings.latest_findings import Findings
from tracker.recording.registry import AnalysisModule, find_analysis

if TYPE_CHECKING:
    from tracker.queries.selection import Selection
    from tracker.recording.finding import Report

SCALARS = (int, float, bool, str)
REQUIRED = inspect.Parameter.empty
BROUGHT, CLAIMED = ("weights", "encoder", "against", "cluster"), ("filter", "models")
"""Choices of a selection that only some inputs look at, and those that one input can keep for itself."""
LARGEST_INTEGER = 2**53
"""Of a parameter: what every database, file and program that keeps it can hold exactly."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An option of an analysis.

    Attributes:
        name: as in the signature.
        type: of one value.
        choices: the values allowed; none means any of the type.
        many: whether it takes any number of values, as a tuple.
        default: `REQUIRED` where it must be given.
        help: what it does.
    """

    name: str
    type: type
    choices: tuple[Any, ...] = ()
    many: bool = False
    default: Any = REQUIRED
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """An analysis, ready to be run.

    Attributes:
        name: such as ``prompt-correlation``.
        function: arrays in, a `Report` out; it takes every parameter by its name, see `accept_flat_options`.
        inputs: type of each positional parameter; it loads itself for a selection.
        optional: inputs that may be None (``weights: PromptWeights | None``); they are loaded where the selection
            chooses them.
        parameters: the keyword-only ones.
        help: docstring of its module.
        code_version: version of the package, and checksum of the module's source.
    """

    name: str
    function: Callable[..., Report]
    inputs: Mapping[str, Any]
    optional: frozenset[str]
    parameters: Sequence[Parameter]
    help: str
    code_version: str

    def brings(self, choice: str) -> bool:
        """Whether an input looks at a choice that only such inputs look at, so that the command has its option.

        Args:
            choice: ``weights``, ``encoder``, ``against`` or ``cluster``: what the input's class calls `BRINGS`.
        """
        return any(getattr(kind, "BRINGS", None) == choice for kind in self.inputs.values())

    def needs(self, choice: str) -> bool:
        """Whether such an input must be there, so that without that choice the only possible one is taken."""
        kinds = [kind for name, kind in self.inputs.items() if name not in self.optional]
        return any(getattr(kind, "BRINGS", None) == choice for kind in kinds)

    @property
    def claims(self) -> Mapping[str, str]:
        """Choices of the selection that one input keeps for itself, with what their options then mean.

        They are ``filter`` and ``models``: what the input's class calls `CLAIMS`, and `HELP`. All other inputs are
        loaded as if that choice had not been made.
        """
        claiming = [kind for kind in self.inputs.values() if hasattr(kind, "CLAIMS")]
        return {kind.CLAIMS: kind.HELP for kind in claiming}

    def selection_for(self, kind: Any, selection: Selection) -> Selection:
        """The choices that an input of this type is loaded for."""
        others = set(self.claims) - {getattr(kind, "CLAIMS", None)}
        defaults: dict[str, Any] = {field.name: field.default for field in fields(selection) if field.name in others}
        return replace(selection, **defaults)

    @property
    def is_of_one_benchmark(self) -> bool:
        """Whether any input is data of a benchmark; findings are of all."""
        return not all(isinstance(kind, type) and issubclass(kind, Findings) for kind in self.inputs.values())

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every parameter with its value: as given, else its default.

        Raises:
            SelectionError: one is not known, or must be given and is not, or is a number too large to keep.
        """
        known = {parameter.name: parameter.default for parameter in self.parameters}
        if unknown := sorted(set(given) - set(known)):
            raise SelectionError(f"{self.name} has no parameter {unknown[0]!r}. It has: {', '.join(known) or 'none'}.")
        values = known | dict(given)
        if missing := [name for name, value in values.items() if value is REQUIRED]:
            raise SelectionError(f"{self.name} needs a value for {missing[0]}.")
        for name, value in values.items():
            if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
                raise SelectionError(f"{name} is {value}; it must be at most {LARGEST_INTEGER}.")
        return values


def load_declaration(name: str) -> Declaration:
    """Import an analysis by name and read its signature.

    Raises:
        NotFoundError: there is none of that name.
        PluginError: it cannot be imported, or its signature is not one of an analysis.
    """
    found = find_analysis(name)
    if found.problem:
        raise _refusal(found, found.problem)
    try:
        module = importlib.import_module(found.module)
    except Exception as error:
        raise _refusal(found, f"importing {found.module} fails: {type(error).__name__}: {error}") from error
    marked = [
        function
        for function in vars(module).values()
        if getattr(function, "__suffrage_analysis__", False) and function.__module__ == module.__name__
    ]
    if len(marked) != 1:
        raise _refusal(found, f"{found.module} marks {len(marked)} functions with @analysis; it must mark one")
    return declare(marked[0], found)


def declare(function: Callable[..., Report], found: AnalysisModule) -> Declaration:
    """Read a function's signature.

    Raises:
        PluginError: it is not one of an analysis.
    """
    refuse = partial(_refusal, found)
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise refuse(f"an annotation cannot be resolved ({error}); import it outside TYPE_CHECKING") from error
    inputs: dict[str, Any] = {}
    optional: set[str] = set()
    parameters: list[Parameter] = []
    for name, said in inspect.signature(function).parameters.items():
        hint = hints.get(name)
        if said.kind in (said.VAR_POSITIONAL, said.VAR_KEYWORD):
            raise refuse(f"it takes *{name}; each input and parameter must be named")
        if hint is None:
            raise refuse(f"{name} has no annotation")
        if said.kind is said.KEYWORD_ONLY and is_option_group(hint):
            parameters += _group_parameters(refuse, hint)
            continue
        if said.kind is said.KEYWORD_ONLY:
            parameters.append(_parameter(refuse, name, hint, said.default))
            continue
        kind = _unless_none(hint)
        if not callable(getattr(kind, "load", None)) or not hasattr(kind, "digest"):
            raise refuse(f"the input {name} is a {_shown(hint)}, which has no load and digest; parameters come after *")
        if kind is not hint:
            if not callable(getattr(kind, "is_chosen", None)):
                raise refuse(f"the input {name} may be None, but {_shown(kind)} has no is_chosen")
            optional.add(name)
        _check_choices(refuse, kind)
        inputs[name] = kind
    if not inputs:
        raise refuse("it has no input; the first parameter says what it looks at, such as scores: PerformanceMatrix")
    names = [parameter.name for parameter in parameters]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise refuse(f"the parameter {repeated[0]} is declared {names.count(repeated[0])} times")
    doc = inspect.getdoc(inspect.getmodule(function)) or ""
    return Declaration(
        name=found.name,
        function=accept_flat_options(function),
        inputs=inputs,
        optional=frozenset(optional),
        parameters=tuple(parameters),
        help=doc,
        code_version=_code_version(found),
    )


def is_option_group(hint: Any) -> bool:
    """Whether a keyword-only parameter of this type stands for several options: the fields of a dataclass."""
    return isinstance(hint, type) and is_dataclass(hint)


def accept_flat_options(function: Callable[..., Report]) -> Callable[..., Report]:
    """Let an analysis take the fields of its option groups as keyword arguments.

    A keyword-only parameter whose type is a dataclass is an option group: each field is an option of the command and
    a recorded parameter, as a parameter of the function itself would be.

    Args:
        function: an analysis; one without option groups is returned as it is.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {
        name: hints[name]
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and is_option_group(hints.get(name))
    }
    if not groups:
        return function

    @wraps(function)
    def call(*inputs: Any, **options: Any) -> Report:
        built = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group) if field.name in options})
            for name, group in groups.items()
        }
        return function(*inputs, **options, **built)

    return call


def _check_choices(refuse: Callable[[str], PluginError], kind: Any) -> None:
    """Raise where an input says that it looks at, or claims, a choice that there is not."""
    for attribute, possible in (("BRINGS", BROUGHT), ("CLAIMS", CLAIMED)):
        said = getattr(kind, attribute, None)
        if said is not None and said not in possible:
            raise refuse(f"{_shown(kind)}.{attribute} is {said!r}; it can be {' or '.join(possible)}")
    if hasattr(kind, "CLAIMS") and not isinstance(getattr(kind, "HELP", None), str):
        raise refuse(f"{_shown(kind)} claims {kind.CLAIMS} and has no HELP, which says what the option then means")


def _parameter(refuse: Callable[[str], PluginError], name: str, hint: Any, default: Any) -> Parameter:
    described = ""
    choices: tuple[Any, ...] = ()
    many = False
    kind = hint
    while kind not in SCALARS:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            described = described or next((one for one in arguments[1:] if isinstance(one, str)), "")
            kind = arguments[0]
        elif (given := _unless_none(kind)) is not kind:
            kind = given
        elif origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis and not many:
            many, kind = True, arguments[0]
        elif origin is Literal and len({type(argument) for argument in arguments}) == 1:
            choices, kind = arguments, type(arguments[0])
        else:
            raise refuse(
                f"the parameter {name} is a {_shown(hint)}; "
                "it can be an int, float, bool, str, Literal, tuple[..., ...] of these, or one of them | None"
            )
    return Parameter(name=name, type=kind, choices=choices, many=many, default=default, help=described)


def _group_parameters(refuse: Callable[[str], PluginError], group: Any) -> list[Parameter]:
    """The options that the fields of a dataclass declare.

    Raises:
        PluginError: a field is not an option, or makes its default anew for each instance.
    """
    hints = get_type_hints(group, include_extras=True)
    parameters = []
    for field in fields(group):
        if field.default_factory is not MISSING:
            raise refuse(f"the option {field.name} of {group.__name__} has a default_factory; use a default")
        default = REQUIRED if field.default is MISSING else field.default
        parameters.append(_parameter(refuse, field.name, hints[field.name], default))
    return parameters


def _unless_none(hint: Any) -> Any:
    """``X`` of ``X | None``; anything else as it is."""
    arguments = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return next(argument for argument in arguments if argument is not type(None))
    return hint


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _refusal(found: AnalysisModule, why: str) -> PluginError:
    where = f" in {found.path}" if found.path else ""
    return PluginError(f"The analysis {found.name}{where} cannot be used: {why}.")


def _code_version(found: AnalysisModule) -> str:
    said = found.distribution or found.module
    if found.path is None:
        return said
    return f"{said}, {found.path.name} {hashlib.sha256(found.path.read_bytes()).hexdigest()[:12]}"
