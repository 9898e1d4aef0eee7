"""Every error a user can cause.

Each is a `SuffrageError` and the builtin it specializes. It takes facts, keeps them, and its
message says what to do next. The command line prints the message and exits 1; any other
exception is a bug of ours and keeps its traceback.
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


class SuffrageError(Exception):
    """An error with a sentence for the person who can mend it."""


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
        super().__init__(" ".join(filter(None, (f"{missing}.", _known(str(name), self.known), hint))))


class AmbiguousError(SuffrageError, ValueError):
    """A name that means several things here."""


class BadInputError(SuffrageError, ValueError):
    """A file that cannot be taken in; nothing of it is stored.

    Args:
        path: the file.
        problems: what is wrong, each with its line or column; ten are shown.
        count: how many problems there are, where more were met than are kept.
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


class OutputError(SuffrageError, OSError):
    """What was asked for cannot be written where it should go."""


class SqlError(SuffrageError, ValueError):
    """A statement given to `suffrage sql` that is wrong, too slow, or not a read."""


class SelectionError(SuffrageError, ValueError):
    """The chosen runs, prompts or options do not make a table the analysis can work on."""


class OptionsError(SuffrageError, ValueError):
    """Options of a command that do not go together."""


class PluginError(SuffrageError, ImportError):
    """An analysis that was found but cannot be used as it is written or installed."""


class EncoderError(SuffrageError, ValueError):
    """An encoder that is not there, cannot be loaded, or does not fit what was asked of it."""


class LanguageModelError(SuffrageError, ValueError):
    """A language model that is not there, cannot be loaded, or cannot do what was asked of it."""


class ServerError(SuffrageError, ConnectionError):
    """A server that cannot be used as it was asked to: its address, the key, the model, or what it offers."""


class MissingExtraError(SuffrageError, ImportError):
    """Something needs packages that are installed only on request.

    Args:
        purpose: what needs them.
        extra: the name under which they are requested.
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
