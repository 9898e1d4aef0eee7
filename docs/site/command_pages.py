"""A page for each command of the command line, from what click knows about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from tracker.cli import SECTIONS, suffrage
from tracker.recording.registry import discover_analyses

FOLDER = "reference/commands"
PROGRAM = "suffrage"


def list_commands(group: click.Group = suffrage, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command and subcommand with the words after the program's name, by name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from list_commands(command, (*words, name))


def page_address(words: str) -> str:
    """Return the address of a command's page."""
    return f"{FOLDER}/{words.replace(' ', '-')}.md"


def write_pages() -> dict[str, str]:
    """Return the Markdown of every page by its address."""
    pages = {page_address(words): write_command_page(words, command) for words, command in list_commands()}
    return {f"{FOLDER}.md": write_overview(), **pages}


def write_command_page(words: str, command: click.Command) -> str:
    """Return the Markdown of a command: description, usage, arguments and options, subcommands, examples."""
    settings = suffrage.context_settings | {
        "max_content_width": 88
    }  # click keeps the names of --help from the first use
    context = click.Context(command, info_name=f"{PROGRAM} {words}", **settings)
    parts = [f"# {PROGRAM} {words}", _as_markdown(command.help or "")]
    if words.startswith("analyze "):
        name = words.removeprefix("analyze ")
        if name in discover_analyses():
            parts.append(f"Definitions: [{name}](../statistics/{name}.md).")
    parts += ["## Usage", _fence(f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}")]
    options = [row for parameter in command.get_params(context) if (row := _describe(parameter, context))]
    if options:
        parts += ["## Options", "| Option | Meaning | Default and range |\n|---|---|---|\n" + "\n".join(options)]
    if isinstance(command, click.Group):
        parts += ["## Subcommands", "\n".join(_list_subcommands(words, command))]
    examples = getattr(command, "examples", [])
    if examples:
        parts += ["## Examples", _fence("\n".join(f"$ {line}" for line in examples), "console")]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_overview() -> str:
    """Return the Markdown of the page that lists the commands in the sections of ``suffrage --help``."""
    commands = dict(list_commands())
    parts = ["# Commands", _as_markdown(suffrage.help or "")]
    for title, names in SECTIONS.items():
        rows = [f"| {_link(name, 'commands/')} | {_first_line(commands[name])} |" for name in names]
        parts += [f"## {title}", "\n".join(["| Command | What it does |", "|---|---|", *rows])]
    parts += ["## Options of the program", _fence(f"{PROGRAM} --version\n{PROGRAM} --help")]
    return "\n\n".join(parts) + "\n"


def _list_subcommands(words: str, group: click.Group) -> Iterator[str]:
    yield from ("| Command | What it does |", "|---|---|")
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"| {_link(f'{words} {name}')} | {_first_line(command)} |"


def _link(words: str, folder: str = "") -> str:
    return f"[`{PROGRAM} {words}`]({folder}{words.replace(' ', '-')}.md)"


def _first_line(command: click.Command) -> str:
    return _escape((command.help or "").split("\n", 1)[0])


def _describe(parameter: click.Parameter, context: click.Context) -> str:
    """Return the row of an option; '' for an argument, which the usage shows, and for a hidden option."""
    record = parameter.get_help_record(context)
    if record is None or not isinstance(parameter, click.Option) or parameter.hidden:
        return ""
    extra = parameter.get_help_extra(context)
    notes = [f"default: {extra['default']}"] if extra.get("default") else []
    notes += [extra["range"]] if extra.get("range") else []
    notes += ["required"] if extra.get("required") else []
    return f"| `{_escape_bar(record[0])}` | {_escape(parameter.help or '')} | {_escape('; '.join(notes))} |"


def _as_markdown(text: str) -> str:
    """Return the help of a command as Markdown: lines that begin with spaces are kept as they are."""
    blocks = []
    for block in re.split(r"\n\s*\n", text.replace("\b\n", "")):
        lines = block.splitlines()
        if len(lines) > 1 and all(line.startswith(" ") for line in lines[1:]):
            blocks += [_escape(lines[0]), _fence("\n".join(line.strip() for line in lines[1:]))]
        else:
            blocks.append(_escape(block))
    return "\n\n".join(blocks)


def _escape(text: str) -> str:
    """Return a text whose letters have no meaning in Markdown, except those in backquotes."""
    parts = re.split(r"(`+[^`]*`+)", " ".join(text.split()))
    return "".join(
        _escape_bar(part) if part.startswith("`") else re.sub(r"([\\*_\[\]<>|#])", r"\\\1", part) for part in parts
    )


def _escape_bar(code: str) -> str:
    return code.replace("|", r"\|")


def _fence(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"
