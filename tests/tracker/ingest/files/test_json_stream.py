"""JSON values of any size as streams of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.errors import BadInputError
from tracker.ingest.files.json_stream import stream_parts

TEXTS = st.text(alphabet='ab"\\{}[],: \n/é\u2028', max_size=6)
NAMES = st.sampled_from(["a", "b", 'x"', "list", "in"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[],: \n/é\u2028', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", 'x"', "list", "in"]), inner, max_size=4)
    ),
    max_leaves=12,
)


class TestAgainstReference:
    """The parts of a JSON value, against a reader that holds all of it."""

    @settings(max_examples=60)
    @given(
        elements=st.lists(JSON, max_size=4), before=JSON, after=JSON, size=st.integers(1, 40),
        indent=st.sampled_from([None, 1]), ascii=st.booleans(),
    )  # fmt: skip
    def test_are_the_elements_of_the_list_and_what_stands_beside_it(
        self, elements: list[Any], before: Any, after: Any, size: int, indent: int | None, ascii: bool
    ) -> None:
        def streamed(data: Any, **options: Any) -> list[tuple[str | None, Any]]:
            text = json.dumps(data, indent=indent, ensure_ascii=ascii).encode()
            chunks: Iterator[bytes] = (text[at : at + size] for at in range(0, len(text), size))
            return [(name, json.loads(part)) for name, part in stream_parts(chunks, Path("x"), **options)]

        alone = [(None, element) for element in elements]
        assert streamed(elements) == alone
        data = {"before": before, "in": {"b": before, "list": elements, "lists": after}, "after": after}
        beside = [("before", before), ("b", before)]
        assert streamed(data, of=("in", "list")) == [*beside, *alone, ("lists", after), ("after", after)]
        slim = [
            (None, {k: v for k, v in element.items() if k in ("a", "list")} if isinstance(element, dict) else element)
            for element in elements
        ]
        kept = streamed(data, of=("in", "list"), only=("a", "list"), beside=("b", "after"))
        assert kept == [("b", before), *slim, ("after", after)]

    @settings(max_examples=40)
    @given(data=JSON.map(lambda value: json.dumps([value]).encode()), at=st.integers(0, 60))
    def test_what_breaks_off_is_refused(self, data: bytes, at: int) -> None:
        if at < len(data):
            with pytest.raises(BadInputError, match="truncated"):
                list(stream_parts([data[:at]], Path("x")))
