"""Standard streams of a process that was started with some of them closed, as by `suffrage benchmarks >&-`."""

import os
import sys


def open_closed_streams() -> None:
    """Open each closed standard stream on the null device.

    Otherwise the next file that is opened, such as the store, takes its number, and what a child process prints goes
    into that file. What is read from stdin ends at once. Writing to stdout fails, as other programs do: a result that
    nobody can read is an error. Writing to stderr succeeds.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # the lowest free number
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
