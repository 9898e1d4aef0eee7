"""Groups of commands that list something when no command of theirs is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tracker.cli.help_text import Group


def listing_group(list_command: click.Command) -> Callable[[Callable[..., None]], click.Group]:
    """A group whose bare name does what its command `list` does, with the same options.

    The decorated function gives the group its help; it is not called.

    Args:
        list_command: the command `list`.
    """

    @click.pass_context
    def invoke(ctx: click.Context, /, **options: Any) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(list_command, **options)
            return
        explicit = [
            name for name in options if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        ]
        if explicit:
            raise click.UsageError(f"Give the options after the word {ctx.invoked_subcommand}.", ctx)

    def decorate(function: Callable[..., None]) -> click.Group:
        params = list(list_command.params)
        group = Group(callback=invoke, params=params, help=function.__doc__, invoke_without_command=True)
        group.add_command(list_command, "list")
        return group

    return decorate
