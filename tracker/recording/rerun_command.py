"""The command that runs a finding's analysis again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tracker.errors import NotFoundError, PluginError
from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.selection import MIN_COVERAGE, WHOLE
from tracker.queries.weights import CUSTOM
from tracker.recording.declaration import load_declaration
from tracker.recording.registry import find_analysis

VERDICT = "verdict"
"""Name of the finding that `suffrage verdict --record` records."""


def rerun_command(record: FindingRecord) -> str | None:
    """Return the command that repeats an analysis with the same selection and parameters.

    Returns:
        None if the finding is simulated.
    """
    if record.parameters.get(SIMULATED):
        return None
    benchmark = filter(None, [record.benchmark])
    if record.name == VERDICT:  # its parameters are the choices as the user made them: each analysis has its defaults
        choices = {name: value for name, value in record.parameters.items() if value is not None}
        data = {name: value for name, value in (record.selection or {}).items() if name not in record.parameters}
        return shlex.join(["suffrage", VERDICT, *benchmark, *selection_arguments({**data, **choices}), "--record"])
    if record.name == CUSTOM:  # no analysis: the weights are those of a file
        name, file = record.parameters["name"], record.parameters["file"]
        return shlex.join(["suffrage", "weights", *benchmark, file, "--name", name])
    selected = selection_arguments(record.selection or {}, min_coverage=_default_coverage(record.name))
    options = [*parameter_arguments(record.name, record.parameters), *selected]
    return shlex.join(["suffrage", "analyze", record.name, *benchmark, *options])


def parameter_arguments(analysis: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the options of an analysis whose values differ from the defaults; none if it is not installed."""
    try:
        defaults = _find_defaults(analysis)
    except (NotFoundError, PluginError):
        return []
    arguments: list[str] = []
    for name, default in defaults.items():
        value, flag = parameters.get(name), f"--{name.replace('_', '-')}"
        if name not in parameters or _plain(value) == _plain(default):
            continue
        if isinstance(value, bool):
            arguments.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            arguments += [flag, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]
    return arguments


def _find_defaults(analysis: str) -> Mapping[str, Any]:
    """Return the default of each parameter of an analysis, which is imported only if its source does not show them.

    Raises:
        NotFoundError: no analysis has this name.
        PluginError: it cannot be imported, or its signature is invalid.
    """
    plugin = find_analysis(analysis)
    if plugin.defaults is not None:
        return plugin.defaults
    return {parameter.name: parameter.default for parameter in load_declaration(analysis).parameters}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _default_coverage(analysis: str) -> float:
    """Return the default of ``--min-coverage``, from the source of the analysis, which is not imported."""
    try:
        return float(find_analysis(analysis).options.get("min_coverage", MIN_COVERAGE))
    except (NotFoundError, PluginError):
        return MIN_COVERAGE


def selection_arguments(selection: Mapping[str, Any], *, min_coverage: float = MIN_COVERAGE) -> list[str]:
    """Return the options of a command that make a selection, as `Selection.as_json` returns it.

    Args:
        selection: the recorded fields.
        min_coverage: default of the command.
    """
    arguments: list[str] = []
    defaults = {**WHOLE, "min_coverage": min_coverage}
    for name, value in selection.items():
        if name != "benchmark" and value != defaults.get(name):
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            text = text[:19] if name == "as_of" else text  # the option takes no time zone: it is UTC
            arguments += [f"--{name.replace('_', '-')}", text]
    return arguments


def rerun_advice(record: FindingRecord) -> str:
    """Return advice on a stale finding, as a sentence."""
    command = rerun_command(record)
    if command is None:
        simulation = record.parameters[SIMULATED]
        return f"It is simulated ({simulation}). To repeat it, see `suffrage simulate --help`."
    return f"Run it again: `{command}`."
