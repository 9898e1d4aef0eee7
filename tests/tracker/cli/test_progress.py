"""Progress bars: on terminals only, and for long work only."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from tracker.cli import progress
from tracker.cli.progress import show_activity


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_printed_where_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "DELAY", 0)
    before = threading.active_count()
    with show_activity("ranking"):
        assert threading.active_count() == before
    with progress.progress("copying") as advance:
        assert advance is None
    assert capsys.readouterr() == ("", "")


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 1000)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with show_activity("ranking"):
        pass
    assert terminal.getvalue() == ""


def test_long_work_shows_its_label_and_an_error_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    before = threading.active_count()

    def fail() -> None:
        while "ranking" not in terminal.getvalue():
            time.sleep(0.01)
        raise KeyError

    with pytest.raises(KeyError), show_activity("ranking"):
        fail()
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:  # rich does not wait for its thread
        time.sleep(0.01)
    assert threading.active_count() == before
