"""See it all at work on a simulated benchmark whose truth is known."""

from __future__ import annotations

import math
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.errors import BadInputError, ConflictError, PluginError, PublishingError, SuffrageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.recording.pipeline import RecordedFinding
    from tracker.simulation.files import VectorsFile
    from tracker.simulation.item_response import Simulation

WIDTH = 100
NOTICE = "SIMULATED.txt"
MAX_TESTS = 6
QUERY = "SELECT model, condition, mean FROM leaderboard WHERE metric = 'accuracy'"


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("suffrage-demo"),
    show_default=True,
    help="Where everything is written; made if it is not there.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the simulation.")
@click.option("--database", metavar="URL", help="The store.  [default: suffrage.db in the folder]")
@click.option("--no-mlflow", is_flag=True, help="Record in the store only.")
def command(folder: Path, seed: int, database: str | None, no_mlflow: bool) -> None:
    """See it all at work on a simulated benchmark whose truth is known.

    Writes result files of invented models, takes them in, prints the leaderboard, runs every analysis of one
    benchmark and puts what was planted beside what was found. Store and MLflow's store lie in the folder; nothing else
    is touched. Over a minute, half of it once: what is compiled is kept.
    """
    from tracker.database import connect
    from tracker.simulation.item_response import simulate

    known = _claim(folder, seed)
    url = database or _sqlite_url(folder / "suffrage.db")
    tracking_uri = None if no_mlflow else _sqlite_url(folder / "mlflow.db")

    _print_text("Everything here is simulated: models, organizations and prompts are invented, the truth is known.")
    simulation = simulate(seed=seed)
    _describe(simulation)
    _write(simulation, folder, known=known)
    engine = connect(url)
    _ingest(engine, folder, tracking_uri)
    _print_leaderboard(engine, simulation)
    _compare(engine, simulation)
    for name in _analyses():
        _analyze(engine, name, tracking_uri)
    _print_next(engine, tracking_uri)


def _claim(folder: Path, seed: int) -> bool:
    """Make sure that the folder is ours to write; returns whether an earlier demonstration made it.

    Raises:
        ConflictError: it holds other things, or a demonstration with another seed.
        BadInputError: it cannot be written.
    """
    notice = f"Everything in this folder is simulated and was written by `suffrage demo --seed {seed}`.\n"
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / NOTICE).write_text(notice, encoding="utf-8")
            return False
        if not folder.is_dir():
            raise ConflictError(f"{folder} is a file. Give a new folder: suffrage demo --folder NAME")
        if not (folder / NOTICE).is_file():
            raise ConflictError(f"{folder} holds other things. Give a new folder: suffrage demo --folder NAME")
        if (folder / NOTICE).read_text(encoding="utf-8") != notice:
            raise ConflictError(
                f"{folder} holds a demonstration with another seed. Give a new folder: suffrage demo --folder NAME"
            )
    except OSError as error:
        raise BadInputError(folder, f"cannot be written ({error.strerror})", advice="Give another --folder.") from None
    return True


def _sqlite_url(path: Path) -> str:
    import sqlalchemy as sa

    return sa.URL.create("sqlite", database=str(path)).render_as_string()


def _describe(simulation: Simulation) -> None:
    n_prompts, n_models = simulation.full.right.shape
    _print_text(
        f"{n_models} models answered {n_prompts:,} multiple-choice prompts in {len(set(simulation.tasks))} tasks by "
        "an item-response model, once in full and once with the question withheld. A line after $ is the command "
        "that does the same, once the shell points here as the last lines show."
    )


def _write(simulation: Simulation, folder: Path, *, known: bool) -> None:
    from tracker.simulation.files import FILES, write_files

    _head(f"Result files in {folder}")
    write_files(simulation, folder)
    for file in FILES:
        click.echo(f"  {file.name:<20}{file.holds}")
    if known:
        _print_text("They were there already, from an earlier demonstration.")


def _ingest(engine: Engine, folder: Path, tracking_uri: str | None) -> None:
    from tracker.cli.commands.ingest import ingest_files
    from tracker.simulation.files import RESULT_FILES, VECTORS_FILE

    _head("Taking them in")
    run_ids: list[int] = []
    for file in RESULT_FILES:
        _prompt(file.command(folder))
        stored, failed = ingest_files(engine, [folder / file.name], file.options)
        if failed:
            sys.exit(1)
        run_ids += stored
    _ingest_vector_file(engine, folder, VECTORS_FILE)
    if run_ids and tracking_uri:
        from tracker.recording.mlflow.publishing import publish_runs

        try:
            published = publish_runs(engine, run_ids, tracking_uri)
        except PublishingError as error:
            _print_text(f"Not in MLflow: {error}")
        else:
            _print_text(f"{len(published.mlflow_runs)} runs are in MLflow too.")


def _ingest_vector_file(engine: Engine, folder: Path, file: VectorsFile) -> None:
    from tracker.cli.commands.embed import ingest_vector_file
    from tracker.evaluating.embeddings.texts import DEFAULT_TEMPLATE
    from tracker.ingest.write.vectors import EncoderName
    from tracker.simulation.files import BENCHMARK

    _prompt(file.command(folder))
    encoder = EncoderName(name=file.encoder, revision="", template=DEFAULT_TEMPLATE)
    ingest_vector_file(engine, BENCHMARK, folder / file.name, encoder)


