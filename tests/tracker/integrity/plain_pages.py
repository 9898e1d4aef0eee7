"""The pages of a SQLite file in memory, their use read in the slow, obvious way, and files of several forms."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class MemoryPages:
    """The pages of a file that is read into memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = {1: 65536}.get(size := int.from_bytes(content[16:18]), size)
        self.usable = self.size - content[20]
        self.number = len(content) // self.size

    def load(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(self.read(page, 0, self.size) for page in numbers.tolist()), dtype=np.uint8)

    def read(self, page: int, start: int, n: int) -> bytes:
        at = (page - 1) * self.size + start
        return self.content[at : at + n]


def list_trees(content: bytes, folder: Path) -> dict[int, str]:
    """The names of tables and indexes by their first page."""
    path = folder / "trees.db"
    path.write_bytes(content)
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT rootpage, name FROM sqlite_master WHERE rootpage > 0").fetchall()
    return {1: "sqlite_master", **dict(rows)}


def plain_owners(content: bytes, trees: dict[int, str]) -> dict[int, int]:
    """The first page of the tree of each page, by a walk over single cells of sound trees."""
    pages = MemoryPages(content)
    owners: dict[int, int] = {}
    for root in trees:
        waiting = [root]
        while waiting:
            page = waiting.pop()
            owners[page] = root
            data, head = pages.read(page, 0, pages.size), 100 if page == 1 else 0
            kind, n_cells = data[head], int.from_bytes(data[head + 3 : head + 5])
            is_inner = kind in (2, 5)
            if is_inner:
                waiting.append(int.from_bytes(data[head + 8 : head + 12]))
            for cell in range(n_cells):
                place = head + (12 if is_inner else 8) + 2 * cell
                at = int.from_bytes(data[place : place + 2])
                if is_inner:
                    waiting.append(int.from_bytes(data[at : at + 4]))
                    at += 4
                if kind == 5:
                    continue
                payload, at = read_varint(data, at)
                if kind == 13:
                    _, at = read_varint(data, at)
                overflow = at + local_bytes(payload, pages.usable, is_table=kind == 13)
                next_page = int.from_bytes(data[overflow : overflow + 4]) if overflow < at + payload else 0
                while next_page:
                    owners[next_page] = root
                    next_page = int.from_bytes(pages.read(next_page, 0, 4))
    return owners


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 127)
        if byte < 128:
            return value, at + place + 1
    raise AssertionError


def local_bytes(payload: int, usable: int, *, is_table: bool) -> int:
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if payload <= most:
        return payload
    least = (usable - 12) * 32 // 255 - 23
    part = least + (payload - least) % (usable - 4)
    return part if part <= most else least


def is_free_list_sound(content: bytes, trees: dict[int, str], owners: dict[int, int]) -> bool:
    """Whether the list of free pages names as many pages as stated, each once, and none that is used."""
    pages = MemoryPages(content)
    numbers: list[int] = []
    trunk, stated = (int.from_bytes(content[at : at + 4]) for at in (32, 36))
    while trunk and len(numbers) <= stated:
        if trunk > pages.number:
            return False
        words = [int.from_bytes(pages.read(trunk, at, 4)) for at in range(0, pages.usable // 4 * 4, 4)]
        if words[1] > len(words) - 2:
            return False
        numbers += [trunk, *words[2 : 2 + words[1]]]
        trunk = words[0]
    lock, per_map = (1 << 30) // pages.size + 1, pages.usable // 5 + 1
    reserved = {1, lock}
    if any(content[52:56]):
        reserved |= {start + (start == lock) for start in range(2, pages.number + 1, per_map)}
    return (
        trunk == 0
        and len(numbers) == len(set(numbers)) == stated
        and all(0 < page <= pages.number for page in numbers)
        and not set(numbers) & (owners.keys() | reserved)
    )


@dataclass(frozen=True)
class Form:
    """How a file is written: its pages, their reserved bytes, the mode of vacuum, and the bytes of its deleted rows."""

    page_size: int = 4096
    reserved: int = 0
    auto_vacuum: int = 0
    n_deleted: int = 60_000
    vacuum: bool = False

    def make(self, path: Path) -> bytes:
        """Write a file with tables of all kinds, a view that comes last, and free pages."""
        draw = random.Random(3)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {self.page_size}")
            connection.execute(f"PRAGMA auto_vacuum = {self.auto_vacuum}")
            connection.execute("PRAGMA user_version = 1")
        if self.reserved:
            content = bytearray(path.read_bytes())
            content[20] = self.reserved
            content[105:107] = (self.page_size - self.reserved).to_bytes(2)
            path.write_bytes(content)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, text TEXT, number REAL)")
            connection.execute("CREATE TABLE keyed (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID")
            connection.execute("CREATE TABLE removed (content BLOB)")
            connection.execute("CREATE TABLE ended (content BLOB)")
            connection.execute("CREATE INDEX by_text ON plain (text)")
            for n in range(400):
                length = draw.choice([3, 20, 90, 95, 105, 120, 130, 400, 500, 1_000, 4_050, 4_070, 9_000, 30_000])
                length = length if length < 1_000 or n % 10 == 0 else 40
                values = (n * 1_000_003, draw.randbytes(length // 2).hex(), draw.random())
                connection.execute("INSERT INTO plain VALUES (?, ?, ?)", values)
                connection.execute("INSERT INTO keyed VALUES (?, ?)", (values[1][::-1], n))
                connection.execute("INSERT INTO removed VALUES (?)", (draw.randbytes(self.n_deleted // 400),))
            for length in range(1_100 if self.page_size == 512 else 0):  # around every limit of the bytes on a page
                connection.execute("INSERT INTO plain (text) VALUES (?)", (draw.randbytes(length).hex()[:length],))
            connection.execute("INSERT INTO ended VALUES (zeroblob(?))", (self.n_deleted,))
            connection.execute("DROP TABLE removed")
            connection.execute("DELETE FROM ended")
            connection.execute("CREATE VIEW zz AS SELECT * FROM plain")
            connection.execute("COMMIT")
            if self.vacuum:
                connection.execute("VACUUM")
        return path.read_bytes()


FORMS = {
    "ordinary": Form(),
    "vacuumed": Form(vacuum=True),
    "small pages": Form(page_size=512),
    "small pages with reserved bytes": Form(page_size=512, reserved=32),
    "large pages": Form(page_size=65536, n_deleted=400_000),
    "reserved bytes": Form(reserved=24),
    "incremental vacuum": Form(auto_vacuum=2),
    "incremental vacuum of small pages": Form(auto_vacuum=2, page_size=512),
    "full vacuum": Form(auto_vacuum=1, page_size=1024, reserved=8),
    "several trunks": Form(page_size=512, n_deleted=300_000),
}
