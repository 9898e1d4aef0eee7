"""The command that asks for a finding again."""

from __future__ import annotations

import shlex

from tracker.queries.findings.finding_records import FindingRecord
from tracker.queries.findings.latest_findings import SIMULATED
from tracker.queries.selection import WHOLE


def command_of(found: FindingRecord) -> str | None:
    """The command that asks the same of the same choice of data; None where it was simulated."""
    if found.parameters.get(SIMULATED):
        return None
    asked = ["suffrage", "analyze", found.name, *filter(None, [found.benchmark])]
    for name, value in (found.selection or {}).items():
        if name != "benchmark" and value != WHOLE.get(name):
            listed = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            listed = listed[:19] if name == "as_of" else listed  # the option takes no time zone: it is UTC
            asked += [f"--{name.replace('_', '-')}", listed]
    return shlex.join(asked)


def ask_again(found: FindingRecord) -> str:
    """What to do about a stale finding, as a sentence."""
    command = command_of(found)
    if command is None:
        told = found.parameters[SIMULATED]
        return f"It is simulated ({told}): `suffrage simulate --help` says how to do it again."
    return f"Ask again with `{command}`."
