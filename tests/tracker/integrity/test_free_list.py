"""A damaged list of free pages is reported, whatever SQLite checks, and a sound one never is."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from full_stores import list_faults, make_full_store
from hypothesis import given
from hypothesis import strategies as st
from plain_pages import FORMS, Form, MemoryPages, is_free_list_sound, list_trees, plain_owners

from tracker.cli import suffrage
from tracker.database import create_unchecked_engine
from tracker.integrity import free_list
from tracker.integrity.file_pages import FilePages, UnexpectedPageError
from tracker.integrity.free_list import are_used_once, check_free_list, find_free_list_faults, read_free_list
from tracker.integrity.page_trees import find_uses
from tracker.integrity.verification import snapshot

pytestmark = pytest.mark.tampers

Edits = list[tuple[int, int]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, dict[int, str]]]:
    """The content and the trees of a file of each form."""
    folder = tmp_path_factory.mktemp("forms")
    contents = {name: form.make(folder / f"{place}.db") for place, (name, form) in enumerate(FORMS.items())}
    return {name: (content, list_trees(content, folder)) for name, content in contents.items()}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with free pages."""
    path = tmp_path_factory.mktemp("free") / "full.db"
    make_full_store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE junk (content BLOB)")
        connection.executemany("INSERT INTO junk VALUES (randomblob(3000))", [()] * 30)
        connection.commit()
        connection.execute("DROP TABLE junk")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def find_faults(path: Path) -> list[str]:
    engine = create_unchecked_engine(f"sqlite:///{path}")
    try:
        with snapshot(engine) as connection:
            return find_free_list_faults(connection)
    finally:
        engine.dispose()


def write_words(content: bytes, edits: Edits) -> bytes:
    edited = bytearray(content)
    for place, value in edits:
        struct.pack_into(">I", edited, place, value)
    return bytes(edited)


def read_word(content: bytes, place: int) -> int:
    return int(struct.unpack_from(">I", content, place)[0])


