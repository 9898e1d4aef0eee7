"""Folders of sealed files: on this machine, or at an address that fsspec knows, such as s3://bucket/folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tracker.errors import DatabaseError, MissingExtraError, OptionsError, OutputError, first_line
from tracker.private_files.temporary import temporary_folder, unfinished_output

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")
_MODE, _FOLDER_MODE = 0o600, 0o700


def normalize_address(address: str) -> str:
    """Return the address of a folder as it is stored: a full path, or a URL.

    Raises:
        OptionsError: the address holds a user name or a key.
    """
    if address.startswith("file://"):
        address = address.removeprefix("file://")
    match = _ADDRESS.match(address)
    if match is None:
        return str(Path(address).expanduser().absolute())
    if "@" in address[match.end() :].split("/", 1)[0] or "?" in address:
        raise OptionsError(
            "The address holds a user name, a key or parameters, which would be stored. Leave them out, and set the "
            "environment variables or files in which the provider expects them."
        )
    return address.rstrip("/")


def is_local(address: str) -> bool:
    """Return whether an address is a folder of this machine."""
    return _ADDRESS.match(address) is None


def write_folder(address: str, name: str, files: Path) -> str:
    """Copy finished files into a new folder, which only its owner can read.

    An equal folder stays as it is. A local folder of the same name with other files, such as damaged ones, stays too:
    the new one gets a number.

    Args:
        address: of the folder in which the new one is made; normalized.
        name: of the new folder.
        files: folder with the files; the manifest is written last.

    Returns:
        The address of the new folder.

    Raises:
        OutputError: it cannot be written.
    """
    names = (path.name for path in files.iterdir())
    ordered = sorted(names, key=lambda file_name: (file_name.endswith(".json"), file_name))
    if not is_local(address):
        place = f"{address}/{name}"
        system, path = _open_system(address)
        try:
            system.makedirs(f"{path}/{name}", exist_ok=True)
            for file_name in ordered:
                system.put_file(str(files / file_name), f"{path}/{name}/{file_name}")
        except Exception as error:
            raise OutputError(f"{place} cannot be written: {first_line(error)}.") from error
        return place
    parent = Path(address)
    numbered = (parent / (f"{name}-{number}" if number else name) for number in count())
    try:
        parent.mkdir(parents=True, exist_ok=True)
        target = next(place for place in numbered if not place.exists() or _are_equal(place, files))
        if target.exists():
            return str(target)
        with unfinished_output(target, is_folder=True, mode=_FOLDER_MODE) as unfinished:
            for file_name in ordered:
                _copy_durably(files / file_name, unfinished / file_name)
            _sync_folder(unfinished)
            unfinished.rename(target)
            _sync_folder(parent)
    except OSError as error:
        raise OutputError(f"{parent / name} cannot be written: {error.strerror or error}.") from error
    return str(target)


@contextmanager
def open_folder(address: str, names: Sequence[str]) -> Iterator[Path]:
    """Yield a folder of this machine with some files of a folder at an address.

    Raises:
        DatabaseError: a file is not there, or cannot be read.
    """
    if is_local(address):
        for name in names:
            if not (Path(address) / name).is_file():
                raise DatabaseError(
                    f"The sealed file {Path(address) / name} is missing. Restore the folder; if it has moved, name it: "
                    "suffrage unseal BENCHMARK --from FOLDER"
                )
        yield Path(address)
        return
    system, path = _open_system(address)
    with temporary_folder() as folder:
        for name in names:
            try:
                system.get_file(f"{path}/{name}", str(folder / name))
            except Exception as error:
                raise DatabaseError(
                    f"The sealed file {address}/{name} cannot be read: {first_line(error)}. If the folder has moved, "
                    "name it: suffrage unseal BENCHMARK --from ADDRESS"
                ) from error
        yield folder


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _are_equal(folder: Path, files: Path) -> bool:
    """Return whether a folder has the same files as another."""
    places = {path.name: folder / path.name for path in files.iterdir()}
    return all(
        place.is_file() and hash_file(place) == hash_file(files / file_name) for file_name, place in places.items()
    )


def _open_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    purpose = f"Reading and writing {address.split('://', 1)[0]}://"
    try:
        import fsspec

        return fsspec.core.url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingExtraError(purpose, "cloud") from error
    except ValueError as error:
        raise OptionsError(f"{address}: {first_line(error)}.") from error


def _copy_durably(source: Path, target: Path) -> None:
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE)
    with source.open("rb") as reader, os.fdopen(descriptor, "wb") as writer:
        while block := reader.read(1 << 20):
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
