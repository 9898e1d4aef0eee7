"""Read the parameters of a function from its signature, as options of a command."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from tracker.errors import PluginError

SCALARS = (int, float, bool, str)
REQUIRED = inspect.Parameter.empty
Device = NewType("Device", str)
"""Name of the device that an analysis computes on, such as ``cuda``.

A keyword-only parameter ``device: Device = CPU`` adds `--device` to the command of an analysis. Like the number of
workers, the device is not recorded, and must not change the report.
"""
CPU = Device("cpu")


@dataclass(frozen=True, kw_only=True)
class ValueHint:
    """Constraints on the values of a parameter that its type does not express: ``Annotated[int,
    ValueHint(minimum=1)]``.

    Attributes:
        metavar: placeholder of the value in the help.
        minimum: minimum value.
    """

    metavar: str = ""
    minimum: int | None = None


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """An argument or option of a plug-in's command.

    Attributes:
        name: as in the signature.
        type: type of one value.
        choices: allowed values; none means any of the type.
        many: whether it takes any number of values, as a tuple.
        default: `REQUIRED` without a default.
        help: help text.
        metavar: placeholder of the value in the help; '' for the type's.
        minimum: minimum value.
    """

    name: str
    type: type
    choices: tuple[Any, ...] = ()
    many: bool = False
    default: Any = REQUIRED
    help: str = ""
    metavar: str = ""
    minimum: int | None = None


def parse_parameter(error: Callable[[str], PluginError], name: str, hint: Any, default: Any) -> Parameter:
    """Read an argument or option from a parameter of a function.

    Args:
        error: creates the plug-in's error from a reason.
        name: of the parameter.
        hint: its annotation: a scalar, a literal, a tuple of these, or one of them or None; help and `ValueHint` are in
            ``Annotated``.
        default: its default; `REQUIRED` without one.

    Raises:
        PluginError: the annotation is of another type.
    """
    metadata: list[Any] = []
    choices: tuple[Any, ...] = ()
    many = False
    kind = hint
    while kind not in SCALARS:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            metadata += arguments[1:]
            kind = arguments[0]
        elif (inner := unwrap_optional(kind)) is not kind:
            kind = inner
        elif origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis and not many:
            many, kind = True, arguments[0]
        elif origin is Literal and len({type(argument) for argument in arguments}) == 1:
            choices, kind = arguments, type(arguments[0])
        else:
            raise error(
                f"the parameter {name} is a {format_hint(hint)}; "
                "it can be an int, float, bool, str, Literal, tuple[..., ...] of these, or one of them | None"
            )
    value_hint = next((part for part in metadata if isinstance(part, ValueHint)), ValueHint())
    return Parameter(
        name=name,
        type=kind,
        choices=choices,
        many=many,
        default=default,
        help=next((part for part in metadata if isinstance(part, str)), ""),
        metavar=value_hint.metavar,
        minimum=value_hint.minimum,
    )


def group_parameters(error: Callable[[str], PluginError], group: Any) -> list[Parameter]:
    """Read the options that the fields of a dataclass declare.

    Raises:
        PluginError: a field is not an option, or has a default factory.
    """
    hints = get_type_hints(group, include_extras=True)
    parameters = []
    for field in fields(group):
        if field.default_factory is not MISSING:
            raise error(f"the option {field.name} of {group.__name__} has a default_factory; use a default")
        default = REQUIRED if field.default is MISSING else field.default
        parameters.append(parse_parameter(error, field.name, hints[field.name], default))
    return parameters


def unwrap_optional(hint: Any) -> Any:
    """Return ``X`` of ``X | None``; anything else unchanged."""
    arguments = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return next(argument for argument in arguments if argument is not type(None))
    return hint


def format_hint(hint: Any) -> str:
    """Return an annotation as in the source."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def is_option_group(hint: Any) -> bool:
    """Return whether a keyword-only parameter of this type is an option group: a dataclass."""
    return isinstance(hint, type) and is_dataclass(hint)


def accept_flat_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function accept the fields of its option groups as keyword arguments.

    A keyword-only parameter whose type is a dataclass is an option group: each field is an option of the command, as a
    parameter of the function itself would be.

    Args:
        function: a plug-in's function; one without option groups is returned unchanged.
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
    def call(*inputs: Any, **options: Any) -> Any:
        built = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group) if field.name in options})
            for name, group in groups.items()
        }
        return function(*inputs, **options, **built)

    return call
