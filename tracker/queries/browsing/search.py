"""Search for a text in names and questions: upper and lower case, and letters with and without accents, are equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.orm import Session

from tracker.errors import DatabaseError
from tracker.queries.resolution import benchmark_label
from tracker.queries.sql import tables
from tracker.schema.search_index import CASELESS, TABLE

MAX_LENGTH = 300
MAX_CHARACTERS = 1_000
"""Characters of a search that count."""
MAX_TERMS = 32
"""Words and phrases of a search that count."""
TERM = re.compile(r'["“”](?P<phrase>[^"“”]*)["“”]|(?P<words>[^\s"“”]+)')
WORDS = re.compile(f"[{CASELESS}]+|[^{CASELESS}]+")
IS_CASELESS = re.compile(f"[{CASELESS}]")


@dataclass(frozen=True, kw_only=True)
class SearchTerms:
    """What a prompt must contain.

    Attributes:
        phrases: words in this order, and whether the last one may be the beginning of a word.
        parts: texts that the question contains as they are, but for upper and lower case.
        whole: the whole search as it is.
    """

    phrases: tuple[tuple[str, bool], ...]
    parts: tuple[str, ...]
    whole: str


def parse_search(text: str) -> SearchTerms:
    """Return the terms of a search.

    A word may be the beginning of a longer one; words joined by punctuation (``x^2``), and words in quotes, must follow
    each other. Text in scripts without upper and lower case, such as Chinese, is looked for as it is, since words
    have no spaces between them.

    Args:
        text: what somebody typed.
    """
    cleaned = text.encode("utf-8", "replace").decode().replace("\0", " ")
    cleaned = unicodedata.normalize("NFC", cleaned[:MAX_CHARACTERS]).strip()
    terms = list(dict.fromkeys(_split(cleaned)))[:MAX_TERMS]
    phrases = tuple((content, is_prefix) for content, is_prefix, is_part in terms if not is_part)
    parts = tuple(content for content, _, is_part in terms if is_part)
    return SearchTerms(phrases=phrases, parts=parts, whole=cleaned)


def _split(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield terms: the text, whether it is the beginning of a word, and whether it is looked for as it is."""
    for term in TERM.finditer(text):
        phrase = term["phrase"]
        if phrase is not None:
            if IS_CASELESS.search(phrase):
                yield phrase.strip(), False, True
            elif _has_word(phrase):
                yield phrase, False, False
            continue
        for piece in WORDS.findall(term["words"]):
            if IS_CASELESS.match(piece):
                yield piece, False, True
            elif _has_word(piece):
                yield piece, _is_word(piece[-1]), False


def _has_word(text: str) -> bool:
    return any(map(_is_word, text))


def _is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


def find_names(keys: Mapping[str, int], text: str, limit: int) -> list[tuple[str, int]]:
    """Return names that contain a text, with their keys: those that begin with it first; none for an empty text."""
    part = text.casefold()
    matches = [(name, key) for name, key in keys.items() if part and part in name.casefold()]
    return sorted(matches, key=lambda pair: (not pair[0].casefold().startswith(part), pair[0]))[:limit]


def find_prompts(session: Session, text: str, limit: int) -> list[tuple[int, str, str]]:
    """Return key, benchmark and the beginning of the question of prompts that match a text, the best match first.

    If no prompt has its words, prompts match that contain the text as it is, also in the middle of a word.

    Args:
        session: the store.
        text: as for `parse_search`; an empty one matches none.
        limit: the largest number of prompts.

    Raises:
        DatabaseError: the store lacks its search index.
    """
    keys = _fetch_keys(session, parse_search(text), lambda query: query.limit(limit))
    prompt, benchmark = tables.prompt.c, tables.benchmark.c
    beginning = sa.func.substr(prompt.text, 1, MAX_LENGTH).label("question")
    query = (
        sa.select(prompt.id, benchmark.name, benchmark.revision, beginning)
        .join(tables.task, tables.task.c.id == prompt.task_id)
        .join(tables.benchmark, benchmark.id == tables.task.c.benchmark_id)
        .where(prompt.id.in_(keys))
    )
    rows = {row.id: (benchmark_label(row.name, row.revision), row.question) for row in session.execute(query)}
    return [(key, *rows[key]) for key in keys]


