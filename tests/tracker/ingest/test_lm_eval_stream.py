"""Samples of lm-evaluation-harness as a stream of small blocks: what is read is what the slow way reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_lm_eval import Cell, plain_samples

from tracker.errors import BadInputError
from tracker.ingest.formats.lm_eval import samples as stream
from tracker.ingest.measurement import Answers, Measurement, Prompts, ReadOptions, Scores
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.resolve.sorted_int_map import SortedIntMap

STAMP = "2026-01-02T03-04-05"


def sample(number: int, kind: int, filter_name: str, right: float | None, with_names: bool) -> dict[str, Any]:
    """A sample of one of four documents, two of which are alike."""
    return {
        "doc_id": number,
        "doc": {"question": f"Why {number // 2}?"},
        "target": str(kind % 2),
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}}
        if kind
        else {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}},
        "filtered_resps": [[str(-1.0 - number), "False"], ["-2.0", "False"]] if kind else ["said"],
        "filter": filter_name,
        "metrics": ["acc", *(["f1"] if with_names else [])],
        "doc_hash": f"hash{number // 2}",
        "acc": right,
        **({"f1": [0, 1]} if with_names else {}),
    }


rows = st.lists(
    st.builds(
        sample,
        number=st.integers(0, 5),
        kind=st.just(1),
        filter_name=st.sampled_from(["strict", "loose"]),
        right=st.sampled_from([1.0, 0.0, None]),
        with_names=st.booleans(),
    ),
    min_size=1,
    max_size=24,
)


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    path = folder / f"samples_t_{STAMP}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def cells_of(measurements: list[Measurement]) -> set[Cell]:
    cells: list[Cell] = []
    for block in measurements:
        if isinstance(block, Scores):
            name = "probability" if block.metric.name == stream.PROBABILITY else block.metric.name
            values = zip(block.prompts.keys, block.values.tolist(), strict=True)
            cells += [(name, key, value) for key, value in values if not np.isnan(value)]
        elif isinstance(block, Answers):
            assert block.predicted is not None
            answers_of_rows = zip(block.prompts.keys, block.text, block.predicted.tolist(), strict=True)
            cells += [
                (f"answer,{block.extraction}", key, text) for key, text, predicted in answers_of_rows if predicted
            ]
    assert len(cells) == len(set(cells))
    return set(cells)


class TestAgainstReference:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(lines=rows, size=st.integers(1, 7))
    def test_blocks_of_any_size_hold_what_the_whole_file_holds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]], size: int
    ) -> None:
        monkeypatch.setattr(stream, "PROMPTS_PER_BLOCK", size)
        path = written(tmp_path, lines)
        expected, passed_over, n_contradicting = plain_samples(path)
        reading = None
        try:
            reading = parse_file(path, ReadOptions(model="m"), partial=True)
        except BadInputError:  # every metric was passed over and nothing was said
            assert not expected
            return
        assert cells_of(list(reading.measurements)) == expected
        assert bool(reading.damage) == bool(n_contradicting)
        if not n_contradicting:
            assert all(name.partition(":")[2] in " ".join(reading.warnings) for name in passed_over)
        for block in reading.measurements:
            of = block if isinstance(block, Prompts) else getattr(block, "prompts")  # noqa: B009
            assert len(of) <= size

    @settings(max_examples=100)
    @given(
        st.lists(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 9)), max_size=6), max_size=12),
    )
    def test_a_sorted_int_map_is_a_dictionary(self, parts: list[list[tuple[int, int]]]) -> None:
        int_map, plain = SortedIntMap(), dict[int, int]()
        keys = np.arange(-6, 7)
        for part in parts:
            int_map.put(np.array([k for k, _ in part], dtype=np.int64), np.array([v for _, v in part], dtype=np.int64))
            plain.update(part)
            assert int_map.get(keys, -1).tolist() == [plain.get(key, -1) for key in keys.tolist()]


class TestErrors:
    def test_a_metric_that_turns_into_a_list_is_refused_where_it_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stream, "PROMPTS_PER_BLOCK", 1)
        path = written(tmp_path, [sample(0, 1, "none", 1.0, False), {**sample(2, 1, "none", 1.0, False), "acc": [1]}])
        with pytest.raises(BadInputError, match="line 2: acc is not a single number, unlike in earlier lines"):
            parse_file(path, ReadOptions(model="m"))

    @pytest.mark.parametrize("number", [2**53 + 1, 2**64 + 1, 10**30 + 1, 10**400])
    def test_whole_numbers_that_a_score_cannot_keep_are_refused(self, tmp_path: Path, number: int) -> None:
        path = written(tmp_path, [{**sample(0, 1, "none", 1.0, False), "metrics": ["loss"], "loss": number}])
        with pytest.raises(BadInputError, match=r"line 1: loss is .*too many digits for a 64-bit float"):
            parse_file(path, ReadOptions(model="m"))

    @pytest.mark.parametrize("number", [2**53, 2**54, 1e20, 1.5e300, 2**64])
    def test_those_that_it_can_are_kept(self, tmp_path: Path, number: float) -> None:
        path = written(tmp_path, [{**sample(0, 1, "none", 1.0, False), "metrics": ["loss"], "loss": number}])
        block = parse_file(path, ReadOptions(model="m")).measurements[0]
        assert isinstance(block, Scores)
        assert block.values.tolist() == [float(number)]


@pytest.mark.parametrize(("most", "n_read", "n_counted"), [(3, 1, 3), (5, 3, 4)])
def test_a_file_is_read_no_further_after_many_lines_that_are_not_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, n_read: int, n_counted: int
) -> None:
    # Arrange: a sample, three broken lines, two samples, and a broken line.
    monkeypatch.setattr(stream, "MAX_REJECTED", most)
    first, *later = (json.dumps(sample(number, 1, "none", 1.0, False)) for number in range(3))
    path = tmp_path / f"samples_t_{STAMP}.jsonl"
    path.write_text("\n".join([first, "{", "a", "[", *later, "{"]))

    # Act
    reading = parse_file(path, ReadOptions(model="m"), partial=True)

    # Assert
    cells = [cell for cell in cells_of(list(reading.measurements)) if cell[0] == "acc"]
    assert len(cells) == n_read
    assert f"{n_counted} problems" in str(reading.damage)
    assert ("Line 5 and later lines were not read" in str(reading.damage)) == (most == 3)
