"""Blocks that have left memory are the blocks that were put in."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from measurement_blocks import B, answers, parsed_file, prompts, scores, stored_contents, task_scores
from sqlalchemy.orm import Session

from tracker import database
from tracker.ingest.measurement import Answers, Measurement, ParsedFile, Prompts, Scores
from tracker.ingest.parsing.block_buffer import BlockBuffer
from tracker.ingest.resolve import prompt_index as prompt_index
from tracker.ingest.write.writer import store_file

MAX_MEGABYTES = 300

keys = st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True)


@st.composite
def blocks(draw: st.DrawFn) -> list[Measurement]:
    rows_found: list[Measurement] = []
    for _ in range(draw(st.integers(1, 6))):
        of = prompts([("t", key) for key in draw(keys)], text=[draw(st.text(max_size=20))] * 1 or None)
        of = Prompts(keys=of.keys, tasks=of.tasks, details=[{"n": n, "é\ud800": [n]} for n in range(len(of))])
        rows_found += [
            scores({str(n): float(n % 2) for n in range(len(of))}, of=of),
            Answers(run=rows_found[0].run, prompts=of, text=[None, *"x" * (len(of) - 1)])
            if rows_found and isinstance(rows_found[0], Scores)
            else of,
            task_scores({"t": 0.5}, draw(st.sampled_from("mn"))),
        ]
    return rows_found


def buffered(measurements: list[Measurement], limit: int) -> BlockBuffer:
    buffer = BlockBuffer(limit)
    for block in measurements:
        buffer.append(block)
    return buffer


def describe_block(block: Measurement) -> list[Any]:
    """A block as plain values."""
    parts = [block] if isinstance(block, Prompts) else [block, getattr(block, "prompts", None)]
    return [
        [np.asarray(value).tolist() if isinstance(value, np.ndarray) else value for name, value in vars(part).items()
         if name != "prompts"]
        for part in parts if part is not None
    ]  # fmt: skip


class TestLaws:
    @settings(max_examples=40)
    @given(measurements=blocks(), limit=st.sampled_from([0, 500, 1 << 20]))
    def test_what_comes_out_is_what_was_put_in_as_often_as_read(
        self, measurements: list[Measurement], limit: int
    ) -> None:
        buffer = buffered(measurements, limit)
        assert len(buffer) == len(measurements)
        for _ in range(2):
            assert [describe_block(block) for block in buffer] == [describe_block(block) for block in measurements]
        assert describe_block(buffer[-1]) == describe_block(measurements[-1])
        assert [describe_block(block) for block in buffer[1:3]] == [
            describe_block(block) for block in measurements[1:3]
        ]
        buffer.close()

    def test_blocks_that_share_prompts_and_runs_still_do(self) -> None:
        of = prompts(["a", "b"])
        first = scores({"a": 1, "b": 0}, of=of)
        second = Scores(run=first.run, metric=first.metric, prompts=of, values=first.values)
        buffer = buffered([first, second], 0)
        assert buffer._file is not None
        first_read, second_read = list(buffer)
        assert isinstance(first_read, Scores)
        assert isinstance(second_read, Scores)
        assert first_read.prompts is second_read.prompts
        assert first_read.run is second_read.run is first.run
        assert first_read.metric is second_read.metric

    def test_few_prompts_are_in_memory_at_a_time(self) -> None:
        gc.freeze()  # only what comes after it is looked through below
        buffer = buffered([scores({f"q{n}": 1.0}) for n in range(50)], 0)
        for _ in buffer:
            pass
        gc.collect()
        assert len(buffer._loaded) < 10
        assert len(buffer._weighed) == 0

    def test_what_cannot_be_copied_is_kept_as_it_is(self) -> None:
        odd = Prompts(keys=["a"], details=[{"f": lambda: 1}])
        buffer = buffered([prompts(["b"]), odd], 0)
        assert buffer[1] is odd
        assert describe_block(buffer[0]) == describe_block(prompts(["b"]))

    def test_no_file_is_left_behind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        buffer = buffered([scores({"a": 1})], 0)
        assert buffer._file is not None
        assert list(tmp_path.iterdir()) == []  # it has no name even while it is in use
        buffer.close()


class TestAgainstMemory:
    def outcome(self, engine: sa.Engine, *files: ParsedFile) -> dict[str, Any]:
        with Session(engine) as session:
            for file in files:
                store_file(session, file, B)
            session.flush()
            rows_found = stored_contents(session)
            session.rollback()
        return rows_found

    @pytest.mark.parametrize("sought", [False, True])
    def test_the_store_makes_the_same_of_it(
        self, store: sa.Engine, monkeypatch: pytest.MonkeyPatch, sought: bool
    ) -> None:
        if sought:
            monkeypatch.setattr(prompt_index, "MAX_READ_WHOLE", -1)
            monkeypatch.setattr(prompt_index, "MAX_RATIO", 0)
            monkeypatch.setattr(database, "KEYS_PER_QUERY", 2)
        names = [("t", "k"), ("t", "k#1"), ("u", "k"), ("t", "j")]
        files: list[list[Measurement]] = []
        for details in ([3, 4, 5, 6], [4, 3, 5, 6]):
            content = {"text": ["same", "same", "same", "other"], "disambiguated_by": "n"}
            whole = prompts(names, details=[{"n": n} for n in details], **content)
            values = {name: float(n % 2) for name, n in zip(names, details, strict=True)}
            files.append([scores(values, "m", of=whole), answers({"j": "x"}, "m"), scores({"k": 1}, "n", of=None)][:2])
        plain = self.outcome(store, *(parsed_file(*file) for file in files))
        assert len(plain["prompts"]) == 4
        spools = [buffered(file, 0) for file in files]
        read_back = [
            ParsedFile(path=Path("x"), files=(), format="made", digest=str(n), identity=str(n), measurements=blocks)
            for n, blocks in enumerate(spools)
        ]
        assert self.outcome(store, *read_back) == plain
        cut = []
        for n, details in enumerate(([3, 4, 5, 6], [4, 3, 5, 6])):
            buffer = BlockBuffer(0)
            for name, text, number in zip(names, ["same", "same", "same", "other"], details, strict=True):
                of = prompts([name], text=[text], details=[{"n": number}], disambiguated_by="n")
                buffer.append(scores({name: float(number % 2)}, "m", of=of))
            buffer.append(answers({"j": "x"}, "m"))
            cut.append(ParsedFile(path=Path("x"), files=(), format="made", digest=str(n), identity=str(n),
                               measurements=buffer))  # fmt: skip
        assert self.outcome(store, *cut) == plain


@pytest.mark.soak
class TestMemory:
    def test_a_gigabyte_of_samples_is_ingested_with_less_than_300_megabytes(
        self, tmp_path: Path, sqlite_url: str
    ) -> None:
        from benchmarks.harness_samples import write_samples

        path = tmp_path / "samples_exam_2026-01-02T03-04-05.678901.jsonl"
        n_rows = write_samples(path, 1_000_000_000)
        measured = (
            "from pathlib import Path; from tracker.cli import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code, end.code\n"
            # The kernel counts what the process that started this one had into its ru_maxrss.
            "told = Path('/proc/self/status').read_text().partition('VmHWM:')[2]\n"
            "print('peak', int(told.split()[0]) // 1024)"
        )
        words = ["ingest", str(path), "--model", "m", "--no-mlflow", "--database", sqlite_url]
        done = subprocess.run(
            [sys.executable, "-c", measured, *words], capture_output=True, text=True, check=True, env=os.environ
        )
        assert f"{n_rows:,} new prompts" in done.stderr
        assert int(done.stdout.rpartition("peak ")[2]) < MAX_MEGABYTES
