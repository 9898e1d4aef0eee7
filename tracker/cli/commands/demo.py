"""Demonstrate the analyses on a simulated benchmark whose truth is known."""

from __future__ import annotations

import math
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracker.cli.help_text import Command
from tracker.cli.progress import show_activity
from tracker.cli.values.setting_option import SettingOption
from tracker.cli.values.terminal_text import echo
from tracker.errors import BadInputError, ConflictError, PluginError, PublishingError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tracker.simulation.demo_analyses import DemoFinding
    from tracker.simulation.files import VectorsFile
    from tracker.simulation.item_response import Simulation

WIDTH = 100
NOTICE = "SIMULATED.txt"
QUERY = "SELECT model, condition, mean FROM leaderboard WHERE metric = 'accuracy'"


@click.command(cls=Command)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("suffrage-demo"),
    show_default=True,
    help="Folder for all files; created if missing.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulation.")
@click.option("--database", metavar="URL", help="URL of the store; default: suffrage.db in the folder.")
@click.option("--no-mlflow/--mlflow", cls=SettingOption, default=False, show_default=False,
              help="Record findings in the store only, or also in MLflow (default).")  # fmt: skip
def command(folder: Path, seed: int, database: str | None, no_mlflow: bool) -> None:
    """Run every analysis on a simulated benchmark whose truth is known.

    Writes result files of invented models, ingests them, prints the verdict and the leaderboard, runs every analysis of
    one benchmark and compares the findings with the planted effects. All files, the store and MLflow's store are
    written to the folder. The first run takes about a minute; later runs reuse the compiled code.

    Examples:
        suffrage demo
        suffrage demo --folder another-demo --seed 1 --no-mlflow
    """
    from tracker.database import connect
    from tracker.simulation.demo_analyses import compute_findings, start_processes
    from tracker.simulation.item_response import simulate

    known = _claim(folder, seed)
    url = database or _sqlite_url(folder / "suffrage.db")
    tracking_uri = None if no_mlflow else _sqlite_url(folder / "mlflow.db")

    _print_text("All data are simulated: models, organizations and prompts are invented, and the truth is known.")
    pool = start_processes()
    with show_activity("simulating"):
        simulation = simulate(seed=seed)
    _describe(simulation)
    _write(simulation, folder, known=known)
    engine = connect(url)
    _ingest(engine, folder)
    findings = compute_findings(pool, url, *_analyses())
    _print_verdict(engine)
    _print_leaderboard(engine, simulation)
    _compare(engine, simulation)
    _head("Analyses: the finding to expect, the headline and its first evidence")
    while (results := _next_findings(findings)) is not None:
        _record(engine, results)
    if tracking_uri:
        _publish(engine, tracking_uri)
    _print_next(engine, tracking_uri)


def _claim(folder: Path, seed: int) -> bool:
    """Reserve the folder for this demo; returns whether an earlier demo created it.

    Raises:
        ConflictError: it has other files, or a demo with another seed.
        BadInputError: it cannot be written.
    """
    notice = f"All files in this folder are simulated. Written by `suffrage demo --seed {seed}`.\n"
    advice = "Choose a new folder: suffrage demo --folder NAME"
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / NOTICE).write_text(notice, encoding="utf-8")
            return False
        if not folder.is_dir():
            raise ConflictError(f"{folder} is a file. {advice}")
        if not (folder / NOTICE).is_file():
            raise ConflictError(f"{folder} contains other files. {advice}")
        if (folder / NOTICE).read_text(encoding="utf-8") != notice:
            raise ConflictError(f"{folder} contains a demo with another seed. {advice}")
    except OSError as error:
        raise BadInputError(
            folder, f"cannot be written ({error.strerror})", advice="Choose another --folder."
        ) from None
    return True


def _sqlite_url(path: Path) -> str:
    import sqlalchemy as sa

    return sa.URL.create("sqlite", database=str(path)).render_as_string()


