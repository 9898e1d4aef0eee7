"""Parameters that plug-ins declare, as options of a command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import click

from tracker.cli.options import split_values
from tracker.cli.values.setting_option import SettingOption
from tracker.errors import PluginError
from tracker.plugins.parameters import REQUIRED, Parameter


def check_option_names(kind: str, plugin: str, parameters: Iterable[Parameter], reserved: Collection[str]) -> None:
    """Raise where a parameter has the name of an option that every plug-in of the kind has.

    Raises:
        PluginError: one has.
    """
    for parameter in parameters:
        if parameter.name in reserved:
            raise PluginError(
                f"The {kind} {plugin} cannot be used: its parameter {parameter.name} is an option that every "
                f"{kind} has. Give it another name."
            )


def parameter_argument(parameter: Parameter) -> Callable[[Any], Any]:
    """A positional parameter of a plug-in as an argument of its command."""
    required = parameter.default is REQUIRED and not parameter.many
    return click.argument(
        parameter.name,
        type=parameter.type,
        required=required,
        nargs=-1 if parameter.many else 1,
        metavar=parameter.metavar or None,
    )


def parameter_option(parameter: Parameter) -> Callable[[Any], Any]:
    """A keyword parameter of a plug-in as an option of its command."""
    flag = "--" + parameter.name.replace("_", "-")
    required = parameter.default is REQUIRED
    default = None if required else parameter.default
    options: dict[str, Any] = {"help": parameter.help, "required": required, "show_default": default not in (None, ())}
    if parameter.type is bool and not parameter.many:
        if default is False:
            return click.option(
                flag, parameter.name, is_flag=True, default=False, **(options | {"show_default": False})
            )
        return click.option(f"{flag}/--no-{flag[2:]}", parameter.name, default=default, **options)
    kind: Any = click.Choice(parameter.choices) if parameter.choices else parameter.type
    if parameter.minimum is not None:
        kind = click.IntRange(min=parameter.minimum)
    if parameter.many:
        joined = ",".join(str(value) for value in default or ())
        return click.option(
            flag,
            parameter.name,
            default=(joined,) if joined else default,
            multiple=True,
            metavar="A,B",
            callback=_convert_each(click.types.convert_type(kind)),
            **options,
        )
    if parameter.name == "seed":
        options["cls"] = SettingOption
    return click.option(flag, parameter.name, default=default, type=kind, metavar=parameter.metavar or None, **options)


def _convert_each(kind: click.ParamType[Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Values given by repeating an option or with commas between them, each converted."""

    def convert(ctx: click.Context, option: click.Parameter, values: tuple[str, ...] | None) -> Any:
        if values is None:
            return None
        return tuple(kind.convert(value, option, ctx) for value in split_values(values))

    return convert
