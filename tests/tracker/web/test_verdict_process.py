"""A verdict from a separate process is the verdict of this process."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from web_server import HOSTILE

from tracker.errors import SuffrageError
from tracker.queries.selection import Selection
from tracker.recording.verdict.benchmark_verdict import load_verdict
from tracker.web import verdict_process
from tracker.web.verdict_process import load_verdict_in_process


def test_the_verdict_and_its_steps_are_those_of_this_process(hostile_store: sa.Engine) -> None:
    steps, expected = [], []
    selection = Selection(benchmark=f"{HOSTILE[0]}@1")
    verdict = load_verdict_in_process(hostile_store, selection, steps.append)
    assert repr(verdict) == repr(load_verdict(hostile_store, selection, report=expected.append))
    assert steps == expected


class TestErrors:
    def test_errors_arrive_as_their_message(self, hostile_store: sa.Engine) -> None:
        with pytest.raises(SuffrageError, match="'absent'"):
            load_verdict_in_process(hostile_store, Selection(benchmark="absent"), print)

    def test_a_process_that_dies_is_an_error(self, hostile_store: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verdict_process, "START", "import os; os._exit(3)")
        with pytest.raises(RuntimeError, match="status 3"):
            load_verdict_in_process(hostile_store, Selection(benchmark="absent"), print)
