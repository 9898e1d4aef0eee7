"""Ctrl-C during a compiled search, such as an integer program, which Python's handler would wait for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

GRACE = 1.0
"""Seconds in which Python may handle Ctrl-C; after them the process ends at once."""
EXIT_CODE = 130


@contextmanager
def end_on_interrupt() -> Iterator[None]:
    """End the process on Ctrl-C within `GRACE` seconds, even if compiled code runs.

    Python handles a signal between two Python instructions, so it waits for compiled code, which may take minutes.
    Here a thread waits for the signal too. It ends the process if the handler has not run in time. A transaction that
    is open is rolled back, as after any end of a process.
    """
    if not _handles_interrupts():
        yield
        return
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    handled = threading.Event()

    def handle(number: int, frame: Any) -> None:
        handled.set()
        signal.default_int_handler(number, frame)

    def watch() -> None:
        while number := os.read(receiver, 1):
            if number[0] == signal.SIGINT and not handled.wait(GRACE):
                os.write(2, b"Stopped.\n")
                os._exit(EXIT_CODE)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    earlier = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(earlier)
        os.close(sender)  # the watcher reads the end
        watcher.join()
        os.close(receiver)


def _handles_interrupts() -> bool:
    """Whether this thread gets Ctrl-C, and Python's own handler is in place."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
