"""Ask a model a benchmark's prompts, and store what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracker.cli.evaluation_options import asking_options, loading_options, serving_options, writing_options
from tracker.cli.options import database_option, split_values
from tracker.cli.output import inform
from tracker.cli.progress import progress_of_prompts
from tracker.evaluating.choices import ERRORED

if TYPE_CHECKING:
    from tracker.evaluating.evaluation_result import Evaluated

LISTS = ("tasks", "metrics", "ignore")
"""Options that take several values, by repeating them or with commas between."""


@click.command()
@click.argument("benchmark")
@click.option(
    "--model",
    required=True,
    metavar="NAME_OR_FOLDER",
    help="A folder, a name on the model hub, or what the server calls it.",
)
@click.option(
    "--name", metavar="NAME", help="What the store calls the model; else its folder's name, or the name as given."
)
@asking_options
@writing_options
@loading_options
@serving_options
@click.option(
    "--errored",
    type=click.Choice(ERRORED),
    help="End the run, and count prompts that got no answer so; else it stays unfinished.",
)
@click.option("--again", is_flag=True, help="Make a new run where the same evaluation is stored already.")
@click.option("--dry-run", is_flag=True, help="Say how many tokens, how long and what cost, and store nothing.")
@click.option(
    "--show-prompt",
    is_flag=True,
    help="Print the first prompt as the model would read it, with --chat by turns, and stop.",
)
@database_option
def command(
    benchmark: str,
    model: str,
    conditions: str,
    batch_size: str,
    dry_run: bool,
    show_prompt: bool,
    database: str | None,
    **said: Any,
) -> None:
    """Ask a model a benchmark's prompts, and store what it answers as a run.

    Answers are stored as they come. Stopped and run again, the same command goes on where it was.

    \b
      suffrage evaluate mmlu --model ./llama --condition full,answer-only --template smart
      suffrage evaluate anli --model ./llama --template anli --few-shot 7 --few-shot-split dev
      suffrage evaluate gsm8k --model gpt-x --api-base https://host/v1 --extract '#### (.*)'
    """
    from tracker.database import connect
    from tracker.evaluating.plan import Plan

    for name in LISTS:
        said[name] = split_values(said[name])
    said["metrics"] = said["metrics"] or ("exact_match",)
    words = (part.strip().replace("-", "_") for part in conditions.split(",") if part.strip())
    said["conditions"] = tuple(dict.fromkeys(words))
    said["batch_size"] = _batch_size(batch_size)
    plan = Plan.of(benchmark, model, **said)
    engine = connect(database)
    if show_prompt:
        _show(engine, plan)
    elif dry_run:
        _estimate(engine, plan)
    else:
        _evaluate(engine, plan)


def _batch_size(said: str) -> int | None:
    if said == "auto":
        return None
    if not said.isdecimal() or int(said) < 1:
        raise click.BadParameter(f"--batch-size takes a number from 1, or auto, not {said!r}")
    return int(said)


def _evaluate(engine: Any, plan: Any) -> None:
    from tracker.evaluating.evaluation import evaluate

    try:
        with progress_of_prompts(plan.benchmark) as progress:
            made = evaluate(engine, plan, progress=progress, told=_note, ended=_tell)
    except KeyboardInterrupt:
        inform("Stopped. What was answered is stored; run the same command again to go on.")
        raise
    if not all(one.is_complete for one in made):
        raise SystemExit(1)


def _note(words: str) -> None:
    inform(f"  note: {words}")


def _tell(run: Evaluated) -> None:
    click.echo(run.summary())
    for note in run.warnings:
        _note(note)
    if not run.is_complete:
        inform(
            f"  {len(run.failed):,} prompts have no answer, so the run is not finished, and nothing takes it yet. "
            "Run the same command again to ask them again, or add --errored missing (or wrong) to end it as it is."
        )


def _estimate(engine: Any, plan: Any) -> None:
    from tracker.evaluating.estimate import estimate

    for one in estimate(engine, plan, told=_note):
        click.echo(one.summary())


def _show(engine: Any, plan: Any) -> None:
    from tracker.evaluating.preparation import prepare

    prepared = prepare(engine, plan)
    for condition, asked in prepared.asked.items():
        one = asked.questions[0]
        click.echo(f"--- {condition.replace('_', '-')}, {prepared.method}, template {prepared.template.name}")
        for turn in one.messages() if plan.asking.chat else ():
            click.echo(f"--- {turn['role']}\n{turn['content']}")
        if not plan.asking.chat:
            click.echo(one.text())
        for place, option in enumerate(one.options):
            said = option if plan.asking.chat else one.join + option
            click.echo(f"--- option {place + 1}{' (gold)' if place == one.gold else ''}: {said!r}")
        if not one.options:
            click.echo(f"--- gold: {' | '.join(one.references)}")
