"""What is wrong with a command line, and how to write it right."""

from __future__ import annotations

import errno
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tracker.suggestions import find_similar, format_guess

LISTS = {
    "BENCHMARK": "List benchmarks with `suffrage benchmarks`.",
    "MODEL_A": "List models with `suffrage models`.",
    "MODEL_B": "List models with `suffrage models`.",
    "MODEL|BENCHMARK": "List models with `suffrage models`, benchmarks with `suffrage benchmarks`.",
    "PATHS...": "Run: suffrage ingest RESULTS --benchmark NAME",
    "STATEMENT": 'Try: suffrage sql "SELECT * FROM leaderboard"',
}
"""Fix for a missing argument, by its name in the usage line."""

ID_LISTS = {"show": "suffrage findings", "runs": "suffrage runs"}
"""Command that lists the numbers that another command takes."""


RANGE = re.compile(
    r"(?P<value>\S+) is not in the range (?:(?P<low>[^<>x]+)(?P<from><=?))?x(?:(?P<to>[<>]=?)(?P<bound>\S+))?\."
)
"""Click's message, such as ``9 is not in the range 1<=x<=5.``"""
LIMITS = {">=": "of at least", ">": "above", "<=": "of at most", "<": "below"}


def describe_usage_error(error: click.UsageError, arguments: Sequence[str]) -> str:
    """Return the problem, the fix and where to read on, in at most three lines.

    Args:
        error: from click.
        arguments: of the command line, without the program's name.
    """
    problem = error.format_message().rstrip(".") + "."
    context = error.ctx
    if isinstance(error, click.MissingParameter):
        return _join(problem, _explain_missing(error), context.get_usage() if context else "")
    if isinstance(error, click.BadParameter):
        problem, fix = _explain_value(error, problem)
    elif isinstance(error, click.NoSuchOption):
        context = _context_of_command(context, arguments)
        problem, fix = _explain_option(error, context, arguments)
    elif problem.startswith("No such command") and context is not None:
        problem, fix = _explain_command(context, arguments, problem)
    elif "unexpected extra argument" in problem and context is not None:
        fix = _explain_extra(context, arguments, problem)
    else:
        fix = ""
    return _join(problem, fix, f"Help: {_command_path(context, arguments)} --help")


def _join(problem: str, fix: str, last: str) -> str:
    return "\n".join(filter(None, (" ".join(filter(None, (problem, fix))), last)))


def _command_path(context: click.Context | None, arguments: Sequence[str]) -> str:
    if context is not None:
        return context.command_path
    return " ".join(["suffrage", *arguments[:1]])  # the parser raises some errors without a context


def _explain_command(context: click.Context, arguments: Sequence[str], problem: str) -> tuple[str, str]:
    """Problem and fix of a command that does not exist."""
    match = re.search(r"'(.*?)'", problem)
    name = match[1] if match else ""
    assert isinstance(context.command, click.Group)
    problem = f"No such command {name!r}."
    if guess := format_guess(find_similar(name, context.command.list_commands(context))):
        return problem, guess
    if context.parent is not None:
        return problem, ""
    from tracker.recording.registry import discover_analyses

    if name in discover_analyses():
        return problem, f"It is an analysis: {shlex.join(['suffrage', 'analyze', *arguments])}"
    if Path(name).exists():
        return problem, f"It is a file: {shlex.join(['suffrage', 'ingest', *arguments])} --benchmark NAME"
    return problem, ""


def _explain_option(
    error: click.NoSuchOption, context: click.Context | None, arguments: Sequence[str]
) -> tuple[str, str]:
    """Problem and fix of an option that does not exist, or that is not in its place."""
    name = error.option_name
    if not name.startswith("--"):  # click reads -metric as the options -m, -e, ...
        name = next((argument for argument in arguments if argument.startswith(name)), name)
    problem = f"No such option {name!r}."
    if context is None or error.ctx is None:
        return problem, ""
    known = _list_options(context)
    if context is not error.ctx and name in known:
        first = arguments.index(context.command_path.split()[1])
        moved = shlex.join(["suffrage", *arguments[first:], *arguments[:first]])
        return problem, f"Options come after the command: {moved}"
    letters = name.lstrip("-")
    near = find_similar(letters, [option[2:] for option in known])
    abbreviated = re.compile(".*".join(map(re.escape, letters)))
    near = near or [option[2:] for option in known if len(letters) > 1 and abbreviated.match(option, 2)]
    return problem, format_guess([f"--{option}" for option in near])


