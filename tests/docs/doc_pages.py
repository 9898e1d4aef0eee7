"""Run the command lines and Python cells of documentation pages, and put their output into the pages.

The format of a page is described in `CONTRIBUTING.md`, section "Documentation".
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tracker.cli import main

ROOT = Path(__file__).parents[2]
WIDTH = 100
"""Columns of the terminal that the commands print to."""

BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^ *```$", re.M | re.S)
COMMENT = re.compile(r"<!-- (?P<key>run in|not run|tested by|lines): (?P<value>[^>]+?) -->\s*\Z")
FOLDER = re.compile(r"^<!-- run in: ([\w-]+) -->$", re.M)
COMMAND = re.compile(r"^ *(?:\$ )?suffrage [a-z]", re.M)
ELISION = "…"
VARYING = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?": "TIME",
    r"\b\d[\d,.]*( ms| s| min| [kMG]?B)\b": "AMOUNT",
    r"\b[0-9a-f]{12,}\b": "HASH",
}
"""What differs from run to run, and what stands for it where outputs are compared."""


class PageError(Exception):
    """A page cannot be run: it breaks the format, or names a command that is not run here."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the comment before it.

    Attributes:
        start: where its body begins in the text of the page.
        language: after the fence.
        body: between the fences.
        comments: values by key, such as ``{"not run": "needs a GPU"}``.
    """

    start: int
    language: str
    body: str
    comments: dict[str, str]

    @property
    def has_command(self) -> bool:
        """Whether a line of it calls the command line."""
        return self.language not in ("python", "sql", "json", "toml", "yaml") and bool(COMMAND.search(self.body))


def parse_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    blocks = []
    for match in BLOCK.finditer(text):
        before, comments = text[: match.start()], {}
        while comment := COMMENT.search(before):
            comments[comment["key"]] = comment["value"]
            before = before[: comment.start()]
        blocks.append(Block(match.start("body"), match["language"], match["body"], comments))
    return blocks


def unexplained_blocks(text: str) -> list[str]:
    """Return the first lines of blocks with a command that are not run, without a reason or a test that covers them."""
    runs = FOLDER.search(text) is not None
    return [
        block.body.splitlines()[0]
        for block in parse_blocks(text)
        if block.has_command
        and not {"not run", "tested by"} & set(block.comments)
        and not (runs and block.language == "console")
    ]


def mask(output: str) -> str:
    """Replace times, sizes and hashes, which differ from run to run."""
    for pattern, placeholder in VARYING.items():
        output = re.sub(pattern, placeholder, output)
    return output


def rewrite(text: str, folder: Path) -> str:
    """Return a page with the output of its commands and Python cells as the program prints it now.

    Args:
        text: of the page.
        folder: where the commands run; it holds the files that the page begins with.

    Raises:
        PageError: a command is not one of `suffrage`, `cat`, `head`, `ls` and `export`.
    """
    result, end = "", 0
    names: dict[str, object] = {}
    printed: str | None = None
    with working_folder(folder):
        for block in parse_blocks(text):
            body = block.body
            if "not run" in block.comments or "tested by" in block.comments:
                printed = None
            elif block.language == "console":
                body = "".join(_run_console(block))
            elif block.language == "python":
                printed = _run_cell(body, names)
            elif block.language == "text" and printed is not None:
                body, printed = _keep(printed, body, block.comments.get("lines")), None
            result += text[end : block.start] + body
            end = block.start + len(block.body)
    return result + text[end:]


def _run_console(block: Block) -> Iterator[str]:
    lines = block.body.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise PageError(f"a console block must begin with `$ `: {lines[0]!r}")
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        n_lines = 1
        while not _is_complete("".join(lines[start : start + n_lines])):
            n_lines += 1
        command, output = "".join(lines[start : start + n_lines]), "".join(lines[start + n_lines : stop])
        gap = "\n" if stop < len(lines) and (output == "\n" or output.endswith("\n\n")) else ""
        former = output[: len(output) - len(gap)]
        yield command + _keep(run_line(command[2:]), former, block.comments.get("lines")) + gap


def _is_complete(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\\n")


def _keep(printed: str, former: str, spec: str | None) -> str:
    """Return the output that the page shows: the former one where it differs in nothing but times and the like."""
    output = _select_lines(printed, spec)
    return former if mask(former) == mask(output) else output


def _select_lines(printed: str, spec: str | None) -> str:
    """Return the lines that a spec such as ``1-6, 9`` names, with an ellipsis in place of the others."""
    if spec is None or "Traceback (most recent call last)" in printed:
        return printed
    lines = printed.splitlines(keepends=True)
    chosen: set[int] = set()
    for part in spec.split(","):
        first, _, last = part.strip().partition("-")
        chosen |= set(range(int(first), int(last or first) + 1))
    output: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number in chosen:
            output.append(line)
        elif not output or output[-1] != f"{ELISION}\n":
            output.append(f"{ELISION}\n")
    return "".join(output)


def run_line(command: str) -> str:
    """Run a command line in the current folder and return what it prints, on both streams.

    Raises:
        PageError: the command is not one of `suffrage`, `cat`, `head`, `ls` and `export`.
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
    if name == "export":
        os.environ.update(dict(item.split("=", 1) for item in arguments))
        return ""
    if name == "cat":
        return "".join(Path(path).read_text(encoding="utf-8") for path in arguments)
    if name == "ls":
        return "".join(f"{path.name}\n" for path in sorted(Path(*arguments).iterdir()))
    if name == "head":
        return _head(Path(arguments[-1]).read_text(encoding="utf-8"), words[:-1])
    if name != "suffrage":
        raise PageError(f"`{name}` is not run here; say `<!-- not run: REASON -->` before the block")
    return _capture(lambda: main(arguments))


def _head(text: str, words: Sequence[str]) -> str:
    """What `head -3` prints of a text."""
    if len(words) != 2 or words[0] != "head" or not words[1][1:].isdigit():
        raise PageError(f"`{shlex.join(words)}` is not run here; `head -N` is")
    return "".join(text.splitlines(keepends=True)[: int(words[1][1:])])


def _run_cell(code: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            exec(compile(code, "<page>", "exec"), names)
        except Exception as error:  # noqa: BLE001 - the page then differs, and the difference names the fault
            print(f"{type(error).__name__}: {error}")
    return printed.getvalue()


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
