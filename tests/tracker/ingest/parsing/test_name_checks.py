"""Names and texts that are too long to store."""

from __future__ import annotations

from pathlib import Path

import pytest
from measurement_blocks import prompts, scores

from tracker.errors import BadInputError
from tracker.ingest.measurement import Measurement, Prompts
from tracker.ingest.parsing.name_checks import LengthChecks
from tracker.settings.input_limits import InputLimits

Q = ("t", "q")
LONG, SHORT = prompts([Q], text=["eleven char"]), prompts([Q], text=["ten chars."])


@pytest.mark.parametrize("block", [LONG, scores({Q: 1}, of=LONG)])
def test_a_text_is_too_long_alone_and_with_scores(block: Measurement) -> None:
    with pytest.raises(BadInputError, match="the text of the prompt 'eleven char'… has 11 characters"):
        LengthChecks(Path("a.csv"), InputLimits(value=10)).check(block)


def test_prompts_of_several_blocks_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check_part = LengthChecks._check_part
    monkeypatch.setattr(LengthChecks, "_check_part", lambda self, part: (checked.append(part), check_part(self, part)))
    checks = LengthChecks(Path("a.csv"), InputLimits(value=10))
    for model in "abc":
        checks.check(scores({Q: 1}, model, of=SHORT))
    assert [type(part) for part in checked].count(Prompts) == 1
    assert len(checked) == 4
    with pytest.raises(BadInputError, match="eleven"):
        checks.check(scores({Q: 1}, of=LONG))
