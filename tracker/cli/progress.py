"""Progress bars on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

DELAY = 0.7
"""Seconds before a bar without an amount appears; short work shows none."""
REFRESH = 0.2
"""Seconds between two looks at the amount."""


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal; the function takes the done and the total amount. None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TaskProgressColumn

    with _bar(TaskProgressColumn()) as bar:
        task = bar.add_task(_clean(label), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def show_prompt_progress(label: str) -> Iterator[Callable[[int, int, int], None] | None]:
    """Show a bar for evaluated prompts and the tokens per second; the function also takes the number of tokens."""
    if not sys.stderr.isatty():
        yield None
        return
    import time

    from rich.progress import MofNCompleteColumn, TextColumn

    with _bar(MofNCompleteColumn(), TextColumn("{task.fields[rate]}")) as bar:
        task = bar.add_task(_clean(label), total=None, rate="")
        start = time.monotonic()

        def update(done: int, total: int, n_tokens: int) -> None:
            if done == 0 or n_tokens == 0:  # another run begins
                nonlocal start
                start = time.monotonic()
                bar.reset(task, total=total, completed=done, rate="")
                return
            rate = f"{n_tokens / max(time.monotonic() - start, 1e-9):,.0f} tokens/s"
            bar.update(task, completed=done, total=total, rate=rate)

        yield update


@contextmanager
def show_activity(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a moving bar and the elapsed time on a terminal, for work of unknown amount that takes `DELAY` seconds.

    Where an amount becomes known, the function takes the done and the total amount of it.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from threading import Event, Thread

    done = Event()
    amount: dict[str, int] = {}

    def update(completed: int, total: int) -> None:
        amount.update(completed=completed, total=total)

    def draw() -> None:
        if done.wait(DELAY):
            return
        from rich.progress import TimeElapsedColumn

        with _bar(TimeElapsedColumn()) as bar:
            task = bar.add_task(_clean(label), total=None)
            while not done.wait(REFRESH):
                if amount:
                    bar.update(task, **amount)

    thread = Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield update
    finally:
        done.set()
        thread.join()


def _clean(label: str) -> str:
    """Return a label without power over the terminal, nor over rich's markup."""
    from rich.markup import escape

    from tracker.cli.values.terminal_text import make_cell

    return escape(make_cell(label))


def _bar(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar_columns = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    return Progress(*bar_columns, console=Console(stderr=True), transient=True)
