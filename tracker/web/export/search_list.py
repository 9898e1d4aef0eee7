"""The rows of a search: the names of benchmarks and models, and the questions of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracker.web.export.lists import ROWS_PER_PART
from tracker.web.export.prompt_parts import load_prompt_texts
from tracker.web.pages.home import search_record
from tracker.web.query import Query

Rows = tuple[list[dict[str, Any]], list[str]]
"""Records as those of the server's search, and the texts to look at."""


def list_search_rows(
    query: Query, benchmarks: Mapping[str, int], models: Mapping[int, str], prompts: Mapping[int, Sequence[int]]
) -> Iterator[Rows]:
    """Yield the rows of a search in parts.

    Args:
        query: reads the store.
        benchmarks: keys by label.
        models: names by key.
        prompts: keys of prompts by key of their benchmark.
    """
    names = [("benchmark", key, label) for label, key in sorted(benchmarks.items())]
    names += [("model", key, name) for key, name in sorted(models.items(), key=lambda pair: pair[1])]
    if names:
        yield [search_record(kind, key, name) for kind, key, name in names], [name for *_, name in names]
    for label, key in benchmarks.items():
        for first in range(0, len(prompts[key]), ROWS_PER_PART):
            keys = prompts[key][first : first + ROWS_PER_PART]
            with query.session() as session:
                texts = load_prompt_texts(session, keys)
            rows = [search_record("prompt", prompt, label, text) for prompt, text in zip(keys, texts, strict=True)]
            yield rows, texts