def _context_of_command(context: click.Context | None, arguments: Sequence[str]) -> click.Context | None:
    """The same context; for options before the command, that of the command, or of the command of a group."""
    if context is None or context.parent is not None or not isinstance(context.command, click.Group):
        return context
    for argument in arguments:
        command = context.command.get_command(context, argument) if isinstance(context.command, click.Group) else None
        if command is not None:
            context = click.Context(command, info_name=argument, parent=context)
        elif context.parent is not None:
            break
    return context


def _list_options(context: click.Context) -> list[str]:
    """The long options of a command."""
    return [
        option
        for parameter in context.command.get_params(context)
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    ]


def _explain_missing(error: click.MissingParameter) -> str:
    if error.param is None or error.ctx is None:
        return ""
    if isinstance(error.param, click.Option):
        return f"Add {error.param.opts[-1]} {error.param.make_metavar(error.ctx)}."
    name = error.param.make_metavar(error.ctx)
    return LISTS.get(name, _explain_number(error.ctx) if name.startswith("ID") else "")


def _explain_number(context: click.Context) -> str:
    command = context.command_path.split()[1:2]
    listing = ID_LISTS.get(command[0]) if command else None
    return f"List the numbers with `{listing}`." if listing else ""


def _explain_value(error: click.BadParameter, problem: str) -> tuple[str, str]:
    """Problem and fix of a value that a parameter does not take."""
    parameter = error.param
    match = re.match(r"'(.*?)' ", error.message)
    value = match[1] if match else ""
    place = problem.partition(": ")[0]
    if isinstance(parameter, click.Parameter) and isinstance(parameter.type, click.Choice):
        return problem, format_guess(find_similar(value, [str(choice) for choice in parameter.type.choices]))
    if isinstance(parameter, click.Parameter) and isinstance(parameter.type, click.DateTime):
        return f"{place}: {value!r} is not a date.", "Write it as 2026-01-31 or 2026-01-31T12:00:00, in UTC."
    if match := RANGE.fullmatch(error.message):
        return f"{place}: {match['value']} is out of range.", _explain_range(match)
    if "is not a valid" in error.message:
        kind = "whole number" if "integer" in error.message else "number"
        fix = f"Write {value.replace(',', '.')}." if re.fullmatch(r"-?\d+,\d+", value) else ""
        if not fix and error.ctx is not None and isinstance(parameter, click.Argument):
            fix = _explain_number(error.ctx)
        return f"{place}: {value!r} is not a {kind}.", fix
    return problem, ""


def _explain_range(match: re.Match[str]) -> str:
    """Fix of a number outside a range."""
    parts = []
    if match["low"]:
        parts.append(f"{'of at least' if match['from'] == '<=' else 'above'} {match['low']}")
    if match["bound"]:
        parts.append(f"{LIMITS[match['to']]} {match['bound']}")
    return f"Use a number {' and '.join(parts)}."


def _explain_extra(context: click.Context, arguments: Sequence[str], problem: str) -> str:
    """Fix for more arguments than the command takes."""
    match = re.search(r"\((.*)\)", problem)
    extra = match[1].split(" ")[0] if match else ""
    if context.command_path == "suffrage sql":
        return 'Put the statement in quotes: suffrage sql "SELECT * FROM leaderboard"'
    if context.command_path == "suffrage analyze comparison":
        return "Compare two models with `suffrage compare BENCHMARK MODEL_A MODEL_B`."
    at = len(arguments) - 1 - list(reversed(arguments)).index(extra) if extra in arguments else 0
    multiple = {
        option for parameter in context.command.get_params(context) if parameter.multiple for option in parameter.opts
    }
    if at >= 2 and arguments[at - 2] in multiple:
        return f"Join the values with commas: {arguments[at - 2]} {arguments[at - 1]},{extra}"
    if at >= 1 and not arguments[at - 1].startswith("-"):
        return f"Put a name with spaces in quotes: {shlex.quote(f'{arguments[at - 1]} {extra}')}"
    return ""


def check_port_free(host: str, port: int, command: str, error_class: Callable[[str], Exception]) -> None:
    """Reject a port that is in use, or a host that is not of this machine.

    Args:
        host: address to listen on.
        port: its port.
        command: the command of the message, such as ``suffrage ui``.
        error_class: makes the error from its message.
    """
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise error_class(f"{host}:{port} cannot be listened on: {error.strerror}.") from error
            raise error_class(
                f"Port {port} is in use ({error.strerror}). Choose another: {command} --port {port % 65535 + 1}"
            ) from error
