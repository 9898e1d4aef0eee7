"""Compare the installed packages with the advisories of an index: `make audit`.

pip-audit reports "no known vulnerabilities" also where it could check no package at all; this program does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

CLEAN, VULNERABLE, NOT_AVAILABLE = 0, 1, 2
"""Exit codes."""


def summarize(report: str, log: str) -> tuple[str, int]:
    """Return what an audit found, and the exit code.

    Args:
        report: stdout of pip-audit, in JSON; empty after an error.
        log: its stderr.
    """
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        reason = next((line for line in reversed(log.splitlines()) if line.strip()), "no output")
        return f"Not available: nothing was checked ({reason.strip()}).", NOT_AVAILABLE
    checked = [package for package in packages if "vulns" in package]
    if not checked:
        return f"Not available: the index has no advisories for any of {len(packages)} packages.", NOT_AVAILABLE
    count = f"{len(checked)} of {len(packages)} packages checked"
    lines = [
        f"{package['name']} {package['version']}: {flaw['id']}; fixed in {', '.join(flaw['fix_versions']) or 'none'}"
        for package in checked
        for flaw in package["vulns"]
    ]
    if lines:
        return "\n".join([f"{len(lines)} known vulnerabilities; {count}.", *lines]), VULNERABLE
    return f"No known vulnerabilities; {count}.", CLEAN


def main() -> int:
    """Run pip-audit on this environment, print its result, return the exit code."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format", "json", "--progress-spinner", "off"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    text, code = summarize(ended.stdout, ended.stderr)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
