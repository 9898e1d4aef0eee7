"""The command `suffrage completion`."""

from __future__ import annotations

import click

from tracker.cli.help_text import Command
from tracker.cli.values.terminal_text import echo

PROGRAM = "suffrage"
VARIABLE = "_SUFFRAGE_COMPLETE"
"""Environment variable with which the shell requests completions, as click names it."""


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes command lines in a shell.

    The script completes commands, options, and names of benchmarks and models in the store. Load it when the shell
    starts. In ~/.bashrc: eval "$(suffrage completion bash)". In ~/.zshrc, after compinit: eval "$(suffrage completion
    zsh)". For fish, write it to ~/.config/fish/completions/suffrage.fish.

    Examples:
        suffrage completion bash
        suffrage completion fish
    """
    from click.shell_completion import get_completion_class

    from tracker.cli import suffrage

    completion = get_completion_class(shell)
    assert completion is not None
    echo(completion(suffrage, {}, PROGRAM, VARIABLE).source())
