"""`make audit` reports what was checked, and never calls unchecked packages safe."""

from __future__ import annotations

import json

import pytest
from audit import CLEAN, NOT_AVAILABLE, VULNERABLE, summarize

SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found on PyPI and could not be audited: numpy (2.4.0)"}
SAFE = {"name": "click", "version": "8.3.1", "vulns": []}
UNSAFE = {"name": "jinja2", "version": "2.0", "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"]}]}


@pytest.mark.parametrize(
    ("packages", "text", "code"),
    [
        ([SAFE, SAFE, SKIPPED], "No known vulnerabilities; 2 of 3 packages checked.", CLEAN),
        (
            [SAFE, UNSAFE],
            "1 known vulnerabilities; 2 of 2 packages checked.\njinja2 2.0: PYSEC-2019-217; fixed in 2.10.1",
            VULNERABLE,
        ),
        ([SKIPPED], "Not available: the index has no advisories for any of 1 packages.", NOT_AVAILABLE),
        ([], "Not available: the index has no advisories for any of 0 packages.", NOT_AVAILABLE),
    ],
)
def test_only_checked_packages_count(packages: list[dict[str, object]], text: str, code: int) -> None:
    assert summarize(json.dumps({"dependencies": packages, "fixes": []}), "") == (text, code)


def test_an_index_that_cannot_be_reached_is_named() -> None:
    text, code = summarize("", "Traceback\nrequests.exceptions.ConnectionError: no host\n\n")
    assert text == "Not available: nothing was checked (requests.exceptions.ConnectionError: no host)."
    assert code == NOT_AVAILABLE
