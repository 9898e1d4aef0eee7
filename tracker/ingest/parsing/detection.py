"""Search for result files, and parsing of a file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from tracker.connections.store_url import FILE_SUFFIXES, PACK_SUFFIX
from tracker.errors import BadInputError, SuffrageError
from tracker.ingest.files.file_contents import check_columns, find_damage
from tracker.ingest.files.missing_files import check_regular, explain_missing, explain_unreadable
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import Answers, ParsedFile, ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.file_blocks import ReadProgress, hash_files, parse_blocks
from tracker.ingest.parsing.recognition import (
    ADVICE,
    choose_format,
    explain_mismatch,
    recognize_format,
    select_formats,
)
from tracker.ingest.tables.find_layout import find_rejection


def find_files(
    paths: Sequence[Path],
    options: ReadOptions | None = None,
    *,
    format: str | None = None,
    skipped: Callable[[Path, str], None] | None = None,
) -> list[Path]:
    """Return the files to read: the named files, and those in the named folders that match a format.

    Prompt tables come first, because answers are scored against them. A companion file is read with the file that
    it belongs to. Hidden files and packed scores are skipped.

    Args:
        paths: files and folders.
        options: how to read them.
        format: name of the only format to look for.
        skipped: receives each file of a folder that matches no format, with the reason. Empty and truncated files
            are not skipped, so that `parse_file` rejects them.

    Raises:
        BadInputError: a path does not exist, or a folder holds no results.
        NotFoundError: no such format.
    """
    options = options or ReadOptions()
    known = select_formats(format)
    if len(paths) == 1 and paths[0].is_file():
        return list(paths)
    recognized: dict[Path, ModuleType | None] = {}
    for path in paths:
        if not path.exists():
            raise explain_missing(path)
        if not path.is_dir():
            check_regular(path)
            recognized.setdefault(path, _recognize(path, options, known))
            continue
        unrecognized: dict[Path, str] = {}
        results = 0
        for file in _files(path):
            module = _recognize(file, options, known)
            if module is not None or find_damage(file) or (format is None and find_rejection(file, options)):
                results += 1
                recognized.setdefault(file, module)
            else:
                unrecognized[file] = explain_mismatch(file, options, known)
        if not results:
            raise BadInputError(path, _describe_folder(path, unrecognized))
        if skipped is not None:
            companion_files = _find_companions(recognized)
            for file, reason in unrecognized.items():
                if file.absolute() not in companion_files:
                    skipped(file, reason)
    first = [path for path, module in recognized.items() if getattr(module, "PROMPTS_ONLY", False)]
    return first + _drop_companions({path: module for path, module in recognized.items() if path not in first})


def parse_file(
    path: Path,
    options: ReadOptions,
    *,
    format: str | None = None,
    partial: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ParsedFile:
    """Recognize the format of a file and parse it.

    Args:
        path: the file.
        options: how to read it.
        format: name of its format; None to detect it.
        partial: keep the valid part of a damaged file.
        progress: receives the number of bytes read so far, and the total.

    Raises:
        UnknownFormatError: no format matches the file, or several do.
        BadInputError: the file is invalid; the advice lists what could be read.
        NotFoundError: no such format.
        OutputError: no disk space for the temporary file.
    """
    if not path.exists():
        raise explain_missing(path)
    if path.is_dir():
        raise BadInputError(path, "is a folder, not a file.")
    check_regular(path)
    known = select_formats(format)
    check_columns(path)
    try:
        if path.stat().st_size == 0:
            raise BadInputError(path, "is empty.", advice="Write or download it again.")
        name, module = choose_format(path, options, known, forced=format is not None)
        _check_splits(path, options, name, module)
        _check_column_options(path, options, name, module)
        companion_files = getattr(module, "companion_files", lambda _: ())
        files = (path, *companion_files(path))
        position = ReadProgress(sum(file.stat().st_size for file in files), progress)
        digest = hash_files(files, position)
        parsed = parse_blocks(path, module, options, position, partial=partial)
        harness = getattr(module, "harness_name", lambda _: None)(path)
        reading = getattr(module, "describe_reading", lambda *_: None)(path, options)
    except SuffrageError:
        raise
    except OSError as error:
        raise explain_unreadable(path, error) from error
    return ParsedFile(
        path=path,
        files=files,
        format=name,
        harness=harness,
        reading=reading,
        digest=digest,
        identity=identify_content(digest, name, options),
        measurements=parsed.blocks,
        warnings=parsed.warnings,
        differences=parsed.differences,
        damage=parsed.damage,
        store=parsed.store,
    )


def identify_content(digest: str, format: str, options: ReadOptions) -> str:
    """Return the SHA-256 of a file's digest, the name of its format, and the options it is read with."""
    inputs = json.dumps([digest, format, options.as_json()], sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()


def _check_splits(path: Path, options: ReadOptions, name: str, module: ModuleType) -> None:
    if options.splits and not getattr(module, "SUPPORTS_SPLITS", False):
        takers = ", ".join(
            other_format for other_format, taker in load_formats().items() if getattr(taker, "SUPPORTS_SPLITS", False)
        )
        raise BadInputError(
            path,
            f"--split does not apply to files of the format {name}.",
            advice=f"Omit --split; it applies to {takers}.",
        )


def _check_column_options(path: Path, options: ReadOptions, name: str, module: ModuleType) -> None:
    chosen = {
        "--map": options.columns,
        "--task-columns": options.task_columns,
        "--ignore-columns": options.ignore_columns,
    }
    used = next((option for option, value in chosen.items() if value), None)
    if used is not None and not getattr(module, "READS_COLUMNS", False):
        raise BadInputError(path, f"{used} does not apply to files of the format {name}.", advice=f"Omit {used}.")


def read_model_name(path: Path, options: ReadOptions, *, format: str | None = None) -> str | None:
    """Return the model of the first run in a file; None if the file does not name one or cannot be read.

    Args:
        path: the file.
        options: how to read it; their model is ignored.
        format: name of its format; None to detect it.
    """
    try:
        _, module = choose_format(path, options, select_formats(format), forced=format is not None)
        blocks = module.read(path, replace(options, model=None))
        first = next((block for block in blocks if isinstance(block, (Scores, Answers, TaskScores))), None)
    except (SuffrageError, OSError):
        return None
    return None if first is None else first.run.model


def _recognize(path: Path, options: ReadOptions, known: Mapping[str, ModuleType]) -> ModuleType | None:
    name = recognize_format(path, options, known)
    return None if name is None else known[name]


def _files(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise BadInputError(error.filename or folder, f"cannot be opened: {error.strerror}.") from error

    packs = tuple(f"{suffix}{PACK_SUFFIX}" for suffix in FILE_SUFFIXES)
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or name.endswith(packs)))
        files = (Path(parent, name) for name in sorted(names) if not name.startswith("."))
        yield from (file for file in files if file.is_file() or not file.exists())  # a pipe would never end


def _drop_companions(recognized: Mapping[Path, ModuleType | None]) -> list[Path]:
    """Return the files without companion files of others."""
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
    """Return the companion files of all files."""
    return {
        file.absolute()
        for path, module in recognized.items()
        for file in getattr(module, "companion_files", lambda _: ())(path)
    }


def _describe_folder(folder: Path, unrecognized: Mapping[Path, str]) -> str:
    if not unrecognized:
        return "this folder holds no files. Check the path."
    file, reason = next(iter(unrecognized.items()))
    several = len(unrecognized) > 1
    count = (
        f"none of its {len(unrecognized):,} files matches a format" if several else "its only file matches no format"
    )
    return f"this folder holds no results: {count}.\n{file.relative_to(folder)} is {reason}.\n{ADVICE}"
