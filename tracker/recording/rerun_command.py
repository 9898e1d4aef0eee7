"""The command that runs a finding's analysis again."""

from __future__ import annotations

import shlex

from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.selection import WHOLE


def rerun_command(record: FindingRecord) -> str | None:
    """Return the command that repeats an analysis with the same selection; None if the finding is simulated."""
    if record.parameters.get(SIMULATED):
        return None
    arguments = ["suffrage", "analyze", record.name, *filter(None, [record.benchmark])]
    for name, value in (record.selection or {}).items():
        if name != "benchmark" and value != WHOLE.get(name):
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            text = text[:19] if name == "as_of" else text  # the option takes no time zone: it is UTC
            arguments += [f"--{name.replace('_', '-')}", text]
    return shlex.join(arguments)


def rerun_advice(record: FindingRecord) -> str:
    """Return advice on a stale finding, as a sentence."""
    command = rerun_command(record)
    if command is None:
        simulation = record.parameters[SIMULATED]
        return f"It is simulated ({simulation}). To repeat it, see `suffrage simulate --help`."
    return f"Run it again: `{command}`."
