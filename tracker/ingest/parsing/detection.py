"""The files that formats recognise, and what these make of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from tracker.errors import BadInputError, NotFoundError, SuffrageError, UnknownFormatError
from tracker.ingest.files.file_contents import find_damage, is_named_like_a_table
from tracker.ingest.files.tabular.table_head import TableHead, read_head
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.file_blocks import ReadProgress, hash_files, parse_blocks


def find_files(
    paths: Sequence[Path],
    options: ReadOptions | None = None,
    *,
    format: str | None = None,
    skipped: Callable[[Path, str], None] | None = None,
) -> list[Path]:
    """The files to read: those named, and those that a format recognises in the folders named.

    Prompt tables come first, since answers are scored against what they hold; a file that belongs to
    another is read with that one. Hidden files are passed over.

    Args:
        paths: files and folders.
        options: what the user says about them.
        format: name of the only format to look for.
        skipped: receives each file of a folder that nothing recognises, and why; files that are empty or broken
            off are not skipped, so that `parse_file` rejects them.

    Raises:
        BadInputError: a path that does not exist, or a folder without results.
        NotFoundError: no such format.
    """
    options = options or ReadOptions()
    known = _select_formats(format)
    recognized: dict[Path, ModuleType | None] = {}
    for path in paths:
        if not path.exists():
            raise BadInputError(path, "does not exist.")
        if not path.is_dir():
            recognized.setdefault(path, _recognize(path, options, known)[0])
            continue
        unrecognized: dict[Path, str] = {}
        results = 0
        for file in _files(path):
            module, reasons = _recognize(file, options, known)
            if module is not None or find_damage(file):
                results += 1
                recognized.setdefault(file, module)
            else:
                unrecognized[file] = _format_reasons(reasons)
        if not results:
            raise BadInputError(path, _describe_folder(path, unrecognized, known))
        if skipped is not None:
            companions = _find_companions(recognized)
            for file, reason in unrecognized.items():
                if file.absolute() not in companions:
                    skipped(file, reason)
    first = [path for path, module in recognized.items() if getattr(module, "NAMES_PROMPTS", False)]
    return first + _drop_companions({path: module for path, module in recognized.items() if path not in first})


def parse_file(
    path: Path,
    options: ReadOptions,
    *,
    format: str | None = None,
    partial: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ParsedFile:
    """Recognise a file and read all of it.

    Args:
        path: the file.
        options: what the user says about it.
        format: name of its format; None to recognise it.
        partial: of a damaged file, take what could be read.
        progress: receives the bytes read so far, and of all.

    Raises:
        UnknownFormatError: no format recognises the file, or several do.
        BadInputError: it is not sound; the advice says what could be read of it.
        NotFoundError: no such format.
        OutputError: there is no room for the temporary file that a large one needs.
    """
    if not path.exists():
        raise BadInputError(path, "does not exist.")
    if path.is_dir():
        raise BadInputError(path, "is a folder; its files are read one by one.")
    known = _select_formats(format)
    try:
        if path.stat().st_size == 0:
            raise BadInputError(path, "is empty.")
        name, module = _choose_format(path, options, known, forced=format is not None)
        _check_splits(path, options, name, module)
        companions = getattr(module, "companions", lambda _: ())
        files = (path, *companions(path))
        position = ReadProgress(sum(file.stat().st_size for file in files), progress)
        digest = hash_files(files, position)
        measurements, warnings, damage, archive = parse_blocks(path, module, options, position, partial=partial)
        harness = getattr(module, "harness", lambda _: None)(path)
    except SuffrageError:
        raise
    except OSError as error:
        raise BadInputError(path, f"cannot be read: {error.strerror or error}.") from error
    inputs = json.dumps([digest, name, options.as_json()], sort_keys=True)
    return ParsedFile(
        path=path,
        files=files,
        format=name,
        harness=harness,
        digest=digest,
        identity=hashlib.sha256(inputs.encode()).hexdigest(),
        measurements=measurements,
        warnings=warnings,
        damage=damage,
        archive=archive,
    )


def _check_splits(path: Path, options: ReadOptions, name: str, module: ModuleType) -> None:
    if options.splits and not getattr(module, "TAKES_SPLITS", False):
        takers = ", ".join(
            other_format for other_format, taker in load_formats().items() if getattr(taker, "TAKES_SPLITS", False)
        )
        raise BadInputError(
            path, f"files of the format {name} are taken whole.", advice=f"Leave --split out; it is for {takers}."
        )


def read_model_name(path: Path, options: ReadOptions, *, format: str | None = None) -> str | None:
    """What a file itself calls the model of its first run; None where it does not say, or cannot be read.

    Args:
        path: the file.
        options: what the user says about it; the model that they name is passed over.
        format: name of its format; None to recognise it.
    """
    try:
        _, module = _choose_format(path, options, _select_formats(format), forced=format is not None)
        blocks = module.read(path, replace(options, model=None))
        first = next((block for block in blocks if isinstance(block, (Scores, Answers, TaskScores))), None)
    except (SuffrageError, OSError):
        return None
    return None if first is None else first.run.model


def _select_formats(format: str | None) -> Mapping[str, ModuleType]:
    known = load_formats()
    if format is None:
        return known
    if format not in known:
        raise NotFoundError("format", format, known)
    return {format: known[format]}


def _recognize(
    path: Path, options: ReadOptions, known: Mapping[str, ModuleType]
) -> tuple[ModuleType | None, dict[str, str]]:
    """The most specific format that recognises a file, and why the others decline."""
    reasons: dict[str, str] = {}
    best: list[ModuleType] = []
    for name, module in known.items():
        reason = module.declines(path, options)
        if reason is not None:
            reasons[name] = reason
        elif not best or _specificity(module) > _specificity(best[0]):
            best = [module]
        elif _specificity(module) == _specificity(best[0]):
            best.append(module)
    if len(best) > 1:
        names = [name for name, module in known.items() if module in best]
        raise UnknownFormatError(path, f"could be any of {', '.join(names)}; say which with --format.")
    return (best[0] if best else None), reasons


def _format_reasons(reasons: Mapping[str, str]) -> str:
    """Why each format declined; formats with the same reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(declining)}: {reason}" for reason, declining in names.items())


