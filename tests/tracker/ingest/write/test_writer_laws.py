"""Laws of the store: the order of files, and how results are cut into files, do not matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measurement_blocks import ACCURACY, B, parsed_file, prompts, stored_contents
from sqlalchemy.orm import Session

from tracker.database import connect
from tracker.ingest.measurement import Answers, Measurement, MetricDescription, ParsedFile, RunDescription, Scores
from tracker.ingest.write.checksums import combine_checksums, compute_checksum, verify_checksums
from tracker.ingest.write.score_columns import ScoreColumn, assemble_scores, compare_scores, pack, unpack
from tracker.ingest.write.writer import store_file

LAW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
LOSS = MetricDescription(name="loss", higher_is_better=False)
TASKS = ("t", "u", "u", "t", "t")  # of the prompts q0 ... q4

Cell = tuple[int, str, MetricDescription, int]  # prompt, model, metric, trial
cells = st.tuples(
    st.integers(0, len(TASKS) - 1), st.sampled_from("mn"), st.sampled_from([ACCURACY, LOSS]), st.integers(0, 1)
)
truths = st.dictionaries(cells, st.sampled_from([0.0, 1.0, 0.1, 1 / 3]), min_size=1, max_size=20)


@contextmanager
def undone(engine: sa.Engine) -> Iterator[Session]:
    """A transaction that leaves nothing behind."""
    with Session(engine) as session:
        yield session
        session.rollback()


def file_of(truth: dict[Cell, float], *, with_tasks: bool = True, with_text: bool = False) -> ParsedFile:
    """One file that holds these scores, and an answer beside each."""
    blocks: list[Measurement] = []
    for model in sorted({cell[1] for cell in truth}):
        for metric in (ACCURACY, LOSS):
            rows = [(cell, value) for cell, value in truth.items() if cell[1] == model and cell[2] is metric]
            if rows:
                keys: list[Any] = [(TASKS[c[0]], f"q{c[0]}") if with_tasks else f"q{c[0]}" for c, _ in rows]
                content = {"text": [f"text {c[0]}" for c, _ in rows]} if with_text else {}
                of, run = prompts(keys, **content), RunDescription(model=model)
                trials = np.array([c[3] for c, _ in rows])
                values = np.array([value for _, value in rows])
                blocks.append(Scores(run=run, metric=metric, prompts=of, values=values, trials=trials))
                numbers = [str(value) for _, value in rows]
                blocks.append(Answers(run=run, prompts=of, text=numbers, trials=trials, extraction=metric.name))
    return parsed_file(*blocks)


def outcome(engine: sa.Engine, files: Sequence[ParsedFile]) -> dict[str, set[tuple[Any, ...]]]:
    with undone(engine) as session:
        for file in files:
            store_file(session, file, B)
        session.flush()
        assert verify_checksums(session) == []
        return stored_contents(session)


class TestLaws:
    @LAW
    @given(data=st.data(), truth=truths)
    def test_the_order_of_files_does_not_matter(self, store: sa.Engine, data: st.DataObject, truth: Any) -> None:
        parts = data.draw(
            st.lists(st.sets(st.sampled_from(sorted(truth, key=str)), min_size=1), min_size=2, max_size=4)
        )
        files = [
            file_of(
                {c: truth[c] for c in part}, with_tasks=data.draw(st.booleans()), with_text=data.draw(st.booleans())
            )
            for part in parts
        ]
        assert outcome(store, files) == outcome(store, data.draw(st.permutations(files)))

    @LAW
    @given(data=st.data(), truth=truths)
    def test_a_file_cut_in_two_is_the_whole_file(self, store: sa.Engine, data: st.DataObject, truth: Any) -> None:
        first = data.draw(st.sets(st.sampled_from(sorted(truth, key=str))))
        halves = [{c: v for c, v in truth.items() if (c in first) == side} for side in (True, False)]
        assert outcome(store, [file_of(truth)]) == outcome(store, [file_of(half) for half in halves if half])

    @LAW
    @given(truth=truths)
    def test_the_same_results_again_change_nothing(self, store: sa.Engine, truth: Any) -> None:
        once = outcome(store, [file_of(truth)])
        assert outcome(store, [file_of(truth), file_of(truth)]) == once

    @LAW
    @given(truth=truths)
    def test_what_is_stored_is_what_was_read(self, store: sa.Engine, truth: Any) -> None:
        stored = outcome(store, [file_of(truth)])["scores"]
        expected = {
            ("b", model, "full", "", metric.name, TASKS[q], "", f"q{q}", trial, value)
            for (q, model, metric, trial), value in truth.items()
        }
        assert stored == expected

    def test_every_bit_of_many_values_arrives(self, store: sa.Engine) -> None:
        for n in (1, 199, 200, 201, 1000):
            values = np.random.default_rng(n).standard_normal(n) * 10.0 ** (np.arange(n) - n // 2).clip(-300, 300)
            of = prompts([f"q{i}" for i in range(n)])
            block = Scores(run=RunDescription(model="m"), metric=LOSS, prompts=of, values=values)
            with undone(store) as session:
                store_file(session, parsed_file(block), B)
                stored = session.execute(sa.text("SELECT value FROM score ORDER BY prompt_id")).all()
                assert np.array([value for (value,) in stored]).tobytes() == values.tobytes()


class TestSameOnBothEngines:
    def test_the_checksum_does_not_depend_on_the_engine(self, sqlite_url: str, postgres_url: str) -> None:
        truth = {(q, "m", ACCURACY, trial): (q + trial) / 7 for q in range(5) for trial in (0, 1)}
        sums = set()
        for url in (sqlite_url, postgres_url):
            engine = connect(url)
            with undone(engine) as session:
                store_file(session, file_of(truth), B)
                sums.add(session.execute(sa.text("SELECT n_scores, checksum FROM run")).one())
            engine.dispose()
        assert len(sums) == 1


columns = st.dictionaries(
    st.tuples(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1)), st.floats(allow_nan=False, allow_infinity=False)
).map(
    lambda d: ScoreColumn(
        1,
        np.array(sorted(pack(np.array([p]), t)[0] for p, t in d), dtype=np.int64),
        np.array([d[key] for key in sorted(d)]) + 0.0,
    )
)


class TestColumns:
    @given(columns, st.randoms(use_true_random=False))
    def test_checksums_add_up_in_any_order(self, column: ScoreColumn, random: Any) -> None:
        chosen = np.array([random.random() < 0.5 for _ in range(len(column))], dtype=bool)
        first, second = compute_checksum([column.where(chosen)]), compute_checksum([column.where(~chosen)])
        assert combine_checksums(first, second) == combine_checksums(second, first) == compute_checksum([column])
        assert combine_checksums(compute_checksum([column]), second, -1) == first

    @given(columns)
    def test_packed_keys_can_be_unpacked(self, column: ScoreColumn) -> None:
        prompts_, trials = unpack(column.keys)
        assert (pack(prompts_, trials) == column.keys).all()

    @given(columns)
    def test_a_column_agrees_with_itself(self, column: ScoreColumn) -> None:
        beside = compare_scores(column, column)
        assert not beside.new.any()
        assert not beside.different.any()
        assert compare_scores(column, None).new.all()

    def test_pieces_in_any_order_make_one_column(self) -> None:
        from tracker.ingest.write.score_columns import ScoreChunk

        ids = np.array([3, 1, 2])
        values = np.array([0.3, 0.1, np.nan])
        column, contradicted = assemble_scores(7, [ScoreChunk(0, ids, values, 1), ScoreChunk(1, ids, values, 0)])
        assert len(contradicted) == 0
        assert [p.tolist() for p in unpack(column.keys)] == [[1, 1, 3, 3], [0, 1, 0, 1]]
        assert column.values.tolist() == [0.1, 0.1, 0.3, 0.3]
