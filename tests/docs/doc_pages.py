"""Run the command lines and Python cells of documentation pages, and put their output into the pages.

The format of a page is described in `CONTRIBUTING.md`, section "Documentation".
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from doc_programs import PageError, run_line, working_folder

BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^ *```$", re.M | re.S)
COMMENT = re.compile(r"<!-- (?P<key>run in|tested by|lines): (?P<value>[^>]+?) -->\s*\Z")
FOLDER = re.compile(r"^<!-- run in: ([\w-]+) -->$", re.M)
COMMAND = re.compile(r"^ *(?:\$ )?suffrage [a-z]", re.M)
ELISION = "…"
VARYING = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?": "TIME",
    r"\b\d[\d,.]*( ms| s| min| [kMG]?B)\b": "AMOUNT",
    r"\b[0-9a-f]{12,}\b": "HASH",
}
"""What differs from run to run, and what stands for it where outputs are compared."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the comment before it.

    Attributes:
        start: where its body begins in the text of the page.
        language: after the fence.
        body: between the fences.
        comments: values by key, such as ``{"lines": "1-6"}``.
    """

    start: int
    language: str
    body: str
    comments: dict[str, str]

    @property
    def has_command(self) -> bool:
        """Whether it shows a command line: a terminal or a shell script always, else if a line begins with ours."""
        if self.language in ("console", "sh", "bash"):
            return True
        return self.language == "" and bool(COMMAND.search(self.body))


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
    """Return the first lines of blocks with a command that are not run here and name no test that covers them."""
    runs = FOLDER.search(text) is not None
    return [
        block.body.splitlines()[0]
        for block in parse_blocks(text)
        if block.has_command and "tested by" not in block.comments and not (runs and block.language == "console")
    ]


def mask(output: str) -> str:
    """Replace times, sizes and hashes, which differ from run to run."""
    for pattern, placeholder in VARYING.items():
        output = re.sub(pattern, placeholder, output)
    return output


def rewrite(text: str, folder: Path, addresses: Mapping[str, str] | None = None) -> str:
    """Return a page with the output of its commands and Python cells as the program prints it now.

    Args:
        text: of the page.
        folder: where the commands run; it holds the files that the page begins with.
        addresses: of the servers that stand in for those on the page, by the addresses on the page.

    Raises:
        PageError: a command is none of `doc_programs.PROGRAMS`, or a cell without output on the page fails.
    """
    result, end = "", 0
    cells = _Cells({})
    printed: str | None = None
    stand_ins = addresses or {}
    with working_folder(folder):
        for block in parse_blocks(text):
            body = block.body
            if block.language != "text":
                cells.check()
            if "tested by" in block.comments:
                printed = None
            elif block.language == "console":
                body = "".join(_run_console(block, stand_ins))
            elif block.language == "python":
                printed = cells.run(_replace_all(body, stand_ins))
            elif block.language == "text" and printed is not None:
                body, printed = _keep(printed, body, block.comments.get("lines")), None
                cells.failure = None
            result += text[end : block.start] + body
            end = block.start + len(block.body)
        cells.check()
    return result + text[end:]


def _reverse(addresses: Mapping[str, str]) -> dict[str, str]:
    """Return what to put in place of addresses of stand-ins, and of their hosts, which messages name alone."""
    whole = {stand_in: address for address, stand_in in addresses.items()}
    return whole | {urlsplit(stand_in).netloc: urlsplit(address).netloc for stand_in, address in whole.items()}


def _replace_all(text: str, replacements: Mapping[str, str]) -> str:
    for former, new in replacements.items():
        text = text.replace(former, new)
    return text


def _run_console(block: Block, addresses: Mapping[str, str]) -> Iterator[str]:
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
        printed = run_line(_replace_all(command[2:], addresses))
        output_of_page = _replace_all(printed, _reverse(addresses))
        yield command + _keep(output_of_page, former, block.comments.get("lines")) + gap


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


@dataclass
class _Cells:
    """The Python cells of a page, which share their names.

    Attributes:
        names: what the cells have defined.
        failure: of the last cell, until a block shows it as output.
    """

    names: dict[str, object]
    failure: str | None = None

    def run(self, code: str) -> str:
        """Return what a cell prints; the error is a part of it."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            try:
                exec(compile(code, "<page>", "exec"), self.names)
            except Exception as error:  # noqa: BLE001 - the page then differs, and the difference names the fault
                self.failure = f"{type(error).__name__}: {error}"
                print(self.failure)
        return printed.getvalue()

    def check(self) -> None:
        """Raise the error of a cell whose output the page does not show."""
        if self.failure is not None:
            raise PageError(f"a Python cell fails: {self.failure}")
