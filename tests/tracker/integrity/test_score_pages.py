"""Scores read from the pages of a SQLite file are those of a query, and nothing damaged is read as sound."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from tracker.database import CHECK_FILE, IGNORE_CHECKS, create_unchecked_engine
from tracker.ingest.write.score_columns import TRIAL_BITS
from tracker.integrity.file_pages import UnexpectedPageError, find_descriptor
from tracker.integrity.verification import snapshot
from tracker.recording.checks.file_program import find_damage
from tracker.recording.checks.large_tables import open_unshared_scores
from tracker.recording.checks.score_pages import open_scores
from tracker.recording.checks.score_records import INNER, LEAF
from tracker.schema import metadata

Row = tuple[int, int, int, int, float]
LARGE = (1 << 31) - 1


def make_file(path: Path, rows: list[Row], page_size: int = 512) -> None:
    """A file with nothing but a table of scores, written in any order."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        engine = sa.create_engine(f"sqlite:///{path}")
        create = sa.schema.CreateTable(metadata.tables["score"]).compile(engine)
        connection.execute(str(create))
        connection.executemany("INSERT INTO score VALUES (?, ?, ?, ?, ?)", random.Random(0).sample(rows, len(rows)))
        connection.commit()
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def draw_rows(n: int, seed: int) -> list[Row]:
    draw = random.Random(seed)
    numbers = (0, 1, 2, 127, 128, 300, 40_000, 9_000_000, LARGE)
    values = (0.0, 1.0, -1.0, 0.5, 1e300, -2.5e-300, 300.0, 70_000.0, 2.0**40, -(2.0**50), draw.random())
    keys = {
        (
            draw.choice(numbers[1:]),
            draw.choice(numbers[1:6]),
            draw.randrange(5 * n),
            draw.choice((*numbers[:3], LARGE)),
        )
        for _ in range(n)
    }
    return [(*key, draw.choice(values)) for key in keys]


def read(path: Path) -> list[Row]:
    """All rows, from the pages."""
    engine = create_unchecked_engine(f"sqlite:///{path}")
    try:
        with snapshot(engine) as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            parts = [
                (run.copy(), metric.copy(), key >> TRIAL_BITS, key & LARGE, value.copy())
                for run, metric, key, value in open_scores(connection).read()
            ]
    finally:
        engine.dispose()
    return [tuple(row) for part in parts for row in zip(*(column.tolist() for column in part), strict=True)]


def is_sound(path: Path) -> bool:
    """Whether the pages of scores are as expected, and no page of the file is used twice or never."""
    engine = create_unchecked_engine(f"sqlite:///{path}")
    try:
        with snapshot(engine) as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
            return len(list(open_unshared_scores(connection).read())) > 0
    except (UnexpectedPageError, sa.exc.DatabaseError):
        return False
    finally:
        engine.dispose()


def list_damage(path: Path, skipped: str = "") -> list[str]:
    """What SQLite reports, of all tables or of all but one."""
    try:
        return find_damage(f"file:{path}", "5", IGNORE_CHECKS, CHECK_FILE, skipped)
    except sqlite3.DatabaseError as error:
        return [str(error)]


