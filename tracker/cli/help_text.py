"""Help of commands: the docstring's text, the options, then its examples."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click

from tracker.cli.values.store_names import complete_names

EXAMPLES = re.compile(r"^Examples:\n((?:[ \t]+\S.*(?:\n|\Z))+)\n*", re.M)
HELP_OPTIONS = ["-h", "--help"]


class Command(click.Command):
    """A command whose help ends with the section `Examples:` of its docstring; the shell completes names in the store.

    Attributes:
        examples: command lines, as a user types them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        complete_names(self.params)
        self.context_settings.setdefault("help_option_names", HELP_OPTIONS)  # click fixes them at the first use
        text = inspect.cleandoc(self.help or "")
        section = EXAMPLES.search(text)
        self.examples = [line.strip() for line in section[1].splitlines()] if section else []
        self.help = EXAMPLES.sub("", text).rstrip() or None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options and the list of commands."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in self.examples))


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type
