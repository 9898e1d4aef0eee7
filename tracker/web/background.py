"""Computations that take longer than a page may: they run in the background, each once for a state of the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from tracker.errors import SuffrageError
from tracker.recording.sealing.loading import with_sealed_rows
from tracker.web.store_cache import StoreCache

MAX_AT_ONCE = 2
"""Maximum number of values computed at once; the rest wait."""
MAX_WAITING = 40
"""Maximum number of values that wait; the next request of a page starts a later one."""
FRESH_SECONDS = 10.0
"""How long pages that wait for a value may show it although the store changed while it was computed."""
PATIENCE = 0.1
"""Seconds that a page waits for a computation before it states the progress."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The state of a computation.

    Attributes:
        value: its result; None if there is none yet.
        problem: why it cannot be computed; '' if that is not known.
        step: what it is doing; '' if it has ended.
        seconds: how long it has taken.
    """

    value: Any = None
    problem: str = ""
    step: str = ""
    seconds: float = 0.0

    @property
    def is_computing(self) -> bool:
        """Whether it has not ended."""
        return self.value is None and not self.problem

    def as_record(self) -> dict[str, Any]:
        """The state as plain values: ``state`` is ready, computing or failed."""
        state = "computing" if self.is_computing else "failed" if self.problem else "ready"
        return {"state": state, "problem": self.problem, "step": self.step, "seconds": int(self.seconds)}


class Progress:
    """What a running computation is doing, and since when.

    Attributes:
        step: what it is doing.
        is_done: set when it has ended.
    """

    def __init__(self) -> None:
        self.step = ""
        self.is_done = threading.Event()
        self._start = time.monotonic()

    def report(self, step: str) -> None:
        """Note what the computation begins to do."""
        self.step = step

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._start


Compute = Callable[[Callable[[str], None]], Any]
"""Computes a value, and calls its argument with what it is doing."""


class BackgroundTasks:
    """Values that are computed in the background and kept in a cache.

    Args:
        cache: keeps the values.
        patience: seconds that a request waits for a value.
        uses_processes: whether verdicts are computed in separate processes, which take longer to begin.
    """

    def __init__(self, cache: StoreCache, patience: float = PATIENCE, *, uses_processes: bool = False) -> None:
        self.cache, self.patience, self.uses_processes = cache, patience, uses_processes
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_AT_ONCE)
        self._running: dict[Hashable, Progress] = {}
        self._finished: dict[Hashable, tuple[float, Any]] = {}
        self._problems: dict[tuple[Any, Hashable], str] = {}

    def request(self, key: Hashable, compute: Compute) -> Outcome:
        """Return a value if it is present; else begin to compute it, unless that has begun already."""
        value = self.cache.peek(key)
        if value is not None:
            return Outcome(value=value)
        state = (self.cache.refresh(), key)
        with self._lock:
            self._finished = {name: kept for name, kept in self._finished.items() if kept[0] > time.monotonic()}
            if key in self._finished:
                return Outcome(value=self._finished[key][1])
            if state in self._problems:
                return Outcome(problem=self._problems[state])
            progress = self._running.get(key)
            if progress is None and len(self._running) >= MAX_WAITING:
                return Outcome(step="waiting for computations of other pages")
            if progress is None:
                progress = self._running[key] = Progress()
                threading.Thread(target=self._compute, args=(state, key, compute, progress), daemon=True).start()
        if progress.is_done.wait(self.patience):
            with self._lock:
                problem = self._problems.get(state, "")
            value = self.cache.peek(key)
            if problem or value is not None:
                return Outcome(value=value, problem=problem)
        return Outcome(step=progress.step, seconds=progress.seconds)

    def _compute(self, state: tuple[Any, Hashable], key: Hashable, compute: Compute, progress: Progress) -> None:
        try:
            with self._slots:
                value = with_sealed_rows(lambda: self.cache.get(key, lambda: compute(progress.report)))
            if self.cache.peek(key) is None:  # other programs write to this server all the time, say
                with self._lock:
                    self._finished[key] = time.monotonic() + FRESH_SECONDS, value
        except Exception as error:  # noqa: BLE001 - a page that asks again would begin a failing computation anew
            message = str(error) if isinstance(error, SuffrageError) else f"{type(error).__name__}: {error}"
            with self._lock:
                self._problems = {known: text for known, text in self._problems.items() if known[0] == state[0]}
                self._problems[state] = message
        finally:
            with self._lock:
                self._running.pop(key, None)
            progress.is_done.set()