def query(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM score ORDER BY run_id, metric_id, prompt_id, trial").fetchall()


def empty_last_leaf(content: bytearray, starts: dict[str, int]) -> None:
    at = starts["score"]
    while content[at] == INNER:
        at = (int.from_bytes(content[at + 8 : at + 12]) - 1) * 512
    content[at : at + 512] = struct.pack(">BHHHB", LEAF, 0, 0, 512, 0).ljust(512, b"\0")


def split_free_block(content: bytearray, starts: dict[str, int]) -> None:
    assert starts
    leaves = [at for at in range(512, len(content), 512) if content[at] == LEAF and any(content[at + 1 : at + 3])]
    for at in leaves:
        block = at + int.from_bytes(content[at + 1 : at + 3])
        following, size = struct.unpack_from(">HH", content, block)
        if size >= 8 and not following:
            struct.pack_into(">HHHH", content, block, block - at + 4, 4, 0, size - 4)
            return
    raise AssertionError


def point_outside(content: bytearray, starts: dict[str, int]) -> None:
    content[starts["score"] + 8] ^= 0x40


def end_a_cell_at_the_page(content: bytearray, starts: dict[str, int]) -> None:
    assert content[starts["zb"]] == INNER
    struct.pack_into(">H", content, starts["zb"] + 12, 508)


def state_half_of_automatic_vacuum(content: bytearray, starts: dict[str, int]) -> None:
    assert starts
    content[67] ^= 1


def add_bytes(content: bytearray, starts: dict[str, int]) -> None:
    assert starts
    content += b"x" * 100
    content[95] ^= 1


def store_no_number(content: bytearray, starts: dict[str, int]) -> None:
    """A NaN is read as NULL."""
    assert starts
    at = content.index(struct.pack(">d", 1000.5))
    content[at : at + 8] = struct.pack(">d", float("nan"))


DAMAGE = {
    function.__name__: function
    for function in (
        empty_last_leaf, split_free_block, point_outside, end_a_cell_at_the_page, state_half_of_automatic_vacuum,
        add_bytes, store_no_number,
    )
}  # fmt: skip
"""Changes of the bytes of a file with pages of 512, given where its trees start."""


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose pages have free blocks and records in any order, beside free pages and another table."""
    path = tmp_path_factory.mktemp("pages") / "holes.db"
    make_file(path, draw_rows(4000, 2))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (key INTEGER PRIMARY KEY, content BLOB)")
        connection.executemany("INSERT INTO other (content) VALUES (zeroblob(?))", [(n * 40,) for n in range(60)])
        connection.execute("DELETE FROM other WHERE key % 4 = 0")
        connection.execute("DELETE FROM score WHERE prompt_id % 3 = 0")
        connection.executemany("INSERT OR IGNORE INTO score VALUES (?, ?, ?, ?, ?)", draw_rows(500, 3))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "sound.db"
    make_file(path, draw_rows(3000, 1))
    return path


class TestAgainstQuery:
    @pytest.mark.parametrize("page_size", [512, 4096, 65536])
    @pytest.mark.parametrize("n", [0, 1, 40, 9000])
    def test_rows_are_those_of_a_query(self, n: int, page_size: int, tmp_path: Path) -> None:
        make_file(tmp_path / "scores.db", draw_rows(n, n), page_size)
        assert read(tmp_path / "scores.db") == query(tmp_path / "scores.db")

    def test_rows_in_holes_of_deleted_rows(self, holes: Path) -> None:
        assert read(holes) == query(holes)

    def test_sound_files_are_sound(self, sound: Path, holes: Path) -> None:
        assert is_sound(sound)
        assert is_sound(holes)
        assert list_damage(sound) == list_damage(holes) == []


class TestUnexpected:
    def test_changes_that_are_not_merged(self, sound: Path, tmp_path: Path) -> None:
        path = tmp_path / "open.db"
        shutil.copy(sound, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE score SET value = 7")
            connection.commit()
            with pytest.raises(UnexpectedPageError, match="not merged"):
                read(path)

    @pytest.mark.parametrize(
        "statements",
        [
            ["CREATE INDEX ix ON score (value)"],
            ["ALTER TABLE score ADD COLUMN extra INTEGER"],
            ["CREATE TABLE copy AS SELECT * FROM score", "DROP TABLE score", "ALTER TABLE copy RENAME TO score"],
        ],
    )
    def test_a_table_of_another_form(self, sound: Path, tmp_path: Path, statements: list[str]) -> None:
        path = tmp_path / "other.db"
        shutil.copy(sound, path)
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        with pytest.raises(UnexpectedPageError, match="form"):
            read(path)

    @pytest.mark.parametrize("value", [None, "much", b"1"])
    def test_values_that_are_not_numbers(self, sound: Path, tmp_path: Path, value: object) -> None:
        path = tmp_path / "typed.db"
        shutil.copy(sound, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'value DOUBLE NOT NULL', 'value DOUBLE')")
            connection.commit()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(
                "UPDATE score SET value = ? WHERE prompt_id = (SELECT max(prompt_id) FROM score)", [value]
            )
            connection.commit()
        with pytest.raises(UnexpectedPageError, match="record"):
            read(path)

    def test_a_file_that_this_process_does_not_have_open(self, sound: Path) -> None:
        with pytest.raises(UnexpectedPageError, match="not open"):
            find_descriptor(sound)

    def test_swapped_cells_are_out_of_order(self, sound: Path, tmp_path: Path) -> None:
        path = tmp_path / "swapped.db"
        content = bytearray(sound.read_bytes())
        leaf = next(at for at in range(512, len(content), 512) if content[at] == LEAF)
        first, second = struct.unpack_from(">HH", content, leaf + 8)
        struct.pack_into(">HH", content, leaf + 8, second, first)
        path.write_bytes(content)
        with pytest.raises(UnexpectedPageError, match="out of order"):
            read(path)


class TestDamage:
    def test_flipped_bits_change_the_rows_or_are_noticed(self, sound: Path, tmp_path: Path) -> None:
        """As a query reads them, whatever is flipped: a crash, a loop or another row would show."""
        path, draw, expected = tmp_path / "flipped.db", random.Random(5), query(sound)
        content, n_noticed, n_changed = sound.read_bytes(), 0, 0
        for _ in range(300):
            place, damaged = draw.randrange(512, len(content)), bytearray(content)
            damaged[place] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            try:
                rows = read(path)
            except UnexpectedPageError:
                n_noticed += 1
                continue
            n_changed += rows != expected
            assert rows == expected or rows == query(path)
        assert n_noticed > 50
        assert n_changed > 20

    @pytest.mark.parametrize("name", list(DAMAGE))
    def test_rare_damage_is_not_sound(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "damaged.db"
        make_file(path, [(1, 1, 5000, 0, 1000.5), *((1, 1, n, 0, float(n % 2)) for n in range(1, 2001))])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE z (a INTEGER PRIMARY KEY, b TEXT)")
            connection.executemany("INSERT INTO z (b) VALUES (?)", [(f"text {n}",) for n in range(2000)])
            connection.execute("CREATE INDEX zb ON z (b)")
            connection.execute("DELETE FROM score WHERE prompt_id BETWEEN 1010 AND 1012")
            connection.commit()
            roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall())
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert is_sound(path)
        content = bytearray(path.read_bytes())
        DAMAGE[name](content, {key: (root - 1) * 512 for key, root in roots.items()})
        path.write_bytes(content)
        assert list_damage(path) or name == "store_no_number"  # which SQLite passes over
        assert not is_sound(path)

    def test_a_tree_that_names_a_page_many_times_ends_early(self, tmp_path: Path) -> None:
        """Four pages would stand for thousands: every cell of the first names the second, whose cells name a leaf."""
        path, n = tmp_path / "bomb.db", 70
        make_file(path, [])
        content = bytearray(path.read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'score'").fetchone()
        number = len(content) // 512
        starts = [512 - 5 * (cell + 1) for cell in range(n)]

        def make_inner(child: int) -> bytes:
            head = struct.pack(f">BHHHBI{n}H", INNER, 0, n, starts[-1], 0, child, *starts)
            return head.ljust(starts[-1], b"\0") + struct.pack(">IB", child, 0) * n

        leaf = content[(root - 1) * 512 : root * 512]
        content[(root - 1) * 512 : root * 512] = make_inner(number + 1)
        content += make_inner(number + 2) + leaf
        struct.pack_into(">I", content, 28, number + 2)
        path.write_bytes(content)
        with pytest.raises(UnexpectedPageError, match="loop"):
            read(path)

    @pytest.mark.parametrize("name", ["sound", "holes"])
    def test_what_sqlite_reports_is_not_sound(self, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        """Half of the flips hit the heads of pages, where the places and sizes of records and free blocks are."""
        path, draw, content = tmp_path / "flipped.db", random.Random(7), request.getfixturevalue(name).read_bytes()
        n_reported, n_sound = 0, 0
        for turn in range(400):
            place, damaged = draw.randrange(512, len(content)), bytearray(content)
            place = place // 512 * 512 + draw.randrange(10) if turn % 2 else place
            damaged[place] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            damage, passes = list_damage(path), is_sound(path) and not list_damage(path, "score")
            assert not (damage and passes), (place, damage)
            n_reported, n_sound = n_reported + bool(damage), n_sound + passes
        assert n_reported > 100
        assert n_sound > 20

    @pytest.mark.parametrize(
        ("kind", "at", "content", "problem"),
        [
            (LEAF, 3, b"\xff\xff", "record"),  # cells that would lie beyond the page
            (LEAF, 8, b"\xff\xff", "record"),
            (LEAF, 8, b"\x01\xfe", "record"),  # a record that would end beyond it
            (LEAF, 0, b"\x0d", "record"),
            (INNER, 3, b"\xff\xff", "."),
            (INNER, 8, b"\x00\x00\x00\x00", "outside"),
            (INNER, 8, b"\x00\x00\x00\x01", "outside"),
            (INNER, 8, b"\x7f\xff\xff\xff", "outside"),
        ],
    )
    def test_pages_that_point_elsewhere_are_noticed(
        self, sound: Path, tmp_path: Path, kind: int, at: int, content: bytes, problem: str
    ) -> None:
        path, damaged = tmp_path / "pointing.db", bytearray(sound.read_bytes())
        page = [start for start in range(512, len(damaged), 512) if damaged[start] == kind][1]
        damaged[page + at : page + at + len(content)] = content
        path.write_bytes(damaged)
        with pytest.raises(UnexpectedPageError, match=problem):
            read(path)

    def test_a_tree_that_is_its_own_branch_ends(self, sound: Path, tmp_path: Path) -> None:
        with closing(sqlite3.connect(sound)) as connection:
            (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'score'").fetchone()
        path, damaged = tmp_path / "loop.db", bytearray(sound.read_bytes())
        page = (root - 1) * 512
        first = struct.unpack_from(">H", damaged, page + 12)[0]
        for place in (page + first, page + 8):
            struct.pack_into(">I", damaged, place, root)
        path.write_bytes(damaged)
        with pytest.raises(UnexpectedPageError, match="deep"):
            read(path)

    def test_a_file_that_is_cut_off(self, sound: Path, tmp_path: Path) -> None:
        path = tmp_path / "short.db"
        path.write_bytes(sound.read_bytes()[: 512 * 40 + 100])
        with pytest.raises((UnexpectedPageError, sa.exc.DatabaseError)):
            read(path)

    def test_pages_of_noise_end(self, sound: Path, tmp_path: Path) -> None:
        path, draw, content = tmp_path / "noise.db", random.Random(6), sound.read_bytes()
        for _ in range(60):
            damaged = bytearray(content)
            page = draw.randrange(1, len(content) // 512) * 512
            damaged[page + 1 : page + 512] = draw.randbytes(511)
            path.write_bytes(damaged)
            try:
                assert read(path) != query(sound)
            except (UnexpectedPageError, sa.exc.DatabaseError, sqlite3.DatabaseError):
                continue


def test_a_reader_sees_one_state_while_others_write(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    shutil.copy(sound, path)
    expected = query(path)
    engine = create_unchecked_engine(f"sqlite:///{path}")
    with snapshot(engine) as connection, closing(sqlite3.connect(path)) as writer:
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        batches: Iterator[tuple[np.ndarray, ...]] = open_scores(connection).read()
        first = next(batches)
        n, total = len(first[0]), float(first[3].sum())
        writer.execute("UPDATE score SET value = 7")
        writer.commit()
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        for batch in batches:
            n, total = n + len(batch[0]), total + float(batch[3].sum())
    engine.dispose()
    assert (n, total) == (len(expected), pytest.approx(sum(row[4] for row in expected)))
