"""The command that runs a finding's analysis again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tracker.errors import NotFoundError, PluginError
from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.selection import WHOLE
from tracker.recording.declaration import load_declaration


def rerun_command(record: FindingRecord) -> str | None:
    """Return the command that repeats an analysis with the same selection and parameters.

    Returns:
        None if the finding is simulated.
    """
    if record.parameters.get(SIMULATED):
        return None
    benchmark = filter(None, [record.benchmark])
    options = [*parameter_arguments(record.name, record.parameters), *selection_arguments(record.selection or {})]
    return shlex.join(["suffrage", "analyze", record.name, *benchmark, *options])


def parameter_arguments(analysis: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the options of an analysis whose values differ from the defaults; none if it is not installed."""
    try:
        declared = load_declaration(analysis).parameters
    except (NotFoundError, PluginError):
        return []
    arguments: list[str] = []
    for parameter in declared:
        value, flag = parameters.get(parameter.name), f"--{parameter.name.replace('_', '-')}"
        if parameter.name not in parameters or _plain(value) == _plain(parameter.default):
            continue
        if isinstance(value, bool):
            arguments.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            arguments += [flag, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]
    return arguments


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def selection_arguments(selection: Mapping[str, Any]) -> list[str]:
    """Return the options of a command that make a selection, as `Selection.as_json` returns it."""
    arguments: list[str] = []
    for name, value in selection.items():
        if name != "benchmark" and value != WHOLE.get(name):
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
