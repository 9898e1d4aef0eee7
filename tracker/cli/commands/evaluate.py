"""The command `suffrage evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracker.cli.evaluation_options import (
    generation_options,
    join_budget,
    loading_options,
    prompt_options,
    server_options,
)
from tracker.cli.help_text import Command
from tracker.cli.options import database_option, split_values
from tracker.cli.output import inform, warn
from tracker.cli.progress import show_prompt_progress
from tracker.cli.values.terminal_text import echo
from tracker.evaluating.option_values import ERRORED_VALUES

if TYPE_CHECKING:
    from tracker.evaluating.evaluation_result import EvaluationOutcome

LISTS = ("tasks", "metrics", "ignore")
"""Options that take several values, by repeating them or with commas between."""


class EvaluateCommand(Command):
    """A command whose option ``--budget`` may have a second word, the currency."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        return super().parse_args(ctx, join_budget(args))


@click.command(cls=EvaluateCommand)
@click.argument("benchmark")
@click.option(
    "--model",
    required=True,
    metavar="NAME_OR_FOLDER",
    help="Folder of the model, its name on the model hub, or its name on the server.",
)
@click.option(
    "--name", metavar="NAME", help="Name of the model in the store.", show_default="the name of its folder, or MODEL"
)
@prompt_options
@generation_options
@loading_options
@server_options
@click.option(
    "--errored",
    type=click.Choice(ERRORED_VALUES),
    help=(
        "Complete the run even if prompts have no answer, and score those as missing or wrong. By "
        "default the run stays unfinished."
    ),
)
@click.option("--again", is_flag=True, help="Make a new run even if the same evaluation is stored.")
@click.option("--dry-run", is_flag=True, help="Estimate tokens, time and cost, and store nothing.")
@click.option(
    "--show-prompt",
    is_flag=True,
    help="Print the first prompt as the model receives it, and exit.",
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
    **options: Any,
) -> None:
    """Evaluate a model on the prompts of a benchmark.

    Runs the model, scores its answers and stores them as a run. The model is a local folder, a name on the model hub,
    or a model of a server with an OpenAI-compatible API. Answers are stored as they arrive: run an interrupted command
    again to resume. Local models need the extra `models`.

    Examples:
        suffrage evaluate mmlu_pro --model ./llama --dry-run
        suffrage evaluate mmlu_pro --model ./llama --condition full,answer-only --few-shot 5 --few-shot-split dev
        suffrage evaluate gsm8k --model gpt-4o --api-base https://host/v1 --api chat --preset gsm8k
    """
    from tracker.database import connect
    from tracker.evaluating.plan import Plan

    for name in LISTS:
        options[name] = split_values(options[name])
    options["metrics"] = options["metrics"] or ("exact_match",)
    names = (part.strip().replace("-", "_") for part in conditions.split(",") if part.strip())
    options["conditions"] = tuple(dict.fromkeys(names))
    options["batch_size"] = _parse_batch_size(batch_size)
    plan = Plan.from_options(benchmark, model, **options)
    engine = connect(database, create=False)
    if show_prompt:
        _print_first_prompts(engine, plan)
    elif dry_run:
        _print_estimates(engine, plan)
    else:
        _evaluate(engine, plan)


def _parse_batch_size(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"--batch-size takes a number from 1, or auto, not {text!r}")
    return int(text)


def _evaluate(engine: Any, plan: Any) -> None:
    from tracker.evaluating.evaluation import evaluate

    try:
        with show_prompt_progress(plan.benchmark) as progress:
            results = evaluate(engine, plan, progress=progress, report=_print_warning, on_run_end=_print_result)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "Stopped; the answers so far are stored. Run the same command again to continue."
        ) from None
    if not all(result.is_complete for result in results):
        raise SystemExit(1)


def _print_warning(text: str) -> None:
    warn(text)


def _print_result(result: EvaluationOutcome) -> None:
    echo(result.summary())
    for warning in result.warnings:
        _print_warning(warning)
    if not result.is_complete:
        inform(
            f"  The run is unfinished and not used: {len(result.failed):,} prompts have no answer. "
            "Run the command again to retry them, or add --errored missing (or wrong) to complete the run."
        )


def _print_estimates(engine: Any, plan: Any) -> None:
    from tracker.evaluating.estimate import estimate

    for condition_estimate in estimate(engine, plan, report=_print_warning):
        echo(condition_estimate.summary())


def _print_first_prompts(engine: Any, plan: Any) -> None:
    from tracker.evaluating.preparation import prepare

    prepared = prepare(engine, plan)
    for condition, rendered in prepared.rendered.items():
        prompt = rendered.prompts[0]
        echo(f"--- {condition.replace('_', '-')}, {prepared.method}, template {prepared.template.name}")
        for turn in prompt.messages() if plan.is_chat else ():
            echo(f"--- {turn['role']}\n{turn['content']}")
        if not plan.is_chat:
            echo(prompt.text())
        for place, option in enumerate(prompt.options):
            text = option if plan.is_chat else prompt.join + option
            if prompt.contexts:
                echo(f"--- text {place + 1}: {prompt.contexts[place]!r}")
            echo(f"--- option {place + 1}{' (gold)' if place == prompt.correct_option else ''}: {text!r}")
        if not prompt.options:
            echo(f"--- gold: {' | '.join(prompt.references)}")
