"""The pages of prompts in parts, each with the prompts of a range of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from tracker.queries.browsing.prompt_responses import load_prompts, load_responses_of_prompts
from tracker.queries.sql import tables
from tracker.web.export.addresses import PROMPT_FILE
from tracker.web.export.lists import write_compressed
from tracker.web.export.markup import Token, encode_tokens, parse_html
from tracker.web.pages.single_prompt import make_prompt_page
from tracker.web.query import Query

FOLDER = "prompts"
PART_SIZES = (100, 50, 20, 10, 5, 2, 1)
MAX_PART_TEXT = 1_500_000
"""Characters of responses in a part, on average."""
MAIN = re.compile(r"<main[^>]*>(.*)</main>", re.DOTALL)
ROW = re.compile(r"(<tr>.*?</tr>)", re.DOTALL)


def list_prompt_ids(session: Session, benchmark_id: int) -> list[int]:
    """Return the keys of all prompts of a benchmark, ascending."""
    query = (
        sa.select(tables.prompt.c.id)
        .join(tables.task, tables.task.c.id == tables.prompt.c.task_id)
        .where(tables.task.c.benchmark_id == benchmark_id)
        .order_by(tables.prompt.c.id)
    )
    return list(session.scalars(query))


def load_prompt_texts(session: Session, prompt_ids: Sequence[int]) -> list[str]:
    """Return the questions of some hundred prompts; '' for one without."""
    query = sa.select(tables.prompt.c.id, tables.prompt.c.text).where(tables.prompt.c.id.in_(prompt_ids))
    texts = {row.id: row.text for row in session.execute(query)}
    return [texts.get(key) or "" for key in prompt_ids]


def choose_part_size(session: Session, n_prompts: int) -> int:
    """Return how many keys a part covers: few where responses are long."""
    n_letters = session.scalar(sa.select(sa.func.sum(sa.func.length(tables.answer.c.text)))) or 0
    per_prompt = n_letters / max(n_prompts, 1)
    return next((size for size in PART_SIZES if size * per_prompt <= MAX_PART_TEXT), 1)


def write_prompt_parts(
    folder: Path,
    query: Query,
    prompts: Mapping[int, Sequence[int]],
    rewrite: Callable[[Sequence[Token], str], Sequence[Token]],
    advance: Callable[[int], None],
) -> int:
    """Write the pages of prompts; return the number of keys that a part covers.

    Args:
        folder: of the export.
        query: reads the store.
        prompts: keys of prompts by key of their benchmark.
        rewrite: makes links relative to a file.
        advance: takes the number of prompts written by each step.
    """
    with query.session() as session:
        size = choose_part_size(session, sum(map(len, prompts.values())))
    keys = sorted((key, benchmark) for benchmark, rows_list in prompts.items() for key in rows_list)
    for number, part in groupby(keys, lambda pair: pair[0] // size):
        members = list(part)
        pieces = PieceTable(lambda text: encode_tokens(rewrite(parse_html(text), PROMPT_FILE)))
        pages = {key: pieces.split(text) for key, text in _render(query, members)}
        write_compressed(folder / FOLDER / f"{number}.json.gz", {"pieces": pieces.pieces, "prompts": pages})
        advance(len(members))
    return size


class PieceTable:
    """Distinct pieces of pages: most rows of responses are equal to a row of another prompt.

    Args:
        encode: returns what is kept of a piece of HTML.
    """

    def __init__(self, encode: Callable[[str], list[Any]]) -> None:
        self.pieces: list[list[Any]] = []
        self._encode = encode
        self._numbers: dict[str, int] = {}

    def split(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a page."""
        numbers = []
        for piece in ROW.split(text):
            number = self._numbers.get(piece)
            if number is None:
                number = self._numbers[piece] = len(self.pieces)
                self.pieces.append(self._encode(piece))
            numbers.append(number)
        return numbers


def _render(query: Query, members: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield the content of the page of each prompt, of keys of prompts and their benchmarks."""
    for benchmark, pairs in groupby(sorted(members, key=lambda pair: pair[1]), lambda pair: pair[1]):
        keys = [key for key, _ in pairs]
        with query.session() as session:
            prompts = load_prompts(session, keys)
            responses = load_responses_of_prompts(session, benchmark, keys)
        for prompt in prompts:
            page = make_prompt_page(query, prompt, responses[prompt.id])
            match = MAIN.search(page.render(f"/prompt/{prompt.id}", is_static=True))
            assert match is not None
            yield prompt.id, match[1]