def list_edits(content: bytes, used: list[int]) -> Iterator[tuple[str, Edits]]:
    """Edits of every part of the list, by what they do."""
    pages = MemoryPages(content)
    trunk, stated, last = read_word(content, 32), read_word(content, 36), pages.number
    targets = {"none": 0, "the first page": 1, "behind the end": last + 1, "far": 1 << 31, "used": used[0]}
    targets |= {"last used": used[-1], "the last page": last, "the largest": (1 << 32) - 1}
    for number in {0, 1, 2, 1 << 31, (1 << 32) - 1, stated + 1, abs(stated - 1)}:
        yield f"state {number} pages", [(36, number)]
    for name, page in targets.items():
        yield f"begin at {name}", [(32, page)]
        yield f"begin at {name}, state none", [(32, page), (36, 0)]
        yield f"begin at {name}, state one", [(32, page), (36, 1)]
        if 1 < page <= last:
            start = (page - 1) * pages.size
            yield f"begin at {name}, cleared", [(32, page), (36, 1), (start, 0), (start + 4, 0)]
    if not trunk:
        return
    start = (trunk - 1) * pages.size
    n = read_word(content, start + 4)
    targets["itself"] = trunk
    targets["a page named before"] = read_word(content, start + 8)
    for name, page in targets.items():
        yield f"go on with {name}", [(start, page)]
        for place in {0, n // 2, n - 1}:
            yield f"name {name} as {place}", [(start + 8 + 4 * place, page)]
        if n < pages.usable // 4 - 2:
            yield f"add {name}", [(start + 4, n + 1), (start + 8 + 4 * n, page), (36, stated + 1)]
    for number in {0, 1, n - 1, n + 1, pages.usable // 4 - 1, (1 << 32) - 1}:
        yield f"count {number} pages", [(start + 4, number)]
        yield f"count and state {number} pages", [(start + 4, number), (36, (stated - n + number) % (1 << 32))]


class TestAgainstReference:
    @pytest.mark.parametrize("name", FORMS)
    def test_owners_are_those_of_a_walk_over_cells(
        self, files: dict[str, tuple[bytes, dict[int, str]]], name: str
    ) -> None:
        content, trees = files[name]
        owners = find_uses(MemoryPages(content), trees).owners
        assert dict(zip(np.flatnonzero(owners).tolist(), owners[owners > 0].tolist(), strict=True)) == plain_owners(
            content, trees
        )

    @pytest.mark.parametrize("name", FORMS)
    def test_used_and_free_pages_are_those_of_sqlite(
        self, files: dict[str, tuple[bytes, dict[int, str]]], name: str, tmp_path: Path
    ) -> None:
        content, trees = files[name]
        (tmp_path / "form.db").write_bytes(content)
        pages = MemoryPages(content)
        with closing(sqlite3.connect(tmp_path / "form.db")) as connection:
            assert connection.execute("PRAGMA freelist_count").fetchone()[0] == len(read_free_list(pages).pages)
            try:
                used = {page for (page,) in connection.execute("SELECT pageno FROM dbstat")}
            except sqlite3.OperationalError as error:
                pytest.skip(str(error))
        assert set(np.flatnonzero(find_uses(pages, trees).owners).tolist()) == used

    @pytest.mark.parametrize("name", FORMS)
    def test_every_page_is_used_once(self, files: dict[str, tuple[bytes, dict[int, str]]], name: str) -> None:
        content, trees = files[name]
        pages, nothing = MemoryPages(content), np.array([], dtype=np.int64)
        counts = find_uses(pages, trees).counts
        assert set(counts.tolist()) == {0, 1}
        assert are_used_once(pages, trees, nothing) == (not any(content[52:56]))  # SQLite has maps of its own then
        used = sorted(plain_owners(content, trees).keys() - trees.keys())
        assert not are_used_once(pages, trees, np.array(used[:1]))
        assert not are_used_once(pages, [*trees][:-1], nothing)
        assert find_uses(pages, [*trees, *trees]).counts.max() == 2

    @pytest.mark.parametrize("name", FORMS)
    def test_every_edit_leaves_a_sound_list_or_is_reported(
        self, files: dict[str, tuple[bytes, dict[int, str]]], name: str
    ) -> None:
        content, trees = files[name]
        owners, n_reported = plain_owners(content, trees), 0
        for edit, words in list_edits(content, sorted(owners.keys() - trees.keys())):
            edited = write_words(content, words)
            is_sound = is_free_list_sound(edited, trees, owners)
            assert (check_free_list(MemoryPages(edited), trees) == []) == is_sound, edit
            n_reported += not is_sound
        assert n_reported > 20

    @given(data=st.data())
    def test_random_words_leave_a_sound_list_or_are_reported(
        self, files: dict[str, tuple[bytes, dict[int, str]]], data: st.DataObject
    ) -> None:
        content, trees = files[data.draw(st.sampled_from([*FORMS]))]
        pages, owners = MemoryPages(content), plain_owners(content, trees)
        trunk = read_word(content, 32)
        places = [32, 36, *((trunk - 1) * pages.size + 4 * word for word in range(8) if trunk)]
        values = st.one_of(st.integers(0, pages.number + 2), st.integers(0, (1 << 32) - 1))
        words = data.draw(st.lists(st.tuples(st.sampled_from(places), values), min_size=1, max_size=3))
        edited = write_words(content, words)
        assert (check_free_list(MemoryPages(edited), trees) == []) == is_free_list_sound(edited, trees, owners)

    @pytest.mark.parametrize("name", ["incremental vacuum", "incremental vacuum of small pages"])
    def test_a_free_page_that_the_map_shows_as_used_is_reported(
        self, files: dict[str, tuple[bytes, dict[int, str]]], name: str
    ) -> None:
        content, trees = files[name]
        pages = MemoryPages(content)
        n_mapped = pages.usable // 5 + 1
        for page in read_free_list(pages).pages.tolist():
            start = (page - 2) // n_mapped * n_mapped + 2
            edited = bytearray(content)
            edited[(start - 1) * pages.size + 5 * (page - start - 1)] = 5
            assert any(f"page {page} as free" in fault for fault in check_free_list(MemoryPages(bytes(edited)), trees))


class TestSound:
    @pytest.mark.parametrize("name", FORMS)
    def test_no_sound_file_has_a_fault(
        self, files: dict[str, tuple[bytes, dict[int, str]]], name: str, tmp_path: Path
    ) -> None:
        (tmp_path / "form.db").write_bytes(files[name][0])
        assert find_faults(tmp_path / "form.db") == []

    @pytest.mark.parametrize(("page_size", "auto_vacuum"), [(65536, 0), (8192, 2), (1024, 2)])
    def test_the_page_with_the_lock_is_no_free_page(self, tmp_path: Path, page_size: int, auto_vacuum: int) -> None:
        """A file of more than 1 GiB, most of it without content; with pages of 1,024 bytes a map follows the lock."""
        path = tmp_path / "large.db"
        content = Form(page_size=page_size, vacuum=True, auto_vacuum=auto_vacuum).make(path)
        lock, n_mapped = (1 << 30) // page_size + 1, page_size // 5 + 1
        trunk = lock + 3
        start = (trunk - 2) // n_mapped * n_mapped + 2
        start += start == lock
        for free in (lock, lock + 1, lock + 2):
            with path.open("wb") as file:
                file.write(write_words(content, [(28, trunk), (32, trunk), (36, 2)]))
                file.truncate(trunk * page_size)
                file.seek((trunk - 1) * page_size)
                file.write(struct.pack(">III", 0, 1, free))
                for page in (trunk, max(free, lock + 2)) if auto_vacuum else ():
                    file.seek((start - 1) * page_size + 5 * (page - start - 1))
                    file.write(b"\2")
            is_reserved = free == lock or (free == lock + 1 == start)
            assert any(f"page {free} that SQLite needs" in fault for fault in find_faults(path)) == is_reserved
            if free == lock + 2:
                assert find_faults(path) == []
            with closing(sqlite3.connect(path)) as connection:
                lines = connection.execute('PRAGMA integrity_check("sqlite_master")').fetchall()
            assert (lines == [("ok",)]) == (find_faults(path) == [])

    @pytest.mark.parametrize("words", [[], [(28, 0)], [(28, 9)], [(28, 9), (92, 77)], [(28, 1 << 31), (92, 77)]])
    def test_the_number_of_pages_is_that_of_sqlite(
        self, files: dict[str, tuple[bytes, dict[int, str]]], tmp_path: Path, words: Edits
    ) -> None:
        path = tmp_path / "form.db"
        path.write_bytes(write_words(files["ordinary"][0], words))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA page_count").fetchone()[0] == FilePages(path).number


class TestCommands:
    """As a user sees it: in a store, by either command, and with the way out."""

    def test_edits_of_a_store_are_reported(self, full: Path, tmp_path: Path) -> None:
        content, path = full.read_bytes(), tmp_path / "edited.db"
        trees = list_trees(content, tmp_path)
        owners = plain_owners(content, trees)
        assert list_faults(f"sqlite:///{full}") == []
        start = (read_word(content, 32) - 1) * 4096
        prompt = next(page for page, root in owners.items() if trees[root] == "prompt")
        for words, expected in (
            ([(36, 1)], "states 1"),
            ([(32, 0)], "states"),
            ([(32, prompt), (36, 1)], "page"),
            ([(start + 8, prompt)], f"page {prompt} of prompt may be overwritten"),
            ([(start + 8, 9_999)], "names page 9999 as free"),
            ([(start + 8, 1)], "page 1 that SQLite needs itself"),
            ([(start, read_word(content, 32))], "once more"),
            ([(start + 4, 5_000)], "counts 5,000 pages"),
        ):
            path.write_bytes(write_words(content, words))
            faults = list_faults(f"sqlite:///{path}")
            assert any(expected in fault for fault in faults), faults
        for command in ("doctor", "db check"):
            result = CliRunner().invoke(suffrage, [*command.split(), "--database", f"sqlite:///{path}"])
            assert result.exit_code == 1
            assert "counts 5,000 pages" in result.output

    def test_a_copy_by_rows_is_sound(self, full: Path, tmp_path: Path) -> None:
        content, path = full.read_bytes(), tmp_path / "edited.db"
        trees = list_trees(content, tmp_path)
        prompt = next(page for page, root in plain_owners(content, trees).items() if trees[root] == "prompt")
        start = (read_word(content, 32) - 1) * 4096
        path.write_bytes(write_words(content, [(start + 8, prompt)]))
        arguments = ["db", "backup", str(tmp_path / "backup.db"), "--database", f"sqlite:///{path}"]
        assert "may be overwritten" in str(CliRunner().invoke(suffrage, arguments).exception)
        urls = [f"sqlite:///{path}", f"sqlite:///{tmp_path / 'copy.db'}"]
        result = CliRunner().invoke(suffrage, ["db", "copy", *urls])
        assert result.exit_code == 0, result.output
        assert list_faults(urls[1]) == []

    def test_sqlite_checks_the_list_where_pages_cannot_be_read(
        self, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: sa.Connection) -> None:
            raise UnexpectedPageError("no descriptor")

        monkeypatch.setattr(free_list, "open_pages", fail)
        assert find_faults(full) == []
        path = tmp_path / "short.db"
        path.write_bytes(write_words(full.read_bytes(), [(36, 1)]))
        assert any("size is" in fault for fault in find_faults(path))
