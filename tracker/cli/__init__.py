"""The command line: parse, call, print.

Every module in `tracker.cli.commands` is a command, named after the module. Its line in the overview is the first line
of the docstring of the function `command`, or of the module where there is no such function. A command's module is
imported only when the command is used.
"""

from __future__ import annotations

import ast
import atexit
import errno
import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from tracker.cli.help_text import Group
from tracker.cli.process import OF_COMMAND
from tracker.cli.process.pyarrow_import import import_pyarrow_without_pandas
from tracker.cli.process.sealed_rows import run_with_sealed_rows
from tracker.cli.process.standard_streams import open_closed_streams
from tracker.cli.values.command_line_secrets import print_traceback, read_arguments, redact_urls
from tracker.cli.values.terminal_text import echo, echo_message
from tracker.errors import SuffrageError
from tracker.private_files.temporary import remove_temporary_folders
from tracker.version import __version__

COMMANDS = Path(__file__).parent / "commands"

NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a disk on which stdout is written, and of a closed stdout."""

GC_THRESHOLD = 100_000
"""New objects between two runs of the garbage collector; with Python's own 700 every start takes a tenth longer."""


SECTIONS: Mapping[str, Sequence[str]] = {
    "Start": ("demo", "init", "config", "completion"),
    "Import and evaluate": ("ingest", "formats", "prompts", "evaluate", "embed", "weights"),
    "Rank and compare": ("verdict", "leaderboard", "compare", "gate", "plan", "history", "looks"),
    "Analyze": ("analyze", "analyses", "findings", "show", "reproduce", "simulate", "tradeoff"),
    "Share": ("report", "serve", "export", "publish", "ui"),
    "Manage the store": (
        "benchmarks",
        "tasks",
        "models",
        "metrics",
        "runs",
        "responses",
        "undo",
        "seal",
        "unseal",
        "sql",
        "doctor",
        "db",
    ),
}
"""Commands of each section of the overview."""


def overview_line(source: Path) -> str:
    """Return the first line of a command's help, read without importing its module."""
    module = ast.parse(source.read_text(encoding="utf-8"))
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "command")
    doc = ast.get_docstring(next(functions, module)) or ""
    return doc.split("\n", 1)[0]


class Interrupted(click.ClickException):
    """Ctrl-C, with one line about what is stored."""

    exit_code = 130

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        echo(self.message, err=True)


class ClosedPipe(click.ClickException):
    """The reader of stdout is gone, such as `head`."""

    exit_code = 141

    def show(self, file: IO[Any] | None = None) -> None:
        """Print nothing, now and at exit."""
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in the buffer would fail again at exit


class Discovered(Group):
    """A group whose commands are the modules of a folder."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would print a blank line after Ctrl-C, and exit 1 in both cases."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt as error:
            raise Interrupted(str(error) or "Stopped.") from error
        except SystemError as error:
            if not _is_interrupt(error):
                raise
            raise Interrupted("Stopped.") from error
        except OSError as error:
            if error.errno != errno.EPIPE or error.filename is not None:
                raise
            raise ClosedPipe("stdout is closed") from error
        return result

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
        """Write the commands in sections, each with the first line of its help."""
        names = self.list_commands(ctx)
        remaining = [name for name in names if not any(name in section for section in SECTIONS.values())]
        width = max(map(len, names))
        for title, section in {**SECTIONS, "Other commands": remaining}.items():
            lines = [
                (f"{name:<{width}}", overview_line(COMMANDS / f"{name.replace('-', '_')}.py"))
                for name in section
                if name in names
            ]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        echo(f"suffrage {__version__}")
        ctx.exit()


@click.group(
    cls=Discovered,
    context_settings={"max_content_width": 110, "show_default": True},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def suffrage() -> None:
    """Track benchmark results of language models and test their rankings.

    Suffrage stores scores for each prompt in a database, SQLite or PostgreSQL. It ranks models with intervals and
    tests how far a ranking can be trusted. Results go to stdout; progress, warnings and errors go to stderr.

    Examples:
        suffrage demo
        suffrage ingest results.csv --benchmark mmlu_pro
        suffrage leaderboard mmlu_pro
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0; 1 for an error; 2 for a wrong command line; 130 after Ctrl-C; 141 if the reader of stdout is gone.
    """
    sys.exit(_run(arguments))


def _prepare_process() -> None:
    open_closed_streams()
    gc.set_threshold(GC_THRESHOLD)
    import_pyarrow_without_pandas()
    atexit.register(gc.freeze)  # else Python frees every object of every library one by one, only to exit
    remove_temporary_folders()


def _run(words: Sequence[str] | None) -> int:
    """Run a command; print its error, or the traceback of a fault of the program."""
    arguments: list[str] = []
    try:
        _prepare_process()
        arguments = read_arguments() if words is None else list(words)
        for argument in arguments:
            if not _is_text(argument) and not os.path.lexists(argument):
                return _fail(f"The argument {argument} is not UTF-8 text.", click.UsageError.exit_code)
        result = run_with_sealed_rows(
            lambda: suffrage.main(args=arguments, prog_name="suffrage", standalone_mode=False, obj=OF_COMMAND)
        )
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        from tracker.cli.usage_errors import describe_usage_error

        return _fail(describe_usage_error(error, arguments), error.exit_code)
    except click.ClickException as error:
        return _stop(error)
    except SuffrageError as error:
        from tracker.cli.store_errors import describe_error

        return _fail(describe_error(error, arguments))
    except (click.Abort, KeyboardInterrupt):  # at a question, or before the command began
        return _stop(Interrupted("Stopped."))
    except MemoryError:
        return _fail("there is not enough memory. Nothing of this step was stored.")
    except OSError as error:
        return _explain_output_error(error)
    except Exception as error:  # noqa: BLE001 - a fault of the program, whose message may hold the URL of the store
        print_traceback(error)
        return 1
    return result if isinstance(result, int) else 0


def _is_text(argument: str) -> bool:
    """Whether the bytes of an argument are UTF-8; names of files may have others."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause: numba raises a SystemError from it where it came while a kernel ran."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _stop(error: click.ClickException) -> int:
    error.show()
    return error.exit_code


def _fail(message: str, code: int = 1) -> int:
    echo_message(redact_urls(message), "Error: ")
    return code


def _explain_output_error(error: OSError) -> int:
    """Print the error of a file; return the exit code."""
    if error.filename is not None or error.errno not in NOT_WRITABLE:
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return _fail(f"{place}{error.strerror or error}.")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - what is left in the buffer would fail again at exit
    return _fail(f"the output could not be written: {error.strerror}. Send it somewhere else.")
