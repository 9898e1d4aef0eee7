"""Compute a verdict in a separate process, whose memory is returned when it ends.

A verdict runs several analyses. Their compiled code and libraries take more memory than all pages of the server.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from tracker.database import create_reading_engine, create_unchecked_engine
from tracker.errors import SuffrageError
from tracker.queries.selection import Selection
from tracker.recording.sealing.loading import with_sealed_rows
from tracker.recording.verdict.benchmark_verdict import Verdict, load_verdict

STEP, PROBLEM, VERDICT = "step", "problem", "verdict"
START = f"from {__name__} import answer_parent; answer_parent()"


def load_verdict_in_process(engine: sa.Engine, selection: Selection, report: Callable[[str], None]) -> Verdict:
    """Return `load_verdict` without the scores of its leaderboard, computed by a separate process.

    Args:
        engine: the store.
        selection: the selection.
        report: called with what is being computed.

    Raises:
        SuffrageError: as for `load_verdict`.
        RuntimeError: the process ended without a verdict; the terminal has its error.
    """
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    command, environment = [sys.executable, "-P", "-c", START], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps((url, selection)))
            process.stdin.close()
            while True:
                kind, value = pickle.load(process.stdout)
                if kind == VERDICT:
                    return value  # type: ignore[no-any-return]
                if kind == PROBLEM:
                    raise SuffrageError(value)
                report(value)
        except (EOFError, BrokenPipeError) as error:
            raise RuntimeError(f"the process of the verdict ended with status {process.wait()}") from error
        finally:
            process.kill()


def answer_parent() -> None:
    """Read an address and a selection from standard input; write the steps and the verdict to standard output."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not reach the parent

    def send(kind: str, value: Any) -> None:
        pickle.dump((kind, value), stream)
        stream.flush()

    url, selection = pickle.load(sys.stdin.buffer)
    try:
        reader = create_reading_engine(create_unchecked_engine(url))
        verdict = with_sealed_rows(lambda: load_verdict(reader, selection, report=lambda step: send(STEP, step)))
    except SuffrageError as error:
        send(PROBLEM, str(error))
    else:
        send(VERDICT, replace(verdict, board=replace(verdict.board, scores=None)))
