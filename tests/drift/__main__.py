"""Compare imports with what current and old releases of the harnesses report.

``python -m drift [HARNESS ...] [--environments FOLDER]`` installs each release, evaluates local tasks with it, imports
the files and compares every reported number with the store. It exits with 1 if a number differs, a release does not
run, its files are rejected, or too few numbers were compared; with 0 otherwise, also if a release does not install.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import drift
from drift.comparison import ImportFailedError, compare
from drift.environments import InstallError, RunError, install
from drift.harness import Harness, Release

SUFFIX = "_runs"
HEADINGS = ("harness", "version", "results", "task", "compared", "differ", "status")


@dataclass
class Row:
    """A row of the report."""

    harness: str
    version: str
    results: str = ""
    task: str = ""
    n_compared: int = 0
    differences: list[str] = field(default_factory=list)
    status: str = "installed"
    failed: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        count = len(self.differences)
        return self.harness, self.version, self.results, self.task, str(self.n_compared), str(count), self.status


def main(arguments: list[str]) -> int:
    """Run the check; return the exit code."""
    harnesses = {
        harness.name: harness
        for module in pkgutil.iter_modules(drift.__path__)
        if module.name.endswith(SUFFIX)
        for harness in [importlib.import_module(f"drift.{module.name}").HARNESS]
    }
    parser = argparse.ArgumentParser(prog="drift", description=__doc__)
    parser.add_argument("harnesses", nargs="*", metavar="HARNESS", help=f"{', '.join(harnesses)}; default: all")
    parser.add_argument(
        "--environments",
        type=Path,
        metavar="FOLDER",
        help="keep and reuse environments here",
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.harnesses) - set(harnesses):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(harnesses)}")
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = options.environments or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drift-")))
        for name in options.harnesses or harnesses:
            for release in harnesses[name].releases:
                for row in _check(harnesses[name], release, folder.absolute()):
                    print(*row.cells, sep="\t", file=sys.stderr, flush=True)
                    rows.append(row)
    _print(rows)
    return int(any(row.differences or row.failed for row in rows) or not any(row.n_compared for row in rows))


def _check(harness: Harness, release: Release, folder: Path) -> Iterator[Row]:
    """Yield the rows of a release: one for each task of each of its results, and one for each reason of a failure."""
    label = release.requirements[0]
    place = folder / "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in label)
    try:
        environment = install(place, harness.package, release.requirements, release.installer)
    except InstallError as error:
        yield Row(harness.name, label, status=f"does not install: {error}")
        return
    with tempfile.TemporaryDirectory(prefix="results-", dir=place) as temporary:
        try:
            folders = harness.run(environment, Path(temporary))
        except RunError as error:
            yield Row(harness.name, environment.version, status=f"does not run: {error}", failed=True)
            return
        n_compared = 0
        for number, results in enumerate(folders):
            try:
                compared = compare(harness, results, Path(temporary) / f"store{number}.db")
            except ImportFailedError as error:
                status = f"is rejected: {error}"
                yield Row(harness.name, environment.version, results.name, status=status, failed=True)
                continue
            for task, comparison in compared.items():
                reasons = [_explanation(harness, environment.version, text) for text in comparison.differences]
                unexplained = [
                    text for text, reason in zip(comparison.differences, reasons, strict=True) if reason is None
                ]
                status = "; ".join(["installed", *dict.fromkeys(reason for reason in reasons if reason)])
                count = comparison.n_compared
                n_compared += count
                yield Row(harness.name, environment.version, results.name, task, count, unexplained, status)
        if n_compared < release.min_compared:
            status = f"too few numbers compared: {n_compared:,} of at least {release.min_compared:,}"
            yield Row(harness.name, environment.version, status=status, failed=True)


def _explanation(harness: Harness, version: str, text: str) -> str | None:
    """The known fault of a release that explains a difference; None without."""
    return next((reason for (of, part), reason in harness.explained.items() if of == version and part in text), None)


def _print(rows: list[Row]) -> None:
    table = [HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(HEADINGS) - 1)]
    for cells in table:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)), cells[-1]]))
    for row in rows:
        for text in row.differences:
            print(f"\n{row.harness} {row.version}, {row.results}, {row.task}: {text}", end="")
    n_differences = sum(len(row.differences) for row in rows)
    print(f"\n{sum(row.n_compared for row in rows):,} numbers compared, {n_differences:,} differ without explanation")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