def _print_leaderboard(engine: Engine, simulation: Simulation) -> None:
    from tracker.database import transaction
    from tracker.queries.ranking.leaderboard import load_leaderboard
    from tracker.simulation.truth_comparison import select_scores

    _head("The leaderboard, with the planted abilities beside it")
    _prompt(_command("leaderboard"))
    ability = dict(zip(simulation.models, simulation.truth.ability.tolist(), strict=True))
    with transaction(engine, write=False) as session:
        board = load_leaderboard(session, select_scores(), with_rank_intervals=False)
    longest = max(len(row.model) for row in board.rows)
    click.echo()
    click.echo(click.style(f"  rank  {'model':<{longest}}     n    mean  stderr  by task  planted ability", dim=True))
    for row in board.rows:
        rank, plain, by_task = (
            math.nan if number is None else number for number in (row.rank, row.stderr, row.stderr_clustered)
        )
        click.echo(
            f"  {rank:>4g}  {row.model:<{longest}}  {row.n:>4,}  {row.mean:.4f}  {plain:.4f}   {by_task:.4f}"
            f"            {ability[row.model]:+.2f}"
        )
    for warning in board.warnings:
        _print_text(warning)


def _compare(engine: Engine, simulation: Simulation) -> None:
    from tracker.database import transaction
    from tracker.simulation.truth_comparison import compare_with_truth

    _head("What was planted, and what the scores show of it")
    with transaction(engine, write=False) as session:
        lines = compare_with_truth(session, simulation)
    width = 30
    for line in lines:
        left, right = textwrap.wrap(line.planted, width), textwrap.wrap(line.measured, WIDTH - width - 5)
        for i in range(max(len(left), len(right))):
            beside = right[i] if i < len(right) else ""
            click.echo(f"  {left[i] if i < len(left) else '':<{width}}   {beside}".rstrip())


def _analyses() -> list[str]:
    """The questions that can be asked of a benchmark; those that look at a filter after those that may make one."""
    from tracker.recording.registry import discover_analyses

    places = {name: _place(name) for name, analysis in discover_analyses().items() if not analysis.problem}
    return sorted((name for name, place in places.items() if place is not None), key=lambda name: places[name] or 0)


def _place(name: str) -> int | None:
    """0, or 1 for a question that looks at a filter; None for one that is not of one benchmark."""
    from tracker.recording.declaration import load_declaration

    try:
        declaration = load_declaration(name)
    except PluginError:  # asking it will say why
        return 0
    return int("filter" in declaration.claimed_options) if declaration.is_of_one_benchmark else None


def _analyze(engine: Engine, name: str, tracking_uri: str | None) -> None:
    from tracker.recording.pipeline import run_analysis
    from tracker.recording.registry import find_analysis
    from tracker.simulation.truth_comparison import ANALYSIS_PARAMETERS, EXPECTED_FINDINGS, select_scores

    _head(find_analysis(name).description)
    if name in EXPECTED_FINDINGS:
        _print_text(EXPECTED_FINDINGS[name])
    for parameters in ANALYSIS_PARAMETERS.get(name, ({},)):
        click.echo()
        _prompt(_command("analyze", name, parameters=parameters))
        try:
            recorded = run_analysis(engine, name, select_scores(), parameters, publish_to=tracking_uri)
        except SuffrageError as error:
            _print_text(f"Not run: {error}")
            continue
        _print_found(recorded)


def _print_found(recorded: RecordedFinding) -> None:
    from tracker.simulation.truth_comparison import PRINTED_TESTS

    finding = recorded.report.finding
    _print_text(f"Found: {recorded.report.summary.headline}")
    tests = list(_tests(finding.metrics, PRINTED_TESTS.get(recorded.analysis, finding.main_metrics)))[:MAX_TESTS]
    for line in tests:
        click.echo(f"  {line}")
    _print_text(f"All of it: suffrage show {recorded.finding_id}")
    if recorded.publishing_problem:
        _print_text(f"Not in MLflow: {recorded.publishing_problem}")


def _tests(metrics: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """A line for each of these statistics that has a p-value."""
    for name in names:
        value, p = metrics.get(name), metrics.get(f"{name}.pvalue")
        expected = metrics.get(f"{name}.null_mean", metrics.get(f"{name}.permuted_mean"))
        if isinstance(value, float) and isinstance(p, float):
            chance = f"{expected:9.5f}" if isinstance(expected, float) else " " * 9
            yield f"{name:<20} observed {value:9.5f}   by chance {chance}   p = {p:.4f}"


def _command(*arguments: str, parameters: Mapping[str, Any] | None = None) -> str:
    from tracker.simulation.files import BENCHMARK, METRIC

    options: list[str] = []
    for key, value in (parameters or {}).items():
        options += [f"--{key.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, tuple) else f"{value}"]
    return shlex.join(["suffrage", *arguments, BENCHMARK, "--metric", METRIC, *options])


def _print_next(engine: Engine, tracking_uri: str | None) -> None:
    from tracker.database import format_url

    url = format_url(engine.url)
    _head("Next")
    _print_text("Point this shell to the demonstration's stores, then look around:")
    click.echo()
    click.echo(f"  export SUFFRAGE_DATABASE_URL={shlex.quote(url)}")
    if tracking_uri:
        click.echo(f"  export MLFLOW_TRACKING_URI={shlex.quote(tracking_uri)}")
        click.echo("  suffrage ui          # every run and finding, in the browser")
    click.echo("  suffrage findings    # what was found")
    click.echo(f'  suffrage sql "{QUERY}"')
    click.echo()
    _print_text("With your own results, in another shell: suffrage ingest PATH --benchmark NAME")


def _head(text: str) -> None:
    click.echo()
    click.echo(click.style(f"── {text} ".ljust(WIDTH, "─"), bold=True))


def _print_text(text: str) -> None:
    click.echo(textwrap.fill(text, WIDTH, break_on_hyphens=False))


def _prompt(command_line: str) -> None:
    """A command as it can be pasted, continued on the next line where it is long."""
    lines = textwrap.wrap(
        command_line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    click.echo("$ " + " \\\n".join(click.style(line, fg="cyan") for line in lines))
