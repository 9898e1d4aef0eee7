"""The command `suffrage simulate`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.commands.analyze import print_recorded
from tracker.cli.help_text import Group
from tracker.cli.options import (
    database_option,
    missing_options,
    mlflow_options,
    split_option,
    split_policy,
    split_values,
)
from tracker.cli.parameter_options import parameter_option
from tracker.cli.progress import progress
from tracker.cli.values.setting_option import SettingOption
from tracker.queries.selection import Policy

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.queries.performance import PerformanceMatrix
    from tracker.queries.task_matrix import TaskMatrix
    from tracker.recording.finding import Report
    from tracker.recording.record import Provenance

ANALYSIS = "social-choice"
OPTIONS = ("columns", "epsilon", "top", "win_rate", "method", "time_limit")
"""Parameters of the analysis that are options here; the others mean something else here, or nothing."""
TIME_LIMIT, TOP = 5.0, 10.0
"""Defaults that differ from the analysis's: several trials are searched; a field of thousands has ten that lead."""
SIZES = {"cardinal": (100, 100), "ordinal": (100, 1000)}
"""Tasks and models of the paper's baselines."""


def _analysis_options(**defaults: Any) -> Callable[[Any], Any]:
    """Add the options of the analysis, some with another default, and those of every simulation."""
    from tracker.recording.declaration import load_declaration

    declaration = load_declaration(ANALYSIS)
    simulation = (
        click.option(
            "--system",
            type=click.Choice(["both", *SIZES]),
            default="both",
            show_default=True,
            help="Sensitivity to compute: cardinal for mean scores, ordinal for win rates, or both.",
        ),
        click.option(
            "--trials",
            "n_trials",
            type=click.IntRange(min=1),
            default=5,
            show_default=True,
            help="Number of simulated benchmarks to average.",
        ),
        click.option(
            "--seed",
            cls=SettingOption,
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of all random draws.",
        ),
    )

    def decorate(function: Any) -> Any:
        decorated: Any = mlflow_options(database_option(function))
        for parameter in reversed(declaration.parameters):
            if parameter.name in OPTIONS:
                default = defaults.get(parameter.name, parameter.default)
                decorated = parameter_option(dataclasses.replace(parameter, default=default))(decorated)
        for option in reversed(simulation):
            decorated = option(decorated)
        return decorated

    return decorate


def _table_options(function: Any) -> Any:
    models = click.option(
        "--models",
        "n_models",
        type=click.IntRange(3, 100_000),
        show_default="100 for cardinal, 1000 for ordinal",
        help="Number of models.",
    )
    tasks = click.option(
        "--tasks",
        "n_tasks",
        type=click.IntRange(min=1),
        default=SIZES["cardinal"][0],
        show_default=True,
        help="Number of tasks.",
    )
    return tasks(models(_analysis_options(time_limit=TIME_LIMIT, top=TOP)(function)))


@click.group(cls=Group)
def command() -> None:
    """Simulate reference points for diversity and sensitivity.

    Draws scores in memory, analyses them with social-choice and records the average over trials as a finding.
    `suffrage tradeoff` plots these beside real benchmarks. The scores are not stored.

    Examples:
        suffrage simulate random --tasks 5 --models 20 --trials 2 --time-limit 1
        suffrage simulate split mmlu_pro --tasks 5 --trials 2 --time-limit 1
    """


@command.command()
@_table_options
def constant(**options: Any) -> None:
    """Simulate one task of random scores, repeated.

    All tasks agree, so diversity is 0.

    Examples:
        suffrage simulate constant --tasks 5 --models 20 --trials 2 --time-limit 1
    """
    from tracker.simulation.baselines import constant as draw

    _simulate_systems(
        "constant", "One task of random scores, repeated (tasks {n_tasks:,}, models {n_models:,})", draw, **options
    )


@command.command()
@_table_options
def random(**options: Any) -> None:
    """Simulate independent random scores.

    No task is informative about another, so diversity is large.

    Examples:
        suffrage simulate random --tasks 5 --models 20 --trials 2 --time-limit 1
    """
    from tracker.simulation.baselines import random as draw

    _simulate_systems("random", "Independent random scores (tasks {n_tasks:,}, models {n_models:,})", draw, **options)


