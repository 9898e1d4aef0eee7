"""Checks that every file format passes, for the tests of a format."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import Answers, ParsedFile, Prompts, ReadOptions, Scores, StoreFile, TaskScores
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.reported_score import ReportedCount, ReportedScore

N_DAMAGED = 50
FOREIGN = (b"", b"\xff\xfe\x00", b"{", b"[[[[", b"prompt_id,a\nq,1\n", b'{"a": 1}\n', b"PK\x03\x04", b"PAR1")
"""Beginnings of files of other formats, and of none."""
INSERTIONS = (b"", b"null", b"-1", b"[]", b'"', b"\n", b"\xff", b"1e999")


def check_format(
    module: ModuleType, files: Mapping[str, bytes], folder: Path, options: ReadOptions | None = None
) -> dict[str, ParsedFile]:
    """Check what every format promises, on valid files of it; for the tests of other packages.

    The format matches and reads each file, no other format claims it, and other files do not match. Damaged files raise
    `BadInputError` or are read, and nothing else is raised. Blocks have columns of equal lengths.

    Args:
        module: the format.
        files: contents of valid files by name; files that do not match, such as companion files, are only laid out.
        folder: empty folder for the files.
        options: how to read them.

    Returns:
        The parsed files by name, for assertions about models, scores and prompts.

    Raises:
        AssertionError: a promise is broken; the message names it and the file.
    """
    options = options or ReadOptions(benchmark="benchmark")
    assert (module.__doc__ or "").strip(), f"{module.__name__} has no docstring, whose first line describes the format"
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    matching = [name for name in files if module.mismatch_reason(folder / name, options) is None]
    assert matching, f"mismatch_reason rejects all files: {', '.join(files)}"
    parsed = {name: _check_valid(module, folder / name, options) for name in matching}
    _check_foreign(module, folder, options)
    chance = random.Random(0)
    for number in range(N_DAMAGED):
        name = matching[number % len(matching)]
        _check_damaged(module, folder / name, _damage(files[name], chance), options)
        (folder / name).write_bytes(files[name])
    return parsed


def _check_valid(module: ModuleType, path: Path, options: ReadOptions) -> ParsedFile:
    claims = {
        name: getattr(rival, "SPECIFICITY", 0)
        for name, rival in load_formats().items()
        if rival.__name__ != module.__name__ and rival.mismatch_reason(path, options) is None
    }
    rivals = [name for name, specificity in claims.items() if specificity >= getattr(module, "SPECIFICITY", 0)]
    assert not rivals, f"{path.name}: {', '.join(rivals)} match it too; raise SPECIFICITY"
    check_blocks(module, path, options)
    is_registered = any(known.__name__ == module.__name__ for known in load_formats().values())
    assert is_registered, f"{module.__name__} is not registered under the entry-point group suffrage.formats"
    return parse_file(path, options)


def _check_foreign(module: ModuleType, folder: Path, options: ReadOptions) -> None:
    """Check that folders, missing files and files of other formats have a reason and raise nothing."""
    assert module.mismatch_reason(folder, options), "a folder must have a reason why it does not match"
    assert module.mismatch_reason(folder / "missing", options), "a missing file must have a reason"
    for place, data in enumerate(FOREIGN):
        path = folder / f"foreign-{place}.txt"
        path.write_bytes(data)
        reason = module.mismatch_reason(path, options)
        path.unlink()
        assert isinstance(reason, str), f"a file that begins with {data[:20]!r} must not match"
        assert reason, f"the reason for a file that begins with {data[:20]!r} is empty"


def _check_damaged(module: ModuleType, path: Path, data: bytes, options: ReadOptions) -> None:
    path.write_bytes(data)
    try:
        reason = module.mismatch_reason(path, options)
        assert reason is None or reason, f"{path.name}: the reason why it does not match is empty"
        check_blocks(module, path, options)
    except BadInputError:
        return
    except AssertionError:
        raise
    except Exception as error:
        problem = f"{path.name}, damaged: it raises {type(error).__name__} ({error}), not BadInputError: {data[:60]!r}"
        raise AssertionError(problem) from error


def check_blocks(module: ModuleType, path: Path, options: ReadOptions) -> None:
    """Read a file, and check that the format yields blocks whose columns have equal lengths.

    Raises:
        AssertionError: a block is invalid.
        BadInputError: the file is.
    """
    for part in module.read(path, options):
        kinds = (Prompts, Scores, Answers, TaskScores, ReportedScore, ReportedCount, StoreFile, str)
        assert isinstance(part, kinds), f"{path.name}: read yields {type(part).__name__}"
        if isinstance(part, TaskScores):
            assert len(part.tasks) == len(part.values), f"{path.name}: tasks and values differ in length"
        if isinstance(part, (Scores, Answers)):
            n = len(part.prompts)
            values = part.values if isinstance(part, Scores) else part.text
            assert len(values) == n, f"{path.name}: {len(values)} values for {n} prompts"
            assert np.ndim(part.trials) == 0 or np.shape(part.trials) == (n,), f"{path.name}: trials of another length"
            for column in (part.prompts.tasks, part.prompts.text, part.prompts.choices, part.prompts.answer):
                assert column is None or len(column) == n, f"{path.name}: a column of the prompts has another length"


def _damage(data: bytes, chance: random.Random) -> bytes:
    """Return a file that is cut, or in which some bytes are changed or doubled."""
    changed = bytearray(data)
    if chance.random() < 0.3:
        return bytes(changed[: chance.randrange(len(changed) + 1)])
    for _ in range(chance.choice((1, 2, 10))):
        place = chance.randrange(len(changed) + 1)
        end = place + chance.choice((0, 1, 5))
        changed[place:end] = chance.choice((*INSERTIONS, bytes(changed[:40])))
    return bytes(changed)
