"""The command `suffrage tasks`."""

from __future__ import annotations

import shlex

import click

from tracker.cli.help_text import Command
from tracker.cli.listing_group import listing_group
from tracker.cli.options import database_option, format_option
from tracker.cli.output import inform, print_rows
from tracker.cli.progress import show_activity
from tracker.name_lists import join_names

MAX_NAMES = 5


@click.command("list", cls=Command)
@click.option("--benchmark", metavar="NAME", help="List the tasks of this benchmark only.", show_default="all")
@database_option
@format_option
def list_tasks(benchmark: str | None, database: str | None, output_format: str) -> None:
    """List the tasks of each benchmark.

    Aliases are the names that files have for a task; `suffrage tasks alias` adds them.

    Examples:
        suffrage tasks list
        suffrage tasks list --benchmark mmlu_pro
    """
    from tracker.database import connect, transaction
    from tracker.queries.catalogue import tasks

    with show_activity("tasks"), transaction(connect(database, create=False), write=False) as session:
        rows = tasks.list_tasks(session, benchmark)
    print_rows(rows, output_format, if_empty="No tasks yet. Import results: `suffrage ingest RESULTS --benchmark NAME`")


@listing_group(list_tasks)
def command() -> None:
    """List the tasks of each benchmark.

    Aliases are the names that files have for a task; `suffrage tasks alias` adds them.

    Examples:
        suffrage tasks
        suffrage tasks --benchmark mmlu_pro
    """


@command.command()
@click.argument("benchmark")
@click.argument("name")
@click.argument("task")
@database_option
def alias(benchmark: str, name: str, task: str, database: str | None) -> None:
    """Map a name of a task in files to a stored task.

    Later imports and options that have NAME mean TASK, so that two harnesses meet on the same prompts. With * in NAME
    and as TASK, every stored task gets a name. A task NAME with scores is an error: undo its import first. `suffrage
    tasks unalias` reverses it.

    Examples:
        suffrage tasks alias mmlu_pro mmlu_pro_biology biology
        suffrage tasks alias mmlu_pro 'mmlu_pro_*' '*'
    """
    from tracker.database import connect, transaction
    from tracker.recording.task_aliases import add_task_aliases

    with show_activity("tasks"), transaction(connect(database, create=False), exclusive=True) as session:
        names = add_task_aliases(session, benchmark, name, task)
    if not names:
        inform("Every task has this name already.")
        return
    inform(f"New names of tasks: {join_names((f'{new} is {of}' for new, of in names.items()), MAX_NAMES)}.")
    inform(f"To remove them: {shlex.join(['suffrage', 'tasks', 'unalias', benchmark, name])}")


@command.command()
@click.argument("benchmark")
@click.argument("name")
@database_option
def unalias(benchmark: str, name: str, database: str | None) -> None:
    """Remove a name that `suffrage tasks alias` added.

    A pattern removes all names that it added. Scores that were imported under a name since stay with the task.

    Examples:
        suffrage tasks unalias mmlu_pro mmlu_pro_biology
        suffrage tasks unalias mmlu_pro 'mmlu_pro_*'
    """
    from tracker.database import connect, transaction
    from tracker.recording.task_aliases import remove_task_aliases

    with show_activity("tasks"), transaction(connect(database, create=False), exclusive=True) as session:
        n = remove_task_aliases(session, benchmark, name)
    inform(f"{n:,} name{'s' * (n != 1)} removed.")
