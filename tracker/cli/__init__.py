"""The command line: parse, call, print.

Every module in `tracker.cli.commands` is a command, named after the module; the first line of its
docstring is its line in the overview. A command's module is imported only when the command is used.
"""

from __future__ import annotations

import ast
import atexit
import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tracker.errors import SuffrageError

COMMANDS = Path(__file__).parent / "commands"

GC_THRESHOLD = 100_000
"""New objects between two runs of the garbage collector; with Python's own 700 every start takes a tenth longer."""


def first_line(source: Path) -> str:
    """First line of a module's docstring, read without importing it."""
    doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return doc.split("\n", 1)[0]


class Discovered(click.Group):
    """A group whose commands are the modules of a folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the modules, with dashes."""
        return sorted(path.stem.replace("_", "-") for path in COMMANDS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The object named `command` in the module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"tracker.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, from the docstrings' first lines."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, first_line(COMMANDS / f"{name.replace('-', '_')}.py")) for name in self.list_commands(ctx)]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; a mistyped one is answered with those that are near."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), n=3)
            if near:
                hint = f"Did you mean {' or '.join(near)}?"
                raise click.UsageError(f"{error.message} {hint}", ctx) from None
            raise


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"suffrage {version('suffrage')}")
        ctx.exit()


@click.group(cls=Discovered, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Say which.")
def suffrage() -> None:
    """Suffrage: how far can a benchmark's ranking be trusted?

    Every prompt is a voter in a benchmark's election of models; who votes, and how much does each vote
    count? Start with `suffrage demo`, or `suffrage ingest RESULTS --benchmark NAME`.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a user can mend is one sentence and exit code 1."""
    gc.set_threshold(GC_THRESHOLD)
    atexit.register(gc.freeze)  # else Python frees every object of every library one by one, only to exit
    try:
        suffrage.main(args=list(arguments) if arguments is not None else None, prog_name="suffrage")
    except SuffrageError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) or error.filename is not None:
            raise
        click.echo(f"Error: the output could not be written: {error.strerror}. Send it somewhere else.", err=True)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in the buffer would fail again at exit
        sys.exit(1)
