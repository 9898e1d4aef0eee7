"""Every error a user can cause.

Each is a `SuffrageError` and the builtin it specializes. Its attributes hold the facts; its message names
the problem, the place and the fix. The command line prints the message and exits 1. Any other exception is
a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tracker.name_lists import join_names
from tracker.suggestions import find_similar, format_guess

MAX_KNOWN_NAMES = 5
"""Names that a message lists where one is not known."""

LISTS = {
    "analysis": "suffrage analyses",
    "benchmark": "suffrage benchmarks",
    "finding": "suffrage findings",
    "format": "suffrage formats list",
    "model": "suffrage models",
    "run": "suffrage runs",
}
"""Command that lists all names of a kind."""
INGEST = "Import results: suffrage ingest RESULTS --benchmark NAME"
ADDITIONS = {
    "benchmark": INGEST,
    "finding": "Record one: suffrage analyze rank-intervals BENCHMARK",
    "merge": "Merge models: suffrage models merge MODEL MERGED",
    "model": INGEST,
    "run": INGEST,
}
"""How the first entry of a kind is added."""


class SuffrageError(Exception):
    """An error that the user can fix."""


class NotFoundError(SuffrageError, LookupError):
    """No entry has the name.

    Args:
        kind: what the name stands for: a noun such as ``run``, and what limits it, such as ``of mmlu``.
        name: as the user typed it.
        known: names that exist.
        hint: what to do next; by default the command that lists the names.
    """

    def __init__(self, kind: str, name: object, known: Iterable[object] = (), hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, [str(k) for k in known]
        noun, _, rest = kind.partition(" ")
        missing = " ".join(filter(None, ("No", noun, repr(str(name)), rest)))
        if not hint and self.known and noun in LISTS:
            hint = f"List them with `{LISTS[noun]}`."
        elif not hint and not self.known:
            hint = ADDITIONS.get(noun, "")
        super().__init__(" ".join(filter(None, (f"{missing}.", _known(str(name), self.known), hint))))


class AmbiguousError(SuffrageError, ValueError):
    """A name with several meanings."""


class BadInputError(SuffrageError, ValueError):
    """A file that cannot be ingested; nothing of it is stored.

    Args:
        path: the file.
        problems: what is wrong, each with its line or column; the message lists ten.
        count: number of problems, if more than `problems` holds.
        advice: what to do next.
    """

    MAX_LISTED = 10

    def __init__(
        self, path: str | Path, problems: str | Sequence[str], *, count: int | None = None, advice: str = ""
    ) -> None:
        self.path = Path(path)
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        self.count = len(self.problems) if count is None else count
        self.advice = advice
        if self.count == 1 and self.problems:
            text = f"{path}: {self.problems[0]}"
        else:
            first = self.problems[: self.MAX_LISTED]
            text = f"{path}: {self.count:,} problems, nothing was stored:\n  " + "\n  ".join(first)
            if self.count > len(first):
                text += f"\n  and {self.count - len(first):,} more"
        super().__init__(f"{text}\n{advice}" if advice else text)


class UnknownFormatError(BadInputError):
    """No format matches the file, or several do."""


class ConflictError(SuffrageError, ValueError):
    """New data contradicts what is stored."""


class DatabaseError(SuffrageError, RuntimeError):
    """The database cannot be used as it is: version, connection, disk."""


class SealedRowsError(Exception):
    """Scores or answers of runs are in sealed files, and not in the store.

    It is no error of a user, and so no `SuffrageError`: `tracker.recording.sealing.loading` copies the rows back and
    runs the command again.

    Args:
        url: of the store, which the message does not hold.
        run_ids: the runs.
    """

    def __init__(self, url: str, run_ids: Sequence[int]) -> None:
        self.url, self.run_ids = url, list(run_ids)
        runs = f"run {run_ids[0]}" if len(run_ids) == 1 else f"{len(run_ids):,} runs"
        super().__init__(
            f"The scores of {runs} are in sealed files, not in the store. Copy them back first: "
            "suffrage unseal BENCHMARK"
        )

    def __reduce__(self) -> tuple[type[SealedRowsError], tuple[str, list[int]]]:
        return SealedRowsError, (self.url, self.run_ids)


class SettingsError(SuffrageError, ValueError):
    """A file or environment variable with settings that is not valid."""


class OutputError(SuffrageError, OSError):
    """An output file or folder that cannot be written."""


class SqlError(SuffrageError, ValueError):
    """A statement of `suffrage sql` that is wrong, too slow, or writes."""


class SelectionError(SuffrageError, ValueError):
    """The chosen runs, prompts or options do not make a table the analysis can work on."""


class TimeLimitError(SuffrageError, TimeoutError):
    """A computation is expected to take longer than its limit."""


class OptionsError(SuffrageError, ValueError):
    """Options of a command that do not go together."""


class PluginError(SuffrageError, ImportError):
    """An analysis that was found but cannot be used as it is written or installed."""


class EncoderError(SuffrageError, ValueError):
    """An encoder that does not exist, cannot be loaded, or does not fit the options."""


class LanguageModelError(SuffrageError, ValueError):
    """A language model that does not exist, cannot be loaded, or does not support the options."""


class ServerError(SuffrageError, ConnectionError):
    """A server that rejects or does not support a request: its address, the key, the model, or the API."""


class ClusterError(SuffrageError, ConnectionError):
    """A Dask cluster that cannot be reached, or whose workers cannot compute the analysis."""


class MissingExtraError(SuffrageError, ImportError):
    """Packages of an extra that are not installed.

    Args:
        purpose: what needs them.
        extra: its name, such as ``models``.
    """

    def __init__(self, purpose: str, extra: str) -> None:
        self.purpose, self.extra = purpose, extra
        super().__init__(
            f"{purpose} needs packages that are not installed.\n"
            f"Install them in the folder of Suffrage's sources: pip install '.[{extra}]'"
        )


class PublishingError(SuffrageError, RuntimeError):
    """MLflow could not be reached or used; what was recorded is safe in the store."""


def _known(name: str, known: Sequence[str]) -> str:
    if not known:
        return "None are stored yet."
    return format_guess(find_similar(name, known)) or f"Known: {join_names(known, MAX_KNOWN_NAMES)}."


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message without the full stop; its class if the message is empty."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1].rstrip('.')}"
    return lines[0].rstrip(".") if lines else type(error).__name__
