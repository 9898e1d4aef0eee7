"""Programs that the command lines of documentation pages call, run in this process."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from harness_output import run_lm_eval

from tracker.cli import main

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
WIDTH = 100
"""Columns of the terminal that the commands print to."""


class PageError(Exception):
    """A page cannot be run: it breaks the format, or names a command that is not run here."""


def run_line(command: str) -> str:
    """Run a command line in the current folder and return what it prints, on both streams.

    Raises:
        PageError: the command is not one of `PROGRAMS`.
    """
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if "|" in words:
        position = words.index("|")
        return _head(run_words(words[:position]), words[position + 1 :])
    if ">" in words:
        *words, _, target = words
        Path(target).write_text(run_words(words), encoding="utf-8")
        return ""
    return run_words(words)


def run_words(words: Sequence[str]) -> str:
    """Run one program with its arguments; see `run_line`."""
    name, *arguments = words
    if name not in PROGRAMS:
        raise PageError(f"`{name}` is not run here; name the test that runs it: `<!-- tested by: PATH::NAME -->`")
    return PROGRAMS[name](arguments)


def _suffrage(arguments: Sequence[str]) -> str:
    return _capture(lambda: main(list(arguments)))


def _export(arguments: Sequence[str]) -> str:
    os.environ.update(dict(item.split("=", 1) for item in arguments))
    return ""


def _cat(arguments: Sequence[str]) -> str:
    return "".join(Path(path).read_text(encoding="utf-8") for path in arguments)


def _ls(arguments: Sequence[str]) -> str:
    return "".join(f"{path.name}\n" for path in sorted(Path(*arguments).iterdir()))


def _head_of_file(arguments: Sequence[str]) -> str:
    return _head(Path(arguments[-1]).read_text(encoding="utf-8"), ["head", *arguments[:-1]])


def _pip(arguments: Sequence[str]) -> str:
    """Install nothing; check that what a page installs from the checkout is declared."""
    target = re.fullmatch(r"install \.(?:\[(?P<extra>\w+)\])?", " ".join(arguments))
    if target is None or target["extra"] not in {None, *EXTRAS}:
        raise PageError(f"`pip {shlex.join(arguments)}`: pages install `.` or one of its extras, such as '.[models]'")
    return ""


PROGRAMS: dict[str, Callable[[Sequence[str]], str]] = {
    "suffrage": _suffrage,
    "export": _export,
    "cat": _cat,
    "ls": _ls,
    "head": _head_of_file,
    "pip": _pip,
    "lm_eval": run_lm_eval,
}


def _head(text: str, words: Sequence[str]) -> str:
    """What `head -3` or `head -c 60` prints of a text."""
    option = re.fullmatch(r"head (?:-(?P<lines>\d+)|-c (?P<characters>\d+))", " ".join(words))
    if option is None:
        raise PageError(f"`{shlex.join(words)}` is not run here; `head -N` and `head -c N` are")
    if option["lines"]:
        return "".join(text.splitlines(keepends=True)[: int(option["lines"])])
    return text[: int(option["characters"])] + "\n"


class _Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal, so that tables are as wide as `WIDTH`."""

    def isatty(self) -> bool:
        return True


def _capture(function: Callable[[], None]) -> str:
    """Return what a function prints; the exit code does not matter."""
    buffer = io.BytesIO()
    out = _Terminal(buffer, encoding="utf-8", write_through=True)
    errors = io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            function()
        except SystemExit:
            pass
        except Exception:  # noqa: BLE001 - the page then differs, and the difference names the fault
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", buffer.getvalue().decode("utf-8"))
    return re.sub(r"[ \t]+$", "", text, flags=re.M)


@contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """Run in a folder, with the environment of a user who has set nothing."""
    former, environment = Path.cwd(), dict(os.environ)
    for name in environment:
        if name.startswith(("MLFLOW_", "SUFFRAGE_")) or name == "DATABASE_URL":
            del os.environ[name]
    os.environ |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TZ": "UTC"}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(former)
        os.environ.clear()
        os.environ.update(environment)