def _simulate_systems(
    kind: str,
    description: str,
    draw: Callable[..., TaskMatrix],
    *,
    system: str,
    n_tasks: int,
    n_models: int | None,
    seed: int,
    database: str | None,
    **options: Any,
) -> None:
    """Simulate for each system separately: they differ in size, and so in diversity."""
    from functools import partial

    from tracker.database import connect

    engine, mlflow = connect(database), {name: options.pop(name) for name in ("tracking_uri", "no_mlflow")}
    results = []
    # The ordinal system has one option more: it comes first, so that nothing is recorded if that is rejected.
    for name in reversed(SIZES) if system == "both" else (system,):
        sizes = {"n_tasks": n_tasks, "n_models": n_models or SIZES[name][1]}
        draw_sized = partial(draw, seed=seed, **sizes)
        fields = {"simulated": kind, "description": description.format(**sizes)}
        parameters = {option: value for option, value in options.items() if name == "ordinal" or option != "top"}
        results.append(_simulate(draw_sized, fields, system=name, seed=seed, **parameters))
    for provenance, report in reversed(results):
        _record(engine, provenance, report, **mlflow)


@command.command()
@click.argument("benchmark")
@click.option("--tasks", "n_tasks", type=click.IntRange(min=2), default=20, show_default=True, help="Number of tasks.")
@click.option(
    "--metric",
    cls=SettingOption,
    metavar="NAME",
    help="Name of the metric. By default that of the benchmark, as `suffrage metrics` shows it.",
)
@click.option(
    "--models",
    "models",
    metavar="A,B",
    multiple=True,
    show_default="all",
    help="Names of models to include, separated by commas. Repeatable.",
)
@split_option
@missing_options("common")
@_analysis_options(time_limit=TIME_LIMIT)
def split(
    benchmark: str,
    n_tasks: int,
    metric: str | None,
    models: tuple[str, ...],
    missing: Policy | None,
    min_coverage: float,
    seed: int,
    database: str | None,
    **options: Any,
) -> None:
    """Split the prompts of a benchmark at random into equal tasks.

    All tasks then measure the same, so they disagree by chance alone.

    Examples:
        suffrage simulate split mmlu_pro --tasks 5 --trials 2 --time-limit 1
    """
    from functools import partial

    import sqlalchemy as sa

    from tracker.database import connect, transaction
    from tracker.queries.ranking.policy_choice import choose_policy
    from tracker.queries.resolution import find_benchmark
    from tracker.queries.selection import Selection
    from tracker.queries.sql import tables
    from tracker.simulation.completed_splits import load_tables, simulate_tables

    engine, run = connect(database, create=False), tables.run.c
    chosen, preferred = split_policy(missing)
    selection = Selection(
        benchmark=benchmark,
        metric=metric,
        models=split_values(models),
        split=split_values(options.pop("split")),
        missing=chosen,
        preferred=preferred,
        min_coverage=min_coverage,
    )
    with transaction(engine, write=False) as session:
        selection = choose_policy(session, selection, default="common", subject="simulate split")
        tables_of_scores, key = load_tables(session, selection), find_benchmark(session, benchmark)
        scores = tables_of_scores[""]
        checksums = session.execute(sa.select(run.id, run.checksum).where(run.id.in_(scores.run_ids.tolist()))).all()
    fields = {
        "simulated": f"split into {n_tasks} tasks",
        "description": f"{scores.n_prompts:,} prompts of {key.label} dealt at random into {n_tasks:,} tasks",
        "selection": selection,
        "benchmark_id": key.id,
        "runs": {("scores", run_id): checksum for run_id, checksum in checksums},
    }
    mlflow = {name: options.pop(name) for name in ("tracking_uri", "no_mlflow")}
    simulate = partial(_simulate_split, fields=fields, n_tasks=n_tasks, seed=seed, options=options)
    provenance, report = simulate_tables(tables_of_scores, simulate)
    _record(engine, provenance, report, **mlflow)


def _simulate_split(
    table: PerformanceMatrix,
    label: str,
    *,
    fields: Mapping[str, Any],
    n_tasks: int,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[Provenance, Report]:
    """Split one table of scores; the label describes its missing scores, '' without completion."""
    from functools import partial

    from tracker.simulation.baselines import split as split_prompts

    described = {**fields, "description": f"{fields['description']}{label and f', missing scores {label}'}"}
    return _simulate(partial(split_prompts, table, n_tasks, seed=seed), described, seed=seed, **options)


def _simulate(
    draw: Callable[..., TaskMatrix], fields: Mapping[str, Any], *, n_trials: int, **options: Any
) -> tuple[Provenance, Report]:
    from tracker.recording.declaration import load_declaration
    from tracker.simulation.replications import analyze_trials

    declaration = load_declaration(ANALYSIS)
    with progress(fields["description"]) as advance:

        def begin(trial: int) -> None:
            if advance is not None:
                advance(trial, n_trials)

        return analyze_trials(declaration, draw, n_trials=n_trials, options=options, progress=begin, **fields)


def _record(engine: Engine, provenance: Provenance, report: Report, *, tracking_uri: str, no_mlflow: bool) -> None:
    from tracker.recording.pipeline import record_report

    print_recorded(record_report(engine, provenance, report, publish_to=None if no_mlflow else tracking_uri), "table")
