"""Recognition of a file's format, and the nearest format of a file that none matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tracker.errors import BadInputError, NotFoundError, UnknownFormatError
from tracker.ingest.files.file_contents import find_damage, is_named_like_a_table
from tracker.ingest.files.file_kinds import find_json_error, find_kind
from tracker.ingest.files.file_summary import describe_file
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.files.missing_files import check_regular, explain_missing, explain_unreadable
from tracker.ingest.files.tabular.table_head import TableHead, read_head
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.tables.find_layout import find_rejection

ADVICE = (
    "Name the format with --format NAME; see `suffrage formats list` and docs/reference/formats.md. "
    "Prompts without scores: `suffrage prompts import BENCHMARK FILE`."
)


@dataclass(frozen=True, kw_only=True)
class FormatMismatch:
    """A format that does not match a file.

    Attributes:
        format: name of the format.
        reason: why the file is not of this format.
        similarity: share of the format's features that the file has, in [0, 1).
    """

    format: str
    reason: str
    similarity: float


def select_formats(format: str | None) -> Mapping[str, ModuleType]:
    """Return the formats to try: the named one, or all.

    Raises:
        NotFoundError: no such format.
    """
    known = load_formats()
    if format is None:
        return known
    if format not in known:
        raise NotFoundError("format", format, known)
    return {format: known[format]}


def rank_mismatches(path: Path, options: ReadOptions, known: Mapping[str, ModuleType]) -> list[FormatMismatch]:
    """Return the formats that do not match a file, each with its reason, nearest first.

    A format is near if the file has many of its features. Ties go to the more specific format.
    """
    mismatches: list[FormatMismatch] = []
    for name, module in known.items():
        reason = module.mismatch_reason(path, options)
        if reason is not None:
            similarity = reason.similarity if isinstance(reason, Mismatch) else 0.0
            mismatches.append(FormatMismatch(format=name, reason=str(reason), similarity=similarity))
    return sorted(mismatches, key=lambda mismatch: (-mismatch.similarity, -_specificity(known[mismatch.format])))


def recognize_format(path: Path, options: ReadOptions, known: Mapping[str, ModuleType]) -> str | None:
    """Return the name of the most specific format that matches a file; None if there is none.

    Raises:
        UnknownFormatError: several formats match equally well.
    """
    matching = [name for name, module in known.items() if module.mismatch_reason(path, options) is None]
    if not matching:
        return None
    highest = max(_specificity(known[name]) for name in matching)
    best = [name for name in matching if _specificity(known[name]) == highest]
    if len(best) > 1:
        raise UnknownFormatError(path, f"matches several formats: {', '.join(best)}.", advice="Choose with --format.")
    return best[0]


@dataclass(frozen=True, kw_only=True)
class FormatCheck:
    """Result of checking a file against one format.

    Attributes:
        format: name of the format.
        match: ``chosen`` for the format that reads the file, ``yes`` for other formats that match it, else ``no``.
        similarity: share of the format's features that the file has, in [0, 1]; 1 if it matches.
        reason: why the file is not of this format; None if it is.
    """

    format: str
    match: str
    similarity: float
    reason: str | None


def check_formats(path: Path, options: ReadOptions) -> list[FormatCheck]:
    """Check a file against every format: matching ones first, then the nearest.

    If several formats match equally well, none is ``chosen``.

    Raises:
        BadInputError: the file does not exist, is a folder, or cannot be opened.
    """
    if not path.exists():
        raise explain_missing(path)
    if path.is_dir():
        raise BadInputError(path, "is a folder.", advice="Check one of its files.")
    check_regular(path)
    try:
        path.open("rb").close()
    except OSError as error:
        raise explain_unreadable(path, error) from error
    known = load_formats()
    mismatches = rank_mismatches(path, options, known)
    matching = sorted(known.keys() - {mismatch.format for mismatch in mismatches})
    matching.sort(key=lambda name: -_specificity(known[name]))
    is_unique = len({_specificity(known[name]) for name in matching[:2]}) == len(matching[:2])
    matches = [
        FormatCheck(format=name, match="chosen" if place == 0 and is_unique else "yes", similarity=1.0, reason=None)
        for place, name in enumerate(matching)
    ]
    return matches + [
        FormatCheck(format=nearest.format, match="no", similarity=round(nearest.similarity, 2), reason=nearest.reason)
        for nearest in mismatches
    ]


def choose_format(
    path: Path, options: ReadOptions, known: Mapping[str, ModuleType], *, forced: bool
) -> tuple[str, ModuleType]:
    """Return the name and module of the format to read a file with.

    Args:
        path: the file.
        options: how to read it.
        known: the formats to try.
        forced: whether the user named the format, so that nothing is checked.

    Raises:
        UnknownFormatError: no format matches the file, or several do.
        BadInputError: the file is damaged.
    """
    if forced:
        return next(iter(known.items()))
    name = recognize_format(path, options, known)
    if name is not None:
        return name, known[name]
    if kind := find_kind(path):
        raise BadInputError(path, f"is {kind.name}.", advice=kind.advice)
    if rejection := find_rejection(path, options):
        raise BadInputError(path, rejection.problem, advice=rejection.advice)
    if unreadable := find_damage(path) or _explain_table(path) or find_json_error(path):
        raise BadInputError(path, unreadable)
    nearest = _describe_nearest(path, options, known)
    text = f"no format matches this file ({describe_file(path)})."
    raise UnknownFormatError(path, text, advice=f"Nearest format: {nearest}.\n{ADVICE}" if nearest else ADVICE)


def explain_mismatch(path: Path, options: ReadOptions, known: Mapping[str, ModuleType]) -> str:
    """Return what a file that no format matches looks like, and the nearest format, in one line."""
    nearest = _describe_nearest(path, options, known)
    return describe_file(path) + (f"; nearest format: {nearest}" if nearest else "")


def _describe_nearest(path: Path, options: ReadOptions, known: Mapping[str, ModuleType]) -> str | None:
    """Return the nearest format with its reason; None if the file has no feature of any format."""
    nearest = rank_mismatches(path, options, known)[0]
    return f"{nearest.format} ({nearest.reason})" if nearest.similarity > 0 else None


def _specificity(module: ModuleType) -> int:
    return int(getattr(module, "SPECIFICITY", 0))


def _explain_table(path: Path) -> str | None:
    """Return why a file that is named like a table cannot be read as one, whatever its format."""
    top = read_head(path)
    if isinstance(top, TableHead) and sum(map(bool, top.names)) == 1:
        return (
            f"has only one column, {top.names[0]!r}. "
            "Put the names of the columns into the first line, separated by commas, semicolons or tabs."
        )
    if isinstance(top, TableHead) and not top.rows:
        return "has a header but no rows."
    return f"{top}." if isinstance(top, str) and is_named_like_a_table(path) else None