def find_prompts_with_text(session: Session, task_ids: Sequence[int], text: str) -> list[int]:
    """Return the keys of prompts of some tasks that match a text, as `find_prompts` does.

    Args:
        session: the store.
        task_ids: keys of the tasks to search.
        text: as for `parse_search`; an empty one matches none.

    Raises:
        DatabaseError: the store lacks its search index.
    """
    is_of_task = tables.prompt.c.task_id.in_(task_ids)
    return _fetch_keys(session, parse_search(text), lambda query: query.where(is_of_task))


def _fetch_keys(
    session: Session, terms: SearchTerms, restrict: Callable[[sa.Select[Any]], sa.Select[Any]]
) -> list[int]:
    """Return the keys of prompts that match, the best match first; equal ones by key."""
    if not terms.whole:
        return []
    try:
        if (terms.phrases or terms.parts) and (
            keys := list(session.scalars(restrict(_select_matches(session, terms))))
        ):
            return keys
    except (exc.OperationalError, exc.ProgrammingError) as error:
        if TABLE not in str(error.orig):
            raise
        raise DatabaseError("The search index of this store is missing. Run: suffrage db upgrade") from error
    as_it_is = SearchTerms(phrases=(), parts=(terms.whole.strip('"“”') or terms.whole,), whole=terms.whole)
    return list(session.scalars(restrict(_select_matches(session, as_it_is))))


def _select_matches(session: Session, terms: SearchTerms) -> sa.Select[Any]:
    prompt = tables.prompt.c
    query = sa.select(prompt.id)
    for part in terms.parts:
        query = query.where(prompt.text.icontains(part, autoescape=True))
    if not terms.phrases:
        return query.order_by(prompt.id)
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    matches = _match_sqlite(terms.phrases) if is_sqlite else _match_postgresql(terms.phrases)
    return query.join(matches, matches.c.id == prompt.id).order_by(matches.c.distance, prompt.id)


def _match_sqlite(phrases: Sequence[tuple[str, bool]]) -> sa.CTE:
    """Return keys of matching prompts, and a number that is smaller the better the match."""
    quoted = ['"{}"{}'.format(words.replace('"', " "), "*" if is_prefix else "") for words, is_prefix in phrases]
    index = sa.table(TABLE, sa.column("rowid", sa.Integer()))
    name: sa.ColumnElement[Any] = sa.literal_column(TABLE)
    return (
        sa.select(index.c.rowid.label("id"), sa.func.bm25(name).label("distance"))
        .where(name.op("MATCH")(" AND ".join(quoted)))
        .cte("matches")
        .prefix_with("MATERIALIZED")
    )


def _match_postgresql(phrases: Sequence[tuple[str, bool]]) -> sa.CTE:
    """Return the same as `_match_sqlite`."""
    from sqlalchemy.dialects.postgresql import TSQUERY

    query: sa.ColumnElement[Any] | None = None
    for words, is_prefix in phrases:
        phrase: sa.ColumnElement[Any] = sa.func.phraseto_tsquery(
            sa.literal_column("'simple'"), sa.func.prompt_search_text(words)
        )
        if is_prefix:  # of the last word; no word at all is null, which matches nothing
            phrase = sa.cast(sa.func.nullif(sa.cast(phrase, sa.String()), "") + ":*", TSQUERY)
        query = phrase if query is None else query.op("&&")(phrase)
    index = sa.table(TABLE, sa.column("prompt_id", sa.Integer()), sa.column("words"))
    requested = sa.select(sa.type_coerce(query, TSQUERY).label("query")).cte("requested").prefix_with("MATERIALIZED")
    # The rank is divided by the logarithm of the length of the text, as BM25 prefers short texts.
    distance = -sa.func.ts_rank(index.c.words, requested.c.query, 1)
    return (
        sa.select(index.c.prompt_id.label("id"), distance.label("distance"))
        .join_from(index, requested, index.c.words.op("@@")(requested.c.query))
        .cte("matches")
        .prefix_with("MATERIALIZED")
    )
