"""Every command and analysis that reads scores has a policy for missing ones, and records it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tracker.cli import suffrage
from tracker.queries.selection import POLICIES
from tracker.recording.declaration import load_declaration
from tracker.recording.registry import discover_analyses

SETTINGS_COMMANDS = ("config", "init")
"""Commands whose option `--missing` is the setting that other commands take as their default."""

WITHOUT_POLICY = {
    "demo": "its simulated scores are complete, and the commands that it runs have the option",
    "ui": "it shows recorded findings, and leaderboards under the default policy",
    "runs list": "the mean of a run is over its own prompts, as stored",
    "runs show": "the mean of a run is over its own prompts, as stored",
    "show": "it shows a recorded finding, with the policy in its selection",
    "sql": "it shows scores as stored",
    "tradeoff": "it reads recorded findings",
    "simulate random": "it draws its scores",
    "simulate constant": "it draws its scores",
    "export archive": "it copies the store",
    "publish": "it shows the means of runs, as stored",
}
"""Commands that show scores and have no option, each with the reason."""
READ_FINDINGS = {"tradeoff": "it reads recorded findings"}


PAGE = Path(__file__).parents[3] / "docs/reference/statistics/missing-scores.md"


def read_completed() -> dict[str, set[str]]:
    """Policies that the documentation says an analysis takes by completions of the table."""
    table = PAGE.read_text().partition("### Completions")[2].partition("## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|") and "](" in line]
    completed: dict[str, set[str]] = {}
    for names, bounds, imputed, _ in rows:
        policies = {name for name, cell in (("bounds", bounds), ("impute", imputed)) if "completion" in cell}
        for name in re.findall(r"\[([a-z-]+)\]", names):
            completed[name] = policies
    return completed


def test_every_command_takes_every_policy() -> None:
    for name, command in list_commands(suffrage):
        option = next((option for option in command.params if option.name == "missing"), None)
        if option is not None and isinstance(option.type, click.Choice):
            assert set(option.type.choices) == set(POLICIES), name


def test_the_documentation_lists_the_analyses_of_completions() -> None:
    completed = {
        name: set(POLICIES) - set(load_declaration(name).policies)
        for name in set(discover_analyses()) - set(READ_FINDINGS)
    }
    assert {name: policies for name, policies in completed.items() if policies} == read_completed()


def list_commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from list_commands(child, (*path, name))


def test_every_command_that_selects_scores_has_the_options() -> None:
    options = {name: {option.name for option in command.params} for name, command in list_commands(suffrage)}
    reading = {name for name, names in options.items() if {"metric", "models"} <= names}
    assert {"leaderboard", "compare", "history", "plan", "verdict", "report", "export scores"} <= reading
    for name in reading - set(WITHOUT_POLICY):
        assert {"missing", "min_coverage"} <= options[name], name
    for name in WITHOUT_POLICY:
        assert "missing" not in options[name], name
    for name in SETTINGS_COMMANDS:
        assert "missing" in options[name], name


def test_every_analysis_of_scores_has_a_policy() -> None:
    for name in discover_analyses():
        declaration = load_declaration(name)
        if name in READ_FINDINGS:
            assert not declaration.score_units
            continue
        assert declaration.score_units, f"{name} reads scores, but no input names SCORE_UNITS"
        assert declaration.missing in declaration.policies, name
        assert set(declaration.accepted_policies) == set(POLICIES), name