def _specificity(module: ModuleType) -> int:
    return int(getattr(module, "SPECIFICITY", 0))


def _choose_format(
    path: Path, options: ReadOptions, known: Mapping[str, ModuleType], *, forced: bool
) -> tuple[str, ModuleType]:
    if forced:
        return next(iter(known.items()))
    module, reasons = _recognize(path, options, known)
    if module is None:
        if unreadable := find_damage(path) or _explain_table(path):
            raise BadInputError(path, unreadable)
        text = f"no format recognises this file. Tried {_format_reasons(reasons)}."
        raise UnknownFormatError(path, text, advice="If you know what it is, name its format with --format.")
    return next((name, known_module) for name, known_module in known.items() if known_module is module)


def _explain_table(path: Path) -> str | None:
    """What keeps a file that is named like a table from being one, whatever the format."""
    top = read_head(path)
    if isinstance(top, TableHead) and sum(map(bool, top.names)) == 1:
        return (
            f"has only one column, {top.names[0]!r}. Is its first line the header, "
            "and do commas, semicolons or tabs stand between the names?"
        )
    return f"{top}." if isinstance(top, str) and is_named_like_a_table(path) else None


def _files(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise BadInputError(error.filename or folder, f"cannot be opened: {error.strerror}.") from error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))


def _drop_companions(recognized: Mapping[Path, ModuleType | None]) -> list[Path]:
    """The files without those that belong to another of them."""
    kept: list[Path] = []
    claimed: set[Path] = set()
    for path, module in recognized.items():
        if path.absolute() in claimed:
            continue
        belonging = _find_companions({path: module})
        claimed |= belonging
        kept = [file for file in kept if file.absolute() not in belonging]
        kept.append(path)
    return kept


def _find_companions(recognized: Mapping[Path, ModuleType | None]) -> set[Path]:
    """The files that are read with others."""
    return {
        file.absolute()
        for path, module in recognized.items()
        for file in getattr(module, "companions", lambda _: ())(path)
    }


def _describe_folder(folder: Path, unrecognized: Mapping[Path, str], known: Mapping[str, ModuleType]) -> str:
    looked = f"looked for {', '.join(known)}"
    if not unrecognized:
        return f"this folder holds no files ({looked})."
    file, reason = next(iter(unrecognized.items()))
    count = f"{len(unrecognized)} files" if len(unrecognized) > 1 else "one file"
    return f"this folder holds no results: {count}, none recognised ({looked}). {file.relative_to(folder)}: {reason}."