def _describe(simulation: Simulation) -> None:
    n_prompts, n_models = simulation.full.right.shape
    _print_text(
        f"{n_models} models answer {n_prompts:,} multiple-choice prompts in {len(set(simulation.tasks))} tasks, "
        "once in full and once without the question. Lines after $ are the commands for the same steps."
    )


def _write(simulation: Simulation, folder: Path, *, known: bool) -> None:
    from tracker.simulation.files import write_files

    _head(f"Result files, written to {folder} and ingested")
    write_files(simulation, folder)
    if known:
        _print_text("The files exist from an earlier demo.")


def _ingest(engine: Engine, folder: Path) -> None:
    from tracker.cli.commands.ingest import ingest_files
    from tracker.simulation.files import RESULT_FILES, VECTORS_FILE

    for file in RESULT_FILES:
        _prompt(file.command(folder))
        _, failed = ingest_files(engine, [folder / file.name], file.options)
        if failed:
            sys.exit(1)
    _ingest_vector_file(engine, folder, VECTORS_FILE)


def _ingest_vector_file(engine: Engine, folder: Path, file: VectorsFile) -> None:
    from tracker.cli.commands.embed import ingest_vector_file
    from tracker.evaluating.embeddings.texts import DEFAULT_TEMPLATE
    from tracker.ingest.write.vectors import EncoderName
    from tracker.simulation.files import BENCHMARK

    _prompt(file.command(folder))
    encoder = EncoderName(name=file.encoder, revision="", template=DEFAULT_TEMPLATE)
    ingest_vector_file(engine, BENCHMARK, folder / file.name, encoder)


def _print_verdict(engine: Engine) -> None:
    from tracker.cli.commands.verdict import print_verdict
    from tracker.recording.verdict.benchmark_verdict import load_verdict
    from tracker.simulation.truth_comparison import select_scores

    _head("Verdict: who is first, and what could change that")
    _prompt(_command("verdict"))
    with show_activity("verdict"):
        verdict = load_verdict(engine, select_scores())
    print_verdict(verdict)


def _print_leaderboard(engine: Engine, simulation: Simulation) -> None:
    from tracker.database import transaction
    from tracker.queries.ranking.leaderboard import load_leaderboard
    from tracker.simulation.truth_comparison import select_scores

    _head("Leaderboard and planted abilities")
    _prompt(_command("leaderboard"))
    ability = dict(zip(simulation.models, simulation.truth.ability.tolist(), strict=True))
    with show_activity("leaderboard"), transaction(engine, write=False) as session:
        board = load_leaderboard(session, select_scores(), with_rank_intervals=False)
    longest = max(len(row.model) for row in board.rows)
    echo()
    click.echo(click.style(f"  rank  {'model':<{longest}}     n    mean  stderr  planted ability", dim=True))
    for row in board.rows:
        rank, error = (
            math.nan if number is None else number for number in (row.rank, row.stderr_stratified or row.stderr)
        )
        echo(
            f"  {rank:>4g}  {row.model:<{longest}}  {row.n:>4,}  {row.mean:.4f}  {error:.4f}            "
            f"{ability[row.model]:+.2f}"
        )
    for warning in board.warnings:
        _print_text(warning)


def _compare(engine: Engine, simulation: Simulation) -> None:
    from tracker.database import transaction
    from tracker.simulation.truth_comparison import compare_with_truth

    _head("Planted effects in the scores")
    with show_activity("comparing with the planted effects"), transaction(engine, write=False) as session:
        lines = compare_with_truth(session, simulation)
    width = 30
    for line in lines:
        left, right = textwrap.wrap(line.planted, width), textwrap.wrap(line.measured, WIDTH - width - 5)
        for i in range(max(len(left), len(right))):
            beside = right[i] if i < len(right) else ""
            echo(f"  {left[i] if i < len(left) else '':<{width}}   {beside}".rstrip())


def _analyses() -> tuple[list[str], list[str]]:
    """Return the names of the analyses of one benchmark, the one that makes a filter first; and those of a filter."""
    from tracker.recording.registry import discover_analyses
    from tracker.simulation.demo_analyses import FILTER_ANALYSIS

    independent: list[str] = []
    dependent: list[str] = []
    for name, analysis in discover_analyses().items():
        if not analysis.problem:
            _place(name, independent, dependent)
    return sorted(independent, key=lambda name: (name != FILTER_ANALYSIS, name)), sorted(dependent)


def _place(name: str, independent: list[str], dependent: list[str]) -> None:
    from tracker.recording.declaration import load_declaration

    try:
        declaration = load_declaration(name)
    except PluginError:  # running it reports the problem
        independent.append(name)
        return
    if declaration.is_of_one_benchmark:
        (dependent if "filter" in declaration.claimed_options else independent).append(name)


def _next_findings(waiting: Iterator[Sequence[DemoFinding]]) -> Sequence[DemoFinding] | None:
    """Wait for the findings of the next analysis; None at the end."""
    with show_activity("analyzing"):
        return next(waiting, None)


def _record(engine: Engine, findings: Sequence[DemoFinding]) -> None:
    from tracker.cli.output import print_summary
    from tracker.queries.findings.summary import Summary
    from tracker.recording.pipeline import record_computed
    from tracker.simulation.demo_analyses import EXPECTED_FINDINGS

    for position, finding in enumerate(findings):
        echo()
        _prompt(_command("analyze", finding.analysis, parameters=finding.parameters))
        if position == 0 and finding.analysis in EXPECTED_FINDINGS:
            _print_text(f"Expected: {EXPECTED_FINDINGS[finding.analysis]}")
        if isinstance(finding.result, str):
            _print_text(f"Not run: {finding.result}")
            continue
        with show_activity(f"recording {finding.analysis}"):
            summary = record_computed(engine, finding.result).report.summary
        print_summary(Summary(summary.headline, summary.evidence[: 1 if position == 0 else 0]))


def _publish(engine: Engine, tracking_uri: str) -> None:
    from tracker.recording.mlflow.publishing import publish_missing

    try:
        with show_activity("publishing to MLflow"):
            published = publish_missing(engine, tracking_uri)
    except PublishingError as error:
        _print_text(f"Not in MLflow: {error}")
    else:
        echo()
        _print_text(f"Published to MLflow: {published.n_new} new runs and findings.")


def _command(*arguments: str, parameters: Mapping[str, Any] | None = None) -> str:
    from tracker.simulation.files import BENCHMARK, METRIC

    options: list[str] = []
    for key, value in (parameters or {}).items():
        options += [f"--{key.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, tuple) else f"{value}"]
    return shlex.join(["suffrage", *arguments, BENCHMARK, "--metric", METRIC, *options])


def _print_next(engine: Engine, tracking_uri: str | None) -> None:
    from tracker.connections.store_url import format_url

    url = format_url(engine.url)
    _head("Next")
    _print_text("Use the stores of the demo in this shell:")
    echo()
    echo(f"  export SUFFRAGE_DATABASE_URL={shlex.quote(url)}")
    if tracking_uri:
        echo(f"  export MLFLOW_TRACKING_URI={shlex.quote(tracking_uri)}")
        echo("  suffrage ui          # all runs and findings in the browser")
    echo("  suffrage findings    # all recorded findings")
    echo("  suffrage show 1      # all evidence, caveats, tables and figures of a finding")
    echo(f'  suffrage sql "{QUERY}"')
    echo()
    _print_text("With your own results, in another shell: suffrage ingest PATH --benchmark NAME")


def _head(text: str) -> None:
    echo()
    click.echo(click.style(f"── {text} ".ljust(WIDTH, "─"), bold=True))


def _print_text(text: str) -> None:
    echo(textwrap.fill(text, WIDTH, break_on_hyphens=False))


def _prompt(command_line: str) -> None:
    """A command as it can be pasted, continued on the next line where it is long."""
    lines = textwrap.wrap(
        command_line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    click.echo("$ " + " \\\n".join(click.style(line, fg="cyan") for line in lines))
